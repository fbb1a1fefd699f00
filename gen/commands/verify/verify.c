#define _XOPEN_SOURCE 700 /* realpath */
/* accel-gen verify: the arithmetic of a trainer, compared with a second reading of its job. */
#include "gen/commands/verify/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/generate/length.h"
#include "gen/model/model.h"

/* Of a model of more parameters than LARGE one step is run, and one noisy reading of it: minutes become a minute. */
enum { STEPS = 3, MOST_CORNERS = 8, LARGE = 20000000 };

bool verify_unknown(struct verification *verify, const char *format, ...) {
  va_list list;
  va_start(list, format);
  if (verify->unknown == NULL) verify->unknown = arena_vprintf(verify->arena, format, list);
  va_end(list);
  return false;
}

/* ---- What the second reading has no rule for ---- */

static const char *refused_data(const struct job *job) {
  if (job->data.batch_size == 0) return "data.batch_size: auto";
  if (job->accumulation.num_steps == 0) return "accumulation.num_steps: auto";
  return NULL;
}

static const char *refused_optimizer(const struct job *job) {
  if (job->optimizer.state_dtype != STATE_FLOAT32) return "optimizer.state_dtype";
  if (job->schedule.wd_incr_style != GROWTH_CONSTANT) return "schedule.wd_incr_style";
  return NULL;
}

static const char *refused_ranks(const struct job *job) {
  if (job->parallelism.automatic) return "parallelism: auto";
  if (job->devices.ranks < 2) return NULL;
  if (job->parallelism.axes[AXIS_EP] > 1) return "parallelism.ep_size: ranks have experts of their own";
  if (job->parallelism.wire != PRECISION_NO || job->parallelism.power_sgd.on)
    return "parallelism.ddp.comm_hook: ranks send other gradients than they have";
  if (job->parallelism.local_steps > 0) return "parallelism.local_sgd_steps: ranks step by themselves";
  if (job->parallelism.offload.optimizer != OFFLOAD_NONE || job->parallelism.offload.param != OFFLOAD_NONE)
    return "parallelism.offload of several ranks";
  if (job->checkpoint.by_rank || job->checkpoint.each_node) return "checkpoints that each rank writes";
  if (job->data.keep_last || job->data.uneven_inputs || !job->data.even_batches || job->data.dispatch_batches)
    return "data: a round that not all ranks have a whole batch of";
  if (job->schedule.warmup_samples > 0 || job->schedule.decay_samples > 0)
    return "schedule: lengths in samples of several ranks";
  return NULL;
}

/* The first key whose arithmetic the second reading does not have; NULL: there is none. */
static const char *refused(const struct job *job) {
  if (job->devices.kind != DEVICE_CPU)
    return "devices.kind: a program for another device than the processor is not run";
  const char *of_ranks = refused_ranks(job);
  if (of_ranks != NULL) return of_ranks;
  for (int i = 0; i < HOOKS; i++)
    if (job->hooks.names[i] != NULL) return "hooks";
  if (job->model.lora.dropout > 0) return "model.lora.dropout";
  if (job->model.quantize.on) return "model.quantize";
  if (job->precision.fp8.on) return "precision.mixed_precision: fp8";
  const char *found = refused_data(job);
  return found != NULL ? found : refused_optimizer(job);
}

/* ---- The command ---- */

static bool verify_steps(struct verification *verify, int64_t first, int64_t steps) {
  const char *folder;
  struct recording recording = {0};
  verify->steps[verify->n_steps++] = first;
  return verify_run(verify, first, steps, &folder) && verify_record(verify, folder, &recording) &&
         verify_compare(verify, folder, &recording);
}

static bool is_large(const struct verification *verify) {
  int64_t count = 0;
  for (const struct stored *at = verify->reading.first; at != NULL; at = at->next) count += at->count;
  return count > LARGE;
}

static bool has_buffers(const struct verification *verify) {
  bool found = false;
  for (const struct stored *at = verify->reading.first; at != NULL; at = at->next) found = found || !at->trained;
  return found;
}

static bool rate_changes(const struct job *job) {
  return job->schedule.name != SCHEDULE_CONSTANT || job->schedule.warmup_steps > 0 ||
         job->schedule.warmup_samples > 0 || job->schedule.warmup_fraction > 0;
}

static bool verify_all(struct verification *verify, const struct tree *model) {
  int64_t corners[MOST_CORNERS];
  const char *why = refused(verify->job);
  if (why != NULL) return verify_unknown(verify, "%s", why);
  if (!verify_read_model(verify, model)) return false;
  if (verify->job->devices.ranks > 1 && has_buffers(verify))
    return verify_unknown(verify, "devices: ranks have buffers of their own, such as running statistics");
  if (!verify_build(verify)) return false;
  if (verify->options->functions && !verify_functions(verify)) return false;
  const bool large = is_large(verify);
  if (large) verify->measuring.readings = 1;
  const int64_t most = large ? 1 : STEPS, all = verify->job->training.steps, steps = all < most ? all : most;
  if (!verify_steps(verify, 0, steps)) return false;
  const int count = rate_changes(verify->job) && !large ? rule_corners(verify->job, corners, MOST_CORNERS) : 0;
  for (int i = 0; i < count; i++)
    if (!verify_steps(verify, corners[i], 1)) return false;
  return true;
}

/* The job and its model; false with errors. */
static bool read_job(const struct options *options, struct diagnostics *diags, struct job **job, struct tree **model) {
  *job = job_read(options->arena, options->job, options->overrides, options->n_overrides, diags);
  if (*job == NULL || !find_steps(*job, diags)) return false;
  *model = model_parse(options->arena, (*job)->model.source, diags);
  return *model != NULL;
}

int command_verify(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  struct verification verify = {.options = options, .arena = options->arena, .one = -1};
  verify.scratch = arena_new();
  struct job *job;
  struct tree *model;
  if (options->job == NULL) {
    options_refuse(options, "it needs the job of the program:", "--job FILE");
    return STATUS_BAD_JOB;
  }
  const bool good = read_job(options, &diags, &job, &model);
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  if (!good) return STATUS_BAD_JOB;
  verify.job = job;
  verify.program = realpath(options->argument, NULL);
  verify.folder = make_folder(options->arena);
  if (verify.program == NULL) {
    fprintf(stderr, "accel-gen: cannot read %s\n", options->argument);
    return STATUS_BAD_JOB;
  }
  if (verify.folder == NULL) return STATUS_BAD_JOB;
  verify_all(&verify, model);
  const int status = verify_report(&verify);
  reading_free(&verify.reading);
  free((char *)verify.program);
  remove_folder(verify.folder);
  arena_free(verify.scratch);
  return status;
}
