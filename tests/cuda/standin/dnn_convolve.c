/* Convolutions, as engines of cuDNN with their notes compute them: in double, rounding where a note says so. */
#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/dnn.h"

#include "runtime/base/half.h"

#include <cudnn.h>
#include <stdlib.h>
#include <string.h>

/* float32 as tensor cores read it: 10 bits after the point. */
static double as_tf32(double value) {
  float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  bits = (bits + 0x1000) & ~0x1fffu;
  memcpy(&narrow, &bits, sizeof bits);
  return narrow;
}

static double factor(struct running *running, const struct tensor *tensor, int64_t offset, enum engine engine) {
  double value = read_at(running, tensor, offset);
  if (tensor->type != CUDNN_DATA_FLOAT) return value;
  if (engine == BY_TENSOR_CORES) return as_tf32(value);
  return engine == DOWN_CONVERTS ? rt_widen_bfloat16(rt_narrow_bfloat16((float)value)) : value;
}

static double sum_of(double sum, double term, enum engine engine) {
  if (engine == REDUCES_LOW) return rt_widen_bfloat16(rt_narrow_bfloat16((float)(sum + term)));
  return engine == VARIES ? (double)(float)(sum + term) : sum + term;
}

struct convolving {
  struct running *running;
  const struct operation *op;
  enum engine engine;
  double *sums;
};

static int64_t offset_at(const struct tensor *tensor, int64_t a, int64_t b, int64_t c, int64_t d) {
  return a * tensor->step[0] + b * tensor->step[1] + c * tensor->step[2] + d * tensor->step[3];
}

/* The terms of all that has this position of y and this channel of the weights. */
static void add_window(const struct convolving *c, const int64_t position[4], int64_t channel) {
  const struct tensor *x = &c->op->tensors[X], *w = &c->op->tensors[B], *y = &c->op->tensors[Y];
  const struct windows *how = &c->op->windows;
  int64_t groups = x->length[1] / w->length[1];
  int64_t in = position[1] / (y->length[1] / groups) * w->length[1] + channel;
  for (int64_t p = 0; p < w->length[2]; p++)
    for (int64_t q = 0; q < w->length[3]; q++) {
      int64_t row = position[2] * how->stride[0] - how->padding[0] + p * how->dilation[0];
      int64_t column = position[3] * how->stride[1] - how->padding[1] + q * how->dilation[1];
      if (row < 0 || row >= x->length[2] || column < 0 || column >= x->length[3]) continue;
      int64_t at[SLOTS] = {[X] = offset_at(x, position[0], in, row, column),
                           [B] = offset_at(w, position[1], channel, p, q),
                           [Y] = offset_at(y, position[0], position[1], position[2], position[3])};
      double term = 1.0;
      for (enum slot slot = X; slot <= Y; slot++)
        if (slot != T && slot != how->made) term *= factor(c->running, &c->op->tensors[slot], at[slot], c->engine);
      double *sum = &c->sums[at[how->made]];
      *sum = sum_of(*sum, term, c->engine);
    }
}

/* Backwards in every other run where the order is not said. */
static void add_all(const struct convolving *c, bool backwards) {
  const struct tensor *w = &c->op->tensors[B], *y = &c->op->tensors[Y];
  int64_t count = y->length[0] * y->length[1] * y->length[2] * y->length[3];
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = backwards ? count - 1 - i : i, position[4];
    for (int axis = 3; axis >= 0; axis--) {
      position[axis] = rest % y->length[axis];
      rest /= y->length[axis];
    }
    for (int64_t channel = 0; channel < w->length[1]; channel++) add_window(c, position, channel);
  }
}

void run_convolution(struct running *running, const struct operation *op, enum engine engine) {
  static unsigned runs;
  const struct tensor *made = &op->tensors[op->windows.made];
  int64_t count = made->length[0] * made->length[1] * made->length[2] * made->length[3];
  struct convolving c = {running, op, engine, calloc((size_t)count, sizeof(double))};
  if (c.sums == NULL) fault("no memory");
  if (made->step[3] != 1 || made->step[0] != count / made->length[0]) fault("a convolution's result with gaps");
  add_all(&c, engine == VARIES && runs++ % 2 > 0 && setting("STANDIN_VARIES", 1));
  for (int64_t i = 0; i < count; i++) {
    double before = op->windows.beta != 0.0 ? op->windows.beta * read_at(running, made, i) : 0.0;
    write_at(running, made, i, op->windows.alpha * c.sums[i] + before);
  }
  free(c.sums);
}
