#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "tests/cuda/standin/ptx/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/lanes.h"

/* ---- Words ---- */

static const char *name_of(const char *path) {
  const char *slash = path == NULL ? NULL : strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

/* The place in the program's text and, of a function that was put there, the place in that one. */
static const char *place_of(const struct instruction *of, char *text, size_t size) {
  const struct location where = of->where, outer = of->outer;
  text[0] = '\0';
  if (where.line <= 0) return text;
  int used = snprintf(text, size, ", %s:%d", name_of(outer.file), outer.line);
  const bool is_same = outer.line == where.line && strcmp(outer.file, where.file) == 0;
  if (!is_same && used > 0 && (size_t)used < size)
    snprintf(text + used, size - (size_t)used, " by %s:%d", name_of(where.file), where.line);
  return text;
}

void wrong(const struct warp *warp, const struct instruction *of, int lane, const char *format, ...) {
  char what[512], where[128], thread[32] = "";
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  const struct block *block = warp->block;
  const struct kernel *kernel = block->launch->kernel;
  if (lane >= 0) snprintf(thread, sizeof thread, ", thread %u", warp->number * LANES + (unsigned)lane);
  fault("%s: %s: %s (%s:%d%s; block %u %u %u%s)", kernel->name, of->name, what, kernel->module->file, of->line,
        place_of(of, where, sizeof where), block->index[0], block->index[1], block->index[2], thread);
}

u32 lanes_known(const struct warp *warp, const struct instruction *of) {
  const u32 *defined = warp->defined;
  if (of->keeps == BY_CHOICE) {
    const u32 chosen = predicate(warp, of->from[2]);
    return defined[of->from[2].number] &
           ((chosen & defined[of->from[0].number]) | (~chosen & defined[of->from[1].number]));
  }
  if (of->keeps == BY_ALL) {
    u32 known = ALL_LANES;
    for (int i = 0; i < of->n_from; i++) known &= defined[of->from[i].number];
    return known;
  }
  const u32 flip = of->keeps == BY_FALSE ? ALL_LANES : 0; /* what decides: false for both, true for one of them */
  const u32 a = defined[of->from[0].number], b = defined[of->from[1].number];
  return (a & b) | (a & (predicate(warp, of->from[0]) ^ flip)) | (b & (predicate(warp, of->from[1]) ^ flip));
}

void check_defined(const struct warp *warp, const struct instruction *of) {
  for (int i = 0; i < of->n_from; i++) {
    const u32 missing = warp->active & ~warp->defined[of->from[i].number];
    if (missing != 0) wrong(warp, of, __builtin_ctz(missing), "operand %d has no value", of->n_to + i + 1);
  }
}

/* ---- The device's memory ----
 *
 * The shadow of a byte says which block of the present launch has written and read them: marks of blocks go up from
 * launch to launch, so that older ones are known as such. What other work has done with them is order.c's, which sees
 * each launch's first access. */

struct shadow {
  u32 write, read; /* marks; `read` of several blocks: the mark before those of the launch's blocks */
};
enum { PAGE = 4096, SHADOWS = PAGE };

struct page {
  u64 number; /* 0: none */
  struct shadow *shadows;
};
static struct {
  struct page *pages;
  u64 capacity, count;
} table;
static u32 last_mark = 1;

static struct page *page_in(struct page *pages, u64 capacity, u64 number) {
  u64 at = number * UINT64_C(0x9e3779b97f4a7c15) % capacity;
  while (pages[at].number != 0 && pages[at].number != number) at = (at + 1) % capacity;
  return &pages[at];
}

static void grow(void) {
  const u64 capacity = table.capacity > 0 ? 2 * table.capacity : 1 << 12;
  struct page *pages = calloc(capacity, sizeof *pages);
  if (pages == NULL) fault("no memory");
  for (u64 i = 0; i < table.capacity; i++)
    if (table.pages[i].number != 0) *page_in(pages, capacity, table.pages[i].number) = table.pages[i];
  free(table.pages);
  table.pages = pages;
  table.capacity = capacity;
}

static struct shadow *shadows_of(u64 address) {
  static u64 last;
  static struct shadow *found;
  const u64 number = address / PAGE;
  if (number != last) {
    if (2 * table.count >= table.capacity) grow();
    struct page *page = page_in(table.pages, table.capacity, number);
    if (page->number == 0) {
      page->number = number;
      page->shadows = calloc(SHADOWS, sizeof *page->shadows);
      if (page->shadows == NULL) fault("no memory");
      table.count++;
    }
    last = number;
    found = page->shadows;
  }
  return found + address % PAGE;
}

static struct {
  u64 from, to;
} known[256];
static int n_known;

void checks_know(const void *address, size_t bytes) {
  if (n_known == 256) fault("ptx: more than 256 variables of modules");
  known[n_known].from = (u64)(uintptr_t)address;
  known[n_known++].to = (u64)(uintptr_t)address + bytes;
}

static bool is_known(u64 address, unsigned bytes) {
  for (int i = 0; i < n_known; i++)
    if (address >= known[i].from && address + bytes <= known[i].to) return true;
  return false;
}

void checks_begin(struct launch *launch) {
  const u64 blocks = (u64)launch->grid[0] * launch->grid[1] * launch->grid[2];
  if (last_mark + blocks + 1 > UINT32_MAX) { /* all marks have been used: forgets all of them */
    for (u64 i = 0; i < table.capacity; i++)
      if (table.pages[i].number != 0) memset(table.pages[i].shadows, 0, SHADOWS * sizeof *table.pages[i].shadows);
    last_mark = 1;
  }
  launch->first_mark = last_mark + 1;
  last_mark += (u32)blocks + 1;
}

/* The first access of this launch to a row of bytes that have no mark of it. */
static void first_access(struct warp *warp, const struct instruction *of, int lane, u64 address, unsigned bytes,
                         bool writes) {
  const void *at = (const void *)(uintptr_t)address;
  if (is_known(address, bytes)) return;
  const enum memory_kind kind = memory_kind_of(at);
  if (kind == PAGEABLE) wrong(warp, of, lane, "%u bytes at %p, where no allocation is", bytes, at);
  if (bytes > memory_left(at)) wrong(warp, of, lane, "%u bytes at %p, beyond the end of an allocation", bytes, at);
  if (!writes && kind == DEVICE && !order_has_written(at, bytes))
    wrong(warp, of, lane, "memory at %p, which was never written", at);
  touch(at, bytes, writes);
}

/* A row of bytes that lanes touch, the first of them `lane`. */
static void check_row(struct warp *warp, const struct instruction *of, int lane, u64 address, unsigned bytes,
                      bool writes) {
  const u32 before = warp->block->launch->first_mark - 1, own = before + 1 + warp->block->number;
  while (bytes > 0) {
    const unsigned left = PAGE - (unsigned)(address % PAGE), part = bytes < left ? bytes : left;
    struct shadow *shadow = shadows_of(address);
    u32 is_new = 0, clash = 0;
    for (unsigned i = 0; i < part; i++) {
      const struct shadow s = shadow[i];
      is_new |= s.write < before && (writes || s.read < before);
      clash |= (s.write > before && s.write != own) || (writes && s.read >= before && s.read != own);
    }
    if (clash) {
      for (unsigned i = 0; i < part; i++) {
        const struct shadow s = shadow[i];
        if (s.write > before && s.write != own)
          wrong(warp, of, lane, "a race: byte %u from %p, which block %u of the same launch writes", i,
                (void *)(uintptr_t)address, s.write - before - 1);
        if (writes && s.read >= before && s.read != own)
          wrong(warp, of, lane, "a race: byte %u from %p, which another block of the same launch reads", i,
                (void *)(uintptr_t)address);
      }
    }
    if (is_new) first_access(warp, of, lane, address, part, writes);
    for (unsigned i = 0; i < part; i++) {
      if (writes)
        shadow[i].write = own;
      else
        shadow[i].read = shadow[i].read <= before - 1 || shadow[i].read == own ? own : before;
    }
    address += part;
    bytes -= part;
  }
}

/* An address derives from pointers that the kernel was given: what each points into. */
static void check_extents(struct warp *warp, const struct instruction *of, const struct place *place,
                          const u64 *addresses, unsigned bytes) {
  const struct extent *extents = warp->block->launch->extents;
  if (extents == NULL || place->derived == 0 || (place->derived & FROM_ELSEWHERE) != 0) return;
  for (int i = 0; i < LANES; i++) {
    if (!(warp->active >> i & 1)) continue;
    bool is_any = false, is_inside = false;
    for (u64 left = place->derived; left != 0; left &= left - 1) {
      const struct extent *extent = &extents[__builtin_ctzll(left)];
      is_any |= extent->from != 0;
      is_inside |= addresses[i] >= extent->from && addresses[i] + bytes <= extent->to;
    }
    if (!is_any || is_inside) continue;
    const struct extent *extent = &extents[__builtin_ctzll(place->derived)];
    wrong(warp, of, i, "%u bytes at %p, outside of the array that the address was derived from: byte %lld of %llu",
          bytes, (void *)(uintptr_t)addresses[i], (long long)(addresses[i] - extent->from),
          (unsigned long long)(extent->to - extent->from));
  }
}

static bool is_row(const u64 *addresses, unsigned bytes) {
  u64 away = 0;
  for (unsigned i = 0; i < LANES; i++) away |= addresses[i] ^ (addresses[0] + (u64)i * bytes);
  return away == 0;
}

void check_global(struct warp *warp, const struct instruction *of, const struct place *place, const u64 *addresses,
                  unsigned bytes, bool writes) {
  check_extents(warp, of, place, addresses, bytes);
  if (warp->active == ALL_LANES && is_row(addresses, bytes)) {
    check_row(warp, of, 0, addresses[0], bytes * LANES, writes);
    return;
  }
  for (int i = 0; i < LANES; i++)
    if (warp->active >> i & 1) check_row(warp, of, i, addresses[i], bytes, writes);
}

/* ---- Shared memory ----
 *
 * A cell is of 2 bytes. What two threads do with it is ordered by a barrier of the block between them or, in a warp, by
 * one of the warp. */

enum { NOBODY = 0, SEVERAL = UINT16_MAX, SEVERAL_OF_WARP = 2048 }; /* else a thread's number + 1 */

static bool is_ordered(const struct warp *warp, u32 other, u32 time, u32 warp_time) {
  if (time < warp->block->time) return true;
  return other != SEVERAL &&
         (other >= SEVERAL_OF_WARP ? other - SEVERAL_OF_WARP : (other - 1) / LANES) == warp->number &&
         warp_time < warp->time;
}

static void note_read(const struct warp *warp, struct cell *cell, u32 own) {
  const bool is_old = cell->reader == NOBODY || cell->reader == own ||
                      is_ordered(warp, cell->reader, cell->read_time, cell->read_warp_time);
  const bool is_of_warp = cell->reader < SEVERAL_OF_WARP ? (cell->reader - 1u) / LANES == warp->number
                                                         : cell->reader == SEVERAL_OF_WARP + warp->number;
  cell->reader = (u16)(is_old ? own : is_of_warp ? SEVERAL_OF_WARP + warp->number : SEVERAL);
  cell->read_time = warp->block->time;
  cell->read_warp_time = warp->time;
}

/* Lanes that store the same at once do no harm: whether it is the same is seen when they do (memory.c). */
static bool is_at_once(const struct warp *warp, const struct cell *cell) {
  return (cell->writer - 1u) / LANES == warp->number && cell->write_instruction == warp->block->launch->executed;
}

void check_shared(struct warp *warp, const struct instruction *of, const u64 *addresses, unsigned bytes, bool writes) {
  const struct block *block = warp->block;
  warp->writes_twice = false;
  for (int i = 0; i < LANES; i++) {
    if (!(warp->active >> i & 1)) continue;
    if (addresses[i] + bytes > block->launch->shared_bytes || addresses[i] + bytes < bytes)
      wrong(warp, of, i, "byte %lld of the block's shared memory of %zu", (long long)addresses[i],
            block->launch->shared_bytes);
    const u32 own = warp->number * LANES + (u32)i + 1;
    for (u64 at = addresses[i] / 2; at <= (addresses[i] + bytes - 1) / 2; at++) {
      struct cell *cell = &block->cells[at];
      const bool is_written = cell->write_time >= block->begin;
      if (!writes && !is_written)
        wrong(warp, of, i, "shared memory at %llu, which was never written", (unsigned long long)at * 2);
      if (is_written && cell->writer != own &&
          !is_ordered(warp, cell->writer, cell->write_time, cell->write_warp_time) &&
          !(writes && is_at_once(warp, cell)))
        wrong(warp, of, i, "a race: shared memory at %llu, which thread %d writes with no barrier between them",
              (unsigned long long)at * 2, cell->writer - 1);
      if (!writes) {
        note_read(warp, cell, own);
        continue;
      }
      if (cell->reader != NOBODY && cell->reader != own && cell->read_time >= block->begin &&
          !is_ordered(warp, cell->reader, cell->read_time, cell->read_warp_time))
        wrong(warp, of, i, "a race: shared memory at %llu, which another thread reads with no barrier between them",
              (unsigned long long)at * 2);
      warp->writes_twice |= is_written && cell->writer != own && is_at_once(warp, cell);
      *cell = (struct cell){.write_time = block->time,
                            .write_warp_time = warp->time,
                            .writer = (u16)own,
                            .reader = NOBODY,
                            .write_instruction = block->launch->executed};
    }
  }
}

/* ---- A thread's own memory ---- */

void check_local(struct warp *warp, const struct instruction *of, const u64 *addresses, unsigned bytes, bool writes) {
  const size_t all = warp->block->launch->kernel->local_bytes;
  for (int i = 0; i < LANES; i++) {
    if (!(warp->active >> i & 1)) continue;
    if (addresses[i] + bytes > all || addresses[i] + bytes < bytes)
      wrong(warp, of, i, "byte %lld of the thread's memory of %zu", (long long)addresses[i], all);
    char *written = warp->local_written + (size_t)i * all + addresses[i];
    for (unsigned b = 0; b < bytes; b++) {
      if (!writes && !written[b])
        wrong(warp, of, i, "memory of the thread at %llu, which was never written",
              (unsigned long long)addresses[i] + b);
      written[b] |= writes;
    }
  }
}
