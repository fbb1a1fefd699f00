/* Which accesses of the threads of a launch race: of two threads of a block, between two barriers; of two blocks, at
 * any time. What a function of a header does within one call is the header's own matter. */
#include <stdlib.h>
#include <string.h>

#include "gen/audit/interp/region.h"

enum { BLOCK_LOOPS = 3, MOST_DIGITS = FORM_MOST_DIMENSIONS - REGION_MOST_LOOPS, MOST_NUMBERS = 4 };

/* Two accesses, by threads of one block or by two blocks. */
struct pair {
  struct interp *interp;
  const struct region *region;
  const struct access *a, *b;
  bool same_block;
  enum { ANY_THREADS, OTHER_WARPS, LATER_LANES } who; /* of one block: lanes that have met are in other iterations */
  struct number {
    const struct form *form; /* a number of the thread whose digits both addresses have */
    int64_t from, to;        /* these are all of its digits from this place on, below that one; to 0: all above */
  } numbers[MOST_NUMBERS];
  int n_numbers;
  int digits[MOST_DIGITS]; /* terms of a's form */
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
static const struct digit *fixed_digit(const struct pair *pair, const struct form *number, int64_t divisor) {
  for (int i = 0; i < pair->a->n_fixed; i++)
    for (int k = 0; k < pair->b->n_fixed; k++) {
      const struct fixed *a = &pair->a->fixed[i], *b = &pair->b->fixed[k];
      const struct digit *digit = digit_of(pair, a->symbol);
      if (digit->divisor == divisor && form_equal(digit->of, number) && a->number == b->number &&
          same_digit(digit, digit_of(pair, b->symbol)))
        return digit;
    }
  return NULL;
}

/* A number that is one symbol, as the sum that it stands for. */
static const struct form *sum_of(const struct pair *pair, const struct form *form) {
  const bool is_one = form->n_terms == 1 && form->constant == 0 && form->terms[0].factor == 1;
  const struct form *sum = is_one ? pair->interp->symbols.items[form->terms[0].symbol].sum : NULL;
  return sum != NULL ? sum : form;
}

/* Whether a number is a sum of multiples of `divisor`, those of loops, and a rest below it. */
static bool is_split_at(const struct pair *pair, const struct form *number, int64_t divisor) {
  int64_t low = number->constant, high = number->constant;
  for (int i = 0; i < number->n_terms; i++) {
    const struct term *term = &number->terms[i];
    if (loop_of(pair->a, term->symbol) >= 0 && term->factor % divisor == 0) continue;
    const struct span span = pair->interp->symbols.items[term->symbol].span;
    const int64_t first = bounded_multiply(term->factor, span.low), last = bounded_multiply(term->factor, span.high);
    low = bounded_add(low, first < last ? first : last);
    high = bounded_add(high, first < last ? last : first);
  }
  return low >= 0 && high < divisor;
}

/* What a number is divided by for a part of it, which is linear itself; 0: that is no part of it. */
static int64_t divisor_of_part(const struct pair *pair, const struct form *number, const struct form *part) {
  if (form_equal(number, part)) return 1;
  if (part->n_terms == 0 || part->constant != 0) return 0;
  const int64_t divisor = form_factor(number, part->terms[0].symbol) / part->terms[0].factor;
  if (divisor < 2 || !is_split_at(pair, number, divisor)) return 0;
  for (int i = 0; i < number->n_terms; i++) {
    const struct term *term = &number->terms[i];
    if (term->factor % divisor == 0 && form_factor(part, term->symbol) != term->factor / divisor) return 0;
  }
  for (int i = 0; i < part->n_terms; i++)
    if (form_factor(number, part->terms[i].symbol) != bounded_multiply(part->terms[i].factor, divisor)) return 0;
  return divisor;
}

/* Where in a number a digit begins; 0: it is a digit of another number. */
static int64_t place_of(const struct pair *pair, const struct form *number, const struct digit *digit) {
  return digit->of == NULL ? 0 : bounded_multiply(divisor_of_part(pair, number, digit->of), digit->divisor);
}

/* Where the lowest of the digits from `first` on begins. */
static int64_t lowest_place(const struct pair *pair, const struct form *number, int first) {
  int64_t lowest = 1;
  for (int i = first; i < pair->n_digits; i++) {
    const int64_t place = place_of(pair, number, digit_of(pair, pair->a->at->terms[pair->digits[i]].symbol));
    if (i == first || place < lowest) lowest = place;
  }
  return lowest;
}

/* Whether the digits from `first` on are all of their number: each begins where the one below ends, and none is missing
 * below or above. With `in_part`, those may be missing where the number has other loops. */
static bool are_all(const struct pair *pair, struct number *number, int first, bool in_part) {
  int64_t place = in_part && pair->a->n_fixed == 0 ? lowest_place(pair, number->form, first) : 1;
  const struct form *sum = sum_of(pair, number->form);
  number->from = place;
  number->to = 0;
  if (place > 1 && !is_split_at(pair, sum, place)) return false;
  for (int taken = 0; taken < pair->n_digits - first + pair->a->n_fixed; taken++) {
    const struct digit *next = NULL;
    for (int i = first; i < pair->n_digits && next == NULL; i++) {
      const struct digit *digit = digit_of(pair, pair->a->at->terms[pair->digits[i]].symbol);
      if (place_of(pair, number->form, digit) == place) next = digit;
    }
    if (next == NULL) next = fixed_digit(pair, number->form, place);
    if (next == NULL) break;
    if (next->modulus == 0) return true;
    place = bounded_multiply(place, next->modulus);
  }
  if (place > interp_region_span(pair->interp, number->form).high) return true;
  if (!in_part || place == number->from || !is_split_at(pair, sum, place)) return false;
  number->to = place;
  return true;
}

static bool stands_for_thread(const struct pair *pair, int symbol) {
  const struct digit *digit = digit_of(pair, symbol);
  for (int i = 0; i < pair->n_digits; i++)
    if (same_digit(digit, digit_of(pair, pair->a->at->terms[pair->digits[i]].symbol))) return true;
  return false;
}

static bool has_number(const struct pair *pair, const struct form *form) {
  for (int i = 0; i < pair->n_numbers; i++)
    if (form_equal(pair->numbers[i].form, form)) return true;
  return false;
}

/* Finds the digits of up to `most` numbers that stand for the thread in both addresses. Where the digits of a number
 * are the same, its loops are, but for those below its digits or above them: a thread is known by its digits and by
 * the loops that no number has. */
static void find_digits(struct pair *pair, int most, bool in_part) {
  const struct form *a = pair->a->at, *b = pair->b->at;
  for (int i = 0; i < a->n_terms && pair->n_numbers < most; i++) {
    struct number number = {.form = digit_of(pair, a->terms[i].symbol)->of};
    const int first = pair->n_digits;
    if (number.form == NULL || has_number(pair, number.form)) continue;
    if (!tells_threads(pair, sum_of(pair, number.form))) continue;
    for (int k = 0; k < a->n_terms && pair->n_digits < MOST_DIGITS; k++) {
      const struct digit *digit = digit_of(pair, a->terms[k].symbol);
      const bool is_digit =
          in_part ? place_of(pair, number.form, digit) > 0 : digit->of != NULL && form_equal(digit->of, number.form);
      if (is_digit && !stands_for_thread(pair, a->terms[k].symbol) && find_digit(pair, b, digit) >= 0)
        pair->digits[pair->n_digits++] = k;
    }
    if (are_all(pair, &number, first, in_part))
      pair->numbers[pair->n_numbers++] = number;
    else
      pair->n_digits = first;
  }
}

/* Whether the digits of numbers stand for a loop of the thread. */
static bool is_in_digits(const struct pair *pair, int symbol) {
  for (int i = 0; i < pair->n_numbers; i++) {
    const struct number *number = &pair->numbers[i];
    const int64_t factor = form_factor(sum_of(pair, number->form), symbol);
    if (factor != 0 && factor % number->from == 0 && (number->to == 0 || factor % number->to != 0)) return true;
  }
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
  const bool in_digits = x >= 0 && is_in_digits(pair, x);
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

/* By how much a digit counts in a form, which may have it more than once. */
static int64_t factor_of_digit(const struct pair *pair, const struct form *form, const struct digit *digit) {
  int64_t factor = 0;
  for (int i = 0; i < form->n_terms; i++)
    if (same_digit(digit_of(pair, form->terms[i].symbol), digit)) factor = bounded_add(factor, form->terms[i].factor);
  return factor;
}

static bool add_digits(struct equation *equation, const struct pair *pair) {
  bool added = true;
  for (int i = 0; i < pair->n_digits && added; i++) {
    const int x = pair->digits[i];
    const struct digit *digit = digit_of(pair, pair->a->at->terms[x].symbol);
    const int y = find_digit(pair, pair->b->at, digit);
    added =
        add_difference(equation, factor_of_digit(pair, pair->a->at, digit), factor_of_digit(pair, pair->b->at, digit),
                       span_of(pair->a, x), span_of(pair->b, y), REGION_MOST_LOOPS + i);
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

static enum solution solve(const struct pair *pair) {
  const struct access *a = pair->a, *b = pair->b;
  struct equation equation = {.is_bound = true};
  for (int i = 0; i < REGION_MOST_LOOPS; i++)
    if (!add_loop(&equation, pair, i)) return SOLUTION_NONE;
  const bool added =
      add_others(&equation, pair, a, b, 1) && add_others(&equation, pair, b, a, -1) && add_digits(&equation, pair);
  const int64_t distance = bounded_add(a->at->constant, -b->at->constant);
  equation.sum = (struct span){bounded_add(-(a->size - 1), -distance), bounded_add(b->size - 1, -distance)};
  return added ? equation_solve(&equation) : SOLUTION_NOT_KNOWN;
}

/* By the digits of one number, which are all of it; where these do not exclude it, by those of several, or of parts. */
static enum solution overlap_of(const struct pair *pair) {
  const struct access *a = pair->a, *b = pair->b;
  if (a->reach.low > b->reach.high || b->reach.low > a->reach.high || !can_differ(pair)) return SOLUTION_NONE;
  struct pair whole = *pair, parts = *pair;
  if (pair->who == ANY_THREADS) find_digits(&whole, 1, false);
  const enum solution solution = solve(&whole);
  if (solution == SOLUTION_NONE || pair->who != ANY_THREADS) return solution;
  find_digits(&parts, MOST_NUMBERS, true);
  return parts.n_numbers > 0 && solve(&parts) == SOLUTION_NONE ? SOLUTION_NONE : solution;
}

static enum solution overlap(const struct pair *pair) {
  enum solution solution = overlap_of(pair);
  struct pair coarse = *pair;
  while (solution != SOLUTION_NONE && (coarse.a->coarse != NULL || coarse.b->coarse != NULL)) {
    if (coarse.a->coarse != NULL) coarse.a = coarse.a->coarse;
    if (coarse.b->coarse != NULL) coarse.b = coarse.b->coarse;
    solution = overlap_of(&coarse) == SOLUTION_NONE ? SOLUTION_NONE : SOLUTION_NOT_KNOWN;
  }
  return solution;
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
