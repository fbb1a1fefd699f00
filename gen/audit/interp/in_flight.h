/* Collectives in flight: started and not waited for. A list never changes; a start or a wait makes another, which
 * shares with it what both contain, so that paths of the program each keep their own. */
#ifndef ACCEL_AUDIT_INTERP_IN_FLIGHT_H
#define ACCEL_AUDIT_INTERP_IN_FLIGHT_H

#include "gen/audit/interp/value.h"
#include "gen/base/arena.h"

/* Which wait ends it. */
enum transfer_queue {
  TRANSFER_SUM,
  TRANSFER_CHAINED, /* a sum that starts when the sum before it has ended */
  TRANSFER_GATHER,
  TRANSFER_SEND,    /* to another stage of a pipeline */
  TRANSFER_DISK,    /* of states on a disk: one that shares memory with another one begins after it */
  TRANSFER_PREFETCH /* from the host's memory to a GPU's; the next gather starts after it */
};

enum transfer_use {
  TRANSFER_READS,
  TRANSFER_WRITES,
  TRANSFER_WORKS_IN /* writes, and leaves free for the next one of its queue, which starts after it */
};

/* Memory that a collective in flight uses. */
struct transfer_memory {
  int object; /* among the interpreter's */
  const struct path *path;
  int64_t from, to; /* bytes of the object; to is the first one after them */
  enum transfer_use use;
  bool exact; /* all of from .. to - 1; else some part of it */
};

enum { TRANSFER_MEMORIES = 3 };

struct transfer {
  const struct transfer *older;
  const struct syntax *node; /* the call that started it */
  enum transfer_queue queue;
  int64_t number; /* of a sum: how many were started before it since all were waited for */
  int n_memory;
  struct transfer_memory memory[TRANSFER_MEMORIES];
};

struct in_flight {
  const struct transfer *newest; /* NULL: none is in flight */
  int64_t sums;                  /* started since all were waited for */
};

/* Adds one. A sum is counted. */
void in_flight_start(struct arena *arena, struct in_flight *list, struct transfer transfer);

/* Removes those for which `ends` is true; how many these are. */
int in_flight_end(struct arena *arena, struct in_flight *list,
                  bool (*ends)(const struct transfer *item, const void *with), const void *with);

int in_flight_count(const struct in_flight *list);

/* Whether both have the same collectives in flight, started by the same calls in the same order. If not, *other is the
 * newest one that one of them lacks; NULL: they differ in how many sums were started. */
bool in_flight_same(const struct in_flight *a, const struct in_flight *b, const struct transfer **other);

#endif
