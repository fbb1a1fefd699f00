/* Hooks of examples/jobs/hooks.yaml: the size of one parameter in metrics.jsonl, a line where the loss is the lowest so
 * far, and an end when it is low enough. */
#include <accel/hooks.h>

#include <math.h>

static const double low_enough = 0.2;

static double norm_of(const struct accel_run *run, const char *name) {
  int64_t count = 0;
  const float *values = accel_weight_of(run, name, &count);
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += (double)values[i] * values[i];
  return sqrt(sum);
}

void on_start(struct accel_run *run, const struct accel_progress *progress) {
  accel_print(run, "%d parameters, %lld steps to go", accel_weight_count(run), (long long)progress->steps);
}

void on_step(struct accel_run *run, const struct accel_progress *progress) {
  accel_log(run, "output_norm", norm_of(run, "output.weight"));
  if (progress->loss < low_enough) accel_stop(run);
}

void on_eval(struct accel_run *run, const struct accel_progress *progress) {
  double accuracy = 0;
  if (accel_metric(run, "accuracy", &accuracy) && accuracy > 0.8) accel_set_trigger(run);
  if (accel_check_trigger(run)) accel_print(run, "step %lld: four of five are right", (long long)progress->step);
}

void on_end(struct accel_run *run, const struct accel_progress *progress) {
  accel_print(run, "ended after step %lld with the loss %.4f", (long long)progress->step, progress->loss);
}
