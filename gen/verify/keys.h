/* Keys: under which key each random number of a model is drawn, by the rule of docs/runtime.md, from what the model did
 * in one run. */
#ifndef ACCEL_VERIFY_KEYS_H
#define ACCEL_VERIFY_KEYS_H

#include "gen/base/arena.h"
#include "gen/verify/tape/trace.h"

enum { MOST_CALLS = 32 };

/* A draw: the calls that it is in, from the outermost on, each by its number in its caller and as which iteration; its
 * number among those of the innermost; and the parameter of the draw. */
struct draw {
  int depth;
  struct draw_call {
    int64_t number, iteration;
  } calls[MOST_CALLS];
  int64_t site;
  double of;
};

/* The draws of a run in their order, trace->draws of them. NULL with why in *reason where the rule cannot be followed.
 */
const struct draw *keys_of(struct arena *arena, const struct trace *trace, const char **reason);

#endif
