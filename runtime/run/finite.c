/* A step whose numbers are not finite: the run ends, or continues without its update. */
#include "runtime/base/digits.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* The input of rows that has targets; NULL: none has. */
static const struct accel_input *target_input(const struct accel_program *program) {
  for (int i = 0; i < program->n_inputs; i++)
    if (program->inputs[i].is_target) return &program->inputs[i];
  return NULL;
}

/* The targets of a batch, as the program loads them; false: it has none that can be left out. */
static bool load_targets(struct accel_run *run, int64_t position, int32_t *targets) {
  const struct accel_program *program = run->program;
  int64_t count = program->batch_size;
  const struct accel_input *input = target_input(program);
  if (input != NULL)
    accel_load_input(run, ACCEL_TRAIN, position, count, input, targets);
  else if (program->sequence_length > 0 && program->masking.probability > 0)
    accel_load_masked(run, ACCEL_TRAIN, position, count, NULL, targets);
  else if (program->sequence_length > 0 && program->packing != ACCEL_NOT_PACKED)
    accel_load_documents(run, ACCEL_TRAIN, position, count, NULL, targets, NULL, NULL);
  else
    return false;
  return true;
}

/* Whether a batch of step `at` has no target that counts, on any rank: a mean over nothing is no number. */
static bool lacks_targets(struct accel_run *run, int64_t at) {
  const struct accel_program *program = run->program;
  const struct accel_micro_batches micro_batches = accel_micro_batches_of(run, at);
  const struct accel_input *input = target_input(program);
  int64_t count = program->batch_size * (input != NULL ? input->width : program->sequence_length);
  int32_t *targets = malloc(((size_t)count + 1) * sizeof *targets);
  bool lacks = false;
  for (int64_t i = 0; targets != NULL && i < micro_batches.count && !lacks; i++) {
    lacks = load_targets(run, (micro_batches.first + i) * program->batch_size, targets);
    for (int64_t k = 0; k < count && lacks; k++) lacks = targets[k] < 0;
  }
  free(targets);
  return program->local_steps > 0 ? lacks : rt_world_largest(lacks) != 0;
}

/* Waits for what is being saved, as the run ends. */
static void finish_saves(struct accel_run *run) {
  struct problem problem;
  if (!rt_saver_wait(&run->saves.saver, &problem)) rt_warn("%s", problem.what);
}

static void end_run(struct accel_run *run, const struct problem *problem) {
  if (run->program->local_steps > 0) rt_fail(problem, 1); /* this rank alone knows */
  rt_fail_together(problem, 1);
}

static void require_finite(struct accel_run *run, int64_t at, const char *what, double value) {
  struct problem problem;
  if (isfinite(value)) return;
  finish_saves(run);
  if (isnan(value) && lacks_targets(run, at)) {
    rt_problem(&problem,
               "step %" PRId64 ": %s is nan: a batch has no target that counts; nothing of this step is saved", at + 1,
               what);
    rt_help(&problem, "leave out samples whose targets are all below 0, raise data.batch_size or "
                      "data.masking.probability, or skip such steps: training.on_nonfinite: skip");
  } else {
    rt_problem(&problem, "step %" PRId64 ": %s is %f; nothing of this step is saved", at + 1, what,
               rt_unsigned_nan(value));
    rt_help(&problem,
            "lower optimizer.lr, lengthen schedule.warmup_steps, clip with optimizer.clip_grad_norm, look for "
            "wrong values in the data, or skip such steps: training.on_nonfinite: skip");
  }
  end_run(run, &problem);
}

void accel_require_finite_loss(struct accel_run *run, int64_t at, double loss) {
  require_finite(run, at, "the loss", loss);
}

void accel_require_finite_norm(struct accel_run *run, int64_t at, double norm) {
  require_finite(run, at, "the gradient's norm", norm);
}

void accel_require_lower_scale(struct accel_run *run, int64_t at, bool lowered, double scale) {
  struct problem problem;
  if (lowered) return;
  finish_saves(run);
  rt_problem(&problem,
             "step %" PRId64 ": gradients overflow at a loss scale of %g, the least one; stopped before its update",
             at + 1, scale);
  rt_help(&problem,
          "lower precision.grad_scaler.min_loss_scale or optimizer.lr, raise precision.grad_scaler.hysteresis, "
          "or train in bf16, which needs no scale");
  end_run(run, &problem);
}

void accel_report_skipped(struct accel_run *run, bool skipped) {
  run->reports.skipped = skipped;
}

bool accel_step_was_skipped(const struct accel_run *run) {
  return run->reports.skipped;
}
