/* A line at the end of a terminal that is renewed while long work is done, a few times a second at most. Where nobody
 * looks there is none. */
#ifndef RUNTIME_BASE_PROGRESS_H
#define RUNTIME_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
  FILE *out;           /* NULL: nobody looks */
  const char *what;    /* the work: "reads weights" */
  double began, shown; /* when, in seconds */
  uint64_t first, all; /* bytes that were done at the start, and of the whole work */
  uint64_t done;       /* as rt_progress_add counts them */
};

/* Begins with `all` bytes, of which `done` are done; 0 of 0 where they are not counted. The line is on `out` if that is
 * a terminal that somebody looks at; NULL: there is none. */
struct progress rt_progress_begin(FILE *out, const char *what, uint64_t done, uint64_t all);

/* Whether the line is shown, and was renewed long enough ago. */
bool rt_progress_is_due(const struct progress *progress);

/* Shows the bytes that are done, if that is due. */
void rt_progress_tell(struct progress *progress, uint64_t done);

/* The same with bytes more than before. */
void rt_progress_add(struct progress *progress, uint64_t bytes);

/* Shows parts of a text with commas between them, as many of them as go into the line. rt_terminal_clear takes it
 * away. */
void rt_progress_show(struct progress *progress, const char *const *parts, int count);

#endif
