#include "gen/verify/keys.h"

#include <ctype.h>
#include <string.h>

#include "gen/verify/tape/tape.h"

struct frame;

/* What is in a function, in its order: a call of one with parameters, a draw, or another operation. Its id is the
 * number of an event of the trace. */
struct item {
  enum { ITEM_OTHER, ITEM_CALL, ITEM_DRAW } kind;
  int64_t id, from, to;        /* its events */
  uint64_t like;               /* equal for those of the same operation over the same shapes */
  int64_t count;               /* iterations of a call */
  const struct frame **frames; /* [count] of a call */
  int64_t draw;                /* of a draw */
};

/* A loop: the events at which its passes begin, and its end. */
struct loop {
  int64_t *passes;
  int count, capacity;
  int64_t number, end;
};

/* A function with parameters, as it ran once. */
struct frame {
  struct {
    struct item *items;
    int count, capacity;
  } list;
  struct {
    struct loop *items;
    int count, capacity;
  } loops;
  bool has_parameters;
};

struct keys {
  struct arena *arena;
  const struct trace *trace;
  int64_t at;      /* the next event */
  uint64_t *whole; /* [events] of tensors: what they are made by, but for their operands; 0: not known so far */
  struct draw *draws;
  const char *reason;
};

/* ---- What is alike ---- */

static uint64_t mixed(uint64_t hash, uint64_t with) {
  hash = (hash ^ with) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

static uint64_t mixed_bytes(uint64_t hash, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 0x100000001B3u;
  return hash;
}

/* A name but for its numbers: "h.#.attn.weight". */
static uint64_t mixed_name(uint64_t hash, const char *name) {
  for (; *name != '\0'; name++)
    if (!isdigit((unsigned char)*name) || !isdigit((unsigned char)name[1]))
      hash = mixed(hash, isdigit((unsigned char)*name) ? '#' : (unsigned char)*name);
  return hash;
}

static uint64_t shape_of(const struct reading_tensor *tensor) {
  const uint64_t start = (uint64_t)(tensor->rank + 1) * 4 + (uint64_t)tensor->whole * 2 + (uint64_t)tensor->varies;
  return mixed_bytes(start, tensor->dim, (size_t)tensor->rank * sizeof *tensor->dim);
}

/* The operation and its shapes. */
static uint64_t likeness(const struct reading_tensor *tensor) {
  uint64_t hash = mixed_bytes(shape_of(tensor), &tensor->rule, sizeof(void *));
  hash = mixed_bytes(hash, &tensor->backward, sizeof tensor->backward);
  for (int i = 0; i < MOST_OPERANDS && tensor->of[i] != NULL; i++) hash = mixed(hash, shape_of(tensor->of[i]));
  return hash;
}

/* All but its operands. */
static uint64_t made_by(struct keys *keys, int64_t event) {
  const struct reading_tensor *tensor = keys->trace->items[event].tensor;
  uint64_t *hash = &keys->whole[event];
  if (*hash != 0) return *hash;
  *hash = mixed_bytes(likeness(tensor), tensor->numbers, sizeof tensor->numbers);
  const struct stored *stored = tensor->stored;
  if (stored != NULL)
    *hash = mixed_bytes(
        mixed_bytes(mixed_name(mixed(*hash, (uint64_t)stored->start), stored->name), &stored->a, sizeof stored->a),
        &stored->b, sizeof stored->b);
  return *hash;
}

/* The tensors from outside that the events from `from` up to `to` take, in the order in which they do. */
struct taken {
  const struct reading_tensor **items;
  int count, capacity;
};

static int taken_as(struct arena *arena, struct taken *taken, const struct reading_tensor *tensor) {
  for (int i = 0; i < taken->count; i++)
    if (taken->items[i] == tensor) return i;
  ARENA_PUSH(arena, *taken, tensor);
  return taken->count - 1;
}

/* What the events do, and in *taken over what: equal for those that do the same over tensors of the same shapes. */
static uint64_t doing(struct keys *keys, int64_t from, int64_t to, struct taken *taken) {
  uint64_t hash = 1;
  for (int64_t i = from; i < to; i++) {
    const struct trace_event *event = &keys->trace->items[i];
    if (event->kind == TRACE_LOOP || event->kind == TRACE_PASS || event->kind == TRACE_END) continue;
    hash = mixed(hash, (uint64_t)event->kind);
    hash = mixed_bytes(hash, &event->function, sizeof event->function);
    hash = mixed_bytes(hash, &event->of, sizeof event->of);
    if (event->kind == TRACE_ARGUMENT) hash = mixed(hash, (uint64_t)event->number);
    if (event->tensor == NULL) continue;
    hash = mixed(hash, made_by(keys, i));
    for (int k = 0; k < MOST_OPERANDS && event->tensor->of[k] != NULL; k++) {
      const struct reading_tensor *operand = event->tensor->of[k];
      const bool inside = operand->order >= from;
      const int64_t place = inside ? operand->order - from : -1 - taken_as(keys->arena, taken, operand);
      hash = mixed(mixed(hash, (uint64_t)place), inside ? 0 : shape_of(operand));
    }
  }
  return hash;
}

/* ---- Loops ---- */

static int64_t end_of(const struct loop *loop, int pass) {
  return pass + 1 < loop->count ? loop->passes[pass + 1] : loop->end;
}

/* Item number `n` of a pass; NULL: it has none. */
static const struct item *item_of(const struct frame *frame, const struct loop *loop, int pass, int n) {
  for (int i = 0; i < frame->list.count; i++) {
    const struct item *item = &frame->list.items[i];
    if (item->id >= loop->passes[pass] && item->id < end_of(loop, pass) && n-- == 0) return item;
  }
  return NULL;
}

static bool passes_alike(const struct frame *frame, const struct loop *loop, int i, int k) {
  for (int n = 0;; n++) {
    const struct item *a = item_of(frame, loop, i, n), *b = item_of(frame, loop, k, n);
    if (a == NULL || b == NULL) return a == b;
    if (a->kind != b->kind || a->like != b->like || a->count != b->count) return false;
  }
}

/* Whether what the events from `from` up to `to` make is taken by events up to `near` alone. */
static bool stays_near(const struct keys *keys, int64_t from, int64_t to, int64_t near) {
  for (int64_t i = near; i < keys->trace->count; i++) {
    const struct reading_tensor *tensor = keys->trace->items[i].tensor;
    for (int k = 0; tensor != NULL && k < MOST_OPERANDS && tensor->of[k] != NULL; k++)
      if (tensor->of[k]->order >= from && tensor->of[k]->order < to) return false;
  }
  return true;
}

/* Whether passes give what they make to the next one alone, and share all else with the first. */
static bool is_chain(struct keys *keys, const struct loop *loop) {
  struct taken first = {0};
  doing(keys, loop->passes[0], end_of(loop, 0), &first);
  for (int i = 0; i + 1 < loop->count; i++) {
    struct taken taken = {0};
    if (!stays_near(keys, loop->passes[i], end_of(loop, i), end_of(loop, i + 1))) return false;
    doing(keys, loop->passes[i + 1], end_of(loop, i + 1), &taken);
    for (int k = 0; k < taken.count; k++) {
      const bool same = k < first.count && taken.items[k] == first.items[k];
      if (!same && taken.items[k]->order < loop->passes[i]) return false;
    }
  }
  return true;
}

/* Whether a pass has parameters of its own, or calls of functions that have some. */
static bool has_parameters(const struct keys *keys, int64_t from, int64_t to) {
  for (int64_t i = from; i < to; i++) {
    const struct reading_tensor *tensor = keys->trace->items[i].tensor;
    if (tensor != NULL && tensor->stored != NULL) return true;
    for (int k = 0; tensor != NULL && k < MOST_OPERANDS && tensor->of[k] != NULL; k++)
      if (tensor->of[k]->stored != NULL) return true;
  }
  return false;
}

/* Takes the items of a pass out of their function, whose call is in their place. */
static void put_call(struct keys *keys, struct frame *frame, const struct loop *loop, int pass) {
  struct frame *body = arena_alloc(keys->arena, sizeof *body);
  struct item call = {.kind = ITEM_CALL, .from = loop->passes[pass], .to = end_of(loop, pass), .count = 1};
  int kept = 0;
  for (int i = 0; i < frame->list.count; i++) {
    const struct item item = frame->list.items[i];
    const bool inside = item.id >= call.from && item.id < call.to;
    if (!inside) frame->list.items[kept++] = item;
    if (!inside) continue;
    ARENA_PUSH(keys->arena, body->list, item);
    const struct item *next = i + 1 < frame->list.count ? &frame->list.items[i + 1] : NULL;
    if (next != NULL && next->id < call.to) continue;
    struct taken taken = {0};
    call.id = item.id;
    call.like = doing(keys, call.from, call.to, &taken);
    call.frames = arena_alloc(keys->arena, sizeof *call.frames);
    call.frames[0] = body;
    frame->list.items[kept++] = call;
  }
  frame->list.count = kept;
}

/* Passes of several operations that are the same, but for what comes from outside and for numbers in the names of
 * parameters, are calls of a function of their own. */
static void outline(struct keys *keys, struct frame *frame, const struct loop *loop) {
  struct taken taken = {0};
  const struct item *only = item_of(frame, loop, 0, 0);
  if (only == NULL || !has_parameters(keys, loop->passes[0], end_of(loop, 0))) return;
  if (only->kind == ITEM_CALL && only->count == 1 && item_of(frame, loop, 0, 1) == NULL) return;
  const uint64_t first = doing(keys, loop->passes[0], end_of(loop, 0), &taken);
  for (int i = 0; i < loop->count; i++) {
    struct taken others = {0};
    if (i > 0 && doing(keys, loop->passes[i], end_of(loop, i), &others) != first) return;
    /* A draw of the body's own has another number in each pass. */
    const struct item *item;
    for (int n = 0; (item = item_of(frame, loop, i, n)) != NULL; n++)
      if (item->kind == ITEM_DRAW) return;
  }
  for (int i = 0; i < loop->count; i++) put_call(keys, frame, loop, i);
}

/* Whether what the last call makes for others is what each call makes for the next. */
static bool leaves_carried(const struct keys *keys, const struct item *const *calls, int count,
                           const struct taken *second) {
  const struct item *last = calls[count - 1];
  for (int64_t i = last->to; i < keys->trace->count; i++) {
    const struct reading_tensor *tensor = keys->trace->items[i].tensor;
    for (int k = 0; tensor != NULL && k < MOST_OPERANDS && tensor->of[k] != NULL; k++) {
      const int64_t order = tensor->of[k]->order;
      bool carried = order < last->from || order >= last->to;
      for (int j = 0; j < second->count; j++)
        carried = carried || second->items[j]->order - calls[0]->from == order - last->from;
      if (!carried) return false;
    }
  }
  return true;
}

/* Whether calls in a row are one that is repeated: each takes what the first takes, or what the one before it made; and
 * nothing else takes what they make, but of the last. */
static bool is_repeated(struct keys *keys, const struct item *const *calls, int count) {
  struct taken first = {0}, second = {0};
  if (count < 2) return false;
  doing(keys, calls[0]->from, calls[0]->to, &first);
  doing(keys, calls[1]->from, calls[1]->to, &second);
  if (first.count != second.count) return false;
  bool any = false;
  for (int k = 1; k < count; k++) {
    struct taken taken = {0};
    if (!stays_near(keys, calls[k - 1]->from, calls[k - 1]->to, calls[k]->to)) return false;
    doing(keys, calls[k]->from, calls[k]->to, &taken);
    for (int i = 0; i < first.count; i++) {
      const int64_t carried = second.items[i]->order - calls[0]->from, order = taken.items[i]->order;
      const bool carries = carried >= 0 && second.items[i] != first.items[i];
      any = any || carries;
      if (carries ? order != calls[k - 1]->from + carried : taken.items[i] != first.items[i]) return false;
    }
  }
  return any && leaves_carried(keys, calls, count, &second);
}

static void roll_passes(struct keys *keys, struct frame *frame, const struct loop *loop) {
  const struct item **calls = arena_alloc(keys->arena, (size_t)loop->count * sizeof(struct item *));
  for (int i = 0; i < loop->count; i++) {
    calls[i] = item_of(frame, loop, i, 0);
    if (calls[i] == NULL || calls[i]->kind != ITEM_CALL || calls[i]->count != 1) return;
    if (item_of(frame, loop, i, 1) != NULL || calls[i]->like != calls[0]->like) return;
  }
  if (!is_repeated(keys, calls, loop->count)) return;
  struct item rolled = *calls[loop->count - 1];
  rolled.count = loop->count;
  rolled.from = calls[0]->from;
  rolled.frames = arena_alloc(keys->arena, (size_t)loop->count * sizeof *rolled.frames);
  for (int i = 0; i < loop->count; i++) rolled.frames[i] = calls[i]->frames[0];
  int kept = 0;
  for (int i = 0; i < frame->list.count; i++) {
    const struct item item = frame->list.items[i];
    if (item.id == rolled.id) frame->list.items[kept++] = rolled;
    if (item.id < loop->passes[0] || item.id >= loop->end) frame->list.items[kept++] = item;
  }
  frame->list.count = kept;
}

/* Inner loops first; of each, the longest runs of passes that are alike. */
static void roll_loops(struct keys *keys, struct frame *frame) {
  for (int i = frame->loops.count - 1; i >= 0; i--) {
    const struct loop *loop = &frame->loops.items[i];
    for (int first = 0, next; first < loop->count; first = next) {
      for (next = first + 1; next < loop->count && passes_alike(frame, loop, first, next);) next++;
      struct loop run = {.passes = loop->passes + first, .count = next - first, .end = loop->end};
      if (next < loop->count) run.end = loop->passes[next];
      if (run.count < 2 || (run.count < loop->count && !is_chain(keys, &run))) continue;
      outline(keys, frame, &run);
      roll_passes(keys, frame, &run);
    }
  }
}

/* ---- Functions ---- */

static void note_loop(struct keys *keys, struct frame *frame, const struct trace_event *event) {
  struct loop *loop = NULL;
  if (event->kind == TRACE_LOOP) ARENA_PUSH(keys->arena, frame->loops, (struct loop){.number = event->number});
  for (int i = 0; i < frame->loops.count; i++)
    if (frame->loops.items[i].number == event->number) loop = &frame->loops.items[i];
  if (loop == NULL) return;
  loop->end = keys->at;
  if (event->kind != TRACE_PASS) return;
  loop->passes = arena_grow(keys->arena, loop->passes, loop->count, &loop->capacity, sizeof *loop->passes);
  loop->passes[loop->count++] = keys->at - 1;
}

/* A view that changes nothing is no operation, and parameters are none. */
static void note_tensor(struct keys *keys, struct frame *frame, const struct trace_event *event, int64_t at) {
  const struct reading_tensor *tensor = event->tensor;
  frame->has_parameters = frame->has_parameters || tensor->stored != NULL;
  if (tensor->stored != NULL || (tensor->is_view && shape_of(tensor) == shape_of(tensor->of[0]))) return;
  const struct item item = {.id = at, .from = at, .to = at + 1, .like = likeness(tensor)};
  ARENA_PUSH(keys->arena, frame->list, item);
}

static void read_frame(struct keys *keys, struct frame *frame);

/* A function without parameters, and without calls of such that have some, is a part of its caller. */
static void note_call(struct keys *keys, struct frame *frame, int64_t from) {
  struct frame *inner = arena_alloc(keys->arena, sizeof *inner);
  struct taken taken = {0};
  read_frame(keys, inner);
  bool is_own = inner->has_parameters;
  for (int i = 0; i < inner->list.count; i++) is_own = is_own || inner->list.items[i].kind == ITEM_CALL;
  for (int i = 0; i < inner->list.count && !is_own; i++) ARENA_PUSH(keys->arena, frame->list, inner->list.items[i]);
  for (int i = 0; i < inner->loops.count && !is_own; i++) ARENA_PUSH(keys->arena, frame->loops, inner->loops.items[i]);
  if (!is_own) return;
  roll_loops(keys, inner);
  struct item call = {.kind = ITEM_CALL, .id = from, .from = from, .to = keys->at, .count = 1};
  call.like = doing(keys, call.from, call.to, &taken);
  call.frames = arena_alloc(keys->arena, sizeof *call.frames);
  call.frames[0] = inner;
  ARENA_PUSH(keys->arena, frame->list, call);
}

/* Reads the events of a function up to its end. */
static void read_frame(struct keys *keys, struct frame *frame) {
  while (keys->at < keys->trace->count) {
    const int64_t at = keys->at++;
    const struct trace_event *event = &keys->trace->items[at];
    if (event->kind == TRACE_LEAVE) return;
    if (event->kind == TRACE_ENTER)
      note_call(keys, frame, at);
    else if (event->kind == TRACE_TENSOR)
      note_tensor(keys, frame, event, at);
    else if (event->kind == TRACE_DRAW)
      ARENA_PUSH(keys->arena, frame->list,
                 ((struct item){.kind = ITEM_DRAW, .id = at, .from = at, .to = at + 1, .draw = event->number}));
    else if (event->kind != TRACE_ARGUMENT)
      note_loop(keys, frame, event);
  }
}

/* Gives the draws of a function their numbers, whose calls so far are those of `way`. */
static void number(struct keys *keys, const struct frame *frame, struct draw *way) {
  int64_t calls = 0, sites = 0;
  for (int i = 0; i < frame->list.count; i++) {
    const struct item *item = &frame->list.items[i];
    if (item->kind == ITEM_DRAW) {
      const double of = keys->draws[item->draw].of;
      keys->draws[item->draw] = *way;
      keys->draws[item->draw].site = sites++;
      keys->draws[item->draw].of = of;
    }
    if (item->kind == ITEM_CALL && way->depth == MOST_CALLS) {
      keys->reason = "its functions are nested too deeply";
      return;
    }
    for (int64_t k = 0; item->kind == ITEM_CALL && k < item->count; k++) {
      way->calls[way->depth++] = (struct draw_call){calls, k};
      number(keys, item->frames[k], way);
      way->depth--;
    }
    calls += item->kind == ITEM_CALL;
  }
}

const struct draw *keys_of(struct arena *arena, const struct trace *trace, const char **reason) {
  struct keys keys = {.arena = arena, .trace = trace};
  struct frame entry = {0};
  struct draw way = {0};
  keys.whole = arena_alloc(arena, (size_t)(trace->count + 1) * sizeof *keys.whole);
  keys.draws = arena_alloc(arena, (size_t)(trace->draws + 1) * sizeof *keys.draws);
  for (int64_t i = 0; i < trace->count; i++)
    if (trace->items[i].kind == TRACE_DRAW) keys.draws[trace->items[i].number].of = trace->items[i].of;
  read_frame(&keys, &entry);
  roll_loops(&keys, &entry);
  number(&keys, &entry, &way);
  *reason = keys.reason;
  return keys.reason == NULL ? keys.draws : NULL;
}
