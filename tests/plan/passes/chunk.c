/* --set memory.cross_entropy_chunk=2 */
#include <accel/model.h>

tensor model(scope s, tensor tokens, tensor targets) {
  return cross_entropy(linear_no_bias(at(s, "out"), embedding(at(s, "e"), tokens, 256, 4), 256), targets);
}
