#include "runtime/run/signpost.h"

#include "runtime/base/clock.h"
#include "runtime/base/digits.h"
#include "runtime/base/terminal.h"
#include "runtime/process/world.h"
#include "runtime/run/run.h"

#include <jansson.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Of the lines at the end, below which their second column is. */
enum { LABEL = 10 };

/* What a shell reads as it is. */
static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+:@%-";

static void print_json(json_t *line) {
  json_dumpf(line, stdout, 0);
  putchar('\n');
  fflush(stdout);
  json_decref(line);
}

/* Whether lines go to a file or a pipe, where they may be read long after they were written. */
static bool is_read_later(void) {
  return rt_terminal_columns(STDOUT_FILENO) == 0;
}

/* ---- The first lines ---- */

static void begin_json(const struct accel_run *run) {
  const struct accel_program *program = run->program;
  json_t *line =
      json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:s}", "model", program->name, "summary", program->summary, "job",
                program->job_digest, "ranks", rt_world()->ranks, "first_step", (json_int_t)run->first_step, "steps",
                (json_int_t)run->cadences.steps, "project_dir", run->project_dir);
  char date[RT_DATE_BYTES];
  rt_date_text(date);
  json_object_set_new(line, "date", json_string(date));
  if (run->resumption.continues) json_object_set_new(line, "resumes_from", json_string(run->resumption.folder));
  print_json(line);
}

static void print_start(const struct log *log) {
  char date[RT_DATE_BYTES];
  struct utsname machine;
  rt_date_text(date);
  const bool is_named = uname(&machine) == 0;
  rt_log_text(log, 2, "starts at %s%s%s", date, is_named ? " on " : "", is_named ? machine.nodename : "");
}

void rt_signpost_begin(const struct accel_run *run) {
  const struct log *log = &run->reports.log;
  const struct accel_program *program = run->program;
  const int ranks = rt_world()->ranks;
  const size_t planned = program->device_bytes > 0 ? program->device_bytes : program->arena_bytes;
  char data[600];
  if (log->form == LOG_JSON) begin_json(run);
  rt_data_describe(&run->input.data, data, sizeof data);
  rt_log_text(log, 2, "%s %s, %d rank%s x %d threads, job %.6s, plan %.1f MiB", program->name, program->summary, ranks,
              ranks > 1 ? "s" : "", omp_get_max_threads(), program->job_digest, (double)planned / (1 << 20));
  if (run->bound[0] != '\0') rt_log_text(log, 2, "%s", run->bound);
  rt_log_text(log, 2, "%s", data);
  if (is_read_later()) print_start(log);
  rt_log_text(log, 2, "writes to %s; accel-gen watch %s shows the run", run->project_dir, run->project_dir);
}

/* ---- The last lines ---- */

static void end_json(const struct accel_run *run, enum run_end end) {
  char date[RT_DATE_BYTES];
  rt_date_text(date);
  json_t *line = json_pack("{s:s, s:I, s:s}", "end", end == RUN_FINISHED ? "finished" : "interrupted", "step",
                           (json_int_t)run->cadences.steps, "date", date);
  if (run->model.is_left) json_object_set_new(line, "weights", json_string(run->model.path));
  if (run->saves.saver.path[0] != '\0') json_object_set_new(line, "checkpoint", json_string(run->saves.saver.path));
  print_json(line);
}

/* The flag that a later call needs to find what this one left; "" where the program knows. */
static const char *flag_of_folder(const struct accel_run *run, const char *name, char text[4200]) {
  text[0] = '\0';
  if (strcmp(run->project_dir, run->program->project_dir) != 0) snprintf(text, 4200, " %s %s", name, run->project_dir);
  return text;
}

/* Whether the model reads tokens one after the other, so that it can write a text. */
static bool writes_texts(const struct accel_program *program) {
  return program->sequence_length > 0 && program->n_inputs == 0 && program->masking.probability == 0;
}

/* Whether there is a file of this name, which a shell reads as one word. */
static bool is_file(const char *path) {
  struct stat status;
  return path[0] != '-' && strspn(path, plain) == strlen(path) && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? slash + 1 : path;
}

/* The path of the job, of which the program knows the name alone: the one that accel-gen launch was given, or a file of
 * this name in the working folder or in that of the program. JOB where there is none. */
static const char *job_of(const struct accel_run *run, char path[4096]) {
  const char *name = run->program->job_file, *launched = getenv("ACCEL_JOB"), *command = run->command;
  if (name == NULL) return "JOB";
  if (launched != NULL && strcmp(name_of(launched), name) == 0 && is_file(launched)) return launched;
  if (is_file(name)) return name;
  const int length = snprintf(path, 4096, "%.*s%s", (int)(name_of(command) - command), command, name);
  return length < 4096 && is_file(path) ? path : "JOB";
}

static void print_use(const struct accel_run *run) {
  const struct log *log = &run->reports.log;
  char folder[4200], path[4096];
  const char *job = job_of(run, path);
  flag_of_folder(run, "--weights", folder);
  if (writes_texts(run->program))
    rt_log_text(log, LABEL, "sample    accel-gen build %s --program generate -o generator; ./generator%s", job, folder);
  else
    rt_log_text(log, LABEL, "evaluate  accel-gen build %s --program evaluate -o evaluator; ./evaluator%s", job, folder);
}

static void print_resume(const struct accel_run *run, enum run_end end) {
  char folder[4200], more[48] = "";
  if (run->saves.saver.path[0] == '\0' && !run->resumption.continues) return;
  if (end == RUN_FINISHED) snprintf(more, sizeof more, " --steps %lld", 2 * (long long)run->cadences.steps);
  rt_log_text(&run->reports.log, LABEL, "resume    %s%s%s --resume auto%s",
              rt_world()->ranks > 1 ? "accel-gen launch " : "", run->command,
              flag_of_folder(run, "--project-dir", folder), more);
}

static void print_share(const struct accel_run *run) {
  if (run->program->checkpoint.folder_of == NULL) return;
  rt_log_text(&run->reports.log, LABEL,
              "share     %s is a folder of Hugging Face; accel-gen export %s --format gguf -o model.gguf",
              run->project_dir, run->project_dir);
}

void rt_signpost_end(const struct accel_run *run, enum run_end end) {
  const struct log *log = &run->reports.log;
  char time[32], steps[32], date[RT_DATE_BYTES];
  if (log->form == LOG_JSON) end_json(run, end);
  rt_duration(time, sizeof time, rt_now() - run->reports.watch->process_start);
  rt_digits(steps, sizeof steps, run->cadences.steps - run->first_step);
  rt_date_text(date);
  rt_log_text(log, LABEL, "%s  %s step%s in %s%s%s; %s has metrics.jsonl%s%s%s",
              end == RUN_FINISHED ? "finished" : "ended   ", steps,
              run->cadences.steps - run->first_step == 1 ? "" : "s", time, is_read_later() ? ", at " : "",
              is_read_later() ? date : "", run->project_dir, run->saves.saver.path[0] != '\0' ? ", checkpoints" : "",
              run->model.is_left ? " and " : "", run->model.is_left ? strrchr(run->model.path, '/') + 1 : "");
  if (run->model.is_left) print_use(run);
  print_resume(run, end);
  rt_log_text(log, LABEL, "report    accel-gen report %s -o report.html", run->project_dir);
  if (run->model.is_left) print_share(run);
}
