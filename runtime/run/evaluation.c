/* A trained model measured: the functions of evaluator.h. */
#include "include/accel/evaluator.h"

#include "runtime/base/digits.h"
#include "runtime/base/terminal.h"
#include "runtime/files/mapping.h"
#include "runtime/process/device.h"
#include "runtime/process/fail.h"
#include "runtime/process/flags.h"
#include "runtime/process/world.h"
#include "runtime/run/eval_batches.h"
#include "runtime/run/run.h"
#include "runtime/weights/trained.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the flags say. */
static struct {
  const char *weights, *data, *format;
} options = {.format = "text"};

static void read_flags(const struct accel_program *program, int argc, char **argv) {
  struct problem problem;
  const struct flag flags[] = {
      {"--weights",
       "FILE",
       "safetensors, an index or a folder (default: the project's)",
       FLAG_TEXT,
       0,
       {.text = &options.weights}},
      {"--data", "FILE", "evaluate on this file instead of the job's", FLAG_TEXT, 0, {.text = &options.data}},
      {"--format", "F", "text or json (default: text)", FLAG_TEXT, 0, {.text = &options.format}},
  };
  rt_flags_read(program, flags, sizeof flags / sizeof *flags, argc, argv);
  if (strcmp(options.format, "text") == 0 || strcmp(options.format, "json") == 0) return;
  rt_problem(&problem, "--format must be text or json, not '%.100s'", options.format);
  rt_help(&problem, "--help lists the flags");
  rt_fail(&problem, 2);
}

struct accel_run *accel_evaluation_start(const struct accel_program *program, int argc, char **argv) {
  static struct accel_run run;
  static struct stopwatch watch;
  struct problem problem;
  program = rt_trained_join(program);
  read_flags(program, argc, argv);
  run = (struct accel_run){.program = program, .reports.watch = &watch};
  rt_trained_divide(program);
  rt_guard_mappings();
  if (!rt_device_is_there(&problem) || !rt_data_open_eval(&run.input.data, program, options.data, &problem) ||
      !rt_arena_open(&run.arena, program->arena_bytes, &problem))
    rt_fail(&problem, 1);
  return &run;
}

void accel_evaluation_weights(struct accel_run *run, void *weights) {
  rt_trained_read(run->program, options.weights, weights);
}

/* Samples that one evaluation sees. */
static int64_t samples_of(const struct accel_run *run) {
  return run->program->eval_iters > 0 ? run->program->eval_iters * run->program->batch_size : rt_eval_samples(run);
}

/* As the job names it: a trainer's log has it after "eval_". */
static const char *metric_name(const struct accel_run *run, int index) {
  return run->reports.extras.items[index].name + strlen("eval_");
}

static void print_text(const struct accel_run *run, double loss) {
  char samples[32];
  rt_digits(samples, sizeof samples, samples_of(run));
  rt_print(stdout, "%s %s, job %.6s, %s samples\nloss %.9g\n", run->program->name, run->program->summary,
           run->program->job_digest, samples, rt_unsigned_nan(loss));
  for (int i = 0; i < run->reports.extras.count; i++)
    rt_print(stdout, "%s %.9g\n", metric_name(run, i), rt_unsigned_nan(run->reports.extras.items[i].value));
}

static json_t *number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

static void print_json(const struct accel_run *run, double loss) {
  json_t *root = json_pack("{s:s, s:s, s:I}", "model", run->program->name, "job", run->program->job_digest, "samples",
                           (json_int_t)samples_of(run));
  json_object_set_new(root, "loss", number(loss));
  for (int i = 0; i < run->reports.extras.count; i++)
    json_object_set_new(root, metric_name(run, i), number(run->reports.extras.items[i].value));
  json_dumpf(root, stdout, JSON_INDENT(2));
  putchar('\n');
  json_decref(root);
}

int accel_evaluation_finish(struct accel_run *run, double loss) {
  double known;
  rt_terminal_clear();
  if (run->program->sequence_length > 0 && !rt_extras_find(&run->reports.extras, "eval_perplexity", &known))
    rt_report_metric(run, "perplexity", exp(loss));
  if (rt_is_main() && strcmp(options.format, "json") == 0)
    print_json(run, loss);
  else if (rt_is_main())
    print_text(run, loss);
  rt_data_close(&run->input.data);
  rt_arena_close(&run->arena);
  rt_extras_free(&run->reports.extras);
  rt_trained_leave(run->program);
  return fflush(stdout) == 0 ? 0 : 1;
}
