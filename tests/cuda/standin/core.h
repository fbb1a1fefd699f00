/* What the stand-ins share: finding fault, objects, memory, order, work in streams. */
#ifndef TESTS_CUDA_CORE_H
#define TESTS_CUDA_CORE_H

#include "tests/cuda/standin/standin.h"

#include <stdint.h>

/* ---- Fault ---- */

/* Ends the process with what is wrong. */
_Noreturn void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says what is wrong, and leaves the end to the caller. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Notes a call in the trace, and says whether STANDIN_FAIL lets it fail. */
bool call(const char *name);

/* The rank that the process says it has, for messages. */
int own_rank(void);

/* cudaSetDevice was called. */
extern bool standin_has_device;

/* What the environment says the machine is. */
long long setting(const char *name, long long otherwise);

/* ---- Objects: streams, events, graphs, handles ---- */

enum object {
  STREAM,
  EVENT,
  GRAPH,
  EXEC,
  LT_HANDLE,
  LT_DESC,
  LT_LAYOUT,
  LT_PREFERENCE,
  DNN_HANDLE,
  DNN_DESC,
  COMM,
  WINDOW,
  OBJECTS
};

/* A new object of `bytes`, zeroed. Every object begins with its kind. */
void *object_new(enum object kind, size_t bytes);

/* The object as one of that kind; a fault when it is another, or has ended; `what` is the call. */
void *object_of(const void *object, enum object kind, const char *what);

/* Ends it: a later use is a fault. */
void object_end(void *object, enum object kind, const char *what);

/* How many of that kind have not ended. */
long long objects_alive(enum object kind);

/* ---- Memory ---- */

enum memory_kind { PAGEABLE, PINNED, DEVICE };

void memory_add(void *address, size_t bytes, enum memory_kind kind, const char *made_by);
void memory_remove(void *address, const char *what);

/* Where an address is. */
enum memory_kind memory_kind_of(const void *address);

/* A fault unless `bytes` from there are in one allocation of that kind. */
void memory_require(const void *address, size_t bytes, enum memory_kind kind, const char *what);

/* How many bytes there are from an address to the end of its allocation; 0: it is in none. */
size_t memory_left(const void *address);

/* The allocation that an address is in; false: none. */
bool memory_around(const void *address, const char **from, size_t *bytes);

size_t memory_used(void);

/* Allocation `number` of pinned memory, in no order; false: there are no more. */
bool memory_pinned(int number, char **from, size_t *bytes);

/* The range that cuMemAddressReserve gave; NULL: none. */
const char *driver_range(void);

/* Whether an address is of the range that cuMemAddressReserve gave, mapped or not. */
bool driver_reserves(const void *address);

/* ---- Order ---- */

enum { ACTORS = 96 }; /* the host, streams, and the streams inside of graphs */

struct clock {
  uint32_t at[ACTORS];
};

/* A new actor. */
int actor_new(const char *name);

void clock_join(struct clock *into, const struct clock *other);
bool clock_covers(const struct clock *clock, const struct clock *other);

/* The host's clock. */
struct clock *host_clock(void);

/* From now on what is touched is by the next piece of work of `actor`, called `name`, at `clock`, which moves on. */
void work_begin(int actor, struct clock *clock, const char *name);
void work_end(void);

/* For CUPTI's records: a piece of work begins; it was called `name`, and has ended. */
void cupti_work_begins(void);
void cupti_work_ends(const char *name, int actor);

/* What the present work, or the host, touches. Memory that is neither pinned nor the device's is not looked at. */
void touch(const void *address, size_t bytes, bool writes);

/* Whether something was written to each 4 bytes since they are looked at. */
bool order_has_written(const void *address, size_t bytes);

/* A batch begins when memory at `feed` is written. What is read between `from` and `to` must be of the present one. */
void order_batches(const char *feed, const char *from, const char *to);

/* Looks at what is done with memory from now on. */
void order_watch(void *address, size_t bytes);

/* Forgets what was done with memory that is given back. */
void order_forget(const void *address, size_t bytes);

/* ---- Work in streams ---- */

/* A piece of work: its arguments are copied. */
typedef void work_run(const void *arguments);

/* Does it now, or with the graph that `stream` is being captured into. */
void submit(cudaStream_t stream, const char *name, work_run *run, const void *arguments, size_t bytes);

/* A fault when a capture is going on: the call may not be made then. */
void no_capture(const char *what);

#endif
