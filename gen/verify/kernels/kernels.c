#include "gen/verify/kernels/kernels.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/kernels/chain.h"
#include "gen/verify/tape/tape.h"

enum { MARGIN = 8, NOISY = 2 };
static const double unit = 0x1p-24, largest = 1e30;

/* Of a shape: a name that has more is no shape. */
static const double most_elements = 1e15;

int kernel_array_of(const struct kernel *kernel, const char *name) {
  for (int i = 0; i < kernel->n_arrays; i++)
    if (strcmp(kernel->arrays[i].name, name) == 0) return i;
  return -1;
}

/* It draws by the number itself, so that an evaluation needs no state. */
double kernel_rounded(const struct kernel_case *c, double x) {
  uint64_t bits;
  if (c->noise == 0) return x;
  memcpy(&bits, &x, sizeof bits);
  struct reading reading = {.state = bits};
  return x * (1 + c->noise * tape_draw(&reading));
}

/* "matmul_nt_2x8x8_2": its last part without a letter but x is the shape, but for a number after that. */
int kernel_stem(const char *name, char stem[128], int64_t dims[8]) {
  size_t length = strlen(name) < 127 ? strlen(name) : 127, digits = length;
  memcpy(stem, name, length);
  stem[length] = '\0';
  while (digits > 0 && isdigit((unsigned char)stem[digits - 1])) digits--;
  if (digits > 1 && digits < length && stem[digits - 1] == '_') {
    const char before = stem[digits - 2];
    if (isdigit((unsigned char)before)) stem[digits - 1] = '\0';
  }
  char *last = strrchr(stem, '_');
  if (last == NULL || strspn(last + 1, "0123456789x") != strlen(last + 1) || !isdigit((unsigned char)last[1])) return 0;
  int count = 0;
  double product = 1;
  for (const char *at = last + 1; *at != '\0' && count < 8; at += strspn(at, "0123456789"), at += *at == 'x') {
    dims[count] = atoll(at);
    product *= (double)dims[count++];
  }
  *last = '\0';
  return product > 0 && product < most_elements ? count : 0;
}

/* The largest count of an array of floats whose name is one of two; 0: there is none. */
static int64_t count_of(const struct kernel *kernel, const char *name, const char *other) {
  int i = kernel_array_of(kernel, name);
  if (i < 0) i = kernel_array_of(kernel, other);
  return i < 0 ? 0 : kernel->arrays[i].count;
}

const char *kernel_bound_wholes(struct kernel *kernel) {
  char stem[128];
  int64_t dims[8];
  const int n_dims = kernel_stem(kernel->name, stem, dims);
  for (int i = 0; i < kernel->n_arrays; i++) {
    struct kernel_array *array = &kernel->arrays[i];
    const bool targets = strcmp(array->name, "targets") == 0, tokens = strcmp(array->name, "tokens") == 0;
    array->ignored = targets;
    if (!array->whole) continue;
    const int64_t rows = array->count, logits = count_of(kernel, "logits", "dlogits");
    const int64_t table = count_of(kernel, "weight", "dweight"), row = count_of(kernel, "y", "dy") / rows;
    if (targets && logits > 0) array->below = logits / rows;
    if (tokens && table > 0 && row > 0) array->below = table / row;
    if (strcmp(array->name, "starts") == 0 && n_dims == 4) array->below = array->row = dims[2];
    if (kernel_is_chain(stem)) array->below = 1000; /* they are but numbers */
    if (array->below <= 0 && array->written) array->below = 2;
    if (array->below <= 0) return "what its whole numbers stand for is not known";
  }
  return NULL;
}

kernel_formula *kernel_formula_of(const char *stem) {
  static const struct kernel_named_formula *const lists[] = {
      kernel_formulas,      kernel_attention_formulas, kernel_image_formulas, kernel_channel_formulas,
      kernel_pool_formulas, kernel_sequence_formulas,  kernel_draw_formulas};
  for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
    for (const struct kernel_named_formula *at = lists[k]; at->stem != NULL; at++)
      if (strcmp(at->stem, stem) == 0) return at->formula;
  return NULL;
}

/* ---- The comparison ---- */

/* All arrays of a function as doubles. */
struct numbers {
  double *in[MOST_ARRAYS], *noisy[MOST_ARRAYS], *out[MOST_ARRAYS], *again[MOST_ARRAYS];
};

static double *room(struct arena *arena, int64_t count) {
  return arena_alloc(arena, (size_t)(count + 1) * sizeof(double));
}

static struct numbers numbers_of(struct arena *arena, const struct kernel *kernel) {
  struct numbers numbers;
  for (int i = 0; i < kernel->n_arrays; i++) {
    const int64_t count = kernel->arrays[i].count;
    numbers.in[i] = room(arena, count);
    numbers.noisy[i] = room(arena, count);
    numbers.out[i] = kernel->arrays[i].written ? room(arena, count) : NULL;
    numbers.again[i] = kernel->arrays[i].written ? room(arena, count) : NULL;
  }
  return numbers;
}

double kernel_number(const struct kernel_array *array, const void *numbers, int64_t i) {
  return array->whole ? (double)((const int32_t *)numbers)[i] : (double)((const float *)numbers)[i];
}

/* What is found of a variant over all rounds. */
struct attempt {
  struct arena *arena;
  const struct kernel *kernel;
  int64_t numbers, different, unlike; /* unlike: not even near */
  double worst;
  bool exact;
  const char *where;
};

/* Of one that is not finite, only whether both are not. */
static void compare_number(struct attempt *attempt, int array, int64_t i, double expected, double bound, double found) {
  attempt->numbers++;
  const bool same = !isfinite(expected) ? !isfinite(found) : found == (double)(float)expected;
  if (same) return;
  attempt->exact = false;
  const double far = isfinite(found) && isfinite(expected) ? fabs(found - expected) / bound : INFINITY;
  if (far > 1) attempt->different++;
  if (far > 1 && !(fabs(found - expected) < 0.1 * (fabs(found) + fabs(expected)))) attempt->unlike++;
  if (far <= attempt->worst) return;
  attempt->worst = far;
  if (far > 1)
    attempt->where = arena_printf(attempt->arena, "%s[%lld] is %.9g, not %.9g", attempt->kernel->arrays[array].name,
                                  (long long)i, found, expected);
}

/* The largest finite difference of noisy results from the exact ones, and the largest of these. */
static double bound_of(const double *exact, const double *noisy, int64_t count, int64_t stride, double spread) {
  double highest = 0;
  for (int64_t i = 0; i < count; i += stride) {
    if (!isfinite(exact[i])) continue;
    highest = fmax(highest, fabs(exact[i]));
    if (noisy != NULL && isfinite(noisy[i])) spread = fmax(spread, fabs(noisy[i] - exact[i]));
  }
  return noisy != NULL ? spread : MARGIN * (spread + unit * highest) + 1e-36;
}

/* Each number by up to 4 roundings, and as many more as a sum of so many terms has. */
static void disturb(const struct kernel *kernel, const struct numbers *n, int64_t terms, struct reading *reading) {
  const double by = 4 * unit * (1 + sqrt((double)terms / 8));
  for (int i = 0; i < kernel->n_arrays; i++)
    for (int64_t k = 0; k < kernel->arrays[i].count; k++)
      n->noisy[i][k] = n->in[i][k] * (kernel->arrays[i].whole ? 1 : 1 + by * tape_draw(reading));
}

/* Makes the numbers of a run those at hand. */
static void take_round(const struct numbers *n, struct kernel_case *c, const struct kernel_round *round) {
  c->key = round->key;
  for (int i = 0; i < c->kernel->n_arrays; i++) {
    for (int64_t k = 0; k < c->kernel->arrays[i].count; k++)
      n->in[i][k] = kernel_number(&c->kernel->arrays[i], round->before[i], k);
    c->in[i] = n->in[i];
    c->out[i] = n->out[i];
  }
}

/* Of the numbers at hand, whose exact results are computed. */
static void compare_round(struct attempt *attempt, const struct numbers *n, kernel_formula *formula, int variant,
                          struct kernel_case *c, const struct kernel_round *round) {
  const struct kernel *kernel = attempt->kernel;
  struct reading reading = {.state = 7};
  double spread[MOST_ARRAYS] = {0};
  for (int t = 0; t < NOISY && !c->selects; t++) {
    disturb(kernel, n, c->terms, &reading);
    for (int i = 0; i < kernel->n_arrays; i++) {
      c->in[i] = n->noisy[i];
      c->out[i] = n->again[i];
    }
    c->noise = 4 * unit;
    formula(c, variant);
    c->noise = 0;
    for (int i = 0; i < kernel->n_arrays; i++)
      if (kernel->arrays[i].written)
        spread[i] = bound_of(n->out[i], n->again[i], kernel->arrays[i].count, c->stride, spread[i]);
  }
  for (int i = 0; i < kernel->n_arrays; i++) {
    if (!kernel->arrays[i].written) continue;
    const double bound = bound_of(n->out[i], NULL, kernel->arrays[i].count, c->stride, spread[i]);
    if (bound > unit * largest) continue; /* where float32 ends, it may have done so on the way */
    for (int64_t k = 0; k < kernel->arrays[i].count; k += c->stride)
      compare_number(attempt, i, k, n->out[i][k], bound, kernel_number(&kernel->arrays[i], round->after[i], k));
  }
}

/* Compares all runs with a variant, as far as it fits. False: there is no such variant. */
static bool attempt_variant(struct attempt *attempt, const struct numbers *n, kernel_formula *formula, int variant,
                            struct kernel_case *c, const struct kernel_round *rounds, int n_rounds) {
  for (int r = 0; r < n_rounds; r++) {
    c->fits = c->is_open = c->selects = false;
    c->stride = c->terms = 1;
    take_round(n, c, &rounds[r]);
    if (!formula(c, variant)) return false;
    if (!c->fits) return true;
    compare_round(attempt, n, formula, variant, c, &rounds[r]);
  }
  return true;
}

struct kernel_finding kernel_compare(struct arena *arena, const struct kernel *kernel,
                                     const struct kernel_round *rounds, int n_rounds,
                                     const struct known_numbers *known) {
  char stem[128];
  struct kernel_case c = {.kernel = kernel, .known = known, .rounds = rounds, .n_rounds = n_rounds};
  struct kernel_finding nearest = {.comparison = COMPARED_UNKNOWN, .formula = "there is no formula of that name"};
  c.n_dims = kernel_stem(kernel->name, stem, c.dims);
  kernel_formula *formula = kernel_formula_of(stem);
  if (formula == NULL && kernel_is_chain(stem)) formula = kernel_chain;
  if (formula == NULL) return nearest;
  nearest.formula = "its arrays do not fit a formula of that name";
  const struct numbers numbers = numbers_of(arena, kernel);
  int64_t fewest = INT64_MAX;
  nearest.worst = INFINITY;
  for (int variant = 0; fewest > 0; variant++) {
    struct attempt attempt = {.arena = arena, .kernel = kernel, .exact = true};
    if (!attempt_variant(&attempt, &numbers, formula, variant, &c, rounds, n_rounds)) break;
    if (!c.fits || (fewest < INT64_MAX && attempt.worst >= nearest.worst)) continue;
    fewest = attempt.different;
    nearest.comparison = fewest > 0 ? COMPARED_DIFFERS : attempt.exact ? COMPARED_EQUAL : COMPARED_AGREES;
    nearest.formula = arena_printf(arena, "%s", c.formula);
    nearest.variant = variant;
    if (c.is_open && 2 * attempt.unlike > attempt.numbers) {
      nearest.comparison = COMPARED_UNKNOWN;
      nearest.formula = "no formula of that name gives its numbers; its arrays may have another order";
    }
    nearest.where = attempt.where;
    nearest.worst = attempt.worst;
  }
  if (c.chain != NULL && c.chain->found)
    nearest.chain = (const struct chain *)(const void *)arena_copy(arena, c.chain, sizeof *c.chain);
  free(c.chain);
  return nearest;
}
