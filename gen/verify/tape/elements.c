/* One result for each position: accel/model.h's functions over elements, each by the formula of its comment. */
#include "gen/verify/tape/elements.h"

#include <math.h>

#include "gen/verify/tape/tape.h"

/* ---- Two operands ---- */

/* Both at the extents of their result. */
static void broadcast(tensor *a, tensor *b, const char *function) {
  int rank = (*a)->rank > (*b)->rank ? (*a)->rank : (*b)->rank;
  int64_t dim[MOST_AXES];
  for (int i = 0; i < rank; i++) {
    int in_a = i - rank + (*a)->rank, in_b = i - rank + (*b)->rank;
    int64_t of_a = in_a >= 0 ? (*a)->dim[in_a] : 1, of_b = in_b >= 0 ? (*b)->dim[in_b] : 1;
    dim[i] = of_a == 1 ? of_b : of_a;
  }
  *a = expand(*a, rank, dim, function);
  *b = expand(*b, rank, dim, function);
}

static void add_to(double *to, const double *from, int64_t count, double factor) {
  if (to == NULL) return;
#pragma omp parallel for schedule(static) if (count > MANY)
  for (int64_t i = 0; i < count; i++) to[i] += factor * from[i];
}

static void add_backward(tensor y) {
  add_to(tape_gradient(y->of[0]), y->gradient, y->count, 1);
  add_to(tape_gradient(y->of[1]), y->gradient, y->count, 1);
}

tensor add(tensor a, tensor b) {
  broadcast(&a, &b, "add");
  tensor y = tape_like(a);
  y->whole = a->whole && b->whole;
#pragma omp parallel for schedule(static) if (y->count > MANY)
  for (int64_t i = 0; i < y->count; i++) y->values[i] = a->values[i] + b->values[i];
  return tape_end(y, add_backward, 1, a, b, NULL);
}

static void mul_backward(tensor y) {
  double *da = tape_gradient(y->of[0]), *db = tape_gradient(y->of[1]);
  const double *a = y->of[0]->values, *b = y->of[1]->values;
  for (int64_t i = 0; da != NULL && i < y->count; i++) da[i] += y->gradient[i] * b[i];
  for (int64_t i = 0; db != NULL && i < y->count; i++) db[i] += y->gradient[i] * a[i];
}

tensor mul(tensor a, tensor b) {
  broadcast(&a, &b, "mul");
  tensor y = tape_like(a);
  y->whole = a->whole && b->whole;
#pragma omp parallel for schedule(static) if (y->count > MANY)
  for (int64_t i = 0; i < y->count; i++) y->values[i] = a->values[i] * b->values[i];
  return tape_end(y, mul_backward, 1, a, b, NULL);
}

static void divide_backward(tensor y) {
  double *da = tape_gradient(y->of[0]), *db = tape_gradient(y->of[1]);
  const double *b = y->of[1]->values;
  for (int64_t i = 0; da != NULL && i < y->count; i++) da[i] += y->gradient[i] / b[i];
  for (int64_t i = 0; db != NULL && i < y->count; i++) db[i] -= y->gradient[i] * y->values[i] / b[i];
}

tensor divide(tensor a, tensor b) {
  broadcast(&a, &b, "divide");
  tensor y = tape_like(a);
#pragma omp parallel for schedule(static) if (y->count > MANY)
  for (int64_t i = 0; i < y->count; i++) y->values[i] = a->values[i] / b->values[i];
  return tape_end(y, divide_backward, 1, a, b, NULL);
}

tensor sub(tensor a, tensor b) {
  return add(a, neg(b));
}

/* 1 where a comparison holds: no gradient flows back. */
static tensor compared(tensor a, tensor b, const char *function, bool (*holds)(double a, double b)) {
  broadcast(&a, &b, function);
  tensor y = tape_like(a);
  for (int64_t i = 0; i < y->count; i++) y->values[i] = holds(a->values[i], b->values[i]);
  return y;
}

static bool is_greater(double a, double b) {
  return a > b;
}

static bool is_greater_equal(double a, double b) {
  return a >= b;
}

static bool is_equal(double a, double b) {
  return a == b;
}

tensor greater(tensor a, tensor b) {
  return compared(a, b, "greater", is_greater);
}

tensor greater_equal(tensor a, tensor b) {
  return compared(a, b, "greater_equal", is_greater_equal);
}

tensor less(tensor a, tensor b) {
  return compared(b, a, "less", is_greater);
}

tensor less_equal(tensor a, tensor b) {
  return compared(b, a, "less_equal", is_greater_equal);
}

tensor equal(tensor a, tensor b) {
  return compared(a, b, "equal", is_equal);
}

tensor where(tensor condition, tensor a, tensor b) {
  broadcast(&a, &b, "where");
  broadcast(&condition, &a, "where");
  broadcast(&condition, &b, "where");
  tensor first = tape_like(condition), second = tape_like(condition);
  for (int64_t i = 0; i < condition->count; i++) {
    first->values[i] = condition->values[i] != 0;
    second->values[i] = condition->values[i] == 0;
  }
  return chosen(first, a, second, b);
}

static void chosen_backward(tensor y) {
  double *da = tape_gradient(y->of[0]), *db = tape_gradient(y->of[1]);
  const double *share = y->of[2]->values;
  for (int64_t i = 0; da != NULL && i < y->count; i++) da[i] += share[i] * y->gradient[i];
  for (int64_t i = 0; db != NULL && i < y->count; i++) db[i] += (1 - share[i]) * y->gradient[i];
}

tensor chosen(tensor share, tensor a, tensor other, tensor b) {
  tensor y = tape_like(a);
  for (int64_t i = 0; i < y->count; i++)
    y->values[i] = (share->values[i] != 0 ? share->values[i] * a->values[i] : 0) +
                   (other->values[i] != 0 ? other->values[i] * b->values[i] : 0);
  return tape_end(y, chosen_backward, 0, a, b, share);
}

/* How far a comparison is moved by the noise: where two numbers are as good as equal, a program may find either larger,
 * and one of the noisy readings shall, too. */
static double doubt(tensor x) {
  double sum = 0;
  for (int64_t i = 0; i < x->count; i++) sum += x->values[i] * x->values[i];
  return x->count == 0 ? 0 : 8 * reading_now->noise * sqrt(sum / (double)x->count);
}

/* The larger one, or, with sign -1, the smaller one. Equal ones share the gradient. */
static tensor extreme(tensor a, tensor b, const char *function, double sign) {
  broadcast(&a, &b, function);
  const double by = doubt(a) + doubt(b);
  tensor first = tape_like(a), second = tape_like(a);
  for (int64_t i = 0; i < a->count; i++) {
    double ahead = sign * (a->values[i] - b->values[i]);
    if (by > 0 && fabs(ahead) <= by) ahead += by * tape_draw(reading_now);
    first->values[i] = ahead > 0 ? 1 : ahead < 0 ? 0 : 0.5;
    second->values[i] = 1 - first->values[i];
  }
  return chosen(first, a, second, b);
}

tensor maximum(tensor a, tensor b) {
  return extreme(a, b, "maximum", 1);
}

tensor minimum(tensor a, tensor b) {
  return extreme(a, b, "minimum", -1);
}

/* ---- One operand ---- */

/* rule_NAME: the value and its slope, of x, y and the constants a and b. */
#define RULE(name, value, slope)                                                                                       \
  static double name##_value(double x, double a, double b) {                                                           \
    (void)x, (void)a, (void)b;                                                                                         \
    return value;                                                                                                      \
  }                                                                                                                    \
  static double name##_slope(double x, double y, double a, double b) {                                                 \
    (void)x, (void)y, (void)a, (void)b;                                                                                \
    return slope;                                                                                                      \
  }                                                                                                                    \
  const struct unary rule_##name = {name##_value, name##_slope};

RULE(scale, x *a, a)
RULE(shift, x + a, 1)
RULE(square, x *x, 2 * x)
RULE(sqrt, sqrt(x), 0.5 / y)
RULE(rsqrt, 1 / sqrt(x), -0.5 * y / x)
RULE(exp, exp(x), y)
RULE(log, log(x), 1 / x)
RULE(pow, pow(x, a), a *pow(x, a - 1))
RULE(softplus, fmax(x, 0) + log1p(exp(-fabs(x))), 1 / (1 + exp(-x)))
RULE(sin, sin(x), cos(x))
RULE(cos, cos(x), -sin(x))
RULE(tanh, tanh(x), 1 - y * y)
RULE(sigmoid, 1 / (1 + exp(-x)), y * (1 - y))
RULE(silu, x / (1 + exp(-x)), (1 + x * exp(-x) / (1 + exp(-x))) / (1 + exp(-x)))
RULE(gelu, 0.5 * x * erfc(-x * 0.70710678118654752440),
     0.5 * erfc(-x * 0.70710678118654752440) + x * exp(-0.5 * x * x) * 0.39894228040143267794)

/* The tanh of the approximation, and its slope. */
static double bend(double x) {
  return tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x));
}

RULE(gelu_tanh, 0.5 * x * (1 + bend(x)),
     0.5 * (1 + bend(x)) + 0.5 * x * (1 - bend(x) * bend(x)) * 0.79788456080286535588 * (1 + 3 * 0.044715 * x * x))

tensor scale(tensor x, double factor) {
  return unary(x, &rule_scale, factor, 0);
}

tensor shift(tensor x, double offset) {
  return unary(x, &rule_shift, offset, 0);
}

tensor neg(tensor x) {
  tensor y = unary(x, &rule_scale, -1, 0);
  y->whole = x->whole;
  return y;
}

tensor square(tensor x) {
  return unary(x, &rule_square, 0, 0);
}

tensor sqrt_of(tensor x) {
  return unary(x, &rule_sqrt, 0, 0);
}

tensor rsqrt_of(tensor x) {
  return unary(x, &rule_rsqrt, 0, 0);
}

tensor exp_of(tensor x) {
  return unary(x, &rule_exp, 0, 0);
}

tensor log_of(tensor x) {
  return unary(x, &rule_log, 0, 0);
}

tensor pow_of(tensor x, double exponent) {
  return unary(x, &rule_pow, exponent, 0);
}

tensor softplus(tensor x) {
  return unary(x, &rule_softplus, 0, 0);
}

tensor sin_of(tensor x) {
  return unary(x, &rule_sin, 0, 0);
}

tensor cos_of(tensor x) {
  return unary(x, &rule_cos, 0, 0);
}

tensor tanh_of(tensor x) {
  return unary(x, &rule_tanh, 0, 0);
}

tensor sigmoid(tensor x) {
  return unary(x, &rule_sigmoid, 0, 0);
}

tensor silu(tensor x) {
  return unary(x, &rule_silu, 0, 0);
}

tensor gelu(tensor x) {
  return unary(x, &rule_gelu, 0, 0);
}

tensor gelu_tanh(tensor x) {
  return unary(x, &rule_gelu_tanh, 0, 0);
}

/* x where it is above `bound`, else 0, as factors; the gradient at the bound is 0. */
static tensor above(tensor x, double bound, double at_bound) {
  const double by = doubt(x);
  tensor mask = tape_like(x);
  for (int64_t i = 0; i < x->count; i++) {
    double over = x->values[i] - bound;
    if (by > 0 && over != 0 && fabs(over) <= by) over += by * tape_draw(reading_now);
    mask->values[i] = over > 0 ? 1 : over < 0 ? 0 : at_bound;
  }
  return mask;
}

tensor relu(tensor x) {
  return mul(above(x, 0, 0), x);
}

tensor abs_of(tensor x) {
  tensor sign = above(x, 0, 0.5);
  for (int64_t i = 0; i < sign->count; i++) sign->values[i] = 2 * sign->values[i] - 1;
  return mul(sign, x);
}

tensor clamp(tensor x, double low, double high) {
  tensor within = tape_like(x), beyond = tape_like(x), rest = tape_like(x);
  tensor over_low = above(x, low, 1), over_high = above(x, high, 0);
  for (int64_t i = 0; i < x->count; i++) {
    within->values[i] = over_low->values[i] * (1 - over_high->values[i]);
    beyond->values[i] = over_high->values[i] != 0 ? high : low;
    rest->values[i] = 1 - within->values[i];
  }
  return chosen(within, x, rest, beyond);
}

tensor detach(tensor x) {
  tensor y = tape_like(x);
  for (int64_t i = 0; i < x->count; i++) y->values[i] = x->values[i];
  y->whole = x->whole;
  return y;
}

/* ---- Types ---- */

tensor cast_index(tensor x, int below) {
  tensor y = detach(x);
  y->whole = true;
  for (int64_t i = 0; i < y->count; i++) y->values[i] = fmin(fmax(trunc(y->values[i]), 0), below - 1);
  return y;
}

tensor cast_target(tensor x, int classes, int ignored) {
  tensor y = cast_index(x, classes);
  for (int64_t i = 0; i < y->count; i++)
    if (x->values[i] == ignored) y->values[i] = ignored;
  return y;
}

tensor cast_float(tensor x) {
  tensor y = detach(x);
  y->whole = false;
  return y;
}
