#include <accel/model.h>

tensor model(scope s, tensor tokens) {
  tensor logits = embedding(s, tokens, 10, 16);
  return cross_entropy_ignore(logits, cast_target(cast_float(tokens), 16, -100), -1);
}
