/* What a DiT finds in an image, one number a sample: the one where `probe` is 1. */
#include <accel/model.h>

#define model training_of_dit
#include "../../../examples/models/dit.c"
#undef model

tensor model(scope s, struct config c, tensor image_of, tensor steps, tensor classes, tensor probe) {
  return sum_all(mul(dit(s, image_of, steps, classes, c), probe));
}
