#include "gen/verify/ranges.h"

#include <math.h>

/* Parts that the bound of a gradient is divided into, and how often it is halved where it is wide for the gradient. */
enum { PARTS = 4, HALVES = 24 };

/* An element that is stepped by gradients within [low, high]. */
struct trial {
  const struct step_numbers *numbers;
  int n_states;
  struct element before;
  double low, high;
  struct range *weight, *states;
  double lowest, highest; /* the gradients of the ends of `weight` */
};

/* Of numbers that are none, either. */
static inline double smaller(double a, double b) {
  return a < b ? a : b;
}

static inline double larger(double a, double b) {
  return a > b ? a : b;
}

/* Makes the step by a gradient, and widens what it can give. The new weight. */
static double step_by(struct trial *e, double gradient, bool first) {
  const double g = smaller(larger(gradient, e->low), e->high);
  struct element element = e->before;
  rule_step(e->numbers, &element, g);
  if (first) *e->weight = (struct range){element.weight, element.weight, element.weight};
  if (first || element.weight < e->weight->low) e->lowest = g;
  if (first || element.weight > e->weight->high) e->highest = g;
  e->weight->low = smaller(e->weight->low, element.weight);
  e->weight->high = larger(e->weight->high, element.weight);
  for (int s = 0; s < e->n_states; s++) {
    const double state = element.states[s];
    if (first) e->states[s] = (struct range){state, state, state};
    e->states[s].low = smaller(e->states[s].low, state);
    e->states[s].high = larger(e->states[s].high, state);
  }
  return element.weight;
}

/* Goes from the gradient of an end of the weight's range, sign -1 of the lower one, to where the rule turns. */
static void climb(struct trial *e, double g, double sign) {
  enum { TRIES = 60 };
  double by = fabs(g) / 2, best = step_by(e, g, false);
  for (int k = 0; k < TRIES; k++, by = -by) {
    const double found = step_by(e, g + by, false);
    if (sign * found > sign * best) {
      best = found;
      g = smaller(larger(g + by, e->low), e->high);
    } else if (k % 2 != 0) {
      by /= 2;
    }
  }
}

/* Steps by both ends of the bound. */
static void step_by_ends(struct trial *e) {
  step_by(e, e->low, false);
  step_by(e, e->high, false);
}

/* Where 0 is between the ends, steps by that with and without what a weight decay adds: there a rule turns. Where the
 * bound is wide for the gradient, also by some between. */
static void step_between(struct trial *e, bool wide) {
  const double turn = -e->numbers->of.weight_decay * e->before.weight;
  for (int k = 1; k < PARTS && wide; k++) step_by(e, e->low + (e->high - e->low) * k / PARTS, false);
  if (e->low < 0 && e->high > 0) step_by(e, 0, false);
  if (e->low < turn && e->high > turn) step_by(e, turn, false);
}

/* Where what the program made is not among these: also by ever smaller ones around 0, and uphill from both ends. */
static void search_ends(struct trial *e) {
  double size = fmax(fabs(e->low), fabs(e->high));
  for (int k = 0; k < HALVES; k++, size /= 2) {
    step_by(e, size, false);
    step_by(e, -size, false);
  }
  climb(e, e->lowest, -1);
  climb(e, e->highest, 1);
}

/* Four roundings. */
static const double unit = 4 * 0x1p-24;

double weight_rounding(double before, struct range weight) {
  return unit * (fabs(before) + fabs(weight.middle) + 2 * fabs(weight.middle - before)) + 1e-36;
}

double state_rounding(double before, struct range state) {
  return unit * (fabs(before) + fabs(state.low) + fabs(state.high)) + 1e-36;
}

static bool has(struct range range, double by, double number) {
  return number >= range.low - by && number <= range.high + by;
}

static bool is_within(const struct trial *e, const struct element *after) {
  bool within = has(*e->weight, weight_rounding(e->before.weight, *e->weight), after->weight);
  for (int s = 0; s < e->n_states && within; s++)
    within = has(e->states[s], state_rounding(e->before.states[s], e->states[s]), after->states[s]);
  return within;
}

void range_of_element(const struct stepping *stepping, struct element before, double g, const struct element *after,
                      struct range *weight, struct range states[MOST_STATES]) {
  const double bound = stepping->bound;
  struct trial e = {.numbers = stepping->numbers,
                    .n_states = stepping->n_states,
                    .before = before,
                    .low = g - bound,
                    .high = g + bound,
                    .weight = weight,
                    .states = states};
  const bool wide = 64 * bound > fabs(g);
  step_by(&e, g, true);
  step_by_ends(&e);
  if (after != NULL && is_within(&e, after)) return;
  step_between(&e, wide);
  if (wide && (after == NULL || !is_within(&e, after))) search_ends(&e);
}

bool ranges_of_step(const struct stepping *stepping, struct stepped *stepped) {
  tensor_rule *rule = tensor_rule_of(stepping->numbers);
  if (rule != NULL) return rule(stepping, stepped);
#pragma omp parallel for schedule(static) if (stepping->count > 1000)
  for (int64_t i = 0; i < stepping->count; i++) {
    struct element before = {.weight = stepping->weights[i]}, after = {0};
    struct range states[MOST_STATES];
    if (stepping->after != NULL) after.weight = stepping->after[i];
    for (int s = 0; s < stepping->n_states; s++) {
      before.states[s] = stepping->before[s] != NULL ? stepping->before[s][i] : 0;
      if (stepping->after != NULL) after.states[s] = stepping->states_after[s][i];
    }
    range_of_element(stepping, before, stepping->gradient[i], stepping->after != NULL ? &after : NULL,
                     &stepped->weights[i], states);
    for (int s = 0; s < stepping->n_states; s++) stepped->states[s][i] = states[s];
  }
  return true;
}
