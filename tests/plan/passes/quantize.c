/* --set model.freeze=[up.weight] --set model.quantize.load_in_4bit=true
 * --set model.quantize.bnb_4bit_use_double_quant=true */
#include <accel/model.h>

tensor model(scope s, tensor features, tensor labels) {
  tensor x = linear(at(s, "up"), features, 4);
  return cross_entropy(linear(at(s, "out"), x, 2), labels);
}
