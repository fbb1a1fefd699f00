#include "gen/plan/disk.h"

#include <string.h>

#include "gen/program/optimizers.h"

/* Elements of a bucket: a multiple of UNIT, so that each state of a bucket is whole pages, and MOST at most. A state of
 * fewer than FEW buckets of MOST is divided into FEW, so that there is something to overlap. */
enum { UNIT = 1 << 10, MOST = 1 << 20, FEW = 8 };

/* Why a job's states cannot be on a disk, and what could be instead; NULL: they can. */
struct obstacle {
  const char *key, *why, *help;
};

static struct obstacle find_obstacle(const struct program *program) {
  const struct job *job = program->job;
  const struct optimizer *rule = job_optimizer(job);
  if (job->devices.ranks > 1)
    return (struct obstacle){"devices.per_node", "several ranks keep their states in memory",
                             "use one process, or divide the states among the ranks with parallelism.zero_stage: 1"};
  if (rule->averages)
    return (struct obstacle){"optimizer.name", "the model is made of a state", "use optimizer.name: adamw"};
  if (rule->in_backward)
    return (struct obstacle){"optimizer.name", "weights are updated within the backward", "use optimizer.name: adamw"};
  if (rule->reach != BY_ELEMENT)
    return (struct obstacle){"optimizer.name", "it steps parameters as a whole, and buckets cut them",
                             "use an optimizer that steps each weight by itself, such as adamw"};
  if (optimizer_states(job) == 0)
    return (struct obstacle){"optimizer.name", "it stores nothing for each weight", "leave out parallelism.offload"};
  if (optimizer_state_dtype(job) != STATE_FLOAT32)
    return (struct obstacle){"optimizer.state_dtype", "states on a disk are stored in float32",
                             "leave out optimizer.state_dtype"};
  return (struct obstacle){0};
}

static bool is_of_optimizer(const struct state *state) {
  return strcmp(state->file, "optimizer") == 0;
}

/* All states have as many elements, in the same positions. */
static void divide(struct program *program) {
  struct program_disk *disk = &program->disk;
  for (int i = 0; i < program->states.count; i++) {
    struct state *state = &program->states.items[i];
    if (!is_of_optimizer(state)) continue;
    if (disk->n_states++ == 0) disk->first_state = i;
    state->on_disk = true;
    disk->elements = state->count;
  }
  const int64_t units = (disk->elements + UNIT - 1) / UNIT, most = (disk->elements + MOST - 1) / MOST;
  const int64_t wanted = most > FEW ? most : units < FEW ? units : FEW;
  disk->bucket = (units + wanted - 1) / wanted * UNIT;
  disk->buckets = (disk->elements + disk->bucket - 1) / disk->bucket;
}

bool plan_disk(struct program *program, struct diagnostics *diags) {
  const struct job *job = program->job;
  if (program->kind != PROGRAM_TRAIN || job->parallelism.offload.optimizer != OFFLOAD_NVME) return true;
  const struct obstacle obstacle = find_obstacle(program);
  if (obstacle.key == NULL) {
    divide(program);
    return true;
  }
  diag_error(diags, job_where(job, "parallelism.offload.optimizer"),
             "'parallelism.offload.optimizer: nvme' does not go with '%s': %s", obstacle.key, obstacle.why);
  diag_note(diags, job_where(job, obstacle.key), "'%s' is set here", obstacle.key);
  diag_help(diags, "%s", obstacle.help);
  return false;
}
