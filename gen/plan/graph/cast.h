/* Cast: which operations run in a type of 16 bits, which stay in float32. */
#ifndef ACCEL_PLAN_GRAPH_CAST_H
#define ACCEL_PLAN_GRAPH_CAST_H

#include "gen/program/program.h"

struct cast_rules {
  enum dtype bits16;  /* the 16-bit type that autocast runs operations in; DTYPE_FLOAT32: no autocast */
  enum dtype storage; /* what parameters and the inputs of floating point are cast to before anything else */
  enum dtype codes;   /* what products with codes run in where autocast has no say, */
  bool codes_as_x;    /* unless that is the type of what goes in */
  /* By region id and parameter: it stays in float32, and what would run in 16 bits with it runs in float32. NULL: none
   * does.
   */
  const bool *const *in_fp32;
  bool cuda; /* the operations' rules for CUDA, else those for a CPU */
};

/* Gives every value of the graph its type by the rules and by the operations' autocast, as PyTorch's
 * autocast would, and puts casts where types change. A parameter that is used in 16 bits gets its `bits16` value.
 * Regions that are called with several types are made once for each. The entry's first result is float32. Returns the
 * type of the 16-bit values of parameters, DTYPE_FLOAT32 when there are none. */
enum dtype cast(struct graph *graph, const struct cast_rules *rules);

/* After differentiation: the gradients of parameters' 16-bit copies are made in float32 directly by what makes them, or
 * cast where that is a library which has no such result. */
void widen_gradients(struct program *program);

#endif
