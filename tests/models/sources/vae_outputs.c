/* What of a picture comes back from the mean of its latent, one number a sample: the one where `probe` is 1. */
#include <accel/model.h>

#define model training_of_vae
#include "../../../examples/models/vae.c"
#undef model

tensor model(scope s, struct config c, tensor picture, tensor probe) {
  return sum_all(mul(decode(s, split(encode(s, picture, c), 1, 2, 0), c), probe));
}
