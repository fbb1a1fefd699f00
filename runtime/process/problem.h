/* Errors as values: a function that can fail fills a problem and returns false; only the functions of trainer.h and
 * generator.h end the process over it. So every parser can be tested and fuzzed as a plain function. */
#ifndef RUNTIME_PROCESS_PROBLEM_H
#define RUNTIME_PROCESS_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdnoreturn.h>

struct problem {
  char what[1024]; /* what is wrong and where, without a line end */
  char help[512];  /* what to do about it; empty: nothing to add */
};

/* Writes what is wrong. Returns false, so that a caller can return its result. */
bool rt_problem(struct problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds what to do. Returns false. */
bool rt_help(struct problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

enum { SPEAKER = 24 }; /* bytes that rt_speaker needs */

/* Writes what a message of this process begins with: "rank 3: ", or nothing where a run has one process. */
void rt_speaker(char *text, size_t size);

/* Prints the problem, after the rank where a run has several, to standard error and ends the process with `status`. */
noreturn void rt_fail(const struct problem *problem, int status);

/* Prints a warning, after the rank where a run has several, to standard error. */
void rt_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
