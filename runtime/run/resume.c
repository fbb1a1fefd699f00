#include "runtime/run/run.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/prints.h"
#include "runtime/checkpoint/sharded_states.h"
#include "runtime/files/lock.h"
#include "runtime/process/world.h"
#include "runtime/weights/tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool choose(struct accel_run *run, struct problem *problem) {
  struct manifest manifest;
  bool any = false;
  run->resumption.folder[0] = '\0';
  if (strcmp(run->resumption.asked, "auto") == 0)
    return rt_saver_newest(&run->saves.saver, run->resumption.folder, problem);
  if (strcmp(run->resumption.asked, "never") == 0) {
    if (!rt_saver_has_any(&run->saves.saver, &any, problem)) return false;
    if (!any) return true;
    rt_problem(problem, "%s: holds the checkpoints of an earlier run", run->saves.saver.folder);
    return rt_help(problem, "resume from the newest with --resume auto, remove them, or choose another --project-dir");
  }
  snprintf(run->resumption.folder, sizeof run->resumption.folder, "%s", run->resumption.asked);
  if (!rt_checkpoint_verify(run->resumption.asked, &manifest, problem)) return false;
  rt_manifest_free(&manifest);
  return true;
}

bool rt_resume_choose(struct accel_run *run, struct problem *problem) {
  if (run->resumption.is_chosen) return true;
  bool good = (!rt_is_main() || rt_lock_folder(run->project_dir, problem)) &&
              rt_saver_open(&run->saves.saver, run->program, run->project_dir, run->arena.base, problem) &&
              (!rt_is_main() || choose(run, problem));
  rt_world_require(good, problem, 1);
  rt_world_share(run->resumption.folder, sizeof run->resumption.folder);
  return run->resumption.is_chosen = true;
}

/* What rank 0 alone does, so that a checkpoint need not be where others see it; but ranks that write parts see them.
 */
static bool read_chosen(struct accel_run *run, struct checkpoint *what, bool in_parts, struct problem *problem) {
  bool read =
      (in_parts || rt_sharded_open(run->program, run->saves.saver.own, run->saves.saver.arrays, STATES_ALL, problem)) &&
      rt_checkpoint_compare(run->resumption.folder, run->program, run->resumption.changed,
                            sizeof run->resumption.changed, problem) &&
      rt_checkpoint_read(run->resumption.folder, run->program, run->saves.saver.arrays, what, problem);
  if (read)
    rt_prints_compare(run->resumption.folder, &run->input.data, run->resumption.changed,
                      sizeof run->resumption.changed);
  return read;
}

bool rt_resume(struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  struct checkpoint what = {0};
  if (!rt_resume_choose(run, problem)) return false;
  if (run->resumption.folder[0] == '\0') return true;
  bool in_parts =
      program->checkpoint.by_rank && rt_is_main() && rt_checkpoint_is_in_parts(run->resumption.folder, program);
  rt_world_share(&in_parts, sizeof in_parts);
  rt_world_require(!rt_is_main() || read_chosen(run, &what, in_parts, problem), problem, 1);
  rt_world_share(&what, sizeof what);
  if (in_parts)
    rt_world_require(rt_checkpoint_read_part(run->resumption.folder, program, run->saves.saver.own, problem), problem,
                     1);
  for (int i = 0; i < program->n_states; i++)
    if (!rt_is_sharded(program, i))
      rt_world_share(run->saves.saver.arrays[i], rt_state_bytes(&program->states[i]));
    else if (!in_parts)
      rt_sharded_deal(program, i, run->saves.saver.own[i], run->saves.saver.arrays[i]);
  rt_sharded_close(program, run->saves.saver.arrays);
  run->resumption.continues = true;
  run->first_step = what.step;
  rt_input_continue(run, what.epoch, what.index);
  return true;
}

void rt_resume_tell(const struct accel_run *run) {
  if (!run->resumption.continues) return;
  printf("resumes from %s, step %" PRId64 "%s%s\n", run->resumption.folder, run->first_step,
         run->resumption.changed[0] != '\0' ? ", with changes: " : "", run->resumption.changed);
  if (run->first_step >= run->cadences.steps)
    printf("nothing to train: all %" PRId64 " steps are done; a larger training.steps or --steps continues the run\n",
           run->cadences.steps);
  fflush(stdout);
}
