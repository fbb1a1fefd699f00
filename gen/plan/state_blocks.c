#include "gen/plan/state_blocks.h"

#include "gen/program/mesh.h"
#include "gen/program/optimizers.h"

/* A parameter as ranks have it that divide it: of each of `pieces` pieces in a row of the whole a rank has `run`
 * elements, the last one `padding` fewer. One that all have is a piece. */
struct pieces {
  int64_t ranks, pieces, run, padding;
};

static struct pieces pieces_of(const struct program *program, const struct parameter *parameter) {
  const struct placement placement = parameter->placement;
  const struct shape shape = parameter->shape;
  if (placement.form != PLACED_SPLIT) return (struct pieces){1, 1, shape_count(shape), 0};
  struct pieces of = {.ranks = ranks_along(program, (enum axis)parameter->axis)};
  const int64_t inner = shape_product(shape, placement.dim + 1, shape.rank);
  of.pieces = shape_product(shape, 0, placement.dim) * placement.blocks;
  of.run = shape_count(shape) / of.pieces;
  of.padding = placement.padding * inner;
  return of;
}

bool states_have_codes(const struct program *program, const struct parameter *parameter) {
  const struct pieces of = pieces_of(program, parameter);
  return optimizer_state_dtype(program->job) == STATE_8BIT &&
         of.pieces * (of.ranks * of.run - of.padding) >= STATE_8BIT_FROM;
}

static struct shape whole_shape(const struct program *program, const struct parameter *parameter) {
  struct shape shape = parameter->shape;
  const struct placement placement = parameter->placement;
  const int64_t ranks = ranks_along(program, (enum axis)parameter->axis);
  shape.dim[placement.dim] = shape.dim[placement.dim] * ranks - placement.padding;
  return shape;
}

bool check_state_blocks(const struct program *program, const struct weight *weight, struct diagnostics *diags) {
  const struct parameter *parameter = weight->parameter;
  const struct pieces of = pieces_of(program, parameter);
  if (weight->gradient < 0 || of.ranks == 1 || !states_have_codes(program, parameter)) return true;
  const bool aligned = of.pieces == 1 || of.padding % STATE_BLOCK == 0;
  if (of.run % STATE_BLOCK == 0 && aligned) return true;
  diag_error(
      diags, job_where(program->job, "optimizer.state_dtype"),
      "states of 8 bits have a scale for %d elements in a row, and a rank along %s has %lld in a row of '%s', %s",
      STATE_BLOCK, job_axis_names[parameter->axis], (long long)(aligned ? of.run : of.run - of.padding), weight->path,
      shape_text(program->arena, whole_shape(program, parameter)));
  diag_note(diags, parameter->where, "the parameter is here");
  diag_help(diags, "use optimizer.state_dtype: bf16, or widths of which each rank has a multiple of %d", STATE_BLOCK);
  return false;
}
