/* Terms of chains of operations on elements. */
#include <string.h>

#include "gen/verify/kernels/chain.h"
#include "gen/verify/proof/proof.h"

typedef const struct term *operation(struct terms *terms, const struct term *x);

static const struct term *one(struct terms *terms) {
  return term_number(terms, 1);
}

static const struct term *do_same(struct terms *terms, const struct term *x) {
  (void)terms;
  return x;
}
static const struct term *do_neg(struct terms *terms, const struct term *x) {
  return term_scale(terms, x, -1);
}
static const struct term *do_square(struct terms *terms, const struct term *x) {
  return term_multiply(terms, x, x);
}
static const struct term *do_rsqrt(struct terms *terms, const struct term *x) {
  return term_power(terms, x, -0.5);
}
static const struct term *do_sqrt(struct terms *terms, const struct term *x) {
  return term_power(terms, x, 0.5);
}
static const struct term *do_abs(struct terms *terms, const struct term *x) {
  return term_larger(terms, x, term_scale(terms, x, -1));
}
static const struct term *do_sin(struct terms *terms, const struct term *x) {
  return term_call(terms, TERM_SIN, x);
}
static const struct term *do_cos(struct terms *terms, const struct term *x) {
  return term_call(terms, TERM_COS, x);
}
static const struct term *do_sigmoid(struct terms *terms, const struct term *x) {
  return term_call(terms, TERM_SIGMOID, x);
}
static const struct term *do_relu(struct terms *terms, const struct term *x) {
  return term_larger(terms, x, term_number(terms, 0));
}
static const struct term *do_silu(struct terms *terms, const struct term *x) {
  return term_multiply(terms, x, do_sigmoid(terms, x));
}
static const struct term *do_gelu(struct terms *terms, const struct term *x) {
  return term_multiply(terms, x, term_call(terms, TERM_NORMAL, x));
}
/* x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), Hendrycks, Gimpel, arXiv:1606.08415 */
static const struct term *do_gelu_tanh(struct terms *terms, const struct term *x) {
  static const double root_of_2_over_pi = 0.79788456080286535588;
  const struct term *cube = term_power(terms, x, 3);
  const struct term *inner = term_add(terms, x, term_scale(terms, cube, 0.044715));
  const struct term *gate = term_add(terms, one(terms), term_tanh(terms, term_scale(terms, inner, root_of_2_over_pi)));
  return term_scale(terms, term_multiply(terms, x, gate), 0.5);
}

/* Slopes that are of the result. */
static const struct term *slope_of_tanh(struct terms *terms, const struct term *y) {
  return term_subtract(terms, one(terms), term_multiply(terms, y, y));
}
static const struct term *slope_of_sigmoid(struct terms *terms, const struct term *y) {
  return term_subtract(terms, y, term_multiply(terms, y, y));
}

static const struct named_term {
  const char *name;
  operation *of;
} singles[] = {
    {"copy", do_same},
    {"cast", do_same},
    {"broadcast", do_same},
    {"neg", do_neg},
    {"square", do_square},
    {"rsqrt", do_rsqrt},
    {"sqrt", do_sqrt},
    {"exp", term_exp},
    {"log", term_log},
    {"abs", do_abs},
    {"sin", do_sin},
    {"cos", do_cos},
    {"tanh", term_tanh},
    {"sigmoid", do_sigmoid},
    {"relu", do_relu},
    {"silu", do_silu},
    {"gelu", do_gelu},
    {"gelu_tanh", do_gelu_tanh},
    {"tanh_backward", slope_of_tanh},
    {"sigmoid_backward", slope_of_sigmoid},
    {NULL, NULL},
};

static operation *single_of(const char *name, size_t length) {
  const struct named_term *at = singles;
  while (at->name != NULL && (strncmp(at->name, name, length) != 0 || at->name[length] != '\0')) at++;
  return at->of;
}

/* Of an operation's slope at x: by that of its term. */
static const struct term *slope(struct terms *terms, const char *name, const struct term *x) {
  const size_t length = strlen(name) - strlen("_backward");
  operation *of = single_of(name, strlen(name));
  if (of != NULL) return of(terms, x);
  of = single_of(name, length);
  if (strcmp(name, "relu_backward") == 0) return term_positive(terms, x);
  if (of == NULL) {
    terms_fail(terms, "an operation of the formula has no term");
    return x;
  }
  const struct term *variable = term_symbol(terms);
  const struct term *result = term_slope(terms, of(terms, variable), term_atom(variable));
  return term_with(terms, result, term_atom(variable), x);
}

static const struct term *pair(struct terms *terms, const char *name, const struct term *a, const struct term *b) {
  if (strcmp(name, "add") == 0) return term_add(terms, a, b);
  if (strcmp(name, "sub") == 0) return term_subtract(terms, a, b);
  if (strcmp(name, "mul") == 0) return term_multiply(terms, a, b);
  if (strcmp(name, "div") == 0) return term_divide(terms, a, b);
  const struct term *larger = term_larger(terms, a, b);
  if (strcmp(name, "maximum") == 0) return larger;
  if (strcmp(name, "minimum") == 0) return term_subtract(terms, term_add(terms, a, b), larger);
  terms_fail(terms, "an operation of the formula has no term");
  return a;
}

static const struct term *apply(struct terms *terms, const struct link *link, const struct term *a,
                                const struct term *b) {
  if (link->form == BACKWARD) return term_multiply(terms, a, slope(terms, link->name, b));
  if (link->form == PAIR) return pair(terms, link->name, a, b);
  const struct term *constant = term_number(terms, link->constant);
  if (strcmp(link->name, "scale") == 0) return term_multiply(terms, a, constant);
  if (strcmp(link->name, "shift") == 0) return term_add(terms, a, constant);
  operation *of = single_of(link->name, strlen(link->name));
  if (of != NULL) return of(terms, a);
  terms_fail(terms, "an operation of the formula has no term");
  return a;
}

/* An operand: an element of an array, of which a smaller one repeats. */
static const struct term *operand(struct proof *p, const struct chain *chain, int k, int64_t count,
                                  const struct term *e) {
  const struct kernel_array *array = &p->kernel->arrays[k];
  if (array->count == 1 && count > 1) e = term_number(p->terms, 0);
  if (array->count > 1 && array->count != count) {
    if (chain->inner[k] > 1) e = proof_row(p, e, chain->inner[k]);
    if (chain->inner[k] * array->count != count) e = proof_column(p, e, array->count);
  }
  return proof_element(p, array->name, e);
}

const struct term *proof_chain(struct proof *p, int array, const struct term *e) {
  const struct chain *chain = p->chain;
  const struct term *values[MOST_VALUES] = {NULL};
  values[VALUE_ZERO] = term_number(p->terms, 0);
  values[VALUE_ONE] = one(p->terms);
  for (int j = 0; j < chain->n_operations; j++) {
    const struct link *link = &chain->links[j];
    const int operands[2] = {link->a, link->b};
    for (int k = 0; k < 2; k++)
      if (operands[k] < MOST_ARRAYS && values[operands[k]] == NULL)
        values[operands[k]] = operand(p, chain, operands[k], p->kernel->arrays[array].count, e);
    values[MOST_ARRAYS + j] = apply(p->terms, link, values[link->a], values[link->b]);
  }
  return values[MOST_ARRAYS + chain->result[array]];
}
