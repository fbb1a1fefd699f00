/* The optimizer and its schedule as values. */
#include <assert.h>
#include <string.h>

#include "gen/emit/rows.h"
#include "gen/emit/values.h"
#include "gen/program/fp8.h"
#include "gen/program/optimizers.h"
#include "gen/program/parts.h"
#include "gen/program/schedule.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

/* ---- Numbers ---- */

/* The numbers that a group of parameters may have of its own. */
static const struct number {
  const char *name; /* in templates and as a column of the programs' table */
  size_t offset;
} numbers[] = {
    {"lr_scale", offsetof(struct optimizer_numbers, lr_scale)},
    {"decay", offsetof(struct optimizer_numbers, weight_decay)},
    {"beta1", offsetof(struct optimizer_numbers, beta1)},
    {"beta2", offsetof(struct optimizer_numbers, beta2)},
    {"eps", offsetof(struct optimizer_numbers, eps)},
    {"momentum", offsetof(struct optimizer_numbers, momentum)},
};
enum { DECAY = 1, MOMENTUM = 5, N_NUMBERS = sizeof numbers / sizeof *numbers };

static double number_of(const struct optimizer_numbers *of, int which) {
  return *(const double *)((const char *)of + numbers[which].offset);
}

static bool differs(const struct flat_range_list *ranges, int which) {
  for (int i = 1; i < ranges->count; i++)
    if (number_of(&ranges->items[i].numbers, which) != number_of(&ranges->items[0].numbers, which)) return true;
  return false;
}

static bool is_any_positive(const struct flat_range_list *ranges, const struct optimizer_numbers *of, int which) {
  for (int i = 0; i < ranges->count; i++)
    if (number_of(&ranges->items[i].numbers, which) > 0) return true;
  return ranges->count == 0 && number_of(of, which) > 0;
}

/* A number that all flat ranges share, as itself; else what a row of the table calls it: "range->decay". */
static void set_numbers(struct arena *arena, struct jinja_value value, const struct flat_range_list *ranges,
                        const char *row, const struct optimizer_numbers *of) {
  struct jinja_value columns = jinja_list(arena);
  if (ranges->count > 0) of = &ranges->items[0].numbers;
  for (int n = 0; n < N_NUMBERS; n++) {
    set_real(arena, value, numbers[n].name, number_of(of, n));
    if (!differs(ranges, n)) continue;
    struct jinja_value column = jinja_map(arena);
    set_text(arena, column, "name", numbers[n].name);
    jinja_push(arena, columns, jinja_get(column, "name"));
    set_text(arena, value, numbers[n].name, arena_printf(arena, "%s->%s", row, numbers[n].name));
  }
  jinja_set(arena, value, "columns", columns);
  set_bool(arena, value, "decays", is_any_positive(ranges, of, DECAY));
  set_bool(arena, value, "has_momentum", is_any_positive(ranges, of, MOMENTUM));
}

/* ---- Tables ---- */

static struct jinja_value row_value(struct arena *arena, const struct flat_range_list *ranges,
                                    const struct flat_range *range, const char *name) {
  struct jinja_value value = jinja_map(arena);
  set_comment(arena, value, "name", name);
  set_int(arena, value, "first", range->first);
  set_int(arena, value, "stage", range->stage);
  set_int(arena, value, "gradient", range->gradient);
  set_bool(arena, value, "stored", range->gradient >= 0);
  set_bool(arena, value, "frozen", range->frozen);
  set_int(arena, value, "count", range->end - range->first);
  set_int(arena, value, "matrices", range->matrices);
  set_int(arena, value, "rows", range->rows);
  set_int(arena, value, "columns", range->columns);
  set_int(arena, value, "state", range->state[0]);
  set_int(arena, value, "shard_size", range->shard_size);
  set_int(arena, value, "second_state", range->state[1]);
  set_int(arena, value, "coded", range->coded);
  for (int n = 0; n < N_NUMBERS; n++)
    if (differs(ranges, n)) set_real(arena, value, numbers[n].name, number_of(&range->numbers, n));
  return value;
}

/* Elements of the weights and of the gradients before a range's first parameter. */
static int64_t range_offset(const struct weight_tree *tree, const struct flat_range *range) {
  return weight_offset(tree, range->weight->place) / dtype_size(DTYPE_FLOAT32);
}

/* A range as it is compared with the one of another layer. */
static struct table_row range_row(const struct program *program, const struct flat_range *range) {
  const struct flat_range *r = range;
  struct table_row row = {
      .name = r->weight->path,
      .same = {r->end - r->first, r->frozen, r->gradient < 0, r->matrices, r->rows, r->columns, r->shard_size,
               shard_last(program, r), r->coded},
      .steps = {r->first, r->gradient, r->state[0], r->state[1], range_offset(program->weights, r),
                r->gradient >= 0 ? range_offset(program->gradients, r) : 0},
  };
  static_assert(9 * sizeof(int64_t) + sizeof r->numbers <= sizeof row.same, "numbers of its group fit");
  memcpy(row.same + 9, &r->numbers, sizeof r->numbers);
  return row;
}

/* The largest of what the ranges have, at least 1, {count, matrices, rows}: elements, matrices, and rows of all
 * matrices of a range, 0 where none has any. And whether some have none. */
static void set_most(struct arena *arena, struct jinja_value value, const struct flat_range_list *ranges) {
  int64_t count = 1, matrices = 1, rows = 0;
  bool vectors = false;
  for (int i = 0; i < ranges->count; i++) {
    const struct flat_range *range = &ranges->items[i];
    if (range->end - range->first > count) count = range->end - range->first;
    if (range->matrices > matrices) matrices = range->matrices;
    if (range->matrices * range->rows > rows) rows = range->matrices * range->rows;
    vectors |= range->rows == 0 && !range->frozen;
  }
  struct jinja_value most = jinja_map(arena);
  set_int(arena, most, "count", count);
  set_int(arena, most, "matrices", matrices);
  set_int(arena, most, "rows", rows);
  jinja_set(arena, value, "most", most);
  set_bool(arena, value, "vectors", vectors);
}

/* Elements after a parameter that a range has alone. */
static int64_t padding_of(const struct flat_range *range) {
  return range->end - range->first - shape_count(range->weight->parameter->shape);
}

static void set_rows(const struct program *program, struct jinja_value value, const struct flat_range_list *ranges) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  struct table_row *rows = arena_alloc(arena, ((size_t)ranges->count + 1) * sizeof *rows);
  for (int i = 0; i < ranges->count; i++) rows[i] = range_row(program, &ranges->items[i]);
  jinja_set(arena, value, "repeats", repeats_value(arena, rows, ranges->count));
  for (int i = 0; i < ranges->count; i++) {
    const struct flat_range *range = &ranges->items[i];
    struct jinja_value row = row_value(arena, ranges, range, rows[i].name);
    set_int(arena, row, "number", i);
    set_int(arena, row, "last", shard_last(program, range));
    set_int(arena, row, "unpadded", range->coded ? shard_last(program, range) - padding_of(range) : 0);
    set_int(arena, row, "rest", shard_last(program, range) - range->shard_size);
    set_int(arena, row, "offset", range_offset(program->weights, range));
    if (range->gradient >= 0) set_int(arena, row, "gradient_offset", range_offset(program->gradients, range));
    jinja_push(arena, list, row);
  }
  jinja_set(arena, value, "rows", list);
  set_most(arena, value, ranges);
}

/* ---- The optimizer ---- */

static struct jinja_value floats_value(struct arena *arena, const double *values, int count) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < count; i++) {
    struct jinja_value number = jinja_map(arena);
    set_real(arena, number, "value", values[i]);
    jinja_push(arena, list, jinja_get(number, "value"));
  }
  return list;
}

static void set_own_keys(struct arena *arena, struct jinja_value value, const struct job *job) {
  set_real(arena, value, "dampening", job->optimizer.dampening);
  set_bool(arena, value, "nesterov", job->optimizer.nesterov);
  set_real(arena, value, "alpha", job->optimizer.alpha);
  set_real(arena, value, "rho", job->optimizer.rho);
  set_bool(arena, value, "centered", job->optimizer.centered);
  set_real(arena, value, "momentum_decay", job->optimizer.momentum_decay);
  set_real(arena, value, "r", job->optimizer.r);
  set_real(arena, value, "weight_lr_power", job->optimizer.weight_lr_power);
  set_real(arena, value, "beta2_decay", job->optimizer.beta2_decay);
  set_real(arena, value, "least_scale", job->optimizer.least_scale);
  set_real(arena, value, "clip_threshold", job->optimizer.clip_threshold);
  set_int(arena, value, "ns_steps", job->optimizer.ns_steps);
  set_text(arena, value, "adjust_lr_fn", job_word(job, "optimizer.adjust_lr_fn"));
  jinja_set(arena, value, "ns_coefficients", floats_value(arena, job->optimizer.ns_coefficients, 3));
}

/* Of the moving average: {alpha: 1 - decay, decay, every, warms_up, inv_gamma, power}; nothing without one. */
static struct jinja_value average_value(struct arena *arena, const struct job *job) {
  struct jinja_value value = jinja_map(arena);
  if (job->training.ema.decay == 0) return value;
  set_real(arena, value, "alpha", 1 - job->training.ema.decay);
  set_real(arena, value, "decay", job->training.ema.decay);
  set_int(arena, value, "every", job->training.ema.every);
  set_bool(arena, value, "warms_up", job->training.ema.power > 0);
  set_real(arena, value, "inv_gamma", job->training.ema.inv_gamma);
  set_real(arena, value, "power", job->training.ema.power);
  return value;
}

/* By state, the map of its 8 bits. */
static struct jinja_value maps_value(struct arena *arena, const struct job *job) {
  const char *names[MAX_OPTIMIZER_STATES];
  struct jinja_value list = jinja_list(arena);
  int count = optimizer_state_names(job, names);
  for (int i = 0; i < count; i++)
    jinja_push(arena, list, jinja_string(arena, optimizer_state_is_size(names[i]) ? "unsigned_map" : "signed_map"));
  return list;
}

/* Where buffers are among the weights that follow the batches of a rank, by elements of 4 bytes; neighbours in one row.
 */
static struct jinja_value buffers_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  int64_t first = -1, end = -1, size = dtype_size(DTYPE_FLOAT32);
  const char *name = NULL;
  for (int i = 0; i <= program->weights->count; i++) {
    const struct weight *weight = i < program->weights->count ? &program->weights->items[i] : NULL;
    bool buffer = weight != NULL && weight->parameter->buffer && !is_fp8_state(weight->path);
    if (first >= 0 && (!buffer || weight->offset / size != end)) {
      struct jinja_value row = jinja_map(arena);
      set_comment(arena, row, "name", name);
      set_int(arena, row, "first", first);
      set_int(arena, row, "count", end - first);
      jinja_push(arena, list, row);
      first = -1;
    }
    if (!buffer) continue;
    const struct parameter *parameter = weight->parameter;
    if (first < 0) name = weight->path;
    if (first < 0) first = weight->offset / size;
    end = (weight->offset + arena_aligned(shape_count(parameter->shape) * dtype_size(parameter->dtype))) / size;
  }
  return list;
}

/* How the norm, the clipping and the scale change a gradient before the update. */
static void set_gradient(const struct program *program, struct jinja_value value) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  set_real(arena, value, "clip_grad_norm", job->optimizer.clip_grad_norm);
  set_text(arena, value, "norm_type", job_word(job, "optimizer.norm_type"));
  set_text(arena, value, "summed", job->optimizer.norm_type == NORM_1 ? "sizes" : "squares"); /* where it is a sum */
  set_real(arena, value, "clip_grad_value", job->optimizer.clip_grad_value);
  set_bool(arena, value, "scales_gradient", program->step_end.factor);
  set_bool(arena, value, "unscales", program->step_end.unscales);
  set_bool(arena, value, "norm_pass", program->step_end.norm_pass);
  set_bool(arena, value, "exact_norm", job_has_tree(job)); /* the same however gradients are divided */
}

/* Which ranks have parts of gradients because they have parts of tensors or some of the experts. */
static void set_splits(const struct program *program, struct jinja_value value) {
  struct arena *arena = program->arena;
  const bool experts = mesh_ranks(program, SHARDED_EXPERTS) > 1, tensors = mesh_ranks(program, SHARDED_TENSORS) > 1;
  const enum axis split = axis_sharding(program, tensors ? SHARDED_TENSORS : SHARDED_EXPERTS);
  set_bool(arena, value, "splits_tensors", experts || tensors);
  set_text(arena, value, "split_along", axis_name(arena, split));
  set_bool(arena, value, "splits_experts", tensors && experts);
  if (!experts && !tensors) return;
  jinja_set(arena, value, "split_gradients", gradients_value(program, tensors ? GRADIENTS_CUT : GRADIENTS_EXPERT));
  if (tensors && experts) jinja_set(arena, value, "expert_gradients", gradients_value(program, GRADIENTS_EXPERT));
  jinja_set(arena, value, "whole_gradients", gradients_value(program, GRADIENTS_WHOLE));
}

/* Whether some flat ranges have their states in codes, or some do not. */
static bool has_ranges(const struct program *program, bool coded) {
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++)
    if (program->optimizer.flat_ranges.items[i].coded == coded) return true;
  return false;
}

/* What each rank has of weights and gradients, and updates. */
static void set_shards(const struct program *program, struct jinja_value value) {
  struct arena *arena = program->arena;
  const int64_t stored = program->figures.bytes.gradients / dtype_size(DTYPE_FLOAT32);
  set_bool(arena, value, "sharded", is_sharded(program));
  set_bool(arena, value, "own_gradients", shard_has_own_gradients(program));
  set_bool(arena, value, "parts", weights_are_split(program)); /* weights, too, are there in part */
  set_int(arena, value, "shards", ranks_along(program, program->mesh.shards));
  const bool in_codes = optimizer_state_dtype(program->job) == STATE_8BIT;
  set_int(arena, value, "block", is_sharded(program) && !in_codes ? (int)SHARD_LINE : (int)STATE_BLOCK);
  set_bool(arena, value, "codes", is_sharded(program) && has_ranges(program, true)); /* ranges with states in codes */
  set_bool(arena, value, "no_codes", has_ranges(program, false));
  set_int(arena, value, "own", program->ranks.own_elements); /* that a rank updates, of what ranks divide */
  set_int(arena, value, "gradients", shard_has_own_gradients(program) ? program->ranks.own_elements : stored);
}

/* What the optimizer stores for each weight. */
static void set_states(const struct program *program, struct jinja_value value) {
  static const char *const dtypes[] = {"float32", "bf16", "bf16", "8bit"};
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  const bool grows = job->schedule.wd_incr_style != GROWTH_CONSTANT;
  const bool by_chance = optimizer_state_dtype(job) == STATE_BF16_STOCHASTIC;
  set_bool(arena, value, "grows", grows);
  set_bool(arena, value, "counts_steps", grows || by_chance || optimizer_counts_steps(job));
  set_int(arena, value, "states", optimizer_steps_matrices(job) ? 2 : optimizer_states(job));
  set_bool(arena, value, "packed", optimizer_packs_moments(job));
  set_text(arena, value, "state_dtype", dtypes[optimizer_state_dtype(job)]);
  set_bool(arena, value, "by_chance", by_chance);
  set_int(arena, value, "seed", job->training.seed);
  jinja_set(arena, value, "maps", maps_value(arena, job));
}

/* The optimizer over a list of flat ranges; none: over all weights alike. */
static struct jinja_value rule_value(const struct program *program, const struct flat_range_list *ranges,
                                     const char *row) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  const struct function *backward = program->entry.backward;
  struct jinja_value value = jinja_map(arena);
  set_text(arena, value, "name", job_optimizer(job)->name);
  set_text(arena, value, "row", row);
  set_bool(arena, value, "in_backward", job_optimizer(job)->in_backward);
  set_bool(arena, value, "updates", backward != NULL && backward->updates); /* any weight there */
  set_real(arena, value, "lr", job->optimizer.lr);
  set_bool(arena, value, "coupled", job_optimizer(job)->coupled);
  set_bool(arena, value, "freezes", program->gradients != program->weights);
  set_text(arena, value, "bits16",
           is_sharded(program) ? "" : bits16_name(program)); /* else after what makes it whole */
  set_numbers(arena, value, ranges, row, &job->optimizer.numbers);
  set_own_keys(arena, value, job);
  set_gradient(program, value);
  set_states(program, value);
  set_splits(program, value);
  set_shards(program, value);
  set_rows(program, value, ranges);
  jinja_set(arena, value, "first_ranges", stage_ranges_value(program, ranges));
  jinja_set(arena, value, "stage_sets", stage_gradients_value(program));
  jinja_set(arena, value, "arrays", optimizer_arrays_value(program));
  jinja_set(arena, value, "ema", average_value(arena, job));
  jinja_set(arena, value, "buffers", buffers_value(program));
  const bool copies = job->training.ema.decay > 0 && !is_sharded(program); /* buffers to the averages, which have all */
  jinja_set(arena, value, "copied", copies ? buffers_value(program) : jinja_list(arena));
  return value;
}

struct jinja_value optimizer_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value value = rule_value(program, &program->optimizer.flat_ranges, "range");
  struct optimizer_gemms gemms = optimizer_gemms(program);
  const struct job *job = program->job;
  set_bool(arena, value, "averages", job_optimizer(job)->averages);
  jinja_set(arena, value, "rate_varies", jinja_get(schedule_value(arena, job), "varies"));
  bool stores = program->figures.bytes.gradients > 0;
  set_bool(arena, value, "sweeps", stores);
  set_bool(arena, value, "sweeps_all", updates_in_one_sweep(program));
  set_bool(arena, value, "one_sweeps", program->optimizer.one_sweeps);
  struct jinja_value whole = rule_value(program, &program->optimizer.tensors, "tensor");
  if (optimizer_steps_matrices(job))
    set_bool(arena, whole, "counts_steps", job->schedule.wd_incr_style != GROWTH_CONSTANT);
  jinja_set(arena, whole, "gemms", gemms_value(program, NULL));
  jinja_set(arena, value, "by_tensor", whole);
  set_int(arena, value, "scratch", program->optimizer.scratch);
  set_int(arena, value, "largest_matrix", gemms.matrix);
  set_int(arena, value, "largest_square", gemms.square);
  return value;
}

struct jinja_value schedule_value(struct arena *arena, const struct job *job) {
  struct jinja_value value = jinja_map(arena);
  struct schedule_steps steps = schedule_steps(job);
  set_bool(arena, value, "varies", job->schedule.name != SCHEDULE_CONSTANT || steps.warmup > 0);
  set_text(arena, value, "name", job_word(job, "schedule.name"));
  set_int(arena, value, "warmup_steps", steps.warmup);
  set_int(arena, value, "stable_until", steps.stable);
  set_int(arena, value, "decay_steps", steps.decay);
  set_int(arena, value, "per_step", steps.per_step);
  set_bool(arena, value, "step_with_optimizer", job->schedule.step_with_optimizer);
  set_int(arena, value, "steps", job->training.steps);
  set_text(arena, value, "wd_incr_style", job_word(job, "schedule.wd_incr_style"));
  set_real(arena, value, "start_weight_decay", job->schedule.start_weight_decay);
  set_real(arena, value, "end_weight_decay", job->optimizer.numbers.weight_decay);
  set_real(arena, value, "min_lr", job->schedule.min_lr);
  set_int(arena, value, "cycles", job->schedule.cycles);
  set_real(arena, value, "power", job->schedule.power);
  set_int(arena, value, "timescale", steps.timescale);
  set_real(arena, value, "gamma", job->schedule.gamma);
  set_int(arena, value, "step_size", job->schedule.step_size);
  set_text(arena, value, "anneal", job_word(job, "schedule.anneal"));
  set_real(arena, value, "peak", steps.peak);
  set_real(arena, value, "div_factor", job->schedule.div_factor);
  set_real(arena, value, "final_div_factor", job->schedule.final_div_factor);
  set_text(arena, value, "decay_type", job_word(job, "schedule.decay_type"));
  return value;
}
