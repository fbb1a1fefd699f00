#include "gen/verify/ranges.h"

#include <math.h>

/* Gradients that the program's may be: the measured one first, the nearest to 0 with and without what a weight decay
 * adds, where a rule turns, and from one end of the bound to the other. Where the bound is `wide` for the gradient,
 * also ever smaller ones around 0. */
enum { PARTS = 4, HALVES = 24, MOST_GRADIENTS = 3 + PARTS + 1 + 2 * HALVES };

/* An element that is stepped by gradients within [low, high]. */
struct trial {
  const struct step_numbers *numbers;
  int n_states;
  struct element before;
  double low, high;
  bool wide;
  struct range *weight, *states;
  double lowest, highest; /* the gradients of the ends of `weight` */
};

static int gradients_of(const struct trial *e, double g, double gradients[MOST_GRADIENTS]) {
  const double decay = e->numbers->of.weight_decay * e->before.weight;
  int count = 0;
  gradients[count++] = g;
  gradients[count++] = fmin(fmax(0, e->low), e->high);
  gradients[count++] = fmin(fmax(-decay, e->low), e->high);
  for (int k = 0; k <= PARTS; k++) gradients[count++] = e->low + (e->high - e->low) * k / PARTS;
  double size = fmax(fabs(e->low), fabs(e->high));
  for (int k = 0; k < HALVES && e->wide; k++, size /= 2) {
    gradients[count++] = fmin(fmax(size, e->low), e->high);
    gradients[count++] = fmin(fmax(-size, e->low), e->high);
  }
  return count;
}

/* Makes the step by a gradient, and widens what it can give. The new weight. */
static double step_by(struct trial *e, double g, bool first) {
  struct element element = e->before;
  rule_step(e->numbers, &element, g);
  if (first) *e->weight = (struct range){element.weight, element.weight, element.weight};
  if (first || element.weight < e->weight->low) e->lowest = g;
  if (first || element.weight > e->weight->high) e->highest = g;
  e->weight->low = fmin(e->weight->low, element.weight);
  e->weight->high = fmax(e->weight->high, element.weight);
  for (int s = 0; s < e->n_states; s++) {
    const double state = element.states[s];
    if (first) e->states[s] = (struct range){state, state, state};
    e->states[s].low = fmin(e->states[s].low, state);
    e->states[s].high = fmax(e->states[s].high, state);
  }
  return element.weight;
}

/* Goes from the gradient of an end of the weight's range, sign -1 of the lower one, to where the rule turns. */
static void climb(struct trial *e, double g, double sign) {
  enum { TRIES = 60 };
  double by = fabs(g) / 2, best = step_by(e, g, false);
  for (int k = 0; k < TRIES; k++, by = -by) {
    const double next = fmin(fmax(g + by, e->low), e->high), found = step_by(e, next, false);
    if (sign * found > sign * best) {
      best = found;
      g = next;
    } else if (k % 2 != 0) {
      by /= 2;
    }
  }
}

void range_of_element(const struct stepping *stepping, struct element before, double g, struct range *weight,
                      struct range states[MOST_STATES]) {
  const double bound = stepping->bound;
  struct trial e = {.numbers = stepping->numbers,
                    .n_states = stepping->n_states,
                    .before = before,
                    .low = g - bound,
                    .high = g + bound,
                    .wide = 64 * bound > fabs(g),
                    .weight = weight,
                    .states = states};
  double gradients[MOST_GRADIENTS];
  const int count = gradients_of(&e, g, gradients);
  for (int k = 0; k < count; k++) step_by(&e, gradients[k], k == 0);
  if (e.wide) {
    climb(&e, e.lowest, -1);
    climb(&e, e.highest, 1);
  }
}

bool ranges_of_step(const struct stepping *stepping, struct stepped *stepped) {
  tensor_rule *rule = tensor_rule_of(stepping->numbers);
  if (rule != NULL) return rule(stepping, stepped);
#pragma omp parallel for schedule(static) if (stepping->count > 1000)
  for (int64_t i = 0; i < stepping->count; i++) {
    struct element before = {.weight = stepping->weights[i]};
    struct range states[MOST_STATES];
    for (int s = 0; s < stepping->n_states; s++)
      before.states[s] = stepping->before[s] != NULL ? stepping->before[s][i] : 0;
    range_of_element(stepping, before, stepping->gradient[i], &stepped->weights[i], states);
    for (int s = 0; s < stepping->n_states; s++) stepped->states[s][i] = states[s];
  }
  return true;
}
