/* View: a run as one screen of text. */
#ifndef ACCEL_COMMANDS_WATCH_VIEW_H
#define ACCEL_COMMANDS_WATCH_VIEW_H

#include <jansson.h>

#include "gen/report/metrics.h"

enum run_state {
  RUN_WAITS,    /* it has no line yet */
  RUN_GOES,     /* a process has its folder */
  RUN_FINISHED, /* all of its steps are there */
  RUN_ENDED     /* before */
};

/* What is known of a run at a moment. */
struct watched {
  const char *folder;
  enum run_state state;
  bool is_another; /* a run that began after the first look */
  struct metrics metrics;
  json_t *record; /* run.json; NULL: there is none */
  double age;     /* seconds since metrics.jsonl was written to */
};

/* Lines that end with newlines: at most `rows` of at most `columns` columns. blocks: characters of UTF-8 are shown. */
const char *view_text(struct arena *arena, const struct watched *run, int columns, int rows, bool blocks);

#endif
