/* What user code may call: include/accel/hooks.h. */
#include "include/accel/bucket.h"
#include "include/accel/hooks.h"
#include "runtime/run/run.h"

#include "runtime/base/terminal.h"
#include "runtime/checkpoint/keys.h"
#include "runtime/checkpoint/sharded_states.h"
#include "runtime/process/device.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/values/agreement.h"
#include "runtime/weights/disk_states.h"
#include "runtime/weights/streamed.h"
#include "runtime/weights/tensors.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Of an epoch's last round of batches, where that is not full. */
static int64_t remainder_of(const struct accel_run *run) {
  const struct mixture *mixture = &run->input.data.split[ACCEL_TRAIN].mixture;
  return run->program->rest.kept ? mixture->samples % (mixture->sharding.batch * mixture->sharding.ranks) : 0;
}

bool accel_epoch_is_over(const struct accel_run *run, int64_t at) {
  return rt_events_epoch(&run->cadences, at);
}

const struct accel_progress *accel_progress(struct accel_run *run, int64_t at, struct accel_report report) {
  rt_stopwatch_stop(run->reports.watch); /* what follows is not training */
  run->user.at_hand = at;
  run->user.has_whole_weights = false;
  run->user.progress = (struct accel_progress){.step = at,
                                               .steps = run->cadences.steps,
                                               .loss = report.loss,
                                               .epoch = at > 0 ? rt_input_position(run, at - 1).epoch : 0,
                                               .end_of_dataloader = accel_epoch_is_over(run, at),
                                               .remainder = remainder_of(run),
                                               .lr = report.lr,
                                               .grad_norm = report.grad_norm,
                                               .step_was_skipped = run->reports.skipped,
                                               .has_eval = run->reports.eval_at == at,
                                               .eval_loss = run->reports.eval_at == at ? run->reports.eval_loss : 0};
  return &run->user.progress;
}

const struct accel_progress *accel_progress_before(struct accel_run *run, int64_t at, struct accel_report report) {
  accel_progress(run, at, report);
  run->user.at_hand = at + 1;
  run->user.progress.epoch = rt_input_position(run, at).epoch;
  run->user.progress.end_of_dataloader = accel_epoch_is_over(run, at + 1);
  return &run->user.progress;
}

void accel_log(struct accel_run *run, const char *name, double value) {
  struct problem problem;
  if (rt_extras_set(&run->reports.extras, name, value, false)) return;
  rt_problem(&problem, "no memory to log '%.100s'", name);
  rt_fail(&problem, 1);
}

void accel_print(struct accel_run *run, const char *format, ...) {
  va_list arguments;
  if (!accel_is_local_main_process(run)) return;
  rt_terminal_clear();
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  fflush(stdout);
}

bool accel_metric(const struct accel_run *run, const char *name, double *value) {
  char whole[64];
  snprintf(whole, sizeof whole, "eval_%.50s", name);
  return rt_extras_find(&run->reports.extras, whole, value);
}

void accel_stop(struct accel_run *run) {
  if (run->user.at_hand < run->cadences.steps) run->cadences.steps = run->user.at_hand;
}

void accel_save(struct accel_run *run) {
  run->user.save_at = run->user.at_hand > run->first_step ? run->user.at_hand : run->first_step + 1;
}

void accel_agree(struct accel_run *run) {
  run->cadences.steps = -rt_world_largest(-run->cadences.steps);
  run->user.save_at = rt_world_largest(run->user.save_at);
}

void accel_set_trigger(struct accel_run *run) {
  run->user.trigger = true;
}

bool accel_check_trigger(struct accel_run *run) {
  rt_meet(OPERATION_TRIGGER, "");
  bool set = rt_world_largest(run->user.trigger) != 0;
  run->user.trigger = false;
  return set;
}

void accel_collect_weights(struct accel_run *run) {
  struct problem problem;
  rt_meet(OPERATION_COLLECT, "");
  if (!rt_leaves_parts(run)) return;
  for (int i = 0; i < run->program->n_states; i++)
    if (run->program->states[i].name[0] == '\0')
      rt_device_refresh(run->arena.base, run->saves.saver.own[i], rt_state_bytes(&run->program->states[i]));
  if (rt_publishes_parts(run))
    rt_device_refresh(run->arena.base, run->model.published, rt_state_bytes(&run->program->states[1]));
  if (!rt_save_collect(run, STATES_LEFT, &problem)) rt_fail(&problem, 1);
  run->user.has_whole_weights = true;
}

static const float *values_of(const struct accel_run *run, const char *file, const char *name, int64_t *count) {
  const int state = rt_mirror_state(run->program, file);
  char *weights = rt_mirror(run, file);
  const bool in_parts = state >= 0 && (rt_is_sharded(run->program, state) || (state == 0 && rt_publishes_parts(run)));
  if (in_parts && !(run->user.has_whole_weights && rt_is_main())) return NULL;
  for (int i = 0; weights != NULL && i < run->program->n_tensors; i++) {
    const struct accel_tensor *tensor = &run->program->tensors[i];
    if (strcmp(tensor->name, name) != 0 || rt_is_streamed(run->program, tensor)) continue;
    if (rt_is_layer_on_disk(run->program, tensor)) continue;
    *count = 1;
    for (int d = 0; d < tensor->rank; d++) *count *= tensor->shape[d];
    rt_device_refresh(run->arena.base, weights + tensor->offset, (size_t)*count * sizeof(float));
    return (const float *)(weights + tensor->offset);
  }
  return NULL;
}

const float *accel_weight_of(const struct accel_run *run, const char *name, int64_t *count) {
  return values_of(run, "model", name, count);
}

const float *accel_average_of(const struct accel_run *run, const char *name, int64_t *count) {
  return values_of(run, "ema", name, count);
}

int accel_weight_count(const struct accel_run *run) {
  return run->program->n_tensors;
}

const char *accel_weight_name(const struct accel_run *run, int index) {
  return run->program->tensors[index].name;
}

float *accel_gradient_in(const struct accel_run *run, const struct accel_bucket *bucket, int index, int64_t *count) {
  const struct accel_tensor *tensor = &run->program->tensors[index];
  const int64_t offset = run->program->gradients[index].offset, at = offset / (int64_t)sizeof(float) - bucket->first;
  if (offset < 0 || at < 0 || at >= bucket->count) return NULL;
  *count = 1;
  for (int d = 0; d < tensor->rank; d++) *count *= tensor->shape[d];
  return bucket->gradients + at;
}

const char *accel_key_of(const struct accel_run *run, const char *name) {
  const struct accel_program *program = run->program;
  const struct accel_key *key = rt_key_find(program->keys, program->n_keys, name);
  if (key == NULL) key = rt_key_find(program->defaults, program->n_defaults, name);
  return key != NULL ? key->value : NULL;
}

const char *accel_project_dir(const struct accel_run *run) {
  return run->project_dir;
}

int accel_process_index(const struct accel_run *run) {
  (void)run;
  return rt_world()->rank;
}

int accel_num_processes(const struct accel_run *run) {
  (void)run;
  return rt_world()->ranks;
}

int accel_local_process_index(const struct accel_run *run) {
  (void)run;
  return rt_world()->local_rank;
}

bool accel_is_main_process(const struct accel_run *run) {
  return accel_process_index(run) == 0;
}

bool accel_is_local_main_process(const struct accel_run *run) {
  return accel_local_process_index(run) == 0;
}

bool accel_is_last_process(const struct accel_run *run) {
  return accel_process_index(run) == accel_num_processes(run) - 1;
}
