#include "gen/audit/interp/form.h"

#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;

enum { MOST_TERMS = 16 };

/* Numbers beyond this are not followed: sums of a few of them fit. */
static const int64_t farthest = INT64_C(1) << 60;

static bool is_near(wide number) {
  return number <= farthest && number >= -farthest;
}

static struct form *make(struct arena *arena, int n_terms) {
  struct form *form = arena_alloc(arena, sizeof *form + (size_t)n_terms * sizeof form->terms[0]);
  form->n_terms = n_terms;
  return form;
}

const struct form *form_constant(struct arena *arena, int64_t constant) {
  if (!is_near(constant)) return NULL;
  struct form *form = make(arena, 0);
  form->constant = constant;
  return form;
}

const struct form *form_symbol(struct arena *arena, int symbol) {
  struct form *form = make(arena, 1);
  form->constant = 0;
  form->terms[0] = (struct term){symbol, 1};
  return form;
}

const struct form *form_sum(struct arena *arena, const struct form *a, const struct form *b, int64_t factor_of_b) {
  if (a == NULL || b == NULL) return NULL;
  struct form *sum = make(arena, a->n_terms + b->n_terms);
  const wide constant = a->constant + (wide)b->constant * factor_of_b;
  bool near = is_near(constant);
  sum->constant = (int64_t)constant;
  int i = 0, j = 0, count = 0;
  while (i < a->n_terms || j < b->n_terms) {
    const bool of_a = i < a->n_terms && (j >= b->n_terms || a->terms[i].symbol <= b->terms[j].symbol);
    const bool of_b = j < b->n_terms && (i >= a->n_terms || b->terms[j].symbol <= a->terms[i].symbol);
    const int symbol = of_a ? a->terms[i].symbol : b->terms[j].symbol;
    const wide factor = (of_a ? a->terms[i].factor : 0) + (of_b ? (wide)b->terms[j].factor * factor_of_b : 0);
    i += of_a;
    j += of_b;
    near = near && is_near(factor);
    if (factor != 0) sum->terms[count++] = (struct term){symbol, (int64_t)factor};
  }
  sum->n_terms = count;
  return near && count <= MOST_TERMS ? sum : NULL;
}

const struct form *form_scaled(struct arena *arena, const struct form *form, int64_t factor) {
  return form == NULL ? NULL : form_sum(arena, make(arena, 0), form, factor);
}

const struct form *form_divided(struct arena *arena, const struct form *form, int64_t divisor) {
  if (form == NULL || divisor <= 0 || form->constant % divisor != 0) return NULL;
  struct form *result = make(arena, form->n_terms);
  result->constant = form->constant / divisor;
  for (int i = 0; i < form->n_terms; i++) {
    if (form->terms[i].factor % divisor != 0) return NULL;
    result->terms[i] = (struct term){form->terms[i].symbol, form->terms[i].factor / divisor};
  }
  return result;
}

bool form_equal(const struct form *a, const struct form *b) {
  if (a == b) return true;
  if (a == NULL || b == NULL || a->constant != b->constant || a->n_terms != b->n_terms) return false;
  for (int i = 0; i < a->n_terms; i++)
    if (a->terms[i].symbol != b->terms[i].symbol || a->terms[i].factor != b->terms[i].factor) return false;
  return true;
}

int64_t form_factor(const struct form *form, int symbol) {
  for (int i = 0; i < form->n_terms; i++)
    if (form->terms[i].symbol == symbol) return form->terms[i].factor;
  return 0;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return llabs(a);
}

int64_t form_step(const struct form *form) {
  int64_t step = 0;
  for (int i = 0; i < form->n_terms; i++) step = common_divisor(step, form->terms[i].factor);
  return step;
}

/* ---- Equations ---- */

/* With a factor that is not negative. */
static struct unknown turned(struct unknown unknown) {
  if (unknown.factor >= 0 || unknown.dimension >= 0) return unknown;
  unknown.factor = -unknown.factor;
  unknown.span = (struct span){-unknown.span.high, -unknown.span.low};
  return unknown;
}

static struct span clamp(struct span span) {
  if (span.low < -farthest) span.low = -farthest;
  if (span.high > farthest) span.high = farthest;
  return span;
}

bool equation_add(struct equation *equation, struct unknown unknown) {
  unknown.span = clamp(unknown.span);
  unknown = turned(unknown);
  for (int i = 0; i < equation->count && unknown.dimension < 0; i++) {
    struct unknown *known = &equation->unknowns[i];
    if (known->dimension >= 0 || known->factor != unknown.factor) continue;
    known->span = clamp((struct span){known->span.low + unknown.span.low, known->span.high + unknown.span.high});
    return true;
  }
  if (equation->count == FORM_MOST_UNKNOWNS || unknown.dimension >= FORM_MOST_DIMENSIONS) return false;
  equation->unknowns[equation->count++] = unknown;
  return true;
}

struct search {
  const struct equation *equation;
  wide low[FORM_MOST_UNKNOWNS + 1], high[FORM_MOST_UNKNOWNS + 1]; /* of the sum of the unknowns from here on */
  bool binds[FORM_MOST_UNKNOWNS + 1];                             /* one of these has a dimension */
  int64_t differences[FORM_MOST_DIMENSIONS];
  int steps;
};

static bool is_solution(const struct search *search) {
  for (int i = 0; i < FORM_MOST_DIMENSIONS; i++)
    if (search->differences[i] != 0) return true;
  return !search->equation->is_bound;
}

static wide floor_of(wide a, wide b) { /* b > 0 */
  return a / b - (a % b < 0);
}

static enum solution find(struct search *search, int at, wide low, wide high);

static enum solution take(struct search *search, int at, wide low, wide high, int64_t number) {
  const struct unknown *unknown = &search->equation->unknowns[at];
  const int dimension = unknown->dimension;
  const int64_t part = unknown->sign < 0 ? -number : number;
  if (dimension >= 0) search->differences[dimension] += part;
  const wide product = (wide)unknown->factor * number;
  const enum solution solution = find(search, at + 1, low - product, high - product);
  if (dimension >= 0) search->differences[dimension] -= part;
  return solution;
}

/* The unknowns from `at` on have a sum of low .. high. */
static enum solution find(struct search *search, int at, wide low, wide high) {
  enum { MOST_STEPS = 20000 };
  if (search->steps++ > MOST_STEPS) return SOLUTION_NOT_KNOWN;
  if (low > search->high[at] || high < search->low[at]) return SOLUTION_NONE;
  if (!search->binds[at] && !is_solution(search)) return SOLUTION_NONE;
  if (at == search->equation->count) return SOLUTION_FOUND;
  const struct unknown *unknown = &search->equation->unknowns[at];
  wide first = unknown->span.low, last = unknown->span.high;
  if (unknown->factor == 0) { /* any number will do, but for one that leaves no difference */
    const enum solution solution = take(search, at, low, high, unknown->span.high);
    return solution != SOLUTION_NONE ? solution : take(search, at, low, high, unknown->span.low);
  }
  const wide size = unknown->factor > 0 ? unknown->factor : -(wide)unknown->factor;
  wide least = low - search->high[at + 1], most = high - search->low[at + 1];
  if (unknown->factor < 0) {
    const wide other = least;
    least = -most;
    most = -other;
  }
  least = -floor_of(-least, size);
  most = floor_of(most, size);
  if (least > first) first = least;
  if (most < last) last = most;
  for (wide number = first; number <= last; number++) {
    const enum solution solution = take(search, at, low, high, (int64_t)number);
    if (solution != SOLUTION_NONE) return solution;
  }
  return SOLUTION_NONE;
}

static int by_size(const void *a, const void *b) {
  const int64_t x = llabs(((const struct unknown *)a)->factor), y = llabs(((const struct unknown *)b)->factor);
  return (x < y) - (x > y);
}

enum solution equation_solve(struct equation *equation) {
  struct search search = {.equation = equation};
  qsort(equation->unknowns, (size_t)equation->count, sizeof equation->unknowns[0], by_size);
  for (int i = equation->count - 1; i >= 0; i--) {
    const struct unknown *unknown = &equation->unknowns[i];
    if (unknown->span.low > unknown->span.high) return SOLUTION_NONE;
    const wide a = (wide)unknown->factor * unknown->span.low, b = (wide)unknown->factor * unknown->span.high;
    search.low[i] = search.low[i + 1] + (a < b ? a : b);
    search.high[i] = search.high[i + 1] + (a < b ? b : a);
    search.binds[i] = search.binds[i + 1] || unknown->dimension >= 0;
  }
  return find(&search, 0, equation->sum.low, equation->sum.high);
}
