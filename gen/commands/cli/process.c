#include "gen/commands/cli/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gen/base/text.h"
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
  if (!rt_folder_remove(path, &problem)) fprintf(stderr, "accel-gen: %s\n", problem.what);
}
