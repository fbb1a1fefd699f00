#include "gen/verify/tape/trace.h"

#include <stdlib.h>
#include <string.h>

#include "gen/verify/tape/philox.h"
#include "gen/verify/tape/tape.h"

void trace_note(struct trace_event event) {
  struct trace *trace = reading_now != NULL ? reading_now->trace : NULL;
  if (trace == NULL) return;
  if (trace->count == trace->capacity) {
    const int64_t capacity = trace->capacity > 0 ? 2 * trace->capacity : 1024;
    struct trace_event *items = realloc(trace->items, (size_t)capacity * sizeof *items);
    if (items == NULL) tape_refuse("there is not enough memory for the second reading");
    trace->items = items;
    trace->capacity = capacity;
  }
  if (event.tensor != NULL) event.tensor->order = trace->count;
  trace->items[trace->count++] = event;
}

void trace_argument(double number) {
  trace_note((struct trace_event){.kind = TRACE_ARGUMENT, .of = number});
}

void trace_arguments(const double *numbers, int64_t count) {
  uint64_t all = (uint64_t)count;
  for (int64_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &numbers[i], sizeof bits);
    all = splitmix_mixed(all ^ bits);
  }
  trace_note((struct trace_event){.kind = TRACE_ARGUMENT, .number = (int64_t)all});
}

long trace_native(int kind, const void *function, long loop) {
  static const enum trace_kind kinds[] = {TRACE_ENTER, TRACE_LEAVE, TRACE_LOOP, TRACE_PASS, TRACE_END};
  struct trace *trace = reading_now != NULL ? reading_now->trace : NULL;
  if (trace == NULL) return 1;
  const int64_t number = kinds[kind] == TRACE_LOOP ? ++trace->loops : loop;
  trace_note((struct trace_event){.kind = kinds[kind], .function = function, .number = number});
  return (long)number;
}

void trace_free(struct trace *trace) {
  free(trace->items);
  *trace = (struct trace){0};
}
