/* Errors as values: a function that can fail fills a problem and returns false, and whoever called it decides what
 * becomes of it (runtime/process/fail.h ends the process). So every parser can be tested and fuzzed as a plain
 * function. */
#ifndef RUNTIME_BASE_PROBLEM_H
#define RUNTIME_BASE_PROBLEM_H

#include <stdbool.h>

struct problem {
  char what[1024]; /* what is wrong and where, without a line end */
  char help[512];  /* what to do about it; empty: nothing to add */
};

/* Writes what is wrong. Returns false, so that a caller can return its result. */
bool rt_problem(struct problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds what to do. Returns false. */
bool rt_help(struct problem *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
