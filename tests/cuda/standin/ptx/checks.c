#include "tests/cuda/standin/ptx/checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/bits.h"
#include "tests/cuda/standin/ptx/lanes.h"
#include "tests/cuda/standin/ptx/operations.h"

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

/* The bits of an operand that an instruction uses: of a number that goes to memory the lower ones. */
static u64 bits_used(const struct instruction *of, int number) {
  const bool is_moved =
      of->flow == ON && of->n_places == 1 && number > of->places[0].operand && of->from_bytes[number] != PREDICATE;
  return is_moved && of->bytes < 8 ? (UINT64_C(1) << 8 * of->bytes) - 1 : UINT64_MAX;
}

void check_defined(const struct warp *warp, const struct instruction *of) {
  for (int i = 0; i < of->n_from; i++) {
    for (u32 left = warp->active & ~warp->defined[of->from[i].number]; left != 0; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      const unsigned bytes = of->from_bytes[i] == 0 ? 8 : of->from_bytes[i]; /* 0: an address */
      const u64 open = bits_of_register(warp, of->from[i], bytes, lane), used = bits_used(of, i);
      if ((open & used) == 0) continue;
      if (warp->partly[of->from[i].number] >> lane & 1)
        wrong(warp, of, lane, "operand %d has no value in its bits %0*llx", of->n_to + i + 1, (int)(2 * bytes),
              (unsigned long long)open);
      wrong(warp, of, lane, "operand %d has no value", of->n_to + i + 1);
    }
  }
}

/* ---- The device's memory ----
 *
 * Each byte has its touch. Times go up from launch to launch, so that older ones are known as such. What other work has
 * done with them is order.c's, which sees each launch's first access. */

enum { PAGE = 4096 };

struct page {
  u64 number; /* 0: none */
  struct touch *touches;
};
static struct {
  struct page *pages;
  u64 capacity, count;
} table;
static u32 next_time = 1;

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

static struct touch *touches_of(u64 address) {
  static u64 last;
  static struct touch *found;
  const u64 number = address / PAGE;
  if (number != last) {
    if (2 * table.count >= table.capacity) grow();
    struct page *page = page_in(table.pages, table.capacity, number);
    if (page->number == 0) {
      page->number = number;
      page->touches = calloc(PAGE, sizeof *page->touches);
      if (page->touches == NULL) fault("no memory");
      table.count++;
    }
    last = number;
    found = page->touches;
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
  if (next_time > UINT32_MAX / 2) { /* forgets all times before they come again */
    for (u64 i = 0; i < table.capacity; i++)
      if (table.pages[i].number != 0) memset(table.pages[i].touches, 0, PAGE * sizeof(struct touch));
    next_time = 1;
  }
  launch->first_time = next_time;
}

void checks_end(const struct launch *launch, u32 time) {
  next_time = launch->first_time + time + 1;
}

static struct who who_of(const struct warp *warp, u32 first, u32 oldest) {
  const struct block *block = warp->block;
  return (struct who){.now = first + block->time,
                      .begin = first + block->begin,
                      .oldest = oldest,
                      .warp_time = (uint16_t)warp->time,
                      .warp = warp->number};
}

static uint16_t thread_of(const struct warp *warp, int lane) {
  return (uint16_t)(warp->number * LANES + (unsigned)lane + 1);
}

/* The block of the launch that ran at a time. */
static u32 block_at(const struct launch *launch, u32 time) {
  u32 i = launch->n_begun - 1;
  while (i > 0 && launch->first_time + launch->begun[i].time > time) i--;
  return launch->begun[i].number;
}

/* The first access of this launch to a row of bytes that have no touch of it. */
static void first_access(struct warp *warp, const struct instruction *of, int lane, u64 address, unsigned bytes,
                         enum access access) {
  const void *at = (const void *)(uintptr_t)address;
  if (is_known(address, bytes)) return;
  const enum memory_kind kind = memory_kind_of(at);
  if (kind == PAGEABLE) wrong(warp, of, lane, "%u bytes at %p, where no allocation is", bytes, at);
  if (bytes > memory_left(at)) wrong(warp, of, lane, "%u bytes at %p, beyond the end of an allocation", bytes, at);
  if (access != WRITES && kind == DEVICE && !order_has_written(at, bytes))
    wrong(warp, of, lane, "memory at %p, which was never written", at);
  check_kept(warp, of, lane, address, bytes, access);
  if (access != WRITES) touch(at, bytes, false);
  if (access != READS) touch(at, bytes, true);
}

static _Noreturn void clash(struct warp *warp, const struct instruction *of, int lane, u64 address,
                            const struct touch *t, const struct who *who, bool wrote) {
  const void *at = (const void *)(uintptr_t)address;
  const unsigned other = (wrote ? t->writer : t->reader) & ~(unsigned)BY_ATOMICS;
  const char *const does = wrote ? "writes" : "reads";
  if (other == SEVERAL_BLOCKS)
    wrong(warp, of, lane, "a race: byte 0 from %p, which other blocks of the same launch %s", at,
          wrote ? "update" : "read");
  if ((wrote ? t->write : t->read) < who->begin)
    wrong(warp, of, lane, "a race: byte 0 from %p, which block %u of the same launch %s", at,
          block_at(warp->block->launch, wrote ? t->write : t->read), does);
  if (other >= SEVERAL_OF_WARP)
    wrong(warp, of, lane, "a race: memory at %p, which other threads of the block have touched with no barrier between",
          at);
  wrong(warp, of, lane, "a race: memory at %p, which thread %u of the block %s with no barrier between them", at,
        other - 1, does);
}

/* A row of bytes that lanes touch, the first of them `lane`, `each` of a lane. */
static void check_row(struct warp *warp, const struct instruction *of, int lane, u64 address, unsigned bytes,
                      unsigned each, enum access access) {
  const struct launch *launch = warp->block->launch;
  struct who who = who_of(warp, launch->first_time, launch->first_time);
  for (unsigned done = 0; done < bytes;) {
    const unsigned left = PAGE - (unsigned)((address + done) % PAGE), part = bytes - done < left ? bytes - done : left;
    const struct touch *t = touches_of(address + done);
    bool is_new = false;
    for (unsigned i = 0; i < part; i++) {
      const int of_lane = lane + (int)((done + i) / each);
      who.own = thread_of(warp, of_lane);
      is_new |= t[i].write < who.oldest && (access != READS || t[i].read < who.oldest);
      if (t[i].write >= who.oldest && !touch_follows_write(&t[i], &who, access))
        clash(warp, of, of_lane, address + done + i, &t[i], &who, true);
      if (access != READS && t[i].read >= who.oldest && !touch_follows_reads(&t[i], &who, access))
        clash(warp, of, of_lane, address + done + i, &t[i], &who, false);
    }
    if (is_new) first_access(warp, of, lane, address + done, part, access);
    done += part;
  }
}

static void note_row(struct warp *warp, int lane, u64 address, unsigned bytes, unsigned each, enum access access) {
  const struct launch *launch = warp->block->launch;
  struct who who = who_of(warp, launch->first_time, launch->first_time);
  struct touch *t = NULL;
  for (unsigned i = 0; i < bytes; i++) {
    t = t == NULL || (address + i) % PAGE == 0 ? touches_of(address + i) : t + 1;
    who.own = thread_of(warp, lane + (int)(i / each));
    touch_note(t, &who, access);
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
      is_inside |= addresses[i] >= extent->or_from && addresses[i] + bytes <= extent->or_to;
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
                  unsigned bytes, enum access access) {
  check_extents(warp, of, place, addresses, bytes);
  if (warp->active == ALL_LANES && is_row(addresses, bytes)) {
    check_row(warp, of, 0, addresses[0], bytes * LANES, bytes, access);
    note_row(warp, 0, addresses[0], bytes * LANES, bytes, access);
    return;
  }
  /* What lanes of one instruction do to each other is seen where they do it (memory.c). */
  for (int i = 0; i < LANES; i++)
    if (warp->active >> i & 1) check_row(warp, of, i, addresses[i], bytes, bytes, access);
  for (int i = 0; i < LANES; i++)
    if (warp->active >> i & 1) note_row(warp, i, addresses[i], bytes, bytes, access);
}

/* ---- Shared memory: each 2 bytes have their touch ---- */

enum { CELL = 2 };

static void check_cell(struct warp *warp, const struct instruction *of, int lane, u64 at, const struct who *who,
                       enum access access) {
  const struct touch *cell = &warp->block->cells[at];
  const unsigned long long where = at * CELL;
  if (access != WRITES && cell->write < who->begin)
    wrong(warp, of, lane, "shared memory at %llu, which was never written", where);
  const unsigned writer = cell->writer & ~(unsigned)BY_ATOMICS;
  if (!touch_follows_write(cell, who, access)) {
    if (writer >= SEVERAL_OF_WARP)
      wrong(warp, of, lane, "a race: shared memory at %llu, which other threads write with no barrier between them",
            where);
    wrong(warp, of, lane, "a race: shared memory at %llu, which thread %u writes with no barrier between them", where,
          writer - 1);
  }
  if (!touch_follows_reads(cell, who, access))
    wrong(warp, of, lane, "a race: shared memory at %llu, which another thread reads with no barrier between them",
          where);
}

void check_shared(struct warp *warp, const struct instruction *of, const u64 *addresses, unsigned bytes,
                  enum access access) {
  const struct block *block = warp->block;
  struct who who = who_of(warp, 0, block->begin);
  for (int i = 0; i < LANES; i++) {
    if (!(warp->active >> i & 1)) continue;
    if (addresses[i] + bytes > block->launch->shared_bytes || addresses[i] + bytes < bytes)
      wrong(warp, of, i, "byte %lld of the block's shared memory of %zu", (long long)addresses[i],
            block->launch->shared_bytes);
    who.own = thread_of(warp, i);
    for (u64 at = addresses[i] / CELL; at <= (addresses[i] + bytes - 1) / CELL; at++)
      check_cell(warp, of, i, at, &who, access);
  }
  for (int i = 0; i < LANES; i++) {
    if (!(warp->active >> i & 1)) continue;
    who.own = thread_of(warp, i);
    for (u64 at = addresses[i] / CELL; at <= (addresses[i] + bytes - 1) / CELL; at++)
      touch_note(&block->cells[at], &who, access);
  }
}

void check_arrays(const struct warp *warp, const struct instruction *of, const struct place *place,
                  const u64 *addresses, unsigned bytes) {
  const struct launch *launch = warp->block->launch;
  if (place->arrays == 0 || (place->arrays & FROM_ELSEWHERE) != 0) return;
  for (int i = 0; i < LANES; i++) {
    const struct variable *array = NULL;
    bool is_inside = (warp->active >> i & 1) == 0;
    for (u64 left = place->arrays; left != 0 && !is_inside; left &= left - 1) {
      array = &launch->kernel->arrays.items[__builtin_ctzll(left)];
      const u64 end = array->bytes > 0 ? array->address + array->bytes : launch->shared_bytes;
      is_inside = addresses[i] >= array->address && addresses[i] + bytes <= end;
    }
    if (!is_inside)
      wrong(warp, of, i, "byte %lld of the block's array %s of %zu", (long long)(addresses[i] - array->address),
            array->name, array->bytes);
  }
}

/* ---- A thread's own memory ---- */

void check_local(struct warp *warp, const struct instruction *of, const u64 *addresses, unsigned bytes,
                 enum access access) {
  const bool writes = access == WRITES;
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
