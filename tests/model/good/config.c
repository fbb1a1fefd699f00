// job: activation=GELU layer.count=2 layer.widths.0=8 layer.widths.1=24 name=wide rate=3 big=5000000000
/* Every kind of config field, nested ones, and defaults for what the job leaves out. */
#include <accel/model.h>
#include <assert.h>
#include <string.h>

enum activation { RELU, GELU, SILU };

struct config {
  enum activation activation;
  struct layers {
    int count;
    int widths[3];
    double scale;
  } layer;
  const char *name;
  bool bias;
  float rate;
  long big;
  unsigned char small;
};

const struct config defaults = {.layer = {.count = 7, .widths = {1, 2, 32}, .scale = 0.5}, .bias = true, .small = 200};

static tensor activate(tensor x, struct config c) {
  switch (c.activation) {
  case RELU:
    return relu(x);
  case GELU:
    return gelu(x);
  default:
    return silu(x);
  }
}

tensor model(scope s, struct config c, tensor tokens) {
  assert(c.layer.count == 2 && c.layer.widths[0] == 8 && c.layer.widths[2] == 32 && c.layer.scale == 0.5);
  assert(c.bias && c.rate == 3 && c.big == 5000000000 && c.small == 200);
  tensor x = embedding(at(s, "table"), tokens, 256, 4);
  for (int i = 0; i <= c.layer.count; i++) {
    tensor y = c.bias ? linear(nth(s, "layer", i), x, c.layer.widths[i])
                      : linear_no_bias(nth(s, "layer", i), x, c.layer.widths[i]);
    x = activate(y, c);
  }
  return mean_all(strcmp(c.name, "wide") == 0 ? square(x) : x);
}
