#include "gen/commands/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/base/text.h"
#include "runtime/base/clock.h"
#include "runtime/base/digits.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/files/folders.h"

struct words words_in(struct arena *arena) {
  return (struct words){.arena = arena};
}

static void push(struct words *words, char *word) {
  ARENA_PUSH(words->arena, *words, word);
  ARENA_PUSH(words->arena, *words, NULL); /* the end, replaced by the next word */
  words->count--;
}

void words_add(struct words *words, const char *word) {
  push(words, arena_string(words->arena, word));
}

void words_split(struct words *words, const char *text) {
  const char *const space = " \t\r\n";
  for (text += strspn(text, space); *text != '\0'; text += strspn(text, space)) {
    size_t length = strcspn(text, space);
    push(words, arena_copy(words->arena, text, length));
    text += length;
  }
}

const char *words_text(const struct words *words) {
  struct text text = text_in(words->arena);
  for (int i = 0; i < words->count; i++) text_printf(&text, "%s%s", i > 0 ? " " : "", words->items[i]);
  return text_string(&text);
}

void words_print(FILE *out, const struct words *words) {
  enum { INDENT = 4 };
  static const char more[] = " \\";
  const int columns = rt_terminal_columns(fileno(out));
  int used = 0;
  rt_terminal_clear();
  for (int i = 0; i < words->count; i++) {
    const int wanted = rt_columns_of(words->items[i], (int)strlen(words->items[i]));
    const int end = i + 1 < words->count ? (int)strlen(more) : 0;
    const bool fits = columns == 0 || used + 1 + wanted + end <= columns;
    if (i > 0 && fits) fputc(' ', out);
    if (i > 0 && !fits) fprintf(out, "%s\n%*s", more, INDENT, "");
    fputs(words->items[i], out);
    used = (i == 0 ? 0 : fits ? used + 1 : INDENT) + wanted;
  }
  fputc('\n', out);
}

/* In the child: becomes the command. */
static void become(const struct words *words) {
  execvp(words->items[0], words->items);
  fprintf(stderr, "accel-gen: cannot run %s: ", words->items[0]);
  perror(NULL);
  _exit(127);
}

static bool wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return false;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool process_run(const struct words *words) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) become(words);
  return child > 0 && wait_for(child);
}

/* Shows how long the command has run, until it closes its standard error; what it writes there comes through. */
static void follow(int end, const char *what, struct progress *progress) {
  enum { PACE = 250 };              /* milliseconds */
  static const double patience = 1; /* seconds that are no long work yet */
  char buffer[4096], time[32];
  struct pollfd ready = {.fd = end, .events = POLLIN};
  for (ssize_t got = 1; got > 0;) {
    if (poll(&ready, 1, PACE) > 0) {
      got = read(end, buffer, sizeof buffer);
      rt_terminal_clear();
      if (got > 0) fwrite(buffer, 1, (size_t)got, stderr);
    } else if (rt_progress_is_due(progress) && rt_now() - progress->began >= patience) {
      rt_duration(time, sizeof time, rt_now() - progress->began);
      rt_progress_show(progress, (const char *const[]){what, time}, 2);
    }
  }
}

bool process_run_showing(const struct words *words, const char *what) {
  int ends[2];
  struct progress progress = rt_progress_begin(what != NULL ? stderr : NULL, what, 0, 0);
  if (progress.out == NULL || pipe(ends) != 0) return process_run(words);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    become(words);
  }
  close(ends[1]);
  if (child > 0) follow(ends[0], what, &progress);
  close(ends[0]);
  return child > 0 && wait_for(child);
}

/* In the child: nothing that it or its command says is seen. */
static void silence(void) {
  int nothing = open("/dev/null", O_WRONLY);
  if (nothing >= 0) dup2(nothing, STDERR_FILENO);
}

static const char *read_output(const struct words *words, bool silent) {
  int ends[2];
  if (pipe(ends) != 0) return NULL;
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    if (silent) silence();
    become(words);
  }
  close(ends[1]);
  struct text text = text_in(words->arena);
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;) text_add(&text, buffer, (size_t)got);
  close(ends[0]);
  return child > 0 && wait_for(child) ? text_string(&text) : NULL;
}

const char *process_read(const struct words *words) {
  return read_output(words, false);
}

const char *process_try(const struct words *words) {
  return read_output(words, true);
}

const char *environment(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value != NULL && value[0] != '\0' ? value : otherwise;
}

const char *make_folder(struct arena *arena) {
  char *folder = arena_printf(arena, "%s/accel-gen.XXXXXX", environment("TMPDIR", "/tmp")); /* mkdtemp's letters */
  if (mkdtemp(folder) != NULL) return folder;
  perror(folder);
  return NULL;
}

void remove_folder(const char *path) {
  struct problem problem;
  if (!rt_folder_remove(path, &problem)) rt_print(stderr, "accel-gen: %s\n", problem.what);
}
