#include "gen/plan/parts.h"

#include "gen/ir/op.h"
#include "gen/plan/optimizers.h"

const char step_rest[] = "between parts";

double kernel_bytes(const struct kernel *kernel) {
  const struct node *node = kernel->node;
  int64_t bytes = 0;
  for (int i = 0; i < node->n_inputs; i++)
    bytes += shape_count(kernel->inputs[i].shape) * dtype_size(kernel->inputs[i].dtype);
  for (int i = 0; i < node->n_outputs; i++) {
    bool room = node->kind->rooms >> i & 1;
    int64_t times = room ? 0 : kernel->outputs[i].accumulate ? 2 : 1;
    bytes += times * shape_count(kernel->outputs[i].shape) * dtype_size(kernel->outputs[i].dtype);
  }
  return (double)bytes;
}

static double batch_bytes(const struct program *program) {
  const struct region *entry = program->graph->entry;
  double bytes = 0;
  for (int i = 0; i < entry->inputs.count; i++)
    bytes += (double)(shape_count(entry->inputs.items[i]->shape) * dtype_size(entry->inputs.items[i]->dtype));
  return bytes;
}

int step_parts(const struct program *program, struct step_part parts[MAX_PARTS_AROUND]) {
  const struct job *job = program->job;
  const struct memory_bytes *bytes = &program->bytes;
  static const char *const states[] = {"float32", "bfloat16", "8bit"};
  bool tree = job_has_tree(job), several = job->accumulation.num_steps > 1;
  double gradients = (double)bytes->gradients;
  double updated = gradients + 2.0 * (double)(bytes->weights + bytes->optimizer + bytes->averages);
  const char *rule = arena_printf(program->arena, "update by %s, states %s", job_optimizer(job)->name,
                                  states[job->optimizer.state_dtype]);
  int count = 0;
  parts[count++] = (struct step_part){"load_batch", "load_batch", job->accumulation.num_steps, batch_bytes(program)};
  if (several && !tree) parts[count++] = (struct step_part){"clear_gradients", "clear_gradients", 1, gradients};
  if (several && tree)
    parts[count++] = (struct step_part){"join_gradients", "join_gradients", job->accumulation.num_steps, gradients};
  if (program->collectives.count > 0) parts[count++] = (struct step_part){"exchange", "exchange", 1, gradients};
  parts[count++] = (struct step_part){"gradient_norm", "gradient_norm", 1, gradients};
  parts[count++] = (struct step_part){"update", rule, 1, updated};
  return count;
}
