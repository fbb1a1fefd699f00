/* Cases in processes of their own: ranks that meet, and what ends a process. */
#ifndef TESTS_TCP_CHILDREN_H
#define TESTS_TCP_CHILDREN_H

#include <stdbool.h>

enum { MOST_CHILDREN = 16 };

/* How they ended: exit statuses, 128 and the signal where one did it, and what they said on standard error together. */
struct ends {
  int status[MOST_CHILDREN];
  char text[8192];
};

/* Runs `body` in a child, whose end is exit(0), with an environment of NAME=VALUE words. */
struct ends in_child(void (*body)(void), const char *environment);

/* The same: the status, and what was said, cut to `size`. */
int ended(void (*body)(void), const char *environment, char *text, int size);

/* Whether it ends with that status and has said `said`; else reports on standard error how it ended. */
bool ends_with(void (*body)(void), const char *environment, int status, const char *said);

/* Runs `body` in `count` children at a time, each with its RANK, all with WORLD_SIZE=count and a MASTER_PORT of their
 * own. `own`, where it is not NULL, holds further words for each of them. */
struct ends in_ranks(void (*body)(void), int count, const char *environment, const char *const *own);

/* A port for whoever listens with SO_REUSEADDR: nothing listens at it, and until `holder` is closed the system gives it
 * to nobody by itself. */
int hold_port(int *holder);

#endif
