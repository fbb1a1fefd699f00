/* An autoencoder: pictures through a few numbers, and back (Hinton, Salakhutdinov, Science 313, 2006). It has no
 * labels: the job's data.inputs names `picture`, of any shape, alone. B batch. */
#include <accel/model.h>

struct config {
  int width, code; /* of the hidden layers; numbers that a picture becomes */
};

/* [B][...] as [B][code]. */
static tensor encode(scope s, tensor picture, struct config c) {
  tensor flat = reshape(picture, dim(picture, 0), -1);
  return linear(at(s, "2"), gelu(linear(at(s, "0"), flat, c.width)), c.code);
}

/* The picture of a code, flat. */
static tensor decode(scope s, tensor code, int numbers, struct config c) {
  return linear(at(s, "2"), gelu(linear(at(s, "0"), code, c.width)), numbers);
}

tensor model(scope s, struct config c, tensor picture) {
  tensor flat = reshape(picture, dim(picture, 0), -1);
  tensor code = encode(at(s, "encoder"), picture, c);
  return mse_loss(decode(at(s, "decoder"), code, dim(flat, 1), c), flat);
}
