#include "runtime/base/problem.h"

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
