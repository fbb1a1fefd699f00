#include "gen/program/parts.h"

#include "gen/ir/op.h"
#include "gen/program/optimizers.h"
#include "gen/program/target.h"

const char step_rest[] = "between parts";

static double batch_bytes(const struct program *program) {
  const struct region *entry = program->graph->entry;
  double bytes = 0;
  for (int i = 0; i < entry->inputs.count; i++)
    bytes += (double)(shape_count(entry->inputs.items[i]->shape) * dtype_size(entry->inputs.items[i]->dtype));
  return bytes;
}

bool updates_in_one_sweep(const struct program *program) {
  return program->figures.bytes.gradients > 0 && program->optimizer.flat_ranges.count == 0 &&
         program->optimizer.tensors.count == 0;
}

bool update_is_short(const struct program *program) {
  enum { FEW = 1 << 10, MANY = 1 << 18 };
  int64_t count = program->figures.bytes.gradients / dtype_size(DTYPE_FLOAT32);
  return program->kind == PROGRAM_TRAIN && program->target->kernels.forks && updates_in_one_sweep(program) &&
         count >= FEW && count <= MANY;
}

const char *update_subject(const struct program *program) {
  const struct job *job = program->job;
  static const char *const states[] = {"float32", "bfloat16", "bfloat16 by chance", "8bit"};
  const char *rule = arena_printf(program->arena, "update by %s, states %s", job_optimizer(job)->name,
                                  states[job->optimizer.state_dtype]);
  if (!update_is_short(program)) return rule;
  return arena_printf(program->arena, "%s, of %lld weights", rule,
                      (long long)(program->figures.bytes.gradients / dtype_size(DTYPE_FLOAT32)));
}

static struct step_part update_part(const struct program *program) {
  const struct memory_bytes *bytes = &program->figures.bytes;
  double moved = (double)bytes->gradients + 2.0 * (double)(bytes->weights + bytes->optimizer + bytes->averages);
  const char *variant = !update_is_short(program) ? "" : program->optimizer.one_sweeps ? "one" : "all";
  return (struct step_part){"update", update_subject(program), variant, 1, moved};
}

int step_parts(const struct program *program, struct step_part parts[MAX_PARTS_AROUND]) {
  const struct job *job = program->job;
  bool tree = job_has_tree(job), several = job->accumulation.num_steps > 1;
  double gradients = (double)program->figures.bytes.gradients, times = job->accumulation.num_steps;
  int count = 0;
  parts[count++] = (struct step_part){"load_batch", "load_batch", "", times, batch_bytes(program)};
  if (several && !tree) parts[count++] = (struct step_part){"clear_gradients", "clear_gradients", "", 1, gradients};
  if (several && tree) parts[count++] = (struct step_part){"add_gradients", "add_gradients", "", times, gradients};
  if (program->ranks.collectives.count > 0) parts[count++] = (struct step_part){"exchange", "exchange", "", 1, 0};
  parts[count++] = (struct step_part){"gradient_norm", "gradient_norm", "", 1, gradients};
  parts[count++] = update_part(program);
  if (program->disk.n_states > 0) parts[count++] = (struct step_part){"wait_disk", "wait_disk", "", 1, 0};
  return count;
}
