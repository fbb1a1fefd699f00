#include "runtime/run/resume.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/divided.h"
#include "runtime/checkpoint/prints.h"
#include "runtime/files/lock.h"
#include "runtime/process/world.h"
#include "runtime/weights/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool choose(struct accel_run *run, struct problem *problem) {
  struct manifest manifest;
  bool any = false;
  run->resumed[0] = '\0';
  if (strcmp(run->resume, "auto") == 0) return rt_saver_newest(&run->saver, run->resumed, problem);
  if (strcmp(run->resume, "never") == 0) {
    if (!rt_saver_has_any(&run->saver, &any, problem)) return false;
    if (!any) return true;
    rt_problem(problem, "%s: holds the checkpoints of an earlier run", run->saver.folder);
    return rt_help(problem, "resume from the newest with --resume auto, remove them, or choose another --project-dir");
  }
  snprintf(run->resumed, sizeof run->resumed, "%s", run->resume);
  if (!rt_checkpoint_verify(run->resume, &manifest, problem)) return false;
  rt_manifest_free(&manifest);
  return true;
}

/* With other batches or other data, the samples go on where they were in their epoch. */
static void go_on_with_samples(struct accel_run *run, const struct checkpoint *what) {
  struct data_split *train = &run->data.split[ACCEL_TRAIN];
  int64_t taken = train->mixture.taken, index = what->index < taken ? what->index : taken;
  train->shift = what->epoch * taken + index - rt_position(run, what->step);
}

bool rt_resume_choose(struct accel_run *run, struct problem *problem) {
  if (run->chosen) return true;
  bool good = (!rt_is_main() || rt_lock_folder(run->project_dir, problem)) &&
              rt_saver_open(&run->saver, run->program, run->project_dir, run->arena.base, problem) &&
              (!rt_is_main() || choose(run, problem));
  rt_world_require(good, problem, 1);
  rt_world_share(run->resumed, sizeof run->resumed);
  return run->chosen = true;
}

/* What rank 0 alone does, so that a checkpoint need not lie where others see it; but ranks that write parts see them.
 */
static bool read_chosen(struct accel_run *run, struct checkpoint *what, bool in_parts, struct problem *problem) {
  int n_states = run->program->n_states;
  bool read = (in_parts || rt_divided_open(run->program, run->saver.own, run->saver.arrays, n_states, problem)) &&
              rt_checkpoint_compare(run->resumed, run->program, run->changed, sizeof run->changed, problem) &&
              rt_checkpoint_read(run->resumed, run->program, run->saver.arrays, what, problem);
  if (read) rt_prints_compare(run->resumed, &run->data, run->changed, sizeof run->changed);
  return read;
}

bool rt_resume(struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  struct checkpoint what = {0};
  if (!rt_resume_choose(run, problem)) return false;
  if (run->resumed[0] == '\0') return true;
  bool in_parts = program->checkpoint.by_rank && rt_is_main() && rt_checkpoint_is_in_parts(run->resumed, program);
  rt_world_share(&in_parts, sizeof in_parts);
  rt_world_require(!rt_is_main() || read_chosen(run, &what, in_parts, problem), problem, 1);
  rt_world_share(&what, sizeof what);
  if (in_parts) rt_world_require(rt_checkpoint_read_part(run->resumed, program, run->saver.own, problem), problem, 1);
  for (int i = 0; i < program->n_states; i++)
    if (!rt_is_divided(program, i))
      rt_world_share(run->saver.arrays[i], rt_state_bytes(&program->states[i]));
    else if (!in_parts)
      rt_divided_deal(program, i, run->saver.own[i], run->saver.arrays[i]);
  rt_divided_close(program, run->saver.arrays);
  run->continues = true;
  run->first_step = what.step;
  go_on_with_samples(run, &what);
  return true;
}

void rt_resume_tell(const struct accel_run *run) {
  if (!run->continues) return;
  printf("resumes from %s, step %" PRId64 "%s%s\n", run->resumed, run->first_step,
         run->changed[0] != '\0' ? ", with changes: " : "", run->changed);
  if (run->first_step >= run->cadences.steps)
    printf("nothing to train: all %" PRId64 " steps are done; a larger training.steps or --steps continues the run\n",
           run->cadences.steps);
  fflush(stdout);
}
