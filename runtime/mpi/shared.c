#include "runtime/mpi/shared.h"

#include "runtime/base/problem.h"
#include "runtime/mpi/channel.h"
#include "runtime/mpi/segment.h"
#include "runtime/mpi/sum.h"
#include "runtime/process/fail.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Values that others may still read in this rank's segment. */
struct interval {
  size_t first, end;
  uint64_t number; /* of the collective that put them there last */
};

/* Collectives are numbered from 1 in the order in which all ranks begin them. They get through two gates in that order:
 * the rank's own part is done, which it publishes; and, where its values come of the others' parts, these are taken. */
struct shared {
  int ranks, own;
  struct segment *segments; /* by rank */
  struct shared_item *items;
  uint64_t before; /* the first item's number is the next one */
  size_t capacity;
  uint64_t started, worked, ended;
  struct interval *intervals;
  size_t n_intervals;
  struct accel_byte_range in_arena; /* what is the arena's own memory: whole pages */
};

static struct shared *groups[ACCEL_AXES][SHARED_USES];
static char *arena;
static size_t arena_bytes;

/* ---- Where values are ---- */

static size_t width_of(const struct shared_item *item) {
  return item->dtype == ACCEL_FLOAT32 ? 4 : 2;
}

/* Of a rank's shard: where it begins in the whole, and its length, in bytes. */
static size_t start_of(const struct shared_item *item, int rank) {
  return (size_t)rank * item->shard_size * width_of(item);
}

static size_t bytes_of(const struct shared *shared, const struct shared_item *item, int rank) {
  return (rank + 1 < shared->ranks ? item->shard_size : item->last) * width_of(item);
}

static bool is_separate(const struct shared *shared, const struct shared_item *item) {
  return item->kind == SHARED_ALL_GATHER && item->own != item->values + start_of(item, shared->own);
}

/* A rank's shard in the segment of one of them, which has the offsets of the arena. */
static char *shard_at(const struct shared *shared, const struct shared_item *item, int segment, int rank) {
  const char *from = is_separate(shared, item) ? item->own : item->values + start_of(item, rank);
  return shared->segments[segment].values + (from - arena);
}

/* ---- Giving ---- */

static void copy(char *to, const char *from, size_t bytes) {
  enum { AT_ONCE = 1 << 17 };
#pragma omp parallel for if (bytes > AT_ONCE)
  for (size_t at = 0; at < bytes; at += AT_ONCE)
    memcpy(to + at, from + at, bytes - at < AT_ONCE ? bytes - at : AT_ONCE);
}

static struct shared_item *item_of(const struct shared *shared, uint64_t number) {
  return &shared->items[number - shared->before - 1];
}

static bool all_have_finished(const struct shared *shared, uint64_t number) {
  bool all = true;
  for (int r = 0; r < shared->ranks; r++) all = all && atomic_load(&shared->segments[r].progress->finished) >= number;
  return all;
}

static bool all_have_posted(const struct shared *shared, uint64_t number) {
  bool all = true;
  for (int r = 0; r < shared->ranks; r++) all = all && atomic_load(&shared->segments[r].progress->posted) >= number;
  return all;
}

struct reached {
  const struct shared *shared;
  uint64_t number;
};

static bool is_free(void *at) {
  const struct reached *reached = at;
  return all_have_finished(reached->shared, reached->number);
}

static void *grown(void *list, size_t count, size_t size) {
  struct problem problem;
  void *more = realloc(list, count * size);
  rt_problem(&problem, "no memory for the list of collectives");
  if (more == NULL) rt_fail(&problem, 1);
  return more;
}

/* Waits until nobody reads any more what is where the item's values are to go, and notes that they do. Lists of
 * these grow in a run's first step alone. */
static void make_room(struct shared *shared, const struct shared_item *item, uint64_t number) {
  int last = shared->ranks - 1;
  bool separate = is_separate(shared, item);
  struct interval own = {(size_t)((separate ? item->own : item->values) - arena), 0, number};
  struct reached reached = {shared, 0};
  bool known = false;
  own.end = own.first + bytes_of(shared, item, last) + (separate ? 0 : start_of(item, last));
  for (size_t i = 0; i < shared->n_intervals; i++) {
    struct interval *interval = &shared->intervals[i];
    if (interval->first >= own.end || interval->end <= own.first) continue;
    if (interval->number > reached.number) reached.number = interval->number;
    if (interval->first != own.first || interval->end != own.end) continue;
    *interval = own;
    known = true;
  }
  if (!known) {
    shared->intervals = grown(shared->intervals, shared->n_intervals + 1, sizeof *shared->intervals);
    shared->intervals[shared->n_intervals++] = own;
  }
  if (reached.number > 0) rt_wait_until(is_free, &reached, "the values of all ranks");
}

/* What others read of the arena. */
static struct accel_byte_range read_of(const struct shared *shared, const struct shared_item *item) {
  int last = shared->ranks - 1;
  if (is_separate(shared, item))
    return (struct accel_byte_range){(size_t)(item->own - arena), bytes_of(shared, item, shared->own)};
  return (struct accel_byte_range){(size_t)(item->values - arena), start_of(item, last) + bytes_of(shared, item, last)};
}

/* Between the arena, at `at`, and the same offset of the rank's segment: what is not the same memory. */
static void copy_unshared(const struct shared *shared, char *to, const char *from, const char *at, size_t bytes) {
  size_t first = (size_t)(at - arena), end = first + bytes;
  const struct accel_byte_range in_arena = shared->in_arena;
  size_t after = in_arena.first + in_arena.bytes;
  if (end <= in_arena.first || first >= after) {
    copy(to, from, bytes);
    return;
  }
  if (first < in_arena.first) copy(to, from, in_arena.first - first);
  if (end > after) copy(to + (after - first), from + (after - first), end - after);
}

/* Whether others read it where it is, all of it or some. */
static bool is_placed(const struct shared *shared, const struct shared_item *item) {
  const struct accel_byte_range at = read_of(shared, item), in_arena = shared->in_arena;
  return at.first >= in_arena.first && at.first + at.bytes <= in_arena.first + in_arena.bytes;
}

static bool is_partly_placed(const struct shared *shared, const struct shared_item *item) {
  const struct accel_byte_range at = read_of(shared, item), in_arena = shared->in_arena;
  return at.first < in_arena.first + in_arena.bytes && at.first + at.bytes > in_arena.first;
}

static void post(const struct shared *shared, const struct shared_item *item) {
  int own = shared->own;
  if (item->kind == SHARED_ALL_GATHER) {
    copy_unshared(shared, shard_at(shared, item, own, own), item->own, item->own, bytes_of(shared, item, own));
    return;
  }
  for (int r = 0; r < shared->ranks; r++) {
    const char *shard = item->values + start_of(item, r);
    if (r != own) copy_unshared(shared, shard_at(shared, item, own, r), shard, shard, bytes_of(shared, item, r));
  }
}

uint64_t rt_shared_begin(struct shared *shared, struct shared_item item) {
  uint64_t number = shared->started + 1;
  if (item.own == NULL) item.own = item.values + start_of(&item, shared->own);
  if (!is_placed(shared, &item)) make_room(shared, &item, number);
  if (shared->ended == shared->started) shared->before = shared->started;
  if (number - shared->before > shared->capacity) {
    shared->capacity = shared->capacity > 0 ? 2 * shared->capacity : 64;
    shared->items = grown(shared->items, shared->capacity, sizeof *shared->items);
  }
  shared->started = number;
  *item_of(shared, number) = item;
  post(shared, &item);
  atomic_store(&shared->segments[shared->own].progress->posted, number);
  rt_shared_advance();
  return number;
}

/* ---- Progress ---- */

/* The position of a rank when those whose numbers differ in their first bit are to be neighbours. */
static int position_in_tree(int rank, int ranks) {
  int position = 0;
  for (int bit = 1, mirrored = ranks / 2; bit < ranks; bit *= 2, mirrored /= 2)
    if ((rank & bit) != 0) position += mirrored;
  return position;
}

/* This rank's shard of the sum, for itself, and of an all-reduce for all. */
static void add_up(const struct shared *shared, const struct shared_item *item) {
  const char *from[RT_MOST_SHARING];
  char *to[RT_MOST_SHARING];
  int n_to = 0, own = shared->own;
  to[n_to++] = item->own;
  for (int r = 0; r < shared->ranks; r++) {
    from[item->by_tree ? position_in_tree(r, shared->ranks) : r] =
        r == own ? item->values + start_of(item, own) : shard_at(shared, item, r, own);
    if (r != own && item->kind == SHARED_ALL_REDUCE) to[n_to++] = shard_at(shared, item, r, own);
  }
  rt_sum_ranks(item->dtype, to, n_to, from, shared->ranks, bytes_of(shared, item, own) / width_of(item));
}

static void gather(const struct shared *shared, const struct shared_item *item) {
  for (int r = 0; r < shared->ranks; r++)
    if (r != shared->own)
      copy(item->values + start_of(item, r), shard_at(shared, item, r, r), bytes_of(shared, item, r));
  if (item->own != item->values + start_of(item, shared->own))
    copy(item->values + start_of(item, shared->own), item->own, bytes_of(shared, item, shared->own));
}

/* The sums that others have put into this rank's segment. */
static void take(const struct shared *shared, const struct shared_item *item) {
  for (int r = 0; r < shared->ranks; r++) {
    char *shard = item->values + start_of(item, r);
    if (r != shared->own)
      copy_unshared(shared, shard, shard_at(shared, item, shared->own, r), shard, bytes_of(shared, item, r));
  }
}

static void advance(struct shared *shared) {
  for (; shared->worked < shared->started && all_have_posted(shared, shared->worked + 1); shared->worked++) {
    const struct shared_item *item = item_of(shared, shared->worked + 1);
    if (item->kind == SHARED_ALL_GATHER)
      gather(shared, item);
    else
      add_up(shared, item);
    atomic_store(&shared->segments[shared->own].progress->finished, shared->worked + 1);
  }
  for (; shared->ended < shared->worked; shared->ended++) {
    const struct shared_item *item = item_of(shared, shared->ended + 1);
    bool reduces = item->kind == SHARED_ALL_REDUCE;
    if (!reduces && (item->kind == SHARED_ALL_GATHER || !is_partly_placed(shared, item))) continue;
    if (!all_have_finished(shared, shared->ended + 1)) return;
    if (reduces) take(shared, item);
  }
}

void rt_shared_advance(void) {
  for (int axis = 0; axis < ACCEL_AXES; axis++)
    for (int use = 0; use < SHARED_USES; use++)
      if (groups[axis][use] != NULL && groups[axis][use]->ended < groups[axis][use]->started)
        advance(groups[axis][use]);
}

bool rt_shared_is_placed(const struct shared *shared) {
  return shared->in_arena.bytes > 0;
}

int rt_shared_ranks(const struct shared *shared) {
  return shared->ranks;
}

bool rt_shared_has_ended(const struct shared *shared, uint64_t number) {
  return shared->ended >= number;
}

/* ---- Groups ---- */

struct shared *rt_shared_along(enum accel_axis axis, enum shared_use use, const void *values) {
  const char *at = values;
  return at >= arena && at < arena + arena_bytes ? groups[axis][use] : NULL;
}

static struct shared *open_group(MPI_Comm channel, struct accel_byte_range in_arena) {
  int ranks, own;
  MPI_Comm_size(channel, &ranks);
  MPI_Comm_rank(channel, &own);
  struct shared *shared = calloc(1, sizeof *shared);
  struct segment *segments = calloc((size_t)ranks, sizeof *segments);
  struct problem problem;
  rt_problem(&problem, "no memory to start");
  if (shared == NULL || segments == NULL) rt_fail(&problem, 1);
  *shared = (struct shared){.ranks = ranks, .own = own, .segments = segments, .in_arena = in_arena};
  if (rt_segments_open(channel, segments, arena, arena_bytes, in_arena)) return shared;
  free(segments);
  free(shared);
  return NULL;
}

/* Whether all ranks of the channel are on one machine. */
static bool is_here(MPI_Comm channel) {
  MPI_Comm here;
  int all, own, ranks;
  MPI_Comm_rank(channel, &own);
  MPI_Comm_size(channel, &all);
  rt_mpi_check(MPI_Comm_split_type(channel, MPI_COMM_TYPE_SHARED, own, MPI_INFO_NULL, &here), "start");
  MPI_Comm_size(here, &ranks);
  MPI_Comm_free(&here);
  return ranks == all && all <= RT_MOST_SHARING;
}

/* The whole pages of a part. */
static struct accel_byte_range pages_of(struct accel_byte_range part) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t first = (part.first + page - 1) / page * page, end = (part.first + part.bytes) / page * page;
  bool fits = end > first && (uintptr_t)arena % page == 0;
  return (struct accel_byte_range){first, fits ? end - first : 0};
}

/* What of the arena is a group's segment. */
static struct accel_byte_range part_in_arena(const struct arena_parts *parts, int axis, enum shared_use use) {
  bool divides = rt_channel_along(ACCEL_DP_SHARD) != MPI_COMM_NULL;
  if (use == SHARED_GATHERS) return axis == ACCEL_DP_SHARD ? pages_of(parts->gathered) : (struct accel_byte_range){0};
  bool replicates = rt_channel_along(ACCEL_DP_REPLICATE) != MPI_COMM_NULL;
  enum accel_axis first = divides ? ACCEL_DP_SHARD : replicates ? ACCEL_DP_REPLICATE : ACCEL_EP;
  return axis == (int)first ? pages_of(parts->summed) : (struct accel_byte_range){0};
}

void rt_shared_open(void *base, size_t bytes, const struct arena_parts *parts) {
  arena = base;
  arena_bytes = bytes;
  for (int axis = 0; axis < ACCEL_AXES; axis++) {
    MPI_Comm channel = rt_channel_along((enum accel_axis)axis);
    if (channel == MPI_COMM_NULL || !is_here(channel)) continue;
    for (int use = 0; use < SHARED_USES; use++)
      groups[axis][use] = open_group(channel, part_in_arena(parts, axis, (enum shared_use)use));
  }
}

static void close_group(struct shared *shared) {
  if (shared == NULL) return;
  rt_segments_close(shared->segments, shared->ranks, arena_bytes);
  free(shared->segments);
  free(shared->items);
  free(shared->intervals);
  free(shared);
}

void rt_shared_close(void) {
  for (int axis = 0; axis < ACCEL_AXES; axis++)
    for (int use = 0; use < SHARED_USES; use++) {
      close_group(groups[axis][use]);
      groups[axis][use] = NULL;
    }
}
