#include "gen/plan/state.h"

#include <string.h>

#include "gen/plan/ranks/compress.h"
#include "gen/program/optimizers.h"
#include "gen/program/sharding.h"
#include "gen/program/storage.h"

static void add(struct program *program, struct state state) {
  ARENA_PUSH(program->arena, program->states, state);
}

/* Numbers that belong to no parameter. */
static void add_numbers(struct program *program, const char *file, const char *name, const char *member,
                        enum dtype dtype, struct shape shape) {
  struct state_slice *slice = arena_alloc(program->arena, sizeof *slice);
  slice->shape = shape;
  add(program, (struct state){.file = file,
                              .name = name,
                              .member = member,
                              .dtype = dtype,
                              .count = shape_count(shape),
                              .slices = slice,
                              .n_slices = 1});
}

/* One number. */
static void add_number(struct program *program, const char *file, const char *name, const char *member,
                       enum dtype dtype) {
  add_numbers(program, file, name, member, dtype, (struct shape){0});
}

static void add_step_end(struct program *program) {
  struct step_end step_end = program->step_end;
  if (step_end.scaler) {
    add_number(program, "scaler", "scale", "scale", DTYPE_FLOAT32);
    add_number(program, "scaler", "_growth_tracker", "growth_tracker", DTYPE_INT32);
    if (step_end.delays) add_number(program, "scaler", "_hysteresis_tracker", "hysteresis", DTYPE_INT32);
  }
  if (step_end.skips) add_number(program, "progress", "skipped", "skipped", DTYPE_INT32);
}

/* Which parameters have a state, and which of their dimensions it has; of those that have states in blocks all, or a
 * number for each block, or of the others all. */
enum slicing { WHOLE, ROWS, COLUMNS, UNFACTORED, CODED, BLOCKS, OTHERS };

static struct shape sliced_shape(const struct flat_range *range, enum slicing slicing) {
  struct shape shape = range->weight->parameter->shape;
  if (slicing == ROWS) shape.dim[shape.rank - 1] = 1;
  if (slicing == COLUMNS) shape.dim[shape.rank - 2] = 1;
  if (slicing == BLOCKS) shape = shape_of(1, ((shape_count(shape) + STATE_BLOCK - 1) / STATE_BLOCK));
  return shape;
}

static bool has_slice(const struct flat_range *range, enum slicing slicing) {
  if (range->frozen || range->again) return false;
  if (slicing == UNFACTORED) return range->rows == 0;
  if (slicing == CODED || slicing == BLOCKS) return range->coded;
  if (slicing == OTHERS) return !range->coded;
  return slicing == WHOLE || range->rows > 0;
}

/* Whether slices say no more than that a state has what the weights have, where they have it. */
static bool mirrors_weights(const struct program *program, const struct state *state) {
  if (state->n_slices != program->weights->count) return false;
  for (int i = 0; i < state->n_slices; i++) {
    const struct state_slice *slice = &state->slices[i];
    const struct parameter *parameter = slice->weight->parameter;
    if (parameter->buffer || slice->first != slice->weight->offset / dtype_size(DTYPE_FLOAT32) ||
        !shape_equal(slice->shape, parameter->shape))
      return false;
  }
  return true;
}

/* A state that some parameters have, each at its position in the array. False: none has it. */
static bool add_sliced(struct program *program, const char *name, const char *member, enum dtype dtype,
                       const struct flat_range_list *list, enum slicing slicing) {
  struct state state = {.file = "optimizer", .name = name, .member = member, .dtype = dtype};
  state.slices = arena_alloc(program->arena, ((size_t)list->count + 1) * sizeof *state.slices);
  state.slice_of = arena_alloc(program->arena, (size_t)program->weights->count * sizeof *state.slice_of);
  for (int i = 0; i < list->count; i++) {
    const struct flat_range *range = &list->items[i];
    if (!has_slice(range, slicing)) continue;
    int64_t first = range->state[slicing == COLUMNS || slicing == BLOCKS];
    if (is_sharded(program)) first = range->first;
    struct state_slice slice = {range->weight, first, sliced_shape(range, slicing)};
    int64_t length = shape_count(slice.shape);
    if (list == &program->optimizer.parts) length = range->end - range->first;
    state.slices[state.n_slices++] = slice;
    state.slice_of[range->weight - program->weights->items] = state.n_slices;
    if (state.count < slice.first + length) state.count = slice.first + length;
  }
  state.count = arena_aligned(state.count * dtype_size(dtype)) / dtype_size(dtype);
  bool any = state.n_slices > 0;
  if (mirrors_weights(program, &state)) {
    state.slices = NULL;
    state.slice_of = NULL;
    state.n_slices = 0;
  }
  if (any) add(program, state);
  return any;
}

/* Of the state that was added last, a rank has its part alone. The whole lies as the weights do. */
static void divide(struct program *program) {
  struct state *state = &program->states.items[program->states.count - 1];
  if (!is_sharded(program)) return;
  state->whole = program->weights->bytes / dtype_size(DTYPE_FLOAT32);
  state->count = program->ranks.own_elements;
}

/* Of a state of some ranges, these alone. */
static void divide_some(struct program *program, enum state_ranges ranges) {
  struct state *state = &program->states.items[program->states.count - 1];
  divide(program);
  if (!is_sharded(program)) return;
  state->ranges = ranges;
  state->count = 0;
  for (int i = 0; i < program->optimizer.flat_ranges.count; i++) {
    int64_t first, count = shard_of_state(program, state, &program->optimizer.flat_ranges.items[i], &first);
    if (count > 0 && first + count > state->count) state->count = first + count;
  }
  state->count = arena_aligned(state->count * dtype_size(state->dtype)) / dtype_size(state->dtype);
}

/* A state of each element, as the job wants it stored. */
static void add_element_state(struct program *program, const char *name, int number, int64_t elements) {
  struct arena *arena = program->arena;
  enum state_dtype stored = optimizer_state_dtype(program->job);
  const char *moment = arena_printf(arena, "moment_%d", number);
  bool halves = stored == STATE_BF16 || stored == STATE_BF16_STOCHASTIC;
  enum dtype dtype = halves ? DTYPE_BFLOAT16 : DTYPE_FLOAT32;
  if (stored != STATE_8BIT && program->gradients != program->weights) {
    bool whole = optimizer_is_by_tensor(program->job);
    add_sliced(program, name, moment, dtype, whole ? &program->optimizer.tensors : &program->optimizer.parts, WHOLE);
    divide(program);
    return;
  }
  if (stored != STATE_8BIT) {
    add(program, (struct state){"optimizer", name, moment, .dtype = dtype, .count = elements});
    divide(program);
    return;
  }
  const struct flat_range_list *parts = &program->optimizer.parts;
  const struct flat_range_list *coded = is_sharded(program) ? parts : &program->optimizer.tensors;
  if (add_sliced(program, name, arena_printf(arena, "codes_%d", number), DTYPE_UINT8, coded, CODED))
    divide_some(program, RANGES_CODED);
  if (add_sliced(program, arena_printf(arena, "%s_absmax", name), arena_printf(arena, "scales_%d", number),
                 DTYPE_FLOAT32, coded, BLOCKS)) {
    program->states.items[program->states.count - 1].scales_of = name;
    divide_some(program, RANGES_BLOCKS);
  }
  if (add_sliced(program, name, moment, DTYPE_FLOAT32, parts, OTHERS)) divide_some(program, RANGES_OTHERS);
}

static void add_optimizer(struct program *program, int64_t elements) {
  const char *names[MAX_OPTIMIZER_STATES];
  int count = optimizer_state_names(program->job, names);
  for (int i = 0; i < count; i++) add_element_state(program, names[i], i + 1, elements);
}

void plan_state(struct program *program) {
  int64_t elements = program->weights->bytes / dtype_size(DTYPE_FLOAT32);
  const struct job *job = program->job;
  if (program->kind != PROGRAM_TRAIN) return;
  bool parts = weights_are_split(program);
  add(program,
      (struct state){.file = "model", .name = "", .member = parts ? "all_weights" : "weights", .count = elements});
  if (parts) divide(program);
  add_optimizer(program, elements);
  const char *const *factors = job_optimizer(job)->factors;
  if (factors[0] != NULL) {
    add_sliced(program, factors[0], "row_var", DTYPE_FLOAT32, &program->optimizer.tensors, ROWS);
    add_sliced(program, factors[1], "col_var", DTYPE_FLOAT32, &program->optimizer.tensors, COLUMNS);
    add_sliced(program, factors[2], "variance", DTYPE_FLOAT32, &program->optimizer.tensors, UNFACTORED);
  }
  if (optimizer_steps_matrices(job)) {
    add_sliced(program, "momentum_buffer", "momentum", DTYPE_FLOAT32, &program->optimizer.tensors, WHOLE);
    add_sliced(program, "exp_avg", "moment_1", DTYPE_FLOAT32, &program->optimizer.parts, WHOLE);
    add_sliced(program, "exp_avg_sq", "moment_2", DTYPE_FLOAT32, &program->optimizer.parts, WHOLE);
  }
  if (job->training.ema.decay > 0) {
    const char *member = is_sharded(program) ? "all_averages" : "averages";
    add(program, (struct state){.file = "ema", .name = "", .member = member, .count = elements});
    divide(program);
  }
  if (job->tracking.noise_scale)
    add_numbers(program, "progress", "noise_scale", "noise", DTYPE_FLOAT32, shape_of(1, (int64_t)2));
  if (job_compares_evaluations(job))
    add_numbers(program, "progress", "early_stopping", "stopping", DTYPE_INT32, shape_of(1, (int64_t)4));
  compression_states(program);
  add_step_end(program);
  for (int i = 0; i < program->states.count; i++) {
    struct state *state = &program->states.items[i];
    const bool mirrors = i == 0 || strcmp(state->file, "ema") == 0;
    state->on_host = mirrors
                         ? job->parallelism.offload.param == OFFLOAD_CPU
                         : job->parallelism.offload.optimizer == OFFLOAD_CPU && strcmp(state->file, "optimizer") == 0;
  }
}
