#include "gen/commands/data/skipped.h"
#include "runtime/base/terminal.h"

#include <inttypes.h>
#include <stdio.h>

void skipped_report(const struct skipped *skipped) {
  if (skipped == NULL || skipped->count == 0) return;
  rt_print(stderr, "accel-gen data: warning: %" PRId64 " record%s skipped%s%s\n", skipped->count,
           skipped->count == 1 ? " was" : "s were", skipped->first.what[0] != '\0' ? "; the first: " : "",
           skipped->first.what);
}
