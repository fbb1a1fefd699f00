#include "gen/plan/groups.h"

#include <stdlib.h>
#include <string.h>

#include "gen/plan/state_blocks.h"
#include "gen/program/experts.h"
#include "gen/program/flat_ranges.h"
#include "gen/program/match.h"
#include "gen/program/optimizers.h"
#include "gen/program/sharding.h"
#include "gen/program/stage_parameters.h"

/* The first group that a parameter's name matches; -1 for none. */
static int group_of(const struct job *job, const char *name) {
  for (int g = 0; g < job->optimizer.n_groups; g++)
    if (name_matches(job->optimizer.groups[g].match, name)) return g;
  return -1;
}

static struct location where_of_group(const struct job *job, int g) {
  return job->optimizer.groups[g].where;
}

static bool check_group(const struct program *program, int g, struct diagnostics *diags) {
  const struct param_group *group = &program->job->optimizer.groups[g];
  int before = -1;
  bool frozen = false;
  for (int i = 0; i < program->weights->count; i++) {
    if (program->weights->items[i].parameter->buffer || !name_matches(group->match, program->weights->items[i].path))
      continue;
    if (!program->weights->items[i].parameter->value->differentiable) {
      frozen = true;
      continue;
    }
    before = group_of(program->job, program->weights->items[i].path);
    if (before == g) return true;
  }
  if (before < 0 && frozen) {
    diag_error(diags, group->where, "all parameters that '%s' matches are frozen", group->match);
    if (program->job->model.n_freeze > 0) diag_note(diags, program->job->model.freeze[0].where, "model.freeze is here");
  } else if (before < 0) {
    struct name_list names = {0};
    for (int i = 0; i < program->weights->count; i++)
      if (!program->weights->items[i].parameter->buffer)
        ARENA_PUSH(program->arena, names, program->weights->items[i].path);
    name_pattern_unmatched(program->arena, group->match, &names, group->where, diags);
  } else {
    diag_error(diags, group->where, "all parameters that '%s' matches belong to groups before it", group->match);
    diag_note(diags, program->job->optimizer.groups[before].where, "such a group is here");
  }
  return false;
}

static int by_offset(const void *left, const void *right) {
  const struct weight *a = *(const struct weight *const *)left, *b = *(const struct weight *const *)right;
  return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* The weights in the order in which they are. */
static const struct weight **sorted_weights(const struct program *program) {
  const struct weight **sorted = arena_alloc(program->arena, ((size_t)program->weights->count + 1) * sizeof *sorted);
  for (int i = 0; i < program->weights->count; i++) sorted[i] = &program->weights->items[i];
  qsort(sorted, (size_t)program->weights->count, sizeof *sorted, by_offset);
  return sorted;
}

/* Elements to the next line of 64 bytes: what is between two parameters. */
static int64_t rounded(int64_t elements) {
  return (elements + 15) / 16 * 16;
}

/* While states are assigned to the weights: elements of the states so far. */
struct assignment {
  struct program *program;
  int64_t swept, whole, rows, columns, blocks;
};

/* A parameter on its own, up to its last element. One that an earlier stage has as well has its states there. */
static void add_tensor(struct assignment *assignment, struct flat_range range) {
  struct program *program = assignment->program;
  struct shape shape = range.weight->parameter->shape;
  range.end = range.first + shape_count(shape);
  if (range.frozen) {
    flat_range_add(program, &program->optimizer.tensors, range);
    return;
  }
  const struct flat_range *same = flat_range_of(program, &program->optimizer.tensors, range.weight);
  if (shape.rank >= 2) {
    range.rows = shape.dim[shape.rank - 2];
    range.columns = shape.dim[shape.rank - 1];
    range.matrices = shape_product(shape, 0, shape.rank - 2);
  }
  bool factored = job_optimizer(program->job)->factors[0] != NULL;
  if (same != NULL) {
    memcpy(range.state, same->state, sizeof range.state);
  } else if (factored && shape.rank >= 2) {
    range.state[0] = assignment->rows;
    range.state[1] = assignment->columns;
    assignment->rows += range.matrices * range.rows;
    assignment->columns += range.matrices * range.columns;
  } else if (factored || optimizer_steps_matrices(program->job)) {
    range.state[0] = assignment->whole;
    assignment->whole += range.end - range.first;
  } else if (optimizer_state_dtype(program->job) == STATE_8BIT) {
    range.state[0] = assignment->whole;
    range.state[1] = assignment->blocks;
    assignment->whole += range.end - range.first;
    assignment->blocks += (range.end - range.first + STATE_BLOCK - 1) / STATE_BLOCK;
  } else {
    range.state[0] = range.gradient;
  }
  flat_range_add(program, &program->optimizer.tensors, range);
}

/* A parameter that is swept with its neighbours reaches up to the next one: what is between is zero and stays so. */
static void add_part(struct assignment *assignment, struct flat_range range) {
  struct program *program = assignment->program;
  struct flat_range *last = program->optimizer.flat_ranges.count > 0
                                ? &program->optimizer.flat_ranges.items[program->optimizer.flat_ranges.count - 1]
                                : NULL;
  bool frozen = program->gradients != program->weights;
  if (frozen) range.end = range.first + rounded(shape_count(range.weight->parameter->shape));
  const struct flat_range *same = flat_range_of(program, &program->optimizer.parts, range.weight);
  range.state[0] = optimizer_packs_moments(program->job) ? assignment->swept : range.gradient;
  if (same != NULL)
    range.state[0] = same->state[0];
  else
    assignment->swept += range.end - range.first;
  flat_range_add(program, &program->optimizer.parts, range);
  bool follows = last != NULL && last->end == range.first &&
                 last->gradient + last->end - last->first == range.gradient &&
                 last->state[0] + last->end - last->first == range.state[0];
  if (follows && last->stage == range.stage && same_numbers(&last->numbers, &range.numbers))
    last->end = range.end;
  else
    ARENA_PUSH(program->arena, program->optimizer.flat_ranges, range);
}

static void add_weight(struct assignment *assignment, const struct weight *weight, int64_t end, int stage) {
  const struct job *job = assignment->program->job;
  int64_t size = dtype_size(DTYPE_FLOAT32);
  int g = weight->parameter->value->differentiable ? group_of(job, weight->path) : -1;
  const struct param_group *group = g < 0 ? NULL : &job->optimizer.groups[g];
  struct flat_range range = {.weight = weight, .first = weight->offset / size, .end = end / size, .stage = stage};
  range.gradient = weight->gradient < 0 ? -1 : weight->gradient / size;
  range.frozen = !weight->parameter->value->differentiable;
  bool adamw = optimizer_steps_matrices(job) && (weight->parameter->shape.rank != 2 || (group != NULL && group->adamw));
  if (adamw)
    range.numbers = group != NULL ? group->adamw_numbers : job->optimizer.adamw;
  else
    range.numbers = group != NULL ? group->numbers : job->optimizer.numbers;
  bool in_blocks = states_have_codes(assignment->program, weight->parameter);
  range.coded = in_blocks;
  if ((optimizer_is_by_tensor(job) && !adamw) || (in_blocks && !is_sharded(assignment->program)))
    add_tensor(assignment, range);
  else
    add_part(assignment, range);
}

/* Whether the update uses a table, not over all weights alike. */
static bool has_tables(const struct program *program) {
  const struct job *job = program->job;
  return program->gradients != program->weights || job->optimizer.n_groups > 0 || optimizer_is_by_tensor(job) ||
         optimizer_state_dtype(job) != STATE_FLOAT32 || is_sharded(program) || program->ranks.pipeline.stages > 0;
}

/* Whether a weight is one that the update visits. A backward that updates finds its rows by their numbers, so that all
 * weights have one. */
static bool has_row(const struct job *job, const struct weight *weight) {
  return weight->gradient >= 0 || job_optimizer(job)->in_backward;
}

/* All of a rank's, in order; of those of a rank of a pipeline. */
static void add_weights(struct assignment *assignment, const struct weight **sorted, int stage) {
  const struct program *program = assignment->program;
  const struct pipeline *pipeline = &program->ranks.pipeline;
  for (int i = 0; i < program->weights->count; i++)
    if (has_row(program->job, sorted[i]) && (pipeline->stages == 0 || rank_uses(pipeline, stage, sorted[i]->path)))
      add_weight(assignment, sorted[i],
                 i + 1 < program->weights->count ? sorted[i + 1]->offset : program->weights->bytes, stage);
}

/* A range that is right after the last one of its stage, as is its gradient, continues with that. */
static void add_stage_range(struct program *program, struct stage_range range) {
  struct stage_range_list *ranges = &program->ranks.pipeline.ranges;
  struct stage_range *last = ranges->count > 0 ? &ranges->items[ranges->count - 1] : NULL;
  const int64_t next = last != NULL && last->gradient >= 0 ? last->gradient + last->end - last->first : -1;
  if (last != NULL && last->stage == range.stage && last->end == range.first && next == range.gradient)
    last->end = range.end;
  else
    ARENA_PUSH(program->arena, *ranges, range);
}

/* Which weights are of which rank of a pipeline. */
static void add_stages(struct program *program, const struct weight **sorted) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  const int64_t size = dtype_size(DTYPE_FLOAT32);
  for (int k = 0; pipeline->stages > 0 && k < pipeline->ranks; k++)
    for (int i = 0; i < program->weights->count; i++) {
      const struct weight *weight = sorted[i];
      struct stage_range range = {.weight = weight, .stage = k, .first = weight->offset / size};
      range.end = range.first + rounded(shape_count(weight->parameter->shape));
      range.gradient = program->kind != PROGRAM_TRAIN || weight->gradient < 0 ? -1 : weight->gradient / size;
      if (rank_uses(pipeline, k, weight->path)) add_stage_range(program, range);
    }
}

bool plan_groups(struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  struct assignment assignment = {.program = program};
  bool good = true;
  const struct weight **sorted = sorted_weights(program);
  add_stages(program, sorted);
  if (program->kind != PROGRAM_TRAIN || !has_tables(program)) return true;
  for (int g = 0; g < job->optimizer.n_groups; g++)
    name_pattern_check(job->optimizer.groups[g].match, job->optimizer.groups[g].where, diags);
  if (diags->errors > 0 || !check_expert_names(program, group_of, where_of_group, diags)) return false;
  for (int g = 0; g < job->optimizer.n_groups; g++) good = check_group(program, g, diags) && good;
  for (int i = 0; i < program->weights->count && good; i++)
    good = check_state_blocks(program, &program->weights->items[i], diags);
  for (int k = 0; k == 0 || k < program->ranks.pipeline.ranks; k++) add_weights(&assignment, sorted, k);
  program->optimizer.scratch = optimizer_scratch(program);
  return good;
}
