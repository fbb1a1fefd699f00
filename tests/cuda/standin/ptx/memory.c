/* Loads, stores, atomic operations and asynchronous copies (PTX ISA, 9.7.9, 9.7.13). */
#include <stdlib.h>

#include "tests/cuda/standin/core.h"
#include "tests/cuda/standin/ptx/checks.h"
#include "tests/cuda/standin/ptx/counts.h"
#include "tests/cuda/standin/ptx/lanes.h"

/* ---- Addresses ---- */

void addresses_of(const struct warp *warp, const struct instruction *of, const struct place *place, u64 *made) {
  const char *base = warp->registers + of->from[place->operand].at;
  u32 shorts[LANES];
  if (place->is_short)
    memcpy(shorts, base, sizeof shorts);
  else
    memcpy(made, base, LANES * sizeof *made);
  for (int i = 0; i < LANES; i++) made[i] = (place->is_short ? shorts[i] : made[i]) + (u64)place->offset;
}

/* Makes generic addresses those of the space that the first lane's is of; `lanes` becomes the lanes of this space. */
static enum space resolve(u64 *addresses, u32 *lanes) {
  const u64 window = addresses[__builtin_ctz(*lanes)] & ~(SHARED_WINDOW - 1);
  for (int i = 0; i < LANES; i++)
    if ((*lanes >> i & 1) != 0 && (addresses[i] & ~(SHARED_WINDOW - 1)) != window) *lanes &= ~(UINT32_C(1) << i);
  for (int i = 0; i < LANES; i++) addresses[i] -= window;
  if (window == SHARED_WINDOW) return SHARED;
  return window == LOCAL_WINDOW ? LOCAL : GLOBAL;
}

static void require_alignment(struct warp *warp, const struct instruction *of, const u64 *addresses, unsigned bytes) {
  for (int i = 0; i < LANES; i++)
    if ((warp->active >> i & 1) != 0 && addresses[i] % bytes != 0)
      wrong(warp, of, i, "an address that is not a multiple of %u: ...%03llx", bytes,
            (unsigned long long)addresses[i] & 0xfff);
}

/* Where the active lanes' memory is, when all of it may be touched. */
static void locate(struct warp *warp, const struct instruction *of, const struct place *place, enum space space,
                   const u64 *addresses, enum access access, char **found) {
  const unsigned bytes = (unsigned)of->bytes * of->vector;
  char *const base = space == SHARED      ? warp->block->shared
                     : space == PARAMETER ? (char *)(uintptr_t)warp->block->launch->parameters
                                          : NULL;
  require_alignment(warp, of, addresses, bytes);
  counts_access(warp, of, space, addresses, bytes);
  if (space == SHARED) check_shared(warp, of, addresses, bytes, access);
  if (space == SHARED) check_arrays(warp, of, place, addresses, bytes);
  for (int i = 0; i < LANES && space == PARAMETER; i++)
    if ((warp->active >> i & 1) != 0 && addresses[i] + bytes > warp->block->launch->kernel->parameter_bytes)
      wrong(warp, of, i, "byte %llu of the parameters", (unsigned long long)addresses[i]);
  if (space == LOCAL) check_local(warp, of, addresses, bytes, access);
  if (space == GLOBAL || space == CONSTANT) check_global(warp, of, place, addresses, bytes, access);
  for (int i = 0; i < LANES; i++) {
    found[i] = base + addresses[i];
    if (space == LOCAL) found[i] = warp->local + (size_t)i * warp->block->launch->kernel->local_bytes + addresses[i];
    if (space == GLOBAL || space == CONSTANT) found[i] = (char *)(uintptr_t)addresses[i];
  }
}

/* ---- Loads and stores ---- */

#define READ(bits)                                                                                                     \
  static void read_##bits(u32 active, char *const *from, size_t offset, u64 *made) {                                   \
    for (int i = 0; i < LANES; i++) {                                                                                  \
      u##bits x = 0;                                                                                                   \
      if (active >> i & 1) memcpy(&x, from[i] + offset, sizeof x);                                                     \
      made[i] = x;                                                                                                     \
    }                                                                                                                  \
  }
typedef uint8_t u8;
READ(8)
READ(16)
READ(32)
READ(64)

static void read_element(const struct warp *warp, const struct instruction *of, char *const *from, unsigned element,
                         u64 *made) {
  const size_t offset = (size_t)element * of->bytes;
  if (of->bytes == 1) read_8(warp->active, from, offset, made);
  if (of->bytes == 2) read_16(warp->active, from, offset, made);
  if (of->bytes == 4) read_32(warp->active, from, offset, made);
  if (of->bytes == 8) read_64(warp->active, from, offset, made);
  if (!of->is_signed || of->bytes == 8) return;
  const unsigned above = 64 - 8u * of->bytes;
  for (int i = 0; i < LANES; i++) made[i] = (u64)((s64)(made[i] << above) >> above);
}

static void load(struct warp *warp, const struct instruction *of, enum space space, const u64 *addresses) {
  char *from[LANES];
  u64 made[LANES];
  locate(warp, of, &of->places[0], space, addresses, READS, from);
  for (unsigned e = 0; e < of->vector; e++) {
    u32 narrow[LANES];
    u16 narrowest[LANES];
    read_element(warp, of, from, e, made);
    for (int i = 0; i < LANES; i++) narrow[i] = (u32)made[i], narrowest[i] = (u16)made[i];
    const unsigned bytes = of->to_bytes[e];
    keep_lanes(warp, of->to[e], bytes == 8 ? (const void *)made : bytes == 4 ? (const void *)narrow : narrowest, bytes);
  }
}

/* Whether the lanes' addresses go up by what each of them stores, or more: most do. */
static bool are_separate(const struct warp *warp, const u64 *addresses, unsigned bytes) {
  u64 end = 0;
  for (int i = 0; i < LANES; i++) {
    if (!(warp->active >> i & 1)) continue;
    if (addresses[i] < end) return false;
    end = addresses[i] + bytes;
  }
  return true;
}

/* Of lanes that store to one address at once, a GPU lets any be the last: they store the same. */
static void require_same(struct warp *warp, const struct instruction *of, const u64 *addresses) {
  if (are_separate(warp, addresses, (unsigned)of->bytes * of->vector)) return;
  for (int i = 1; i < LANES; i++)
    for (int l = 0; l < i; l++) {
      if ((warp->active >> i & warp->active >> l & 1) == 0 || addresses[i] != addresses[l]) continue;
      for (int e = 1; e < of->n_from; e++) {
        const char *from = from_of(warp, of, e);
        const size_t bytes = of->from_bytes[e];
        if (memcmp(from + (size_t)i * bytes, from + (size_t)l * bytes, of->bytes) != 0)
          wrong(warp, of, i, "a race: lane %d stores another value to the same address", l);
      }
    }
}

static void store(struct warp *warp, const struct instruction *of, enum space space, const u64 *addresses) {
  char *to[LANES];
  locate(warp, of, &of->places[0], space, addresses, WRITES, to);
  if (space != LOCAL) require_same(warp, of, addresses);
  for (unsigned e = 0; e < of->vector; e++) {
    const char *from = from_of(warp, of, (int)e + 1);
    for (int i = 0; i < LANES; i++)
      if (warp->active >> i & 1)
        memcpy(to[i] + (size_t)e * of->bytes, from + (size_t)i * of->from_bytes[e + 1], of->bytes);
  }
}

/* ---- Atomic operations, of integers: their lanes one after the other ---- */

enum operation { ADD, LEAST, MOST, LEAST_SIGNED, MOST_SIGNED, AND, OR, XOR, EXCHANGE, COMPARE };

static u64 updated(enum operation operation, unsigned bytes, u64 old, u64 b, u64 c) {
  const unsigned above = 64 - 8 * bytes;
  const s64 left = (s64)(old << above), right = (s64)(b << above);
  if (operation == ADD) return old + b;
  if (operation == LEAST) return b < old ? b : old;
  if (operation == MOST) return b > old ? b : old;
  if (operation == LEAST_SIGNED) return right < left ? b : old;
  if (operation == MOST_SIGNED) return right > left ? b : old;
  if (operation == AND) return old & b;
  if (operation == OR) return old | b;
  if (operation == XOR) return old ^ b;
  return operation == EXCHANGE || old == b ? (operation == EXCHANGE ? b : c) : old;
}

static void update(struct warp *warp, const struct instruction *of, enum space space, const u64 *addresses) {
  char *at[LANES];
  u64 before[LANES] = {0};
  u32 narrow[LANES];
  locate(warp, of, &of->places[0], space, addresses, UPDATES, at);
  for (unsigned i = 0; i < LANES; i++) {
    if (!(warp->active >> i & 1)) continue;
    u64 b = 0, c = 0;
    memcpy(&before[i], at[i], of->bytes);
    memcpy(&b, (const char *)from_of(warp, of, 1) + i * of->bytes, of->bytes);
    if (of->kind == COMPARE) memcpy(&c, (const char *)from_of(warp, of, 2) + i * of->bytes, of->bytes);
    const u64 made = updated((enum operation)of->kind, of->bytes, before[i], b, c);
    memcpy(at[i], &made, of->bytes);
  }
  for (int i = 0; i < LANES; i++) narrow[i] = (u32)before[i];
  if (of->has_result) keep_lanes(warp, of->to[0], of->bytes == 8 ? (const void *)before : narrow, of->bytes);
}

typedef void access_run(struct warp *warp, const struct instruction *of, enum space space, const u64 *addresses);

/* Generic addresses of several spaces take a turn each. */
static void by_space(struct warp *warp, const struct instruction *of, access_run *run) {
  u64 addresses[LANES];
  const struct place *place = &of->places[0];
  addresses_of(warp, of, place, addresses);
  if (place->space != GENERIC) {
    run(warp, of, place->space, addresses);
    return;
  }
  const u32 all = warp->active;
  for (u32 left = all; left != 0; left &= ~warp->active) {
    u64 own[LANES];
    memcpy(own, addresses, sizeof own);
    warp->active = left;
    const enum space space = resolve(own, &warp->active);
    run(warp, of, space, own);
  }
  warp->active = all;
}

static void run_load(struct warp *warp, const struct instruction *of) {
  by_space(warp, of, load);
}

static void run_store(struct warp *warp, const struct instruction *of) {
  by_space(warp, of, store);
}

static void run_update(struct warp *warp, const struct instruction *of) {
  by_space(warp, of, update);
}

/* ---- Asynchronous copies (9.7.9.25.3): nothing of one is there before its lane has waited for it ---- */

static void run_copy(struct warp *warp, const struct instruction *of) {
  u64 to[LANES], from[LANES];
  u32 size[LANES], filled[LANES];
  memcpy(size, from_of(warp, of, 2), sizeof size);
  memcpy(filled, from_of(warp, of, of->n_from > 3 ? 3 : 2), sizeof filled);
  addresses_of(warp, of, &of->places[0], to);
  addresses_of(warp, of, &of->places[1], from);
  const unsigned bytes = size[__builtin_ctz(warp->active)];
  if (bytes != 4 && bytes != 8 && bytes != 16) wrong(warp, of, -1, "a copy of %u bytes", bytes);
  require_alignment(warp, of, to, bytes);
  require_alignment(warp, of, from, bytes);
  check_arrays(warp, of, &of->places[0], to, bytes);
  const u32 all = warp->active;
  for (int i = 0; i < LANES; i++)
    if (filled[i] == 0) warp->active &= ~(UINT32_C(1) << i); /* zeros: nothing is read */
  counts_access(warp, of, GLOBAL, from, bytes);
  if (warp->active != 0) check_global(warp, of, &of->places[1], from, bytes, READS);
  warp->active = all;
  for (unsigned i = 0; i < LANES; i++) {
    if (!(all >> i & 1)) continue;
    if (warp->n_copying == warp->copying_capacity) {
      warp->copying_capacity = 2 * warp->copying_capacity + 256;
      warp->copying = realloc(warp->copying, warp->copying_capacity * sizeof *warp->copying);
      if (warp->copying == NULL) fault("no memory");
    }
    struct copying *copying = &warp->copying[warp->n_copying++];
    *copying = (struct copying){.to = (u32)to[i], .size = (unsigned char)bytes, .lane = (unsigned char)i, .of = of};
    memcpy(copying->bytes, (const char *)(uintptr_t)from[i], filled[i] < bytes ? filled[i] : bytes);
  }
}

static void run_commit(struct warp *warp, const struct instruction *of) {
  (void)of;
  warp->copy_groups++;
  for (unsigned i = 0; i < warp->n_copying; i++) {
    struct copying *copying = &warp->copying[i];
    if (copying->group == 0 && (warp->active >> copying->lane & 1) != 0) copying->group = warp->copy_groups;
  }
}

static void finish(struct warp *warp, const struct copying *copying) {
  const u32 all = warp->active;
  u64 to[LANES];
  for (int i = 0; i < LANES; i++) to[i] = copying->to;
  warp->active = UINT32_C(1) << copying->lane;
  check_shared(warp, copying->of, to, copying->size, WRITES);
  memcpy(warp->block->shared + copying->to, copying->bytes, copying->size);
  warp->active = all;
}

/* All but the last `left` groups; of cp.async.wait_all also what is in none. */
static void wait_copies(struct warp *warp, u32 left, bool ungrouped) {
  unsigned kept = 0;
  for (unsigned i = 0; i < warp->n_copying; i++) {
    const struct copying copying = warp->copying[i];
    const bool is_done = copying.group == 0 ? ungrouped : copying.group + left <= warp->copy_groups;
    if (is_done && (warp->active >> copying.lane & 1) != 0)
      finish(warp, &copying);
    else
      warp->copying[kept++] = copying;
  }
  warp->n_copying = kept;
}

static void run_wait_group(struct warp *warp, const struct instruction *of) {
  u32 left[LANES];
  memcpy(left, from_of(warp, of, 0), sizeof left);
  wait_copies(warp, left[0], false);
}

static void run_wait_all(struct warp *warp, const struct instruction *of) {
  (void)of;
  wait_copies(warp, 0, true);
}

/* ---- Names ---- */

static bool decode_copy(const char *name, struct instruction *into) {
  into->bytes = 4;
  if (strcmp(name, "cp.async.commit_group") == 0) {
    into->run = run_commit;
  } else if (strcmp(name, "cp.async.wait_all") == 0) {
    into->run = run_wait_all;
  } else if (strcmp(name, "cp.async.wait_group") == 0) {
    into->run = run_wait_group;
  } else if (strncmp(name, "cp.async.ca.shared.global", 25) == 0 ||
             strncmp(name, "cp.async.cg.shared.global", 25) == 0) {
    into->run = run_copy;
    into->places[0].space = SHARED;
    into->places[1].space = GLOBAL;
  } else {
    return false;
  }
  return true;
}

static bool take_space(const char *word, size_t length, struct instruction *into) {
  static const struct {
    const char *word;
    enum space space;
  } spaces[] = {{"global", GLOBAL},  {"shared", SHARED},   {"local", LOCAL},
                {"const", CONSTANT}, {"param", PARAMETER}, {"shared::cta", SHARED}};
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
    if (strlen(spaces[i].word) == length && strncmp(spaces[i].word, word, length) == 0) {
      into->places[0].space = spaces[i].space;
      return true;
    }
  return false;
}

/* One word between dots: a space, a length, a type; how caches are used says nothing here. */
static bool take_word(const char *word, size_t length, struct instruction *into, bool *is_typed) {
  static const char *const hints[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "volatile", "weak"};
  if (take_space(word, length, into)) return true;
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (strlen(hints[i]) == length && strncmp(hints[i], word, length) == 0) return true;
  if (length > 4 && word[0] == 'L' && word[2] == ':') return true; /* L1::, L2:: */
  if (length == 2 && strncmp(word, "nc", 2) == 0) return into->is_constant = true;
  if (length == 2 && word[0] == 'v' && strchr("248", word[1]) != NULL) {
    into->vector = (unsigned char)(word[1] - '0');
    return true;
  }
  if (strchr("busf", word[0]) == NULL) return false;
  const int bits = atoi(word + 1);
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return false;
  into->bytes = (unsigned char)(bits / 8);
  into->is_signed = word[0] == 's';
  *is_typed = true;
  return true;
}

static bool take_operation(const char *word, size_t length, struct instruction *into) {
  static const char *const words[] = {"add", "min", "max", NULL, NULL, "and", "or", "xor", "exch", "cas"};
  for (int i = 0; i < (int)(sizeof words / sizeof *words); i++)
    if (words[i] != NULL && strlen(words[i]) == length && strncmp(words[i], word, length) == 0) {
      into->kind = i;
      return true;
    }
  return false;
}

/* atom.relaxed.gpu.global.add.u32, red.shared.add.u64: which memory others see when says nothing here. */
static bool decode_atomic(const char *name, struct instruction *into) {
  static const char *const types[] = {"u32", "u64", "s32", "s64", "b32", "b64"};
  static const char *const hints[] = {"relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys"};
  struct instruction made = *into;
  made.vector = 1;
  made.has_result = name[0] == 'a';
  made.run = run_update;
  made.kind = -1;
  for (const char *at = strchr(name, '.') + 1;;) {
    const size_t length = strcspn(at, ".");
    bool is_hint = false;
    if (at[length] == '\0') {
      for (size_t i = 0; i < sizeof types / sizeof *types && made.bytes == 0; i++)
        if (strcmp(types[i], at) == 0) made.bytes = types[i][1] == '3' ? 4 : 8;
      if (at[0] == 's' && (made.kind == LEAST || made.kind == MOST)) made.kind += LEAST_SIGNED - LEAST;
      break;
    }
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
      is_hint |= strlen(hints[i]) == length && strncmp(hints[i], at, length) == 0;
    if (!is_hint && !take_space(at, length, &made) && !take_operation(at, length, &made)) return false;
    at += length + 1;
  }
  if (made.bytes == 0 || made.kind < 0) return false;
  *into = made;
  return true;
}

bool decode_memory(const char *name, struct instruction *into) {
  if (strncmp(name, "cp.async.", 9) == 0) return decode_copy(name, into);
  if (strncmp(name, "atom.", 5) == 0 || strncmp(name, "red.", 4) == 0) return decode_atomic(name, into);
  if (strncmp(name, "ld.", 3) != 0 && strncmp(name, "st.", 3) != 0) return false;
  bool is_typed = false;
  struct instruction made = *into;
  made.vector = 1;
  made.has_result = name[0] == 'l';
  made.run = name[0] == 'l' ? run_load : run_store;
  for (const char *at = name + 3; *at != '\0';) {
    const size_t length = strcspn(at, ".");
    if (is_typed || !take_word(at, length, &made, &is_typed)) return false;
    at += length + (at[length] == '.');
  }
  if (is_typed) *into = made;
  return is_typed;
}
