/* The comparison: what a step made of a checkpoint, beside what the second reading makes of it. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gen/commands/verify/verify.h"
#include "gen/verify/adapters.h"

/* How far a number of the program may be off, relative to its size, where all that it is computed from is known: four
 * roundings of float32, which optimizers compute in. */
static const double step_unit = 4 * 0x1p-24;

/* Numbers that are within their bounds. */
struct tally {
  int64_t numbers;
  bool exact;   /* all were equal */
  double worst; /* how near one came to its bound, in bounds */
};

static double far_within(double low, double high, double expected, double found) {
  return found == expected  ? 0
         : found > expected ? (found - expected) / (high - expected)
                            : (expected - found) / (expected - low);
}

static void note_tally(struct finding *finding, const struct tally *tally) {
  finding->exact = (finding->numbers == 0 || finding->exact) && tally->exact;
  finding->numbers += tally->numbers;
  if (finding->different == 0) finding->worst = fmax(finding->worst, tally->worst);
}

/* Notes numbers within ranges of which the middles are expected. False, and nothing is noted: some are not within. */
static bool note_all_within(struct verification *verify, enum subject subject, const struct range *ranges,
                            const double *found, int64_t count) {
  bool within = true, exact = true;
  double worst = 0;
#pragma omp parallel for schedule(static) reduction(&& : within, exact) reduction(max : worst) if (count > 1000)
  for (int64_t i = 0; i < count; i++) {
    const struct range r = ranges[i];
    within = within && found[i] >= r.low && found[i] <= r.high;
    exact = exact && found[i] == r.middle;
    worst = fmax(worst, within ? far_within(r.low, r.high, r.middle, found[i]) : 0);
  }
  const struct tally all = {count, exact, worst};
  if (within && count > 0) note_tally(&verify->findings[subject], &all);
  return within;
}

/* The same of numbers that should be equal. */
static bool note_all_equal(struct verification *verify, enum subject subject, const double *expected,
                           const double *found, int64_t count) {
  const struct tally all = {count, true, 0};
  bool equal = true;
#pragma omp parallel for schedule(static) reduction(&& : equal) if (count > 1000)
  for (int64_t i = 0; i < count; i++) equal = equal && found[i] == expected[i];
  if (equal && count > 0) note_tally(&verify->findings[subject], &all);
  return equal;
}

void verify_number(struct verification *verify, enum subject subject, double low, double high, double expected,
                   double found, const char *format, ...) {
  struct finding *finding = &verify->findings[subject];
  if (found >= low && found <= high) {
    const struct tally one = {
        .numbers = 1, .exact = found == expected, .worst = far_within(low, high, expected, found)};
    note_tally(finding, &one);
    return;
  }
  finding->exact = false;
  finding->numbers++;
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

/* A parameter through a step. */
struct passage {
  struct verification *verify;
  enum subject of_weights, of_states;
  const struct stored *stored;
  struct step_numbers numbers;
  struct stepping stepping;
  struct stepped stepped;
};

static void widen(struct range *range, double by) {
  range->low -= by;
  range->high += by;
}

/* The elements of `subject`, the first of which is `first` of a parameter's weights or, by its name, of a state. */
static void compare_numbers(const struct passage *p, enum subject subject, const char *state,
                            const struct range *ranges, const double *found, int64_t first, int64_t count) {
  if (note_all_within(p->verify, subject, ranges, found, count)) return;
  for (int64_t i = 0; i < count; i++)
    verify_number(p->verify, subject, ranges[i].low, ranges[i].high, ranges[i].middle, found[i],
                  "step %lld: %s%s%s[%lld]", (long long)p->numbers.at, state != NULL ? state : "",
                  state != NULL ? " of " : "", p->stored->name, (long long)(first + i));
}

static void compare_weights(const struct passage *p, int64_t first, int64_t count) {
  struct range *weights = p->stepped.weights;
#pragma omp parallel for schedule(static) if (count > 1000)
  for (int64_t i = 0; i < count; i++) widen(&weights[i], weight_rounding(p->stepping.weights[i], weights[i]));
  compare_numbers(p, p->of_weights, NULL, weights, p->stepping.after, first, count);
}

/* Whether a state moves as a weight does. */
static bool is_weight(const struct passage *p, int s) {
  return s == 0 && p->numbers.rule == OPTIMIZER_SCHEDULE_FREE_ADAMW;
}

static void compare_state(const struct passage *p, int s, int64_t first, int64_t count) {
  struct range *states = p->stepped.states[s];
#pragma omp parallel for schedule(static) if (count > 1000)
  for (int64_t i = 0; i < count; i++) {
    const double old = p->stepping.before[s] != NULL ? p->stepping.before[s][i] : 0;
    const double moved = is_weight(p, s) ? 2 * fabs(states[i].middle - old) : 0;
    widen(&states[i], state_rounding(old, states[i]) + step_unit * moved);
  }
  compare_numbers(p, p->of_states, p->stepping.states[s].name, states, p->stepping.states_after[s], first, count);
}

/* The states of a parameter in a checkpoint, which must be there. */
static bool read_states(struct passage *p, const char *checkpoint, const double *states[MOST_STATES]) {
  const char *file = arena_printf(p->verify->arena, "%s/optimizer.safetensors", checkpoint);
  for (int s = 0; s < p->stepping.n_states; s++) {
    const struct rule_state *state = &p->stepping.states[s];
    const char *name = arena_printf(p->verify->arena, "state.%s.%s", p->stored->name, state->name);
    states[s] = verify_tensor(p->verify, file, name, state->count);
    if (states[s] == NULL) return verify_unknown(p->verify, "the checkpoint has no tensor %s", name);
  }
  return true;
}

/* Compares the elements from `first` on, as many as the stepping has. */
static bool compare_elements(struct passage *p, int64_t first) {
  const struct stepping *s = &p->stepping;
  if (!ranges_of_step(s, &p->stepped)) return verify_unknown(p->verify, "there is not enough memory");
  compare_weights(p, first, s->count);
  for (int k = 0; k < s->n_states; k++) compare_state(p, k, first, s->states[k].count);
  return true;
}

/* All elements: together where the rule looks at all of them, else so many at a time. */
static bool compare_slices(struct passage *p) {
  enum { SLICE = 1 << 16 };
  const struct stepping whole = p->stepping;
  struct stepping *s = &p->stepping;
  const int64_t each = tensor_rule_of(&p->numbers) != NULL || whole.count < SLICE ? whole.count : SLICE;
  p->stepped.weights = arena_alloc(p->verify->scratch, (size_t)(each + 1) * sizeof(struct range));
  for (int k = 0; k < whole.n_states; k++)
    p->stepped.states[k] = arena_alloc(
        p->verify->scratch, (size_t)((each < whole.count ? each : whole.states[k].count) + 1) * sizeof(struct range));
  if (each == whole.count) return compare_elements(p, 0);
  for (int64_t first = 0; first < whole.count; first += each) {
    s->count = first + each < whole.count ? each : whole.count - first;
    s->weights = whole.weights + first;
    s->gradient = whole.gradient + first;
    s->after = whole.after + first;
    for (int k = 0; k < whole.n_states; k++) {
      s->states_after[k] = whole.states_after[k] + first;
      s->states[k].count = s->count;
      s->before[k] = whole.before[k] != NULL ? whole.before[k] + first : NULL;
    }
    if (!compare_elements(p, first)) return false;
  }
  p->stepping = whole;
  return true;
}

/* Compares a parameter that the step moves, by a gradient that is known up to the bound; `old` NULL: no checkpoint is
 * before it. */
static bool compare_moved(struct passage *p, const double *weights, const double *gradient, double bound,
                          const char *old, const char *now) {
  const struct stored *stored = p->stored;
  struct stepping *s = &p->stepping;
  *s = (struct stepping){.numbers = &p->numbers,
                         .rank = stored->rank,
                         .count = stored->count,
                         .weights = weights,
                         .gradient = gradient,
                         .bound = bound,
                         .after = s->after};
  memcpy(s->dim, stored->dim, sizeof s->dim);
  s->n_states = rule_states(&p->numbers, stored->rank, stored->dim, s->states);
  if (!read_states(p, now, s->states_after) || (old != NULL && !read_states(p, old, s->before))) return false;
  if (old == NULL && p->numbers.rule == OPTIMIZER_SCHEDULE_FREE_ADAMW) s->before[0] = weights;
  return compare_slices(p);
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
  const double part = fmax(rule_smoothing(verify->job, at), 0), unit = step_unit;
  const char *file = arena_printf(verify->arena, "%s/ema.safetensors", checkpoint);
  const double *found = verify_tensor(verify, file, stored->name, stored->count);
  for (int64_t i = 0; found != NULL && i < stored->count; i++) {
    const double expected = before[i] + part * (after[i] - before[i]);
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
  struct passage p = {.verify = verify,
                      .of_weights = SUBJECT_WEIGHTS,
                      .of_states = SUBJECT_STATES,
                      .stored = stored,
                      .stepping.after = after};
  p.numbers = rule_numbers(verify->job, stored->name, stored->rank, at);
  const bool moved = !frozen && tensor->gradient != NULL;
  if (!moved) compare_kept(verify, tensor, after, at);
  if (moved && !compare_moved(&p, stored->values, tensor->gradient, measured_bound(&verify->measuring, tensor),
                              first ? NULL : old, now))
    return false;
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
  const bool with_one = verify->one < 0 && step->n_batches == verify_micro_batches(verify->job);
  if (!measure_step(&verify->measuring, step->batches, step->n_batches, with_one, &measured))
    return verify_unknown(verify, "%s", verify->reading.refused);
  /* Float32 holds what the reading's gradient is, so that a step without a finite one is the program's own doing. */
  if (step->skipped && !(measured.norm < 1e30 && verify->measuring.unit != 0x1p-11)) {
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

/* ---- An update by itself ---- */

/* A parameter whose gradient is in the checkpoint before, where the reading knows it without a bound: as float32 it is
 * rounded once. */
static bool compare_updated(struct verification *verify, const struct stored *stored, bool frozen, const char *folder,
                            int64_t at, double factor) {
  const char *old = checkpoint_of(verify, folder, at), *now = checkpoint_of(verify, folder, at + 1);
  const double most = verify->job->optimizer.clip_grad_value;
  const double *before =
      verify_tensor(verify, arena_printf(verify->arena, "%s/model.safetensors", old), stored->name, stored->count);
  const double *after =
      verify_tensor(verify, arena_printf(verify->arena, "%s/model.safetensors", now), stored->name, stored->count);
  if (before == NULL || after == NULL) return verify_unknown(verify, "the checkpoint has no %s", stored->name);
  if (frozen || !stored->trained) {
    for (int64_t i = 0; i < stored->count; i++)
      verify_number(verify, SUBJECT_UPDATE, before[i], before[i], before[i], after[i], "step %lld: %s[%lld]",
                    (long long)at, stored->name, (long long)i);
    return true;
  }
  double *gradient =
      verify_tensor(verify, arena_printf(verify->arena, "%s/optimizer.safetensors", old),
                    arena_printf(verify->arena, "state.%s.verify_gradient", stored->name), stored->count);
  double highest = 0;
  if (gradient == NULL) return verify_unknown(verify, "the checkpoint has no gradient of %s", stored->name);
  for (int64_t i = 0; i < stored->count; i++) {
    gradient[i] *= factor;
    if (most > 0) gradient[i] = fmin(fmax(gradient[i], -most), most);
    highest = fmax(highest, fabs(gradient[i]));
  }
  struct passage p = {.verify = verify,
                      .of_weights = SUBJECT_UPDATE,
                      .of_states = SUBJECT_UPDATE,
                      .stored = stored,
                      .stepping.after = after,
                      .numbers = rule_numbers(verify->job, stored->name, stored->rank, at)};
  return compare_moved(&p, before, gradient, 0x1p-24 * highest, old, now);
}

bool verify_compare_update(struct verification *verify, const char *folder, int64_t at, double factor) {
  int i = 0;
  for (const struct stored *stored = verify->reading.first; stored != NULL; stored = stored->next, i++) {
    if (!compare_updated(verify, stored, verify->frozen[i], folder, at, factor)) return false;
    arena_reset(verify->scratch);
  }
  return true;
}

/* ---- What is left ---- */

/* Whether the run merges adapters into the weights that it leaves. */
static bool merges(const struct verification *verify) {
  return verify->job->model.lora.rank > 0 && verify->job->model.lora.merge;
}

/* The change that an adapter makes of a weight: s B A, turned where that is [in][out], in `change`; `size`: the sum of
 * the magnitudes of its terms. False: it has no adapter. */
static bool merged_change(struct verification *verify, const struct stored *weight, const char *file, double *change,
                          double *size) {
  const size_t length = strlen(weight->name);
  if (length < 8 || strcmp(weight->name + length - 7, ".weight") != 0) return false;
  const char *module = arena_copy(verify->arena, weight->name, length - 7);
  if (!reading_adapts(verify->job, module) || weight->rank != 2) return false;
  const int64_t rank = verify->job->model.lora.rank, out = weight->dim[weight->in_out],
                in = weight->dim[!weight->in_out];
  const double *a = verify_tensor(verify, file, arena_printf(verify->arena, "%s.lora_A.weight", module), rank * in);
  const double *b = verify_tensor(verify, file, arena_printf(verify->arena, "%s.lora_B.weight", module), out * rank);
  if (a == NULL || b == NULL) return false;
  for (int64_t i = 0; i < out * in; i++) {
    const int64_t o = weight->in_out ? i % out : i / in, c = weight->in_out ? i / out : i % in;
    for (int64_t r = 0; r < rank; r++) {
      const double term = reading_adapter_scale(verify->job) * b[o * rank + r] * a[r * in + c];
      change[i] += term;
      size[i] += fabs(term);
    }
  }
  return true;
}

/* What the run leaves is what its last checkpoint has, bit for bit, or what follows from that. */
static bool compare_left(struct verification *verify, const char *folder, int64_t at) {
  const char *left = arena_printf(verify->arena, "%s/run/model.safetensors", folder), *last;
  const bool free = verify->job->optimizer.name == OPTIMIZER_SCHEDULE_FREE_ADAMW;
  last = checkpoint_of(verify, folder, at);
  for (const struct stored *stored = verify->reading.first; stored != NULL; stored = stored->next) {
    const struct step_numbers numbers = rule_numbers(verify->job, stored->name, stored->rank, at - 1);
    const char *model = arena_printf(verify->arena, "%s/model.safetensors", last);
    const char *states = arena_printf(verify->arena, "%s/optimizer.safetensors", last);
    const char *name = arena_printf(verify->arena, "state.%s.z", stored->name);
    const double *a = verify_tensor(verify, left, stored->name, stored->count);
    const double *b = verify_tensor(verify, model, stored->name, stored->count);
    const double *z = free ? verify_tensor(verify, states, name, stored->count) : b;
    if (merges(verify) && strstr(stored->name, ".lora_") != NULL) continue;
    if (a == NULL || b == NULL) return verify_unknown(verify, "the run leaves no %s", stored->name);
    if (!free && !merges(verify) && note_all_equal(verify, SUBJECT_LEFT, a, b, stored->count)) {
      arena_reset(verify->scratch);
      continue;
    }
    double *change = arena_alloc(verify->scratch, (size_t)stored->count * sizeof *change);
    double *size = arena_alloc(verify->scratch, (size_t)stored->count * sizeof *size);
    const bool merged = merges(verify) && merged_change(verify, stored, model, change, size);
    for (int64_t i = 0; i < stored->count; i++) {
      const struct element element = {.weight = b[i], .states = {z != NULL ? z[i] : b[i]}};
      const double expected = rule_left(&numbers, &element) + change[i];
      const double bound = free || merged ? step_unit * (fabs(b[i]) + fabs(expected) + size[i]) : 0;
      verify_number(verify, SUBJECT_LEFT, expected - bound, expected + bound, expected, a[i],
                    "%s[%lld] after the last step", stored->name, (long long)i);
    }
    arena_reset(verify->scratch);
  }
  return true;
}

bool verify_compare(struct verification *verify, const char *folder, const struct recording *recording) {
  for (int i = 0; i < recording->count; i++)
    if (!compare_step(verify, folder, &recording->items[i], i)) return false;
  return compare_left(verify, folder, recording->items[recording->count - 1].at + 1);
}
