#include "tests/cuda/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void set_environment(const char *words) {
  char text[256];
  snprintf(text, sizeof text, "%s", words);
  for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
    char *equals = strchr(word, '=');
    *equals = '\0';
    setenv(word, equals + 1, 1);
  }
}

int in_child(void (*body)(void), const char *environment, char *text, int size) {
  int ends[2], status = 0, length = 0;
  ssize_t got;
  fflush(stdout);
  if (pipe(ends) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    set_environment(environment);
    body();
    exit(0);
  }
  close(ends[1]);
  while (length < size - 1 && (got = read(ends[0], text + length, (size_t)(size - 1 - length))) > 0) length += (int)got;
  text[length] = '\0';
  close(ends[0]);
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
