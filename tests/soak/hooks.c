/* Functions of a job's own for programs of random jobs: each says something, and one keeps a number in checkpoints. */
#include <accel/hooks.h>

static int64_t calls[2];

static void note(struct accel_run *run, const struct accel_progress *at, const char *name) {
  calls[0]++;
  if (at->step < at->steps) accel_log(run, name, (double)at->step);
}
void on_start(struct accel_run *run, const struct accel_progress *at) {
  (void)at;
  accel_register_for_checkpointing(run, calls, sizeof calls);
}
void on_step(struct accel_run *run, const struct accel_progress *at) {
  calls[1]++;
  note(run, at, "steps_seen");
}
void on_step_begin(struct accel_run *run, const struct accel_progress *at) {
  note(run, at, "steps_begun");
}
void on_epoch(struct accel_run *run, const struct accel_progress *at) {
  note(run, at, "epochs_seen");
}
void on_eval(struct accel_run *run, const struct accel_progress *at) {
  note(run, at, "evaluations_seen");
}
void on_pre_save(struct accel_run *run, const struct accel_progress *at) {
  (void)at;
  accel_save_file(run, "calls.bin", calls, sizeof calls);
}
void on_save(struct accel_run *run, const struct accel_progress *at) {
  (void)run, (void)at;
  calls[0]++;
}
void on_pre_load(struct accel_run *run, const struct accel_progress *at) {
  (void)at;
  accel_load_file(run, "calls.bin", calls, sizeof calls);
}
void on_end(struct accel_run *run, const struct accel_progress *at) {
  accel_print(run, "ended at %lld", (long long)at->step);
}
