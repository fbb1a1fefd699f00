/* The parts of a step that a profile measures: what happens around the model's kernels, then these. */
#include "gen/emit/values.h"
#include "gen/ir/op.h"
#include "gen/program/kernels.h"
#include "gen/program/optimizers.h"
#include "gen/program/parts.h"
#include "gen/program/target.h"

bool is_profiled(const struct program *program) {
  return program->job->profile.on && program->kind == PROGRAM_TRAIN;
}

static void add_part(struct arena *arena, struct jinja_value parts, const char *name, double flops, double bytes) {
  struct jinja_value part = jinja_map(arena);
  set_text(arena, part, "name", name);
  set_int(arena, part, "flops", (int64_t)flops);
  set_int(arena, part, "bytes", (int64_t)bytes);
  jinja_push(arena, parts, part);
}

struct jinja_value profile_value(const struct program *program) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value value = jinja_map(arena), parts = jinja_list(arena);
  if (!is_profiled(program)) return value;
  struct step_part around[MAX_PARTS_AROUND];
  int n_around = step_parts(program, around);
  for (int i = 0; i < n_around; i++) add_part(arena, parts, around[i].name, 0, around[i].bytes);
  for (int i = 0; i < program->kernels.count; i++)
    add_part(arena, parts, program->kernels.items[i]->name, op_flops(program->kernels.items[i]->node),
             kernel_bytes(program->kernels.items[i]));
  /* what it moves differs from parameter to parameter */
  if (job_optimizer(job)->in_backward) add_part(arena, parts, "step_tensor", 0, 0);
  jinja_set(arena, value, "parts", parts);
  set_int(arena, value, "skip_first", job->profile.schedule.skip_first);
  set_int(arena, value, "wait", job->profile.schedule.wait);
  set_int(arena, value, "warmup", job->profile.schedule.warmup);
  set_int(arena, value, "active", job->profile.schedule.active);
  set_int(arena, value, "repeat", job->profile.schedule.repeat);
  set_bool(arena, value, "marks_parts", !program->target->kernels.traced || job->profile.with_flops);
  set_bool(arena, value, "with_flops", job->profile.with_flops);
  set_bool(arena, value, "nvtx", job->profile.nvtx);
  set_literal(arena, value, "trace_folder", job->profile.output_trace_dir);
  return value;
}
