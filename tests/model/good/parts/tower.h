#include <accel/model.h>

#define WIDTH 12
#define DEPTH 3
#define LAYER(s, i, x, width) relu(linear(nth(s, "layer", i), x, width))

static tensor tower(scope s, tensor x, int width, int depth) {
  for (int i = 0; i < depth; i++) x = LAYER(s, i, x, width);
  return x;
}
