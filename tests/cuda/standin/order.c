/* Who may touch what when: clocks of the host and of streams, and for each 4 bytes of pinned and device memory who
 * wrote them last and who has read them since. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/cuda/standin/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GRANULE = 4, READERS = 4, NAMES = 4096 };

/* A piece of work: the actor and the count of its work, in one word; 0: none. */
typedef uint32_t stamp;
enum { TIME_BITS = 24 };

struct shadow {
  stamp write, reads[READERS];
  uint32_t batch; /* at hand when it was written */
};

/* The shadows of a range of memory. */
struct range {
  char *from;
  size_t bytes;
  struct shadow *shadows;
};
enum { RANGES = 1024 };
static struct range ranges[RANGES];
static int n_ranges;
/* All that was ever watched is between these: most accesses of the host are not. */
static uintptr_t lowest = UINTPTR_MAX, highest;

/* Batches: each begins when `feed` is written. Memory between `from` and `to` has what is of one batch alone. */
static struct {
  const char *feed, *from, *to;
  uint32_t present;
} batches;

void order_batches(const char *feed, const char *from, const char *to) {
  batches.feed = feed;
  batches.from = from;
  batches.to = to;
}

static struct actor {
  const char *name;
  const char *work[NAMES]; /* of the newest pieces, by their count */
} actors[ACTORS] = {{.name = "the host"}};
static int n_actors = 1;

static struct clock host = {{1}};
static _Thread_local bool is_main; /* other threads are not followed */
static bool has_main;

static struct {
  int actor;
  struct clock *clock;
} now = {0, &host};

int actor_new(const char *name) {
  if (n_actors == ACTORS) fault("more than %d streams", ACTORS - 1);
  actors[n_actors].name = name;
  return n_actors++;
}

struct clock *host_clock(void) {
  if (!has_main) is_main = true;
  has_main = true;
  return &host;
}

void clock_join(struct clock *into, const struct clock *other) {
  for (int i = 0; i < ACTORS; i++)
    if (other->at[i] > into->at[i]) into->at[i] = other->at[i];
}

bool clock_covers(const struct clock *clock, const struct clock *other) {
  for (int i = 0; i < ACTORS; i++)
    if (other->at[i] > clock->at[i]) return false;
  return true;
}

void work_begin(int actor, struct clock *clock, const char *name) {
  uint32_t count = ++clock->at[actor];
  if (count >> TIME_BITS != 0) fault("more work than is counted");
  actors[actor].work[count % NAMES] = name;
  now.actor = actor;
  now.clock = clock;
}

void work_end(void) {
  now.actor = 0;
  now.clock = &host;
}

/* ---- Shadows ---- */

/* The range that was found last comes first: an arena may have a hundred. */
static struct shadow *shadows_of(const char *address, size_t bytes) {
  static int last;
  for (int i = 0; i <= n_ranges; i++) {
    const int number = i == 0 ? last : i - 1;
    const struct range *in = &ranges[number];
    if (number >= n_ranges || address < in->from || address + bytes > in->from + in->bytes) continue;
    last = number;
    return in->shadows + (size_t)(address - in->from) / GRANULE;
  }
  return NULL;
}

/* Watched from now on. */
void order_watch(void *address, size_t bytes) {
  size_t size = (bytes / GRANULE + 2) * sizeof(struct shadow);
  void *made = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED || n_ranges == RANGES) fault("no memory to watch %zu bytes", bytes);
  ranges[n_ranges++] = (struct range){address, bytes, made};
  if ((uintptr_t)address < lowest) lowest = (uintptr_t)address;
  if ((uintptr_t)address + bytes > highest) highest = (uintptr_t)address + bytes;
}

void order_forget(const void *address, size_t bytes) {
  for (int i = 0; i < n_ranges; i++) {
    if (ranges[i].from != address) continue;
    munmap(ranges[i].shadows, (bytes / GRANULE + 2) * sizeof(struct shadow));
    ranges[i] = ranges[--n_ranges];
    return;
  }
}

static int actor_of(stamp s) {
  return (int)(s >> TIME_BITS);
}

static uint32_t time_of(stamp s) {
  return s & ((1u << TIME_BITS) - 1);
}

static bool is_before(stamp s) {
  return s == 0 || time_of(s) <= now.clock->at[actor_of(s)];
}

static const char *work_of(int actor, uint32_t time) {
  const char *name = actor == 0 ? "its own access" : actors[actor].work[time % NAMES];
  return name != NULL ? name : "?";
}

/* The offset of an address in its allocation is the same in every run. */
static _Noreturn void race(const char *address, bool writes, stamp other, bool wrote) {
  const struct range *in = NULL;
  for (int i = 0; i < n_ranges; i++)
    if (address >= ranges[i].from && address < ranges[i].from + ranges[i].bytes) in = &ranges[i];
  fault("%s of %s %s byte %zu of an allocation of %zu without waiting for %s of %s that %s it",
        work_of(now.actor, now.clock->at[now.actor]), actors[now.actor].name, writes ? "writes" : "reads",
        in == NULL ? (size_t)0 : (size_t)(address - in->from), in == NULL ? (size_t)0 : in->bytes,
        work_of(actor_of(other), time_of(other)), actors[actor_of(other)].name, wrote ? "writes" : "reads");
}

/* A reader that the present work comes after needs no position of its own any more. */
static void note_read(struct shadow *shadow, stamp own) {
  int position = 0;
  for (int i = 0; i < READERS; i++) {
    if (shadow->reads[i] == 0 || actor_of(shadow->reads[i]) == now.actor) {
      position = i;
      break;
    }
    if (is_before(shadow->reads[i])) position = i;
  }
  shadow->reads[position] = own;
}

/* Gives shadows that are all about to be written their pages at once: an arena is zeroed, which took most of the time
 * of small trainers in two faults a page. */
static void expect_writes(const struct shadow *shadow, size_t granules) {
#ifdef MADV_POPULATE_WRITE
  const uintptr_t page = 4096, from = (uintptr_t)shadow / page * page, to = (uintptr_t)(shadow + granules);
  if (granules > 1 << 14) madvise((void *)from, to - from, MADV_POPULATE_WRITE); /* an older system has none */
#else
  (void)shadow, (void)granules;
#endif
}

/* Of memory that is not watched. */
static void touch_other(const void *address, size_t bytes) {
  enum memory_kind kind = memory_kind_of(address);
  if (kind == PAGEABLE && driver_reserves(address))
    fault("%s touches %zu bytes at %p, which are reserved and have no memory",
          work_of(now.actor, now.clock->at[now.actor]), bytes, address);
  if (kind != PAGEABLE) memory_require(address, bytes, kind, work_of(now.actor, now.clock->at[now.actor]));
}

static bool has_readers(const struct shadow *shadow) {
  return (shadow->reads[0] | shadow->reads[1] | shadow->reads[2] | shadow->reads[3]) != 0;
}

static _Noreturn void stale(const char *address, stamp wrote) {
  const struct range *in = NULL;
  for (int i = 0; i < n_ranges; i++)
    if (address >= ranges[i].from && address < ranges[i].from + ranges[i].bytes) in = &ranges[i];
  const size_t offset = in == NULL ? (size_t)0 : (size_t)(address - in->from);
  const char *const reader = work_of(now.actor, now.clock->at[now.actor]);
  if (wrote == 0) fault("%s reads byte %zu of an allocation, which was never written", reader, offset);
  fault("%s reads byte %zu of an allocation, which %s wrote in an earlier batch, and nothing in this one", reader,
        offset, work_of(actor_of(wrote), time_of(wrote)));
}

/* Whether all of it is of one batch alone. */
static bool is_of_batch(const char *address, size_t bytes) {
  return address >= batches.from && address + bytes <= batches.to;
}

bool order_has_written(const void *address, size_t bytes) {
  const char *first = (const char *)((uintptr_t)address / GRANULE * GRANULE);
  const size_t granules = ((size_t)((const char *)address - first) + bytes + GRANULE - 1) / GRANULE;
  const struct shadow *shadow = shadows_of(address, bytes);
  for (size_t i = 0; i < granules && shadow != NULL; i++)
    if (shadow[i].write == 0) return false;
  return true;
}

void touch(const void *address, size_t bytes, bool writes) {
  if (!is_main || bytes == 0) return;
  const bool far = (uintptr_t)address + bytes <= lowest || (uintptr_t)address >= highest;
  if (far && !driver_reserves(address)) return;
  const char *first = (const char *)((uintptr_t)address / GRANULE * GRANULE);
  size_t granules = ((size_t)((const char *)address - first) + bytes + GRANULE - 1) / GRANULE;
  struct shadow *shadow = shadows_of(address, bytes);
  if (shadow == NULL) {
    touch_other(address, bytes);
    return;
  }
  const bool of_batch = !writes && is_of_batch(address, bytes);
  if (writes && address == batches.feed) batches.present++;
  stamp own = (stamp)now.actor << TIME_BITS | now.clock->at[now.actor], before = own; /* what neighbours also have */
  if (writes) expect_writes(shadow, granules);
  for (size_t i = 0; i < granules; i++, shadow++) {
    if (shadow->write != before && shadow->write != own && !is_before(shadow->write))
      race(first + i * GRANULE, writes, shadow->write, true);
    before = shadow->write;
    if (!writes) {
      if (of_batch && (shadow->write == 0 || shadow->batch != batches.present))
        stale(first + i * GRANULE, shadow->write);
      note_read(shadow, own);
      continue;
    }
    shadow->batch = batches.present;
    for (int r = 0; r < READERS && has_readers(shadow); r++) {
      if (shadow->reads[r] != own && !is_before(shadow->reads[r]))
        race(first + i * GRANULE, writes, shadow->reads[r], false);
      shadow->reads[r] = 0;
    }
    shadow->write = own;
  }
}

void standin_touch(const void *address, size_t bytes, bool writes) {
  touch(address, bytes, writes);
}
