#include "gen/commands/test/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gen/base/embedded.h"
#include "gen/base/file.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/launch/launch.h"
#include "runtime/base/clock.h"
#include "runtime/base/digits.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"

/* ---- Files ---- */

static bool put(const struct trial *trial, const char *name, const char *bytes, size_t length) {
  const struct inputs none = {.arena = trial->arena};
  return write_file(&none, name, bytes, length);
}

static bool put_embedded(const struct trial *trial, const char *name) {
  const char *text = embedded_source(arena_printf(trial->arena, "share/test/%s", name));
  return put(trial, name, text, strlen(text));
}

/* The common job with devices. batch_size is of all ranks together, so that one process takes the same samples. */
static bool put_job(const struct trial *trial, const char *name, const char *kind, int nodes, int each) {
  enum { SAMPLES = 4 };
  const char *text = arena_printf(trial->arena,
                                  "extends: job.yaml\ndata: {batch_size: %d, split_batches: true}\n"
                                  "devices: {kind: %s, nodes: %d, per_node: %d, timeout: 60}\n",
                                  SAMPLES * trial->ranks, kind, nodes, each);
  return put(trial, name, text, strlen(text));
}

/* Bytes in which some follow others more often, so that there is something to learn. */
static bool put_data(const struct trial *trial) {
  enum { LENGTH = 1 << 16 };
  unsigned char *bytes = arena_alloc(trial->arena, LENGTH);
  uint32_t state = 1;
  for (int i = 0; i < LENGTH; i++) {
    state = state * 1664525 + 1013904223;
    unsigned draw = state >> 24;
    bytes[i] = (unsigned char)(i > 0 && draw < 192 ? bytes[i - 1] * 5U + 17 : draw);
  }
  return put(trial, "data.bin", (const char *)bytes, LENGTH);
}

bool trial_write(const struct trial *trial) {
  static const char alone[] = "extends: ranks.yaml\nhooks: null\n";
  const char *kind = trial->gpu ? "cuda" : "cpu";
  return put_embedded(trial, "model.c") && put_embedded(trial, "hooks.c") && put_embedded(trial, "job.yaml") &&
         put_data(trial) && put_job(trial, "ranks.yaml", kind, trial->nodes, trial->ranks / trial->nodes) &&
         put_job(trial, "one.yaml", "cpu", 1, 1) && put(trial, "alone.yaml", alone, strlen(alone));
}

/* ---- Commands ---- */

static volatile sig_atomic_t asked;

static void note_signal(int number) {
  asked = number;
}

int trial_signal(void) {
  return asked;
}

struct words trial_self(const struct trial *trial, const char *words) {
  struct words command = words_in(trial->arena);
  words_add(&command, "env");
  words_add(&command, arena_printf(trial->arena, "TMPDIR=%s", trial->folder));
  words_add(&command, trial->self);
  words_split(&command, words);
  return command;
}

/* In the child. */
static void become(const char *log, const struct words *words) {
  int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file < 0 || dup2(file, STDOUT_FILENO) < 0 || dup2(file, STDERR_FILENO) < 0) _exit(127);
  execvp(words->items[0], words->items);
  perror(words->items[0]);
  _exit(127);
}

/* Waits for it; on a terminal with a line that shows how long it takes. A signal that came is handed on. False: there
 * is nothing to wait for. */
static bool wait_for(const struct trial *trial, pid_t child, const char *name, int *status) {
  static const struct timespec pace = {.tv_nsec = 100000000};
  static const double patience = 1; /* seconds that are no long work yet */
  char what[64], time[32];
  int handed = 0;
  struct progress progress = rt_progress_begin(trial->options->quiet ? NULL : stdout, name, 0, 0);
  for (pid_t ended = 0; ended != child;) {
    ended = waitpid(child, status, progress.out != NULL ? WNOHANG : 0);
    if (ended < 0 && errno != EINTR) return false;
    if (asked != handed) kill(child, handed = asked);
    if (ended != 0) continue;
    nanosleep(&pace, NULL);
    if (!rt_progress_is_due(&progress) || rt_now() - progress.began < patience) continue;
    snprintf(what, sizeof what, "  %-12s running", name);
    rt_duration(time, sizeof time, rt_now() - progress.began);
    rt_progress_show(&progress, (const char *const[]){what, time}, 2);
  }
  rt_terminal_clear();
  return true;
}

bool trial_run(struct trial *trial, const char *name, const struct words *words) {
  trial->log = arena_printf(trial->arena, "%s.log", name);
  launch_catch(note_signal, 0);
  if (asked != 0) return false;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) become(trial->log, words);
  int status = 0;
  return child > 0 && wait_for(trial, child, name, &status) && WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
         asked == 0;
}

/* ---- What they leave ---- */

int trial_numbers(struct arena *arena, const char *file, const char *key, double *numbers, int most) {
  size_t length = 0;
  const char *text = read_bytes(arena, file, &length);
  int count = 0;
  for (int i = 0; i < most; i++) numbers[i] = NAN;
  for (const char *at = text; at != NULL && *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n') {
    json_t *line = json_loadb(at, strcspn(at, "\n"), 0, NULL);
    json_int_t step = json_integer_value(json_object_get(line, "step"));
    const json_t *value = json_object_get(line, key);
    if (step >= 1 && step <= most && json_is_number(value)) {
      numbers[step - 1] = json_number_value(value);
      count++;
    }
    json_decref(line);
  }
  return count;
}

const char *trial_last_line(struct arena *arena, const char *file) {
  size_t length = 0;
  const char *text = read_bytes(arena, file, &length);
  while (length > 0 && text[length - 1] == '\n') length--;
  size_t begin = length;
  while (begin > 0 && text[begin - 1] != '\n') begin--;
  return text == NULL ? "" : arena_copy(arena, text + begin, length - begin);
}

void trial_print_log(const struct trial *trial) {
  enum { LINES = 20 };
  size_t length = 0;
  const char *text = trial->log != NULL ? read_bytes(trial->arena, trial->log, &length) : NULL;
  if (text == NULL) return;
  const char *begin = text + length;
  for (int lines = 0; begin > text && lines <= LINES; begin--) lines += begin[-1] == '\n' && begin < text + length;
  if (begin > text) begin++;
  for (const char *at = begin; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n')
    rt_print(stdout, "    | %.*s\n", (int)strcspn(at, "\n"), at);
}
