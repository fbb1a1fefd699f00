#include "runtime/report/log.h"

#include "runtime/base/digits.h"
#include "runtime/base/terminal.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of a line that stands below the figures of its step. */
enum { BELOW = 9, USUAL_COLUMNS = 80 };

void rt_log_open(struct log *log, bool is_table) {
  log->progress = rt_progress_begin(log->form == LOG_TABLE ? stdout : NULL, "trains", 0, 0);
  log->is_table = is_table;
}

/* A loss in 9 columns: four decimals while it is of ordinary size. */
static void loss_text(char *out, size_t size, double loss) {
  snprintf(out, size, fabs(loss) < 1e4 ? "%.4f" : "%.3e", rt_unsigned_nan(loss));
}

static void print_header(const struct log *log) {
  printf("%8s %9s %9s %8s %8s %10s %8s %7s\n", "step", "loss", "eval", "lr", "norm", log->is_table ? "rows/s" : "tok/s",
         "ms", "left");
}

/* The figures of steps, which the line of step 0 does not have. */
static void print_step(const struct figures *figures) {
  char loss[32], eval[32] = "", norm[32], rate[32], left[32];
  loss_text(loss, sizeof loss, figures->loss);
  if (figures->has_eval) loss_text(eval, sizeof eval, figures->eval_loss);
  snprintf(norm, sizeof norm, fabs(figures->grad_norm) < 1e4 ? "%.3f" : "%.1e", rt_unsigned_nan(figures->grad_norm));
  rt_digits(rate, sizeof rate, (int64_t)figures->tokens_per_s);
  rt_duration(left, sizeof left, figures->left_s);
  printf("%8" PRId64 " %9s %9s %8.1e %8s %10s %8.*f %7s\n", figures->step, loss, eval, figures->lr, norm, rate,
         figures->step_ms < 10 ? 2 : 1, figures->step_ms, left);
}

/* ---- Metrics, in columns below the step's figures ---- */

static bool is_shown(const struct extra *extra) {
  return extra->waits && extra->printed;
}

/* As a job calls it. */
static const char *short_name(const struct extra *extra) {
  const size_t before = strlen("eval_");
  return strncmp(extra->name, "eval_", before) == 0 ? extra->name + before : extra->name;
}

/* All cells are as wide as the widest, so that they are below each other from one evaluation to the next. */
static int cell_width(const struct extras *extras) {
  int width = 0;
  for (int i = 0; i < extras->count; i++) {
    const int own = (int)strlen(short_name(&extras->items[i]));
    if (is_shown(&extras->items[i]) && own > width) width = own;
  }
  return width + 1 + 9;
}

static void print_extras(const struct extras *extras) {
  const int columns = rt_terminal_columns(STDOUT_FILENO), width = cell_width(extras);
  const int in_line = ((columns > 0 ? columns : USUAL_COLUMNS) - BELOW) / (width + 3);
  int printed = 0;
  for (int i = 0; i < extras->count; i++) {
    const struct extra *extra = &extras->items[i];
    char value[32];
    if (!is_shown(extra)) continue;
    loss_text(value, sizeof value, extra->value);
    if (printed > 0 && printed % (in_line > 0 ? in_line : 1) == 0) putchar('\n');
    printf("%*s%s %*s", printed % (in_line > 0 ? in_line : 1) == 0 ? BELOW : 3, "", short_name(extra),
           width - 1 - (int)strlen(short_name(extra)), value);
    printed++;
  }
  if (printed > 0) putchar('\n');
}

/* ---- Lines ---- */

void rt_log_text(const struct log *log, int indent, const char *format, ...) {
  va_list arguments;
  char *text = NULL;
  size_t size;
  FILE *memory = log->form == LOG_TABLE ? open_memstream(&text, &size) : NULL;
  if (memory == NULL) return;
  va_start(arguments, format);
  vfprintf(memory, format, arguments);
  va_end(arguments);
  if (fclose(memory) == 0) rt_print_line(stdout, text, indent);
  free(text);
  fflush(stdout); /* who follows through a pipe sees a line when it is written */
}

/* A program that reads the lines finds a path in quotes. */
static void print_saved_json(int64_t step, const char *path, bool is_saving) {
  json_t *line = json_pack("{s:I, s:s}", "step", (json_int_t)step, is_saving ? "saving" : "saved", path);
  json_dumpf(line, stdout, 0);
  putchar('\n');
  json_decref(line);
}

void rt_log_saved(struct log *log, int64_t step, const char *path, bool is_saving) {
  if (log->form == LOG_JSON) print_saved_json(step, path, is_saving);
  rt_log_text(log, BELOW, "%8" PRId64 " %s %s", step, is_saving ? "saving" : "saved", path);
}

void rt_log_line(struct log *log, const struct figures *figures) {
  char eval[32];
  rt_terminal_clear();
  if (log->form == LOG_TABLE) {
    if (!log->has_header) print_header(log);
    log->has_header = true;
    loss_text(eval, sizeof eval, figures->eval_loss);
    if (figures->step > 0)
      print_step(figures);
    else
      printf("%8d %9s %9s\n", 0, "", eval);
    if (figures->extras != NULL) print_extras(figures->extras);
    if (figures->skipped > log->skipped)
      rt_log_text(log, BELOW, "%8" PRId64 " %" PRId64 " skipped", figures->step, figures->skipped);
    log->skipped = figures->skipped;
    if (figures->stopped_early) rt_log_text(log, BELOW, "%8" PRId64 " stopped early", figures->step);
  }
  if (figures->saved != NULL) rt_log_saved(log, figures->step, figures->saved, figures->is_saving);
  fflush(stdout);
}

/* ---- The progress line ---- */

void rt_log_progress(struct log *log, const struct figures *figures) {
  char steps[64], epoch[32], loss[48], left[40], rate[32], speed[48];
  if (!rt_progress_is_due(&log->progress)) return;
  snprintf(steps, sizeof steps, "%8" PRId64 " of %" PRId64, figures->step, figures->steps);
  snprintf(epoch, sizeof epoch, "epoch %.2f", figures->epoch);
  loss_text(rate, sizeof rate, figures->loss);
  snprintf(loss, sizeof loss, "loss %s", rate);
  rt_duration(rate, sizeof rate, figures->left_s);
  snprintf(left, sizeof left, "%s left", rate);
  rt_digits(rate, sizeof rate, (int64_t)figures->tokens_per_s);
  snprintf(speed, sizeof speed, "%s %s", rate, log->is_table ? "rows/s" : "tok/s");
  rt_progress_show(&log->progress, (const char *const[]){steps, loss, left, epoch, speed}, 5);
}
