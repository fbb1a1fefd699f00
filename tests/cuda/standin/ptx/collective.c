/* What lanes do together: barriers (PTX ISA, 9.7.13), shuffles (9.7.9.6), votes, matches, reductions. */
#include "tests/cuda/standin/ptx/checks.h"
#include "tests/cuda/standin/ptx/lanes.h"

enum kind {
  SHUFFLE_UP,
  SHUFFLE_DOWN,
  SHUFFLE_BFLY,
  SHUFFLE_IDX,
  VOTE_ALL,
  VOTE_ANY,
  VOTE_UNI,
  VOTE_BALLOT,
  WARP_BARRIER,
  BARRIER,
  BARRIER_POPC,
  BARRIER_AND,
  BARRIER_OR,
  MATCH_ANY,
  REDUX_ADD,
  REDUX_MIN,
  REDUX_MAX,
  REDUX_MIN_SIGNED,
  REDUX_MAX_SIGNED,
  REDUX_AND,
  REDUX_OR,
  REDUX_XOR,
  MATRIX, /* of all lanes */
  ACTIVE_MASK
};

static const struct {
  const char *name;
  enum kind kind;
  bool has_result;
  signed char mask; /* the operand that names the lanes; -1: none does */
} names[] = {{"shfl.sync.up.b32", SHUFFLE_UP, true, 3},         {"shfl.sync.down.b32", SHUFFLE_DOWN, true, 3},
             {"shfl.sync.bfly.b32", SHUFFLE_BFLY, true, 3},     {"shfl.sync.idx.b32", SHUFFLE_IDX, true, 3},
             {"vote.sync.all.pred", VOTE_ALL, true, 1},         {"vote.sync.any.pred", VOTE_ANY, true, 1},
             {"vote.sync.uni.pred", VOTE_UNI, true, 1},         {"vote.sync.ballot.b32", VOTE_BALLOT, true, 1},
             {"bar.warp.sync", WARP_BARRIER, false, 0},         {"bar.sync", BARRIER, false, -1},
             {"barrier.sync.aligned", BARRIER, false, -1},      {"bar.red.popc.u32", BARRIER_POPC, true, -1},
             {"bar.red.and.pred", BARRIER_AND, true, -1},       {"bar.red.or.pred", BARRIER_OR, true, -1},
             {"match.any.sync.b32", MATCH_ANY, true, 1},        {"redux.sync.add.u32", REDUX_ADD, true, 1},
             {"redux.sync.add.s32", REDUX_ADD, true, 1},        {"redux.sync.min.u32", REDUX_MIN, true, 1},
             {"redux.sync.max.u32", REDUX_MAX, true, 1},        {"redux.sync.min.s32", REDUX_MIN_SIGNED, true, 1},
             {"redux.sync.max.s32", REDUX_MAX_SIGNED, true, 1}, {"redux.sync.and.b32", REDUX_AND, true, 1},
             {"redux.sync.or.b32", REDUX_OR, true, 1},          {"redux.sync.xor.b32", REDUX_XOR, true, 1},
             {"activemask.b32", ACTIVE_MASK, true, -1}};

bool decode_collective(const char *name, struct instruction *into) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(names[i].name, name) != 0) continue;
    into->kind = (int)i;
    into->bytes = 4;
    into->has_result = names[i].has_result;
    into->flow = TOGETHER;
    return true;
  }
  return false;
}

static enum kind kind_of(const struct instruction *of) {
  return of->kind < 0 ? MATRIX : names[of->kind].kind;
}

bool collective_is_barrier(const struct instruction *of) {
  const enum kind kind = kind_of(of);
  return kind >= BARRIER && kind <= BARRIER_OR;
}

/* The value of an operand, which all active lanes give alike. */
static u32 same_value(const struct warp *warp, const struct instruction *of, int operand) {
  GIVEN(u32, a, operand)
  const u32 value = as[__builtin_ctz(warp->active)];
  for (int i = 0; i < LANES; i++)
    if ((warp->active >> i & 1) != 0 && as[i] != value)
      wrong(warp, of, i, "lanes with the masks %08x and %08x", value, as[i]);
  return value;
}

u32 collective_lanes(const struct warp *warp, const struct instruction *of) {
  const enum kind kind = kind_of(of);
  if (kind == ACTIVE_MASK) return warp->active;
  if (kind == MATRIX) return warp->exists;
  if (collective_is_barrier(of)) return warp->alive;
  return same_value(warp, of, names[of->kind].mask);
}

/* ---- Shuffles ---- */

/* The lane that one reads, by the table of 9.7.9.6; *inside: it is of its segment. */
static int lane_read(enum kind kind, int lane, u32 b, u32 c, bool *inside) {
  const int by = b & 31, mask = c >> 8 & 31, last = (lane & mask) | ((int)(c & 31) & ~mask);
  int from = lane;
  if (kind == SHUFFLE_UP) {
    from = lane - by;
    *inside = from >= last;
  } else {
    if (kind == SHUFFLE_DOWN) from = lane + by;
    if (kind == SHUFFLE_BFLY) from = lane ^ by;
    if (kind == SHUFFLE_IDX) from = (lane & mask) | (by & ~mask);
    *inside = from <= last;
  }
  return *inside ? from : lane;
}

static void shuffle(struct warp *warp, const struct instruction *of, enum kind kind) {
  u32 made[LANES] = {0}, inside = 0;
  GIVEN(u32, a, 0)
  GIVEN(u32, b, 1)
  GIVEN(u32, c, 2)
  for (int i = 0; i < LANES; i++) {
    if (!(warp->active >> i & 1)) continue;
    bool is_inside;
    const int from = lane_read(kind, i, bs[i], cs[i], &is_inside);
    if (!(warp->active >> from & 1)) wrong(warp, of, i, "the value of lane %d, which does not take part", from);
    made[i] = as[from];
    inside |= (u32)is_inside << i;
  }
  keep_32(warp, of->to[0], made);
  if (of->n_to > 1) keep_predicate(warp, of->to[1], inside);
}

/* ---- Votes, reductions ---- */

static void vote(struct warp *warp, const struct instruction *of, enum kind kind) {
  const u32 yes = predicate(warp, of->from[0]) & warp->active;
  u32 all[LANES];
  for (int i = 0; i < LANES; i++) all[i] = yes;
  if (kind == VOTE_BALLOT) {
    keep_32(warp, of->to[0], all);
    return;
  }
  const bool is_so = kind == VOTE_ALL   ? yes == warp->active
                     : kind == VOTE_ANY ? yes != 0
                                        : yes == 0 || yes == warp->active;
  keep_predicate(warp, of->to[0], is_so ? ALL_LANES : 0);
}

static void match(struct warp *warp, const struct instruction *of) {
  u32 made[LANES] = {0};
  GIVEN(u32, a, 0)
  for (int i = 0; i < LANES; i++)
    for (int l = 0; l < LANES; l++)
      if ((warp->active >> l & 1) != 0 && as[l] == as[i]) made[i] |= UINT32_C(1) << l;
  keep_32(warp, of->to[0], made);
}

static u32 reduced(enum kind kind, u32 a, u32 b) {
  if (kind == REDUX_ADD) return a + b;
  if (kind == REDUX_MIN) return a < b ? a : b;
  if (kind == REDUX_MAX) return a > b ? a : b;
  if (kind == REDUX_MIN_SIGNED) return (s32)a < (s32)b ? a : b;
  if (kind == REDUX_MAX_SIGNED) return (s32)a > (s32)b ? a : b;
  return kind == REDUX_AND ? a & b : kind == REDUX_OR ? a | b : a ^ b;
}

static void reduce(struct warp *warp, const struct instruction *of, enum kind kind) {
  u32 made[LANES];
  GIVEN(u32, a, 0)
  const int first = __builtin_ctz(warp->active);
  u32 all = as[first];
  for (int i = first + 1; i < LANES; i++)
    if (warp->active >> i & 1) all = reduced(kind, all, as[i]);
  for (int i = 0; i < LANES; i++) made[i] = all;
  keep_32(warp, of->to[0], made);
}

void collective_run(struct warp *warp, const struct instruction *of) {
  const enum kind kind = kind_of(of);
  if (kind == MATRIX) {
    of->run(warp, of);
  } else if (kind <= SHUFFLE_IDX) {
    shuffle(warp, of, kind);
  } else if (kind <= VOTE_BALLOT) {
    vote(warp, of, kind);
  } else if (kind == WARP_BARRIER) {
    warp->time++;
  } else if (kind == MATCH_ANY) {
    match(warp, of);
  } else if (kind == ACTIVE_MASK) {
    u32 made[LANES];
    for (int i = 0; i < LANES; i++) made[i] = warp->active;
    keep_32(warp, of->to[0], made);
  } else {
    reduce(warp, of, kind);
  }
}

/* ---- Barriers of a block ---- */

void barrier_arrive(struct warp *warp, const struct instruction *of) {
  const bool reduces = kind_of(of) != BARRIER;
  const int sources = of->n_from - reduces;
  warp->is_at_barrier = true;
  warp->barrier = same_value(warp, of, 0);
  warp->barrier_count = sources > 1 ? same_value(warp, of, 1) : 0;
  warp->vote = reduces ? predicate(warp, of->from[sources]) & warp->active : 0;
  if (warp->barrier >= BARRIERS) wrong(warp, of, -1, "barrier %u of %d", warp->barrier, BARRIERS);
  if (warp->barrier_count % LANES != 0) wrong(warp, of, -1, "a barrier of %u threads", warp->barrier_count);
}

void barrier_leave(struct warp *warp, const struct instruction *of, u32 count, u32 voted) {
  const enum kind kind = kind_of(of);
  u32 counts[LANES];
  for (int i = 0; i < LANES; i++) counts[i] = voted;
  if (kind == BARRIER_POPC) keep_32(warp, of->to[0], counts);
  if (kind == BARRIER_AND) keep_predicate(warp, of->to[0], voted == count ? ALL_LANES : 0);
  if (kind == BARRIER_OR) keep_predicate(warp, of->to[0], voted > 0 ? ALL_LANES : 0);
  warp->is_at_barrier = false;
  warp->time++;
}
