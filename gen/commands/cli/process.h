/* Process: other programs, run without a shell, so that no name of a file is ever read as a command. */
#ifndef ACCEL_COMMANDS_CLI_PROCESS_H
#define ACCEL_COMMANDS_CLI_PROCESS_H

#include <stdbool.h>
#include <stdio.h>

#include "gen/base/arena.h"

/* A command line: its words, and NULL after the last one. */
struct words {
  struct arena *arena;
  char **items;
  int count, capacity;
};

/* No words yet. */
struct words words_in(struct arena *arena);

/* Adds one word. */
void words_add(struct words *words, const char *word);

/* Adds the words of a text, separated by white space. */
void words_split(struct words *words, const char *text);

/* The words with spaces between them, for messages. */
const char *words_text(const struct words *words);

/* Prints the words as a line, which a narrow terminal gets as several that a shell joins again. */
void words_print(FILE *out, const struct words *words);

/* Runs the command to its end with this process's standard streams. Whether it ended with 0. */
bool process_run(const struct words *words);

/* The same; on a terminal with a line that shows `what` it does and for how long. NULL: without one. */
bool process_run_showing(const struct words *words, const char *what);

/* Runs the command and gives its standard output; NULL when it did not end with 0. */
const char *process_read(const struct words *words);

/* The same without a message: what the command prints on standard error is dropped, and NULL is also that there is no
 * such command. */
const char *process_try(const struct words *words);

/* A variable of the environment; `otherwise` where it is empty or not there. */
const char *environment(const char *name, const char *otherwise);

/* A new empty folder below $TMPDIR or /tmp; NULL after a message on standard error. */
const char *make_folder(struct arena *arena);

/* Removes a folder and all that is in it; says on standard error what cannot be removed. */
void remove_folder(const char *path);

#endif
