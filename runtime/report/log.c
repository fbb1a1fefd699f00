#include "runtime/report/log.h"

#include "runtime/base/digits.h"
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static bool metrics_failed(struct log *log, struct problem *problem) {
  rt_problem(problem, "%s: cannot be written: %s", log->metrics_path, strerror(errno));
  return rt_help(problem, "check the free space, the quota and the rights of the folder, or choose another with "
                          "--project-dir");
}

/* The bytes of the whole lines before the first one of a step above `keep`. */
static int64_t bytes_until(const char *text, size_t size, int64_t keep) {
  size_t at = 0;
  while (at < size) {
    const char *line = text + at, *end = memchr(line, '\n', size - at);
    char head[48];
    int64_t step = 0;
    if (end == NULL) break; /* a killed process left it */
    snprintf(head, sizeof head, "%.*s", (int)(end - line < 47 ? end - line : 47), line);
    if (sscanf(head, "{\"step\": %" SCNd64, &step) == 1 && step > keep) break;
    at = (size_t)(end + 1 - text);
  }
  return (int64_t)at;
}

/* Cuts the file to what the run resumes from. */
static bool keep_history(struct log *log, int64_t keep, struct problem *problem) {
  struct mapping mapping;
  if (!rt_map(&mapping, log->metrics_path, "remove it, or choose another --project-dir", problem)) return false;
  if (keep >= 0) log->whole = bytes_until((const char *)mapping.bytes, mapping.size, keep);
  rt_unmap(&mapping);
  return (ftruncate(log->metrics, log->whole) == 0 && lseek(log->metrics, 0, SEEK_END) >= 0) ||
         metrics_failed(log, problem);
}

/* A fresh run begins a file of its own: one that was linked to its name elsewhere keeps its lines. */
static int open_metrics(const char *path, bool fresh) {
  if (!fresh) return open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (unlink(path) != 0 && errno != ENOENT) return -1;
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
}

/* A terminal of somebody who looks at it: mpirun gives each rank one, wherever its own output goes, and that one is no
 * session's. */
static bool is_watched(int descriptor) {
  return isatty(descriptor) && tcgetsid(descriptor) > 0;
}

bool rt_log_open(struct log *log, const char *folder, bool is_table, int64_t keep, struct problem *problem) {
  *log = (struct log){.terminal = is_watched(STDOUT_FILENO), .is_table = is_table};
  if (!rt_join(log->metrics_path, sizeof log->metrics_path, folder, "metrics.jsonl", problem)) return false;
  log->metrics = open_metrics(log->metrics_path, keep < 0);
  return log->metrics >= 0 ? keep_history(log, keep, problem) : metrics_failed(log, problem);
}

static void add_string(FILE *out, const char *text) {
  putc('"', out);
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
    if (*c == '"' || *c == '\\')
      fprintf(out, "\\%c", *c);
    else
      fprintf(out, *c < 0x20 ? "\\u%04x" : "%c", *c);
  }
  putc('"', out);
}

/* Adds `"name": value` to an object's text. */
static void add_figure(FILE *out, const char *name, const char *format, double value) {
  char text[48] = "null";
  if (isfinite(value)) snprintf(text, sizeof text, format, value);
  fputs(", ", out);
  add_string(out, name);
  fprintf(out, ": %s", text);
}

/* The figures of steps, which the line of step 0 does not have. */
static void add_step(FILE *out, const struct figures *figures) {
  add_figure(out, "lr", "%.9g", figures->lr);
  add_figure(out, "grad_norm", "%.9g", figures->grad_norm);
  add_figure(out, "tokens_per_s", "%.1f", figures->tokens_per_s);
  add_figure(out, "step_ms", "%.4f", figures->step_ms);
  add_figure(out, "input_wait_ms", "%.4f", figures->input_wait_ms);
  if (figures->peak_mib > 0) add_figure(out, "peak_memory_mib", "%.1f", figures->peak_mib);
  if (figures->first_step_s >= 0) {
    add_figure(out, "start_to_first_step_s", "%.3f", figures->first_step_s);
    add_figure(out, "weights_s", "%.4f", figures->weights_s);
  }
  if (figures->save_stall_ms > 0) add_figure(out, "save_stall_ms", "%.3f", figures->save_stall_ms);
  if (figures->loss_scale > 0) add_figure(out, "loss_scale", "%.9g", figures->loss_scale);
  if (figures->skipped > 0) add_figure(out, "skipped", "%.0f", (double)figures->skipped);
}

void rt_metrics_text(FILE *out, const struct figures *figures) {
  fprintf(out, "{\"step\": %" PRId64, figures->step);
  /* 9 digits separate every float32 from its neighbours. */
  if (figures->step > 0) add_figure(out, "loss", "%.9g", figures->loss);
  if (figures->has_eval) add_figure(out, "eval_loss", "%.9g", figures->eval_loss);
  for (int i = 0; figures->extras != NULL && i < figures->extras->count; i++)
    if (figures->extras->items[i].waits)
      add_figure(out, figures->extras->items[i].name, "%.9g", figures->extras->items[i].value);
  if (figures->step > 0) add_step(out, figures);
  fputs("}\n", out);
}

/* Adds a line to those that wait for the disk. */
static bool add_line(struct log *log, const struct figures *figures) {
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  if (out == NULL) return false;
  if (log->n_waiting > 0) fwrite(log->waiting, 1, log->n_waiting, out);
  rt_metrics_text(out, figures);
  if (fclose(out) != 0) return free(text), false;
  free(log->waiting);
  log->waiting = text;
  log->n_waiting = length;
  return true;
}

/* What a full disk took of them is taken back, so that the file is lines and nothing else. */
bool rt_log_flush(struct log *log, struct problem *problem) {
  for (size_t at = 0; at < log->n_waiting;) {
    ssize_t written = write(log->metrics, log->waiting + at, log->n_waiting - at);
    if (written < 0 && errno == EINTR) continue;
    if (written >= 0) {
      at += (size_t)written;
      continue;
    }
    metrics_failed(log, problem);
    bool cut = ftruncate(log->metrics, log->whole) == 0 && lseek(log->metrics, 0, SEEK_END) >= 0;
    (void)cut; /* nothing more can be done, and the problem is reported */
    return false;
  }
  log->whole += (int64_t)log->n_waiting;
  log->n_waiting = 0;
  return true;
}

bool rt_log_metrics(struct log *log, const struct figures *figures, struct problem *problem) {
  return add_line(log, figures) ? rt_log_flush(log, problem) : metrics_failed(log, problem);
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
  printf("%8" PRId64 " %9s %9s %8.1e %8s %10s %8.*f %7s", figures->step, loss, eval, figures->lr, norm, rate,
         figures->step_ms < 10 ? 2 : 1, figures->step_ms, left);
}

static void print_figures(const struct figures *figures) {
  char eval[32];
  if (figures->step > 0) {
    print_step(figures);
  } else {
    loss_text(eval, sizeof eval, figures->eval_loss);
    printf("%8d %9s %9s", 0, "", eval);
  }
  if (figures->skipped > 0) printf("   %" PRId64 " skipped", figures->skipped);
  for (int i = 0; figures->extras != NULL && i < figures->extras->count; i++)
    if (figures->extras->items[i].waits && figures->extras->items[i].printed)
      printf("   %s %.4f", figures->extras->items[i].name, rt_unsigned_nan(figures->extras->items[i].value));
  if (figures->stopped_early) printf("   stopped early");
  if (figures->saved != NULL) printf("   %s %s", figures->is_saving ? "saving" : "saved", figures->saved);
}

void rt_log_line(struct log *log, const struct figures *figures) {
  rt_log_clear(log);
  if (!log->has_header) print_header(log);
  log->has_header = true;
  print_figures(figures);
  putchar('\n');
  fflush(stdout); /* who follows through a pipe sees a line when it is written */
}

void rt_log_saved(struct log *log, int64_t step, const char *path, bool is_saving) {
  rt_log_clear(log);
  printf("%8" PRId64 " %s %s\n", step, is_saving ? "saving" : "saved", path);
  fflush(stdout);
}

void rt_log_clear(struct log *log) {
  if (log->has_progress) printf("\r\033[K");
  log->has_progress = false;
}

void rt_log_progress(struct log *log, const struct figures *figures) {
  char left[32];
  if (!log->terminal) return;
  rt_log_clear(log);
  rt_duration(left, sizeof left, figures->left_s);
  printf("%8" PRId64 " of %" PRId64 ", loss %.4f, %s left", figures->step, figures->steps,
         rt_unsigned_nan(figures->loss), left);
  fflush(stdout);
  log->has_progress = true;
}

bool rt_log_close(struct log *log, struct problem *problem) {
  rt_log_clear(log);
  if (log->metrics_path[0] == '\0') return true;
  bool flushed = rt_log_flush(log, problem);
  free(log->waiting);
  return flushed && (close(log->metrics) == 0 || metrics_failed(log, problem));
}
