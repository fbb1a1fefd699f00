#include "gen/plan/report/placements.h"

#include "gen/base/text.h"

static void add_tensors(struct text *text, const struct program *program) {
  const struct program_placed *placed = &program->ranks.placed;
  text_printf(text,
              "%d of %d parameters in parts, with their gradients and states; %d of %d results of operations in "
              "parts; the same batches",
              program->figures.n_split, program->weights->count, placed->split, placed->values);
}

/* Of what the optimizer works on. */
static const char *placement_of_states(const struct mesh_axis *axis) {
  if (axis->states == PLACED_WHOLE) return "parameters and states whole, gradients added up";
  if (axis->gradients == PLACED_PARTIAL) return "states in parts; gradients and weights whole";
  if (axis->weights == PLACED_WHOLE) return "states and gradients in parts; weights whole";
  return "states, gradients and weights in parts";
}

/* Different batches of the ranks along an axis: those that it counts along others take the same. */
static int64_t batches_along(const struct program *program, enum axis axis) {
  int64_t ranks = ranks_along(program, axis);
  for (int other = 0; other < AXES; other++)
    if (program->mesh.axes[other].within == axis) ranks /= ranks_along(program, (enum axis)other);
  return ranks;
}

static void add_axis(struct text *text, const struct program *program, enum axis axis) {
  const struct mesh_axis *placed = &program->mesh.axes[axis], *within = &program->mesh.axes[placed->within];
  switch (placed->sharded) {
  case SHARDED_BATCHES:
    text_printf(text, "%s; %s", placement_of_states(placed),
                batches_along(program, axis) > 1 ? "batches of their own" : "the same batches");
    break;
  case SHARDED_KEYS:
  case SHARDED_HEADS:
    if (within->states == PLACED_WHOLE)
      text_printf(text, "%s; positions in parts", placement_of_states(within));
    else
      text_printf(text, "among the ranks along %s; positions in parts", job_axis_names[placed->within]);
    break;
  case SHARDED_LAYERS:
    text_puts(text, "each has some layers, with their gradients and states; the same batches");
    break;
  case SHARDED_TENSORS:
    add_tensors(text, program);
    break;
  case SHARDED_EXPERTS:
    text_puts(text,
              "each has some experts, with their gradients and states; other parameters whole; batches of their own");
  }
}

/* Whether the ranks along it differ in more than the positions that other axes divide. */
static bool is_reported(const struct program *program, enum axis axis) {
  return batches_along(program, axis) > 1 ||
         (ranks_along(program, axis) > 1 && program->mesh.axes[axis].states == PLACED_SPLIT);
}

const char *placements_text(const struct program *program) {
  struct text text = text_in(program->arena);
  for (int axis = 0; axis < AXES; axis++) {
    if (!is_reported(program, (enum axis)axis)) continue;
    text_printf(&text, "placement %s: ", job_axis_names[axis]);
    add_axis(&text, program, (enum axis)axis);
    text_puts(&text, "\n");
  }
  for (int i = 0; i < program->ranks.placed.n_whole; i++)
    text_printf(&text, "whole     %s\n", program->ranks.placed.whole[i]);
  return text_string(&text);
}
