/* Scopes as values: returned, kept in structs, with initializers that reach what is below them. */
#include <accel/model.h>

struct positions {
  scope first, second;
};

static struct positions below(scope s) {
  return (struct positions){at(s, "first"), init_ones(at(s, "second.part"))};
}

/* A scope that a region gives back belongs to its caller. */
struct made {
  tensor x;
  scope next;
};

static struct made grow(scope s, tensor x) {
  return (struct made){linear(at(s, "grow"), x, dim(x, 2) + 1), at(init_uniform(s, 0.25), "after")};
}

static tensor bilinear(struct positions p, tensor x) {
  return mul(linear(p.first, x, 4), linear_no_bias(p.second, x, 4));
}

tensor model(scope s, tensor tokens) {
  tensor x = embedding(init_normal(s, 0.5), tokens, 10, 3);
  struct made made = grow(at(s, "a"), x);
  made = grow(made.next, made.x);
  x = bilinear(below(made.next), made.x);
  x = layer_norm(init_zeros(at(s, "norm")), x);
  return mean_all(linear(at(init_zeros(s), "zero"), x, 1));
}
