#include "runtime/process/problem.h"

#include "runtime/process/world.h"

#include <stdarg.h>
#include <stdio.h>

bool rt_problem(struct problem *problem, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem->what, sizeof problem->what, format, arguments);
  va_end(arguments);
  problem->help[0] = '\0';
  return false;
}

bool rt_help(struct problem *problem, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem->help, sizeof problem->help, format, arguments);
  va_end(arguments);
  return false;
}

void rt_fail(const struct problem *problem, int status) {
  fflush(stdout); /* what went before stands before the error */
  fprintf(stderr, "rank %d: error: %s\n", rt_world()->rank, problem->what);
  if (problem->help[0] != '\0') fprintf(stderr, "    help: %s\n", problem->help);
  rt_world_end(status);
}

void rt_warn(const char *format, ...) {
  va_list arguments;
  fflush(stdout);
  fprintf(stderr, "rank %d: warning: ", rt_world()->rank);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}
