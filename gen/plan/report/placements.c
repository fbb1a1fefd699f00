#include "gen/plan/report/placements.h"

#include "gen/base/text.h"

static void add_tensors(struct text *text, const struct program *program) {
  const struct program_placed *placed = &program->ranks.placed;
  text_printf(text,
              "%d of %d parameters in parts, with their gradients and states; %d of %d results of operations in "
              "parts; the same batches",
              program->figures.n_split, program->weights->count, placed->split, placed->values);
}

static void add_shards(struct text *text, const struct program *program) {
  static const char *const parts[] = {"", "states", "states and gradients", "states, gradients and weights"};
  static const char *const wholes[] = {"states, gradients and weights whole", "; gradients and weights whole",
                                       "; weights whole", ""};
  int stage = program->job->parallelism.zero_stage;
  bool same = program->job->parallelism.axes[AXIS_DP_SHARD] == job_sequence_ranks(program->job);
  text_printf(text, "%s%s%s; %s", parts[stage], stage > 0 ? " in parts" : "", wholes[stage],
              same ? "the same batches" : "batches of their own");
}

static void add_axis(struct text *text, const struct program *program, enum axis axis) {
  static const char *const others[AXES] = {
      [AXIS_DP_REPLICATE] = "parameters and states whole, gradients added up; batches of their own",
      [AXIS_PP] = "each has some layers, with their gradients and states; the same batches",
      [AXIS_CP] = "parameters and states whole, gradients added up; positions in parts",
      [AXIS_SP] = "parameters and states whole, gradients added up; positions in parts",
      [AXIS_EP] =
          "each has some experts, with their gradients and states; other parameters whole; batches of their own"};
  const bool counted = (axis == AXIS_CP || axis == AXIS_SP) && program->job->parallelism.zero_stage > 0;
  text_printf(text, "placement %s: ", job_axis_names[axis]);
  if (counted)
    text_puts(text, "among the ranks along dp_shard; positions in parts");
  else if (axis == AXIS_TP)
    add_tensors(text, program);
  else if (axis == AXIS_DP_SHARD)
    add_shards(text, program);
  else
    text_puts(text, others[axis]);
  text_puts(text, "\n");
}

/* Ranks along dp_replicate but those along cp and sp, where it counts them too. */
static int64_t length_of(const struct job *job, enum axis axis) {
  const bool counts = axis == AXIS_DP_REPLICATE && job->parallelism.zero_stage == 0;
  return job->parallelism.axes[axis] / (counts ? job_sequence_ranks(job) : 1);
}

const char *placements_text(const struct program *program) {
  struct text text = text_in(program->arena);
  for (int axis = 0; axis < AXES; axis++)
    if (length_of(program->job, (enum axis)axis) > 1) add_axis(&text, program, (enum axis)axis);
  for (int i = 0; i < program->ranks.placed.n_whole; i++)
    text_printf(&text, "whole     %s\n", program->ranks.placed.whole[i]);
  return text_string(&text);
}
