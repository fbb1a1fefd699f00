#include "runtime/process/fail.h"

#include "runtime/process/world.h"

#include <stdarg.h>
#include <stdio.h>

void rt_speaker(char *text, size_t size) {
  const struct world *world = rt_world();
  text[0] = '\0';
  if (world->ranks > 1) snprintf(text, size, "rank %d: ", world->rank);
}

void rt_fail(const struct problem *problem, int status) {
  char speaker[SPEAKER];
  rt_speaker(speaker, sizeof speaker);
  fflush(stdout); /* what was printed before is before the error */
  fprintf(stderr, "%serror: %s\n", speaker, problem->what);
  if (problem->help[0] != '\0') fprintf(stderr, "    help: %s\n", problem->help);
  rt_world_end(status);
}

void rt_warn(const char *format, ...) {
  va_list arguments;
  char speaker[SPEAKER];
  rt_speaker(speaker, sizeof speaker);
  fflush(stdout);
  fprintf(stderr, "%swarning: ", speaker);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}
