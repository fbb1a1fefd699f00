#include "runtime/process/fail.h"

#include "runtime/base/terminal.h"
#include "runtime/process/world.h"

#include <stdarg.h>
#include <stdio.h>

void rt_speaker(char *text, size_t size) {
  const struct world *world = rt_world();
  text[0] = '\0';
  if (world->ranks > 1) snprintf(text, size, "rank %d: ", world->rank);
}

/* Each thread has its own: what a run holds is not safe to touch from another one. */
static _Thread_local struct {
  void (*call)(void *with);
  void *with;
} last;

void rt_fail_after(void (*call)(void *with), void *with) {
  last.call = call;
  last.with = with;
}

static void call_last(void) {
  void (*call)(void *with) = last.call;
  last.call = NULL; /* what fails in it does not call it again */
  if (call != NULL) call(last.with);
}

void rt_fail(const struct problem *problem, int status) {
  char speaker[SPEAKER];
  rt_speaker(speaker, sizeof speaker);
  fflush(stdout); /* what was printed before is before the error */
  rt_print(stderr, "%serror: %s\n", speaker, problem->what);
  if (problem->help[0] != '\0') rt_print(stderr, "    help: %s\n", problem->help);
  call_last();
  rt_world_end(status);
}

void rt_warn(const char *format, ...) {
  va_list arguments;
  char speaker[SPEAKER], text[8192];
  rt_speaker(speaker, sizeof speaker);
  fflush(stdout);
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  rt_print(stderr, "%swarning: %s\n", speaker, text);
}
