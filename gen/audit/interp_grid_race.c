/* Which accesses of the threads of a launch race: of two threads of a block, between two barriers; of two blocks, at
 * any time. What a function of a header does within one call is the header's own matter. */
#include <stdlib.h>
#include <string.h>

#include "gen/audit/interp_region.h"

enum { BLOCK_LOOPS = 3, MOST_DIGITS = FORM_MOST_DIMENSIONS - REGION_MOST_LOOPS };

/* Two accesses, by threads of one block or by two blocks. */
struct pair {
  struct interp *interp;
  const struct region *region;
  const struct access *a, *b;
  bool same_block;
  enum { ANY_THREADS, OTHER_WARPS, LATER_LANES } who; /* of one block: lanes that have met are in other iterations */
  const struct form *number; /* a number of the thread whose digits both addresses have, all of them; NULL: none */
  int digits[MOST_DIGITS];   /* terms of a's form */
  int n_digits;
};

static const struct digit *digit_of(const struct pair *pair, int symbol) {
  return &pair->interp->symbols.items[symbol].digit;
}

static bool same_digit(const struct digit *a, const struct digit *b) {
  return a->of != NULL && b->of != NULL && a->divisor == b->divisor && a->modulus == b->modulus &&
         form_equal(a->of, b->of);
}

/* The term of a form that is a digit; -1: it has none. */
static int find_digit(const struct pair *pair, const struct form *form, const struct digit *digit) {
  for (int i = 0; i < form->n_terms; i++)
    if (same_digit(digit_of(pair, form->terms[i].symbol), digit)) return i;
  return -1;
}

static int loop_of(const struct access *access, int symbol) {
  for (int i = 0; i < access->share.n_loops; i++)
    if (access->share.symbols[i] == symbol) return i;
  return -1;
}

/* ---- Digits ---- */

/* Whether different threads have different numbers of a form, whatever else it depends on. */
static bool tells_threads(const struct pair *pair, const struct form *form) {
  int64_t last = 0;
  for (int64_t reach = 1, taken = 0; taken < form->n_terms; taken++) {
    const struct term *next = NULL;
    for (int i = 0; i < form->n_terms; i++)
      if (form->terms[i].factor > last && (next == NULL || form->terms[i].factor < next->factor))
        next = &form->terms[i];
    if (next == NULL || next->factor < reach || loop_of(pair->a, next->symbol) < 0) return false;
    const struct span span = pair->interp->symbols.items[next->symbol].span;
    reach = bounded_add(next->factor, bounded_multiply(next->factor, span.high - span.low));
    last = next->factor;
  }
  return true;
}

/* The digit of this divisor that conditions fix, to one number for both accesses; NULL: they do not. */
static const struct digit *fixed_digit(const struct pair *pair, int64_t divisor) {
  for (int i = 0; i < pair->a->n_fixed; i++)
    for (int k = 0; k < pair->b->n_fixed; k++) {
      const struct fixed *a = &pair->a->fixed[i], *b = &pair->b->fixed[k];
      const struct digit *digit = digit_of(pair, a->symbol);
      if (digit->divisor == divisor && form_equal(digit->of, pair->number) && a->number == b->number &&
          same_digit(digit, digit_of(pair, b->symbol)))
        return digit;
    }
  return NULL;
}

/* Whether the digits are all of their number: each begins where the one below ends, and none is missing above. */
static bool are_all(const struct pair *pair) {
  int64_t divisor = 1;
  for (int taken = 0; taken < pair->n_digits + pair->a->n_fixed; taken++) {
    const struct digit *next = NULL;
    for (int i = 0; i < pair->n_digits && next == NULL; i++) {
      const struct digit *digit = digit_of(pair, pair->a->at->terms[pair->digits[i]].symbol);
      if (digit->divisor == divisor) next = digit;
    }
    if (next == NULL) next = fixed_digit(pair, divisor);
    if (next == NULL) return false;
    if (next->modulus == 0) return true;
    divisor = bounded_multiply(divisor, next->modulus);
  }
  return divisor > interp_region_span(pair->interp, pair->number).high;
}

/* A number that is one symbol, as the sum that it stands for. */
static const struct form *sum_of(const struct pair *pair, const struct form *form) {
  const bool is_one = form->n_terms == 1 && form->constant == 0 && form->terms[0].factor == 1;
  const struct form *sum = is_one ? pair->interp->symbols.items[form->terms[0].symbol].sum : NULL;
  return sum != NULL ? sum : form;
}

/* Finds the digits of a number that stand for the thread in both addresses. */
static void find_digits(struct pair *pair) {
  const struct form *a = pair->a->at, *b = pair->b->at;
  for (int i = 0; i < a->n_terms; i++) {
    pair->number = digit_of(pair, a->terms[i].symbol)->of;
    pair->n_digits = 0;
    if (pair->number == NULL || !tells_threads(pair, sum_of(pair, pair->number))) continue;
    for (int k = 0; k < a->n_terms && pair->n_digits < MOST_DIGITS; k++) {
      const struct digit *digit = digit_of(pair, a->terms[k].symbol);
      if (digit->of == NULL || !form_equal(digit->of, pair->number)) continue;
      if (find_digit(pair, b, digit) >= 0) pair->digits[pair->n_digits++] = k;
    }
    if (are_all(pair)) return;
  }
  pair->number = NULL;
  pair->n_digits = 0;
}

static bool stands_for_thread(const struct pair *pair, int symbol) {
  const struct digit *digit = digit_of(pair, symbol);
  for (int i = 0; i < pair->n_digits; i++)
    if (same_digit(digit, digit_of(pair, pair->a->at->terms[pair->digits[i]].symbol))) return true;
  return false;
}

/* ---- Equations ---- */

/* factor_a * x - factor_b * y, of which the difference of x and y is one of those that must not all be 0. */
static bool add_difference(struct equation *equation, int64_t of_a, int64_t of_b, struct span s, struct span t,
                           int dimension) {
  if (of_a == of_b)
    return equation_add(
        equation, (struct unknown){of_a, {bounded_add(s.low, -t.high), bounded_add(s.high, -t.low)}, dimension, 0});
  return equation_add(equation, (struct unknown){of_a, s, dimension, 1}) &&
         equation_add(equation, (struct unknown){-of_b, t, dimension, -1});
}

static bool add_free(struct equation *equation, int64_t factor, struct span span) {
  return factor == 0 || equation_add(equation, (struct unknown){factor, span, -1, 0});
}

static struct span common(struct span a, struct span b) {
  return (struct span){a.low > b.low ? a.low : b.low, a.high < b.high ? a.high : b.high};
}

/* What the number of the block or of the thread along a loop adds. False: no two such threads are there. */
static bool add_loop(struct equation *equation, const struct pair *pair, int which) {
  const struct access *a = pair->a, *b = pair->b;
  const int x = a->share.symbols[which], y = b->share.symbols[which];
  const int64_t of_a = x >= 0 ? form_factor(a->at, x) : 0, of_b = y >= 0 ? form_factor(b->at, y) : 0;
  const struct span s = a->iterations[which], t = b->iterations[which];
  const bool is_block = which < BLOCK_LOOPS, is_lane = which == REGION_MOST_LOOPS - 1;
  const bool is_same = pair->same_block && (is_block || (pair->who == LATER_LANES && !is_lane));
  if (is_same) {
    if (common(s, t).low > common(s, t).high) return false;
    add_free(equation, of_a - of_b, common(s, t));
    return true;
  }
  const bool in_digits = pair->number != NULL && x >= 0 && form_factor(sum_of(pair, pair->number), x) != 0;
  const bool is_free = pair->same_block ? is_lane && pair->who != ANY_THREADS : !is_block;
  if (is_free || in_digits) {
    add_free(equation, of_a, s);
    add_free(equation, -of_b, t);
    return true;
  }
  return add_difference(equation, of_a, of_b, s, t, which);
}

static struct span span_of(const struct access *access, int term) {
  return access->spans[term];
}

static int find_term(const struct form *form, int symbol) {
  for (int i = 0; i < form->n_terms; i++)
    if (form->terms[i].symbol == symbol) return i;
  return -1;
}

/* Terms that are neither of the block, nor of the thread, nor digits. */
static bool add_others(struct equation *equation, const struct pair *pair, const struct access *a,
                       const struct access *b, int sign) {
  bool added = true;
  for (int i = 0; i < a->at->n_terms && added; i++) {
    const int symbol = a->at->terms[i].symbol;
    if (loop_of(a, symbol) >= 0 || stands_for_thread(pair, symbol)) continue;
    const bool is_one =
        symbol < pair->region->n_before || (pair->interp->symbols.items[symbol].is_uniform && pair->same_block);
    const int64_t factor = a->at->terms[i].factor, other = is_one ? form_factor(b->at, symbol) : 0;
    if (other != 0 && sign < 0) continue; /* with a's */
    const int of_b = pair->who == LATER_LANES ? find_term(b->at, symbol) : -1;
    if (of_b >= 0 && !is_one) { /* of another iteration */
      if (sign > 0)
        added = add_difference(equation, a->at->terms[i].factor, b->at->terms[of_b].factor, span_of(a, i),
                               span_of(b, of_b), REGION_MOST_LOOPS + i % MOST_DIGITS);
      continue;
    }
    added = add_free(equation, sign * (factor - other), span_of(a, i));
  }
  return added;
}

static bool add_digits(struct equation *equation, const struct pair *pair) {
  bool added = true;
  for (int i = 0; i < pair->n_digits && added; i++) {
    const int x = pair->digits[i];
    const int y = find_digit(pair, pair->b->at, digit_of(pair, pair->a->at->terms[x].symbol));
    added = add_difference(equation, pair->a->at->terms[x].factor, pair->b->at->terms[y].factor, span_of(pair->a, x),
                           span_of(pair->b, y), REGION_MOST_LOOPS + i);
  }
  return added;
}

/* Whether two such threads are there at all. */
static bool can_differ(const struct pair *pair) {
  if (pair->who == LATER_LANES) return true;
  for (int i = pair->same_block ? BLOCK_LOOPS : 0; i < (pair->same_block ? REGION_MOST_LOOPS : BLOCK_LOOPS); i++) {
    const struct span s = pair->a->iterations[i], t = pair->b->iterations[i];
    if (s.low != s.high || t.low != t.high || s.low != t.low) return true;
  }
  return false;
}

static enum solution overlap_of(struct pair *pair) {
  const struct access *a = pair->a, *b = pair->b;
  if (a->reach.low > b->reach.high || b->reach.low > a->reach.high || !can_differ(pair)) return SOLUTION_NONE;
  if (pair->who == ANY_THREADS) find_digits(pair);
  struct equation equation = {.is_bound = true};
  for (int i = 0; i < REGION_MOST_LOOPS; i++)
    if (!add_loop(&equation, pair, i)) return SOLUTION_NONE;
  const bool added =
      add_others(&equation, pair, a, b, 1) && add_others(&equation, pair, b, a, -1) && add_digits(&equation, pair);
  const int64_t distance = bounded_add(a->at->constant, -b->at->constant);
  equation.sum = (struct span){bounded_add(-(a->size - 1), -distance), bounded_add(b->size - 1, -distance)};
  return added ? equation_solve(&equation) : SOLUTION_NOT_KNOWN;
}

static enum solution overlap(struct pair *pair) {
  const enum solution solution = overlap_of(pair);
  if (solution == SOLUTION_NONE || (pair->a->coarse == NULL && pair->b->coarse == NULL)) return solution;
  struct pair coarse = *pair;
  if (pair->a->coarse != NULL) coarse.a = pair->a->coarse;
  if (pair->b->coarse != NULL) coarse.b = pair->b->coarse;
  return overlap_of(&coarse) == SOLUTION_NONE ? SOLUTION_NONE : SOLUTION_NOT_KNOWN;
}

/* Where the program's own text does it. */
static void report(struct interp *interp, const struct region *region, const struct access *a, const struct access *b,
                   const char *who, bool certain) {
  struct access own_a = *a, own_b = *b;
  if (a->call != NULL) own_a.node = a->call;
  if (b->call != NULL) own_b.node = b->call;
  interp_region_report(interp, region, &own_a, &own_b, who, certain);
}

/* Whether the lanes of a warp meet between two accesses of one iteration of the loops around them. */
static bool is_ordered(const struct pair *pair) {
  const struct access *a = pair->a, *b = pair->b;
  if (a->warp_phase == b->warp_phase || a->n_warp_loops != b->n_warp_loops) return false;
  int common = 0;
  for (int i = 0; i < a->at->n_terms; i++) {
    const int symbol = a->at->terms[i].symbol;
    common += pair->interp->symbols.items[symbol].is_of_warps && form_factor(b->at, symbol) != 0;
  }
  return common == a->n_warp_loops;
}

/* Whether a pair races: 1, or 0. */
static int compare(struct pair *pair, bool reports) {
  const enum solution solution = overlap(pair);
  if (solution == SOLUTION_NONE) return 0;
  const bool certain = solution == SOLUTION_FOUND && pair->a->is_certain && pair->b->is_certain;
  if (reports)
    report(pair->interp, pair->region, pair->a, pair->b,
           pair->same_block ? "another thread of its block" : "another block", certain);
  return 1;
}

int interp_grid_find_races(struct interp *interp, const struct region *region, bool reports) {
  if (region->lost != NULL && reports)
    interp_region_fail(interp, VERDICT_CANNOT_TELL, region->lost,
                       arena_printf(interp->memory, "%s is not followed in a kernel", region->why));
  if (region->lost != NULL) return 1;
  int found = 0;
  for (int i = 0; i < region->accesses.count; i++)
    for (int j = i; j < region->accesses.count && (reports || found == 0); j++) {
      const struct access *a = &region->accesses.items[i], *b = &region->accesses.items[j];
      if (a->object != b->object || (!a->is_write && !b->is_write)) continue;
      if (a->call != NULL && a->call == b->call) continue;
      const bool is_shared = interp_grid_is_shared(&interp->objects[a->object]);
      struct pair pair = {.interp = interp, .region = region, .a = a, .b = b};
      if (!is_shared) found += compare(&pair, reports);
      pair.same_block = true;
      if (a->phase != b->phase) continue;
      pair.who = is_ordered(&pair) ? OTHER_WARPS : ANY_THREADS;
      found += compare(&pair, reports);
      if (pair.who == ANY_THREADS) continue;
      pair.who = LATER_LANES;
      found += compare(&pair, reports);
    }
  return found;
}
