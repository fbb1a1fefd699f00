#include "runtime/gpu/check.h"

#include "runtime/process/fail.h"

#include <string.h>

/* A call with its arguments reads badly in a message: its name alone. */
static int name_length(const char *call) {
  return (int)strcspn(call, "(");
}

void rt_refused(const struct refusal *refusal, const char *help) {
  struct problem problem;
  rt_problem(&problem, "%s:%d: %.*s of %s: %s (%s)", refusal->file, refusal->line, name_length(refusal->call),
             refusal->call, refusal->library, refusal->text, refusal->name);
  if (help != NULL) rt_help(&problem, "%s", help);
  rt_fail(&problem, 1);
}
