/* Trace: what a model does in one run, in its order: the tensors that it makes, its calls of its own functions and the
 * passes of its loops. The keys of random numbers count these. */
#ifndef ACCEL_VERIFY_TAPE_TRACE_H
#define ACCEL_VERIFY_TAPE_TRACE_H

#include <stdint.h>

struct reading_tensor;

enum trace_kind {
  TRACE_TENSOR,
  TRACE_ARGUMENT, /* of, or number for several: what an operation is given that no tensor or shape shows */
  TRACE_DRAW,     /* number: of the draw in the run; of: its parameter, such as a probability */
  TRACE_ENTER,    /* function: one whose result holds tensors */
  TRACE_LEAVE,
  TRACE_LOOP, /* number: of the loop among those of the run */
  TRACE_PASS, /* the same */
  TRACE_END   /* the same */
};

struct trace_event {
  enum trace_kind kind;
  struct reading_tensor *tensor;
  const void *function;
  int64_t number;
  double of;
};

struct trace {
  struct trace_event *items;
  int64_t count, capacity;
  int64_t draws, loops;
};

/* Adds an event to the trace of the reading at hand, if it has one. */
void trace_note(struct trace_event event);

/* Notes numbers that an operation is given, and that no tensor or shape shows. */
void trace_argument(double number);
void trace_arguments(const double *numbers, int64_t count);

/* What a compiled model calls: of a function that begins (0) or ends (1), and of loops: one begins (2), which gives its
 * number; pass (3) and end (4) of the loop of a number. */
typedef long native_note(int kind, const void *function, long loop);
native_note trace_native;

void trace_free(struct trace *trace);

#endif
