/* Chains of operations on elements. A chain's name lists its operations in their order: which operand each of them has
 * is found by trying all, on a few elements, until the results are those of the function. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/kernels/chain.h"
#include "gen/verify/kernels/kernels.h"
#include "gen/verify/tape/elements.h"

/* ---- Operations ---- */

typedef double operation(double a, double b);

#define OPERATION(name, value)                                                                                         \
  static double do_##name(double a, double b) {                                                                        \
    (void)b;                                                                                                           \
    return value;                                                                                                      \
  }
OPERATION(add, a + b)
OPERATION(sub, a - b)
OPERATION(mul, a *b)
OPERATION(div, a / b)
OPERATION(maximum, fmax(a, b))
OPERATION(minimum, fmin(a, b))
OPERATION(same, a)
OPERATION(neg, -a)
OPERATION(abs, fabs(a))
OPERATION(relu, a > 0 ? a : 0)
OPERATION(relu_backward, b > 0 ? a : 0)

/* Names that begin another one come after it. */
static const struct named_operation {
  const char *name;
  enum form form;
  operation *of; /* NULL: by the rule of the second reading */
  const struct unary *rule;
  bool commutes;
} operations[] = {
    {"relu_backward", BACKWARD, do_relu_backward, NULL, false},
    {"sigmoid_backward", BACKWARD, NULL, &rule_sigmoid, false},
    {"tanh_backward", BACKWARD, NULL, &rule_tanh, false},
    {"silu_backward", BACKWARD, NULL, &rule_silu, false},
    {"gelu_tanh_backward", BACKWARD, NULL, &rule_gelu_tanh, false},
    {"gelu_backward", BACKWARD, NULL, &rule_gelu, false},
    {"gelu_tanh", SINGLE, NULL, &rule_gelu_tanh, false},
    {"gelu", SINGLE, NULL, &rule_gelu, false},
    {"add", PAIR, do_add, NULL, true},
    {"sub", PAIR, do_sub, NULL, false},
    {"mul", PAIR, do_mul, NULL, true},
    {"div", PAIR, do_div, NULL, false},
    {"maximum", PAIR, do_maximum, NULL, true},
    {"minimum", PAIR, do_minimum, NULL, true},
    {"copy", SINGLE, do_same, NULL, false},
    {"cast", SINGLE, do_same, NULL, false},
    {"broadcast", SINGLE, do_same, NULL, false},
    {"neg", SINGLE, do_neg, NULL, false},
    {"square", SINGLE, NULL, &rule_square, false},
    {"rsqrt", SINGLE, NULL, &rule_rsqrt, false},
    {"sqrt", SINGLE, NULL, &rule_sqrt, false},
    {"exp", SINGLE, NULL, &rule_exp, false},
    {"log", SINGLE, NULL, &rule_log, false},
    {"abs", SINGLE, do_abs, NULL, false},
    {"sin", SINGLE, NULL, &rule_sin, false},
    {"cos", SINGLE, NULL, &rule_cos, false},
    {"tanh", SINGLE, NULL, &rule_tanh, false},
    {"sigmoid", SINGLE, NULL, &rule_sigmoid, false},
    {"relu", SINGLE, do_relu, NULL, false},
    {"silu", SINGLE, NULL, &rule_silu, false},
    {"scale", BY_CONSTANT, NULL, &rule_scale, false},
    {"shift", BY_CONSTANT, NULL, &rule_shift, false},
};

static bool has_two(const struct named_operation *operation) {
  return operation->form == PAIR || operation->form == BACKWARD;
}

/* b: the second operand or the constant. A slope is of what its operand is, x or y. */
static double apply(const struct named_operation *operation, double a, double b) {
  if (operation->of != NULL) return operation->of(a, b);
  return operation->form == BACKWARD ? a * operation->rule->slope(b, b, 0, 0) : operation->rule->value(a, b, 0);
}

/* ---- A chain ---- */

enum { SAMPLES = 24, MOST_TRIES = 4000000 };

/* The operations of a name; their number, 0 where one is unknown. */
static int operations_of(const char *stem, const struct named_operation *found[MOST_OPERATIONS]) {
  int count = 0;
  while (*stem != '\0') {
    const struct named_operation *next = NULL;
    for (size_t i = 0; i < sizeof operations / sizeof *operations && next == NULL; i++) {
      const size_t length = strlen(operations[i].name);
      if (strncmp(stem, operations[i].name, length) == 0 && (stem[length] == '_' || stem[length] == '\0'))
        next = &operations[i];
    }
    if (next == NULL || count == MOST_OPERATIONS) return 0;
    found[count++] = next;
    stem += strlen(next->name);
    stem += *stem == '_';
  }
  return count;
}

bool kernel_is_chain(const char *stem) {
  const struct named_operation *found[MOST_OPERATIONS];
  return operations_of(stem, found) > 0;
}

/* Of array k the element that goes with element i of the results, of which there are `count`. */
static int64_t element_of(const struct kernel *kernel, const struct chain *chain, int k, int64_t i, int64_t count) {
  const int64_t own = kernel->arrays[k].count;
  return own == count ? i : i / chain->inner[k] % own;
}

/* ---- The search ---- */

struct search {
  const struct kernel_case *c;
  struct chain *chain;
  const struct named_operation *operations[MOST_OPERATIONS];
  double values[MOST_VALUES][SAMPLES];
  int64_t elements[SAMPLES];
  int64_t tries;
  bool with_constants; /* operands may be 0 or 1, as of 1 / x */
};

/* Samples are of all runs: some constants show only where numbers are 0. */
static const struct kernel_round *round_of(const struct search *s, int sample) {
  return &s->c->rounds[sample % s->c->n_rounds];
}

static bool matches(const struct search *s, const double *values, int array) {
  for (int k = 0; k < SAMPLES; k++) {
    const double found = kernel_number(&s->c->kernel->arrays[array], round_of(s, k)->after[array], s->elements[k]);
    if (!isfinite(values[k]) && !isfinite(found)) continue;
    if (!(fabs(values[k] - found) <= 1e-4 * (fabs(found) + 0.01))) return false;
  }
  return true;
}

/* Whether all is used, and each written array has what an operation gives. */
static bool is_whole(struct search *s) {
  const struct kernel *kernel = s->c->kernel;
  bool used[MOST_VALUES] = {false};
  for (int j = 0; j < s->chain->n_operations; j++) {
    used[s->chain->links[j].a] = true;
    if (has_two(s->chain->links[j].operation)) used[s->chain->links[j].b] = true;
  }
  for (int i = 0; i < kernel->n_arrays; i++) {
    if (!kernel->arrays[i].written && !used[i]) return false;
    s->chain->result[i] = -1;
    for (int j = s->chain->n_operations - 1; j >= 0 && kernel->arrays[i].written && s->chain->result[i] < 0; j--)
      if (matches(s, s->values[MOST_ARRAYS + j], i)) s->chain->result[i] = j;
    if (kernel->arrays[i].written && s->chain->result[i] < 0) return false;
    if (s->chain->result[i] >= 0) used[MOST_ARRAYS + s->chain->result[i]] = true;
  }
  for (int j = 0; j < s->chain->n_operations; j++)
    if (!used[MOST_ARRAYS + j]) return false;
  return true;
}

static bool search_from(struct search *s, int j);

static bool try_link(struct search *s, int j, int a, int b, double constant) {
  const struct named_operation *operation = s->operations[j];
  s->chain->links[j] = (struct link){operation, operation->name, operation->form, a, b, constant};
  for (int k = 0; k < SAMPLES; k++)
    s->values[MOST_ARRAYS + j][k] = apply(operation, s->values[a][k], has_two(operation) ? s->values[b][k] : constant);
  return search_from(s, j + 1);
}

static bool is_operand(const struct search *s, int at, int j) {
  if (at >= VALUE_ZERO) return s->with_constants;
  if (at < MOST_ARRAYS) return at < s->c->kernel->n_arrays && !s->c->kernel->arrays[at].written;
  return at < MOST_ARRAYS + j;
}

static bool search_from(struct search *s, int j) {
  const struct named_operation *operation = s->operations[j];
  if (j == s->chain->n_operations) return is_whole(s);
  for (int a = 0; a < MOST_VALUES; a++) {
    if (!is_operand(s, a, j)) continue;
    if (s->tries++ > MOST_TRIES) return false;
    if (operation->form == BY_CONSTANT)
      for (int k = 0; k < s->c->known->n_constants; k++)
        if (try_link(s, j, a, a, s->c->known->constants[k])) return true;
    if (operation->form == SINGLE && try_link(s, j, a, a, 0)) return true;
    for (int b = operation->commutes ? a : 0; b < MOST_VALUES && has_two(operation); b++)
      if (is_operand(s, b, j) && try_link(s, j, a, b, 0)) return true;
  }
  return false;
}

/* The elements of the results, of which all arrays have as many; -1: they have not, or an operand does not fit. */
static int64_t elements_of(const struct kernel *kernel) {
  int64_t count = -1;
  for (int i = 0; i < kernel->n_arrays; i++) {
    if (kernel->arrays[i].written && count >= 0 && kernel->arrays[i].count != count) return -1;
    if (kernel->arrays[i].written) count = kernel->arrays[i].count;
  }
  for (int i = 0; i < kernel->n_arrays; i++)
    if (count < 0 || count % kernel->arrays[i].count != 0) return -1;
  return count;
}

/* Where a smaller operand of `own` elements may be along the axes: the numbers of elements that are below it. */
static int inner_of(const struct kernel_case *c, int64_t own, int64_t count, int64_t inner[8]) {
  int64_t product = 1;
  int found = 0;
  inner[found++] = 1;
  for (int i = c->n_dims - 1; i > 0 && found < 8; i--) {
    product *= c->dims[i];
    if (product > 1 && count % (product * own) == 0) inner[found++] = product;
  }
  return found;
}

static bool search_at(struct search *s, int64_t count) {
  const struct kernel *kernel = s->c->kernel;
  for (int k = 0; k < SAMPLES; k++) s->elements[k] = (int64_t)k * 7919 % count;
  for (int k = 0; k < SAMPLES; k++) {
    s->values[VALUE_ZERO][k] = 0;
    s->values[VALUE_ONE][k] = 1;
  }
  for (int i = 0; i < kernel->n_arrays; i++) {
    for (int k = 0; k < SAMPLES; k++)
      s->values[i][k] = kernel_number(&kernel->arrays[i], round_of(s, k)->before[i],
                                      element_of(kernel, s->chain, i, s->elements[k], count));
  }
  return search_from(s, 0);
}

/* From array `i` on, all places of smaller operands. */
static bool search_places(struct search *s, int64_t count, int i) {
  const struct kernel *kernel = s->c->kernel;
  int64_t inner[8];
  if (i == kernel->n_arrays) return search_at(s, count);
  s->chain->inner[i] = 1;
  if (kernel->arrays[i].written || kernel->arrays[i].count == count) return search_places(s, count, i + 1);
  const int places = inner_of(s->c, kernel->arrays[i].count, count, inner);
  for (int k = 0; k < places; k++) {
    s->chain->inner[i] = inner[k];
    if (search_places(s, count, i + 1)) return true;
  }
  return false;
}

static bool search(const struct kernel_case *c, struct chain *chain, int64_t count) {
  char stem[128];
  int64_t dims[8];
  struct search s = {.c = c, .chain = chain};
  kernel_stem(c->kernel->name, stem, dims);
  chain->n_operations = operations_of(stem, s.operations);
  for (int k = 0; k < 2; k++) {
    s.with_constants = k > 0;
    s.tries = 0;
    if (search_places(&s, count, 0)) return true;
  }
  for (int j = 0; j < chain->n_operations; j++)
    chain->links[j] = (struct link){s.operations[j], s.operations[j]->name, s.operations[j]->form, 0, 0, 1};
  for (int i = 0; i < c->kernel->n_arrays; i++) chain->inner[i] = 1;
  return false;
}

/* ---- The formula ---- */

static void write_value(char *text, size_t size, const struct kernel_case *c, const struct chain *chain, int at) {
  if (at < MOST_ARRAYS) {
    snprintf(text, size, "%s", c->kernel->arrays[at].name);
    return;
  }
  if (at >= VALUE_ZERO) {
    snprintf(text, size, "%d", at - VALUE_ZERO);
    return;
  }
  const struct link *link = &chain->links[at - MOST_ARRAYS];
  char a[200], b[200] = "";
  write_value(a, sizeof a, c, chain, link->a);
  if (link->operation->form == BY_CONSTANT)
    snprintf(b, sizeof b, ", %g", link->constant);
  else if (has_two(link->operation)) {
    write_value(b + 2, sizeof b - 2, c, chain, link->b);
    memcpy(b, ", ", 2);
  }
  snprintf(text, size, "%s(%.80s%.80s)", link->operation->name, a, b);
}

static void write_formula(struct kernel_case *c, const struct chain *chain) {
  size_t length = 0;
  for (int i = 0; i < c->kernel->n_arrays && length < sizeof c->formula; i++) {
    char value[200];
    if (chain->result[i] < 0 || !c->kernel->arrays[i].written) continue;
    write_value(value, sizeof value, c, chain, MOST_ARRAYS + chain->result[i]);
    length += (size_t)snprintf(c->formula + length, sizeof c->formula - length, "%s%s = %s", length > 0 ? ", " : "",
                               c->kernel->arrays[i].name, value);
  }
}

/* Where no chain is found, the operands in their order show how far off it is. */
static void guess(const struct kernel_case *c, struct chain *chain) {
  const struct kernel *kernel = c->kernel;
  int next = 0;
  for (int j = 0; j < chain->n_operations; j++) {
    int operands[2] = {0};
    for (int k = 0; k < 2; k++) {
      if (k == 0 && j > 0) {
        operands[k] = MOST_ARRAYS + j - 1;
        continue;
      }
      while (next < kernel->n_arrays && kernel->arrays[next].written) next++;
      operands[k] = next < kernel->n_arrays ? next : operands[0];
      if (k == 0 || has_two(chain->links[j].operation)) next += next < kernel->n_arrays;
    }
    chain->links[j].a = operands[0];
    chain->links[j].b = operands[1];
    chain->links[j].constant = c->known->n_constants > 0 ? c->known->constants[0] : 1;
  }
  for (int i = 0; i < kernel->n_arrays; i++)
    chain->result[i] = kernel->arrays[i].written ? chain->n_operations - 1 : -1;
}

/* Whether a constant is a part of it: one that the reading does not have may be right, too. */
static bool has_constant(const struct chain *chain) {
  for (int j = 0; j < chain->n_operations; j++)
    if (chain->links[j].operation->form == BY_CONSTANT) return true;
  return false;
}

/* Whether so many elements are those of axes that follow each other. */
static bool is_of_axes(const struct kernel_case *c, int64_t elements) {
  for (int from = 0; from < c->n_dims; from++) {
    int64_t product = 1;
    for (int to = from; to < c->n_dims && product < elements; to++) product *= c->dims[to];
    if (product == elements) return true;
  }
  return false;
}

/* Whether a smaller operand may lie in another way than those that are tried. */
static bool has_other_places(const struct kernel_case *c, int64_t count) {
  for (int i = 0; i < c->kernel->n_arrays; i++)
    if (c->kernel->arrays[i].count != count && !is_of_axes(c, c->kernel->arrays[i].count)) return true;
  return false;
}

/* Of results that are parts of their arrays, these have more. */
static int64_t elements_of_name(const struct kernel_case *c) {
  int64_t count = 1;
  for (int i = 0; i < c->n_dims; i++) count *= c->dims[i];
  return count;
}

bool kernel_chain(struct kernel_case *c, int variant) {
  const struct kernel *kernel = c->kernel;
  const int64_t count = elements_of(kernel);
  if (variant > 0) return false;
  if (count <= 0) return true;
  if (c->chain == NULL) {
    c->chain = calloc(1, sizeof *c->chain);
    if (c->chain == NULL) return true;
    c->chain->found = search(c, c->chain, count);
    if (!c->chain->found) guess(c, c->chain);
    write_formula(c, c->chain);
  }
  c->fits = true;
  c->is_open = !c->chain->found && (!kernel->is_aligned || elements_of_name(c) != count || has_constant(c->chain) ||
                                    has_other_places(c, count));
  for (int64_t i = 0; i < count; i++) {
    double values[MOST_VALUES];
    values[VALUE_ZERO] = 0;
    values[VALUE_ONE] = 1;
    for (int k = 0; k < kernel->n_arrays; k++)
      if (!kernel->arrays[k].written) values[k] = c->in[k][element_of(kernel, c->chain, k, i, count)];
    for (int j = 0; j < c->chain->n_operations; j++) {
      const struct link *link = &c->chain->links[j];
      const double b = link->operation->form == BY_CONSTANT ? link->constant : values[link->b];
      values[MOST_ARRAYS + j] = kernel_rounded(c, apply(link->operation, values[link->a], b));
    }
    for (int k = 0; k < kernel->n_arrays; k++)
      if (kernel->arrays[k].written) c->out[k][i] = values[MOST_ARRAYS + c->chain->result[k]];
  }
  return true;
}

/* ---- Without runs ---- */

/* Operands in their order: the first operation has the first arrays, each other one the result before it. */
static bool operands_in_order(const struct kernel *kernel, bool swaps, struct chain *chain) {
  int next = 0;
  for (int j = 0; j < chain->n_operations; j++) {
    struct link *link = &chain->links[j];
    int operands[2] = {MOST_ARRAYS + j - 1, 0};
    for (int k = j == 0 ? 0 : 1; k < (has_two(link->operation) ? 2 : 1); k++) {
      while (next < kernel->n_arrays && kernel->arrays[next].written) next++;
      if (next == kernel->n_arrays) return false;
      operands[k] = next++;
    }
    link->a = swaps && has_two(link->operation) ? operands[1] : operands[0];
    link->b = !has_two(link->operation) ? operands[0] : swaps ? operands[0] : operands[1];
  }
  return true;
}

enum { MOST_GUESSES = 4000 };

/* The next digit of a guess's number. */
static int digit_of(int *at, int count) {
  const int digit = *at % count;
  *at /= count;
  return digit;
}

int kernel_chain_guesses(const struct kernel *kernel, const struct known_numbers *known) {
  const struct named_operation *found[MOST_OPERATIONS];
  char stem[128];
  int64_t dims[8];
  kernel_stem(kernel->name, stem, dims);
  const int n = operations_of(stem, found), count = n > 0 ? elements_of(kernel) > 0 : 0;
  int guesses = 2 * count;
  for (int j = 0; j < n && guesses < MOST_GUESSES; j++)
    if (found[j]->form == BY_CONSTANT) guesses *= known->n_constants;
  for (int i = 0; i < kernel->n_arrays && guesses < MOST_GUESSES; i++)
    guesses *= kernel->arrays[i].written ? n : kernel->arrays[i].count != elements_of(kernel) ? 2 : 1;
  return guesses < MOST_GUESSES ? guesses : MOST_GUESSES;
}

bool kernel_chain_guess(const struct kernel *kernel, const struct known_numbers *known, int at, struct chain *chain) {
  const struct named_operation *found[MOST_OPERATIONS];
  const int64_t count = elements_of(kernel);
  char stem[128];
  int64_t dims[8];
  *chain = (struct chain){.found = true};
  kernel_stem(kernel->name, stem, dims);
  chain->n_operations = operations_of(stem, found);
  const bool swaps = digit_of(&at, 2) > 0;
  for (int j = 0; j < chain->n_operations; j++) {
    chain->links[j] = (struct link){found[j], found[j]->name, found[j]->form, 0, 0, 0};
    if (found[j]->form == BY_CONSTANT) chain->links[j].constant = known->constants[digit_of(&at, known->n_constants)];
  }
  for (int i = 0; i < kernel->n_arrays; i++) {
    const int64_t own = kernel->arrays[i].count;
    chain->result[i] = kernel->arrays[i].written ? chain->n_operations - 1 - digit_of(&at, chain->n_operations) : -1;
    chain->inner[i] = !kernel->arrays[i].written && own != count && digit_of(&at, 2) > 0 ? count / own : 1;
  }
  return operands_in_order(kernel, swaps, chain);
}
