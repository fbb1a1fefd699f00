/* The comparison: what a step made of a checkpoint, beside what the second reading makes of it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gen/commands/verify/verify.h"

/* How far a number of the program may be off, relative to its size, where all that it is computed from is known: four
 * roundings of float32, which optimizers compute in. */
static const double step_unit = 4 * 0x1p-24;

void verify_number(struct verification *verify, enum subject subject, double low, double high, double expected,
                   double found, const char *format, ...) {
  struct finding *finding = &verify->findings[subject];
  finding->exact = (finding->numbers == 0 || finding->exact) && found == expected;
  finding->numbers++;
  if (found >= low && found <= high) {
    const double far = found == expected  ? 0
                       : found > expected ? (found - expected) / (high - expected)
                                          : (expected - found) / (expected - low);
    if (finding->different == 0) finding->worst = fmax(finding->worst, far);
    return;
  }
  const double off = found < low ? (low - found) / (expected - low) : (found - high) / (high - expected);
  const double far = isfinite(off) ? 1 + off : INFINITY;
  finding->different++;
  if (finding->where != NULL && far <= finding->worst) return;
  va_list list;
  va_start(list, format);
  const char *where = arena_vprintf(verify->arena, format, list);
  va_end(list);
  finding->worst = far;
  finding->where = arena_printf(verify->arena, "%s is %.9g, not %.9g", where, found, expected);
}

/* The same with the bound on both sides. */
static void near(struct verification *verify, enum subject subject, double expected, double bound, double found,
                 const char *what, int64_t at) {
  verify_number(verify, subject, expected - bound, expected + bound, expected, found, "step %lld: the %s",
                (long long)at, what);
}

/* ---- A parameter ---- */

/* A parameter through a step: arrays of the trainer before and after it. */
struct passage {
  struct verification *verify;
  const struct measured_tensor *tensor;
  struct step_numbers numbers;
  double bound; /* of its gradient */
  int n_states;
  const char *names[MOST_STATES];
  const double *before, *after, *states_before[MOST_STATES], *states_after[MOST_STATES];
};

struct range {
  double low, middle, high;
};

static void widen(struct range *range, double by) {
  range->low -= by;
  range->high += by;
}

/* Gradients that the program's may be: the measured one first, the nearest to 0 with and without what a weight decay
 * adds, where a rule turns, and from one end of the bound to the other. Where the bound is `wide` for the gradient,
 * also ever smaller ones around 0. */
enum { PARTS = 4, HALVES = 24, MOST_GRADIENTS = 3 + PARTS + 1 + 2 * HALVES };

/* An element that is stepped by gradients within [low, high]. */
struct stepped {
  const struct passage *passage;
  struct element before;
  double low, high;
  bool wide;
  struct range weight, states[MOST_STATES];
  double lowest, highest; /* the gradients of the ends of `weight` */
};

static int gradients_of(const struct stepped *e, double g, double gradients[MOST_GRADIENTS]) {
  const double decay = e->passage->numbers.of.weight_decay * e->before.weight;
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
static double step_by(struct stepped *e, double g, bool first) {
  struct element element = e->before;
  rule_step(&e->passage->numbers, &element, g);
  if (first) e->weight = (struct range){element.weight, element.weight, element.weight};
  if (first || element.weight < e->weight.low) e->lowest = g;
  if (first || element.weight > e->weight.high) e->highest = g;
  e->weight.low = fmin(e->weight.low, element.weight);
  e->weight.high = fmax(e->weight.high, element.weight);
  for (int s = 0; s < e->passage->n_states; s++) {
    const double state = element.states[s];
    if (first) e->states[s] = (struct range){state, state, state};
    e->states[s].low = fmin(e->states[s].low, state);
    e->states[s].high = fmax(e->states[s].high, state);
  }
  return element.weight;
}

/* Goes from the gradient of an end of the weight's range, sign -1 of the lower one, to where the rule turns. */
static void climb(struct stepped *e, double g, double sign) {
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

static void compare_element(const struct passage *p, int64_t i) {
  const struct stored *stored = p->tensor->stored;
  const double g = p->tensor->gradient[i], unit = step_unit;
  struct stepped e = {.passage = p, .before.weight = p->before[i], .low = g - p->bound, .high = g + p->bound};
  double gradients[MOST_GRADIENTS];
  e.wide = 64 * p->bound > fabs(g);
  for (int s = 0; s < p->n_states; s++) e.before.states[s] = p->states_before[s] != NULL ? p->states_before[s][i] : 0;
  const int count = gradients_of(&e, g, gradients);
  for (int k = 0; k < count; k++) step_by(&e, gradients[k], k == 0);
  if (e.wide) {
    climb(&e, e.lowest, -1);
    climb(&e, e.highest, 1);
  }
  widen(&e.weight,
        unit * (fabs(p->before[i]) + fabs(e.weight.middle) + 2 * fabs(e.weight.middle - p->before[i])) + 1e-36);
  verify_number(p->verify, SUBJECT_WEIGHTS, e.weight.low, e.weight.high, e.weight.middle, p->after[i],
                "step %lld: %s[%lld]", (long long)p->numbers.at, stored->name, (long long)i);
  for (int s = 0; s < p->n_states; s++) {
    const double old = e.before.states[s];
    widen(&e.states[s], unit * (fabs(old) + fabs(e.states[s].low) + fabs(e.states[s].high)) + 1e-36);
    verify_number(p->verify, SUBJECT_STATES, e.states[s].low, e.states[s].high, e.states[s].middle,
                  p->states_after[s][i], "step %lld: %s of %s[%lld]", (long long)p->numbers.at, p->names[s],
                  stored->name, (long long)i);
  }
}

/* The states of a parameter in a checkpoint, which must be there. */
static bool read_states(struct passage *p, const char *checkpoint, const double *states[MOST_STATES]) {
  const struct stored *stored = p->tensor->stored;
  const char *file = arena_printf(p->verify->arena, "%s/optimizer.safetensors", checkpoint);
  for (int s = 0; s < p->n_states; s++) {
    const char *name = arena_printf(p->verify->arena, "state.%s.%s", stored->name, p->names[s]);
    states[s] = verify_tensor(p->verify, file, name, stored->count);
    if (states[s] == NULL) return verify_unknown(p->verify, "the checkpoint has no tensor %s", name);
  }
  return true;
}

/* Elements of what no gradient changes. */
static void compare_kept(struct verification *verify, const struct measured_tensor *tensor, const double *after,
                         int64_t at) {
  const struct stored *stored = tensor->stored;
  const bool buffer = tensor->after != NULL;
  const double bound = buffer ? measured_bound(&verify->measuring, tensor) : 0;
  for (int64_t i = 0; i < stored->count; i++) {
    const double expected = buffer ? tensor->after[i] : stored->values[i];
    verify_number(verify, buffer ? SUBJECT_BUFFERS : SUBJECT_WEIGHTS, expected - bound, expected + bound, expected,
                  after[i], "step %lld: %s[%lld]", (long long)at, stored->name, (long long)i);
  }
}

/* ---- A step ---- */

/* Where a step leaves its checkpoint; the one after the last step has the name of the run. */
static const char *checkpoint_of(struct verification *verify, const char *folder, int64_t at) {
  return arena_printf(verify->arena, "%s/run/step_%lld", folder, (long long)at);
}

static void compare_average(struct verification *verify, const char *checkpoint, const struct stored *stored,
                            const double *before, const double *after, int64_t at) {
  const double decay = verify->job->training.ema.decay, unit = step_unit;
  const char *file = arena_printf(verify->arena, "%s/ema.safetensors", checkpoint);
  const double *found = verify_tensor(verify, file, stored->name, stored->count);
  for (int64_t i = 0; found != NULL && i < stored->count; i++) {
    const double expected = at == 0 ? after[i] : before[i] + (1 - decay) * (after[i] - before[i]);
    const double bound = unit * (fabs(before[i]) + fabs(after[i]));
    verify_number(verify, SUBJECT_AVERAGES, expected - bound, expected + bound, expected, found[i],
                  "step %lld: the average of %s[%lld]", (long long)at, stored->name, (long long)i);
  }
}

/* A parameter or buffer through a step; `first`: no checkpoint is before it. */
static bool compare_tensor(struct verification *verify, const struct measured_tensor *tensor, bool frozen,
                           const char *folder, int64_t at, bool first) {
  struct stored *stored = tensor->stored;
  const char *now = checkpoint_of(verify, folder, at + 1), *old = checkpoint_of(verify, folder, at);
  const char *file = arena_printf(verify->arena, "%s/model.safetensors", now);
  const double *after = verify_tensor(verify, file, stored->name, stored->count);
  verify_number(verify, SUBJECT_PARAMETERS, 1, 1, 1, after != NULL,
                "step %lld: %s, with %lld elements, in its checkpoint", (long long)at, stored->name,
                (long long)stored->count);
  if (after == NULL) return true;
  struct passage p = {.verify = verify, .tensor = tensor, .before = stored->values, .after = after};
  p.numbers = (struct step_numbers){.job = verify->job, .of = rule_numbers(verify->job, stored->name), .at = at};
  p.numbers.rate = rule_rate(verify->job, at) * p.numbers.of.lr_scale;
  rule_begin(&p.numbers);
  p.n_states = rule_states(verify->job, p.names);
  if (frozen || tensor->gradient == NULL) {
    compare_kept(verify, tensor, after, at);
  } else {
    p.bound = measured_bound(&verify->measuring, tensor);
    if (!read_states(&p, now, p.states_after) || (!first && !read_states(&p, old, p.states_before))) return false;
    for (int64_t i = 0; i < stored->count; i++) compare_element(&p, i);
  }
  if (verify->job->training.ema.decay > 0 && !frozen && stored->trained) {
    const char *averages = arena_printf(verify->arena, "%s/ema.safetensors", old);
    const double *before = first ? stored->values : verify_tensor(verify, averages, stored->name, stored->count);
    if (before != NULL) compare_average(verify, now, stored, before, after, at);
  }
  memcpy(stored->values, after, (size_t)stored->count * sizeof *stored->values);
  arena_reset(verify->scratch);
  return true;
}

static void compare_reports(struct verification *verify, const struct recorded_step *step,
                            const struct measured *measured) {
  const double unit = verify->measuring.unit, rate = rule_rate(verify->job, step->at);
  near(verify, SUBJECT_LOSS, measured->loss, 8 * (measured->loss_spread + unit * fabs(measured->loss)), step->loss,
       "loss", step->at);
  near(verify, SUBJECT_RATE, rate, 1e-12 * verify->job->optimizer.lr, step->rate, "learning rate", step->at);
  near(verify, SUBJECT_NORM, measured->norm, 8 * (measured->norm_spread + 4 * unit * measured->norm), step->norm,
       "gradient's norm", step->at);
}

/* The scale of the loss at the step number `taken` of a run in which none was skipped. */
static double expected_scale(const struct job *job, int64_t taken) {
  double scale = (double)(float)job->precision.grad_scaler.init_scale;
  for (int64_t i = 1; i <= taken && job->precision.grad_scaler.dynamic; i++)
    if (i % job->precision.grad_scaler.growth_interval == 0)
      scale = (double)(float)(scale * job->precision.grad_scaler.growth_factor);
  return scale;
}

static bool compare_step(struct verification *verify, const char *folder, const struct recorded_step *step,
                         int64_t taken) {
  struct measured measured;
  const bool with_one = verify->one < 0 && step->n_batches == verify->job->accumulation.num_steps;
  if (!measure_step(&verify->measuring, step->batches, step->n_batches, with_one, &measured))
    return verify_unknown(verify, "%s", verify->reading.refused);
  if (step->skipped) {
    measured_free(&measured);
    return verify_unknown(verify, "the program skipped step %lld, as of a gradient that is not finite",
                          (long long)step->at);
  }
  if (measured.has_one) verify->one = measured.one;
  compare_reports(verify, step, &measured);
  if (verify->job->precision.grad_scaler.enabled || step->scale != 0)
    near(verify, SUBJECT_SCALE, expected_scale(verify->job, taken), 0, step->scale, "scale of the loss", step->at);
  bool good = true;
  for (int i = 0; good && i < measured.count; i++)
    good = compare_tensor(verify, &measured.tensors[i], verify->frozen[i], folder, step->at, taken == 0);
  measured_free(&measured);
  return good;
}

/* What the run leaves is what its last checkpoint has, bit for bit. */
static bool compare_left(struct verification *verify, const char *folder, int64_t at) {
  const char *left = arena_printf(verify->arena, "%s/run/model.safetensors", folder);
  const char *last = arena_printf(verify->arena, "%s/model.safetensors", checkpoint_of(verify, folder, at));
  for (const struct stored *stored = verify->reading.first; stored != NULL; stored = stored->next) {
    const double *a = verify_tensor(verify, left, stored->name, stored->count);
    const double *b = verify_tensor(verify, last, stored->name, stored->count);
    if (a == NULL || b == NULL) return verify_unknown(verify, "the run leaves no %s", stored->name);
    for (int64_t i = 0; i < stored->count; i++)
      verify_number(verify, SUBJECT_LEFT, b[i], b[i], b[i], a[i], "%s[%lld] after the last step", stored->name,
                    (long long)i);
    arena_reset(verify->scratch);
  }
  return true;
}

bool verify_compare(struct verification *verify, const char *folder, const struct recording *recording) {
  for (int i = 0; i < recording->count; i++)
    if (!compare_step(verify, folder, &recording->items[i], i)) return false;
  return compare_left(verify, folder, recording->items[recording->count - 1].at + 1);
}
