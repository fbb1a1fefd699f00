/* Loops: how often they turn, and their bodies for all turns at once. */
#include <string.h>

#include "gen/audit/walk_loop.h"

/* ---- Loops that are followed turn by turn ---- */

static bool find_kernel_call(struct syntax *node, void *data) {
  bool *found = data;
  if (node->kind == SYNTAX_CALL && node->function != NULL &&
      (walk_is_kernel(node->function) || walk_orchestrates(node->function)))
    *found = true;
  return !*found;
}

static bool calls_kernels(struct syntax *loop) {
  bool found = false;
  syntax_walk(loop, find_kernel_call, &found);
  return found;
}

enum { MOST_TURNS = 4096, MOST_SMALL_TURNS = 64 };

static struct syntax *part(struct syntax *loop, int which) {
  if (loop->kind == SYNTAX_FOR) return loop->parts[which];
  int condition = loop->kind == SYNTAX_WHILE ? 0 : 1;
  if (which == 1) return loop->n_parts > condition ? loop->parts[condition] : NULL;
  return which == 3 && loop->n_parts > !condition ? loop->parts[!condition] : NULL;
}

static struct value condition_of(struct walk *walk, struct syntax *loop) {
  struct syntax *condition = part(loop, 1);
  return condition == NULL ? value_integer(1, 1) : walk_evaluate(walk, condition);
}

/* Runs the loop turn by turn while its condition is certain. The number of turns; -1 when it is not, or above
 * `most`. */
static int64_t unroll(struct walk *walk, struct syntax *loop, int64_t most, enum flow *flow) {
  for (int64_t turns = 0; turns <= most; turns++) {
    struct value condition = condition_of(walk, loop);
    walk_note(walk, loop)->origin |= condition.origin;
    int truth = value_truth(condition);
    if (truth == 0) return turns;
    if (truth < 0) return -1;
    uint64_t guards = walk->guards;
    struct state *before = walk_save(walk);
    int objects = walk->n_objects;
    *flow = walk_statement(walk, part(loop, 3));
    if (*flow != FLOW_RETURN) walk_forget_assumed(walk, walk_note(walk, loop), before, objects);
    walk_drop(walk, before);
    if (*flow == FLOW_NEXT || *flow == FLOW_CONTINUE) walk->guards = guards;
    if (*flow == FLOW_BREAK) return turns + 1;
    if (*flow == FLOW_RETURN) return turns + 1;
    if (part(loop, 2) != NULL) walk_evaluate(walk, part(loop, 2));
  }
  return -1;
}

/* ---- Loops that count ---- */

struct turns {
  struct syntax *loop;
  const struct note *note;
  int object;
  uint64_t bit;       /* of this loop */
  uint64_t inherited; /* loops that its start and its bound depend on */
  uint64_t blame;     /* loops that make its start or its bound a range */
  int64_t start, step;
  struct syntax *more;
  const struct value *assigned; /* what the integers that the body assigns are at the start of each turn; NULL: any */
};

/* Whether this loop goes next: the outermost one that is open. Threads of a kernel are many and start alike, so of its
 * loops the innermost one does, but for the two that choose a matrix or a row of a table, the grid's y and z. */
static bool halving_helps(const struct walk *walk, const struct turns *turns, uint64_t loops) {
  if ((loops & turns->bit) == 0) return false;
  uint64_t choosers = walk->frame->function->is_device ? loops & walk->choosers : loops;
  return choosers == 0 || (choosers & (turns->bit - 1)) == 0;
}

/* The body for turns first .. first + count - 1 at once; in halves where that proves too little and `halves` allows. */
static void run_turns(struct walk *walk, const struct turns *turns, int64_t first, int64_t count, bool halves) {
  int failures = walk->failures.count, effects = walk->effects.count, objects = walk->n_objects;
  struct state *before = walk_save(walk);
  walk_take_assigned(walk, turns->note, walk->objects[turns->object].variable, turns->assigned);
  int64_t a = turns->start + first * turns->step, b = turns->start + (first + count - 1) * turns->step;
  struct value value = value_integer(a < b ? a : b, a < b ? b : a);
  value.loops = turns->inherited | (count > 1 ? turns->bit : 0);
  value.blame = turns->blame;
  walk->states[turns->object].value = value;
  walk->budget--;
  uint64_t guards = walk->guards;
  bool can_be = true;
  if (turns->more != NULL) {
    struct value condition = walk_evaluate(walk, turns->more);
    if (value_truth(condition) < 0) walk->guards |= walk_guard(condition);
    can_be = value_truth(condition) != 0 && walk_assume(walk, turns->more, true);
  }
  if (can_be) walk_statement(walk, turns->loop->parts[3]);
  walk->guards = guards;
  bool helps = false;
  for (int i = failures; i < walk->failures.count; i++) { /* the outermost loop that helps goes first */
    uint64_t loops = walk->failures.items[i].loops;
    helps = helps || halving_helps(walk, turns, loops);
  }
  bool again = helps && halves && count > 1 && walk->budget >= 0;
  if (again)
    walk_restore(walk, before, objects);
  else
    walk_forget_assumed(walk, turns->note, before, objects);
  walk_drop(walk, before);
  if (!again) return;
  walk->failures.count = failures;
  walk->effects.count = effects;
  run_turns(walk, turns, first, count / 2, true);
  int found = walk->failures.count;
  run_turns(walk, turns, first + count / 2, count - count / 2, found == failures);
  if (found > failures) walk->failures.count = found; /* one turn that fails is enough */
}

/* What the integers that the body assigns are at the start of each turn, when that is found in a few rounds over all
 * turns; NULL: they may be anything. */
static const struct value *settle(struct walk *walk, struct turns *turns, int64_t count) {
  int failures = walk->failures.count, effects = walk->effects.count, objects = walk->n_objects;
  struct value *values = walk_assigned_values(walk, turns->note);
  bool settled = false;
  for (int round = 0; round < 3 && !settled; round++) {
    struct state *before = walk_save(walk);
    turns->assigned = values;
    run_turns(walk, turns, 0, count, false);
    settled = walk_widen_assigned(turns->note, values, walk_assigned_values(walk, turns->note));
    walk_restore(walk, before, objects);
    walk_drop(walk, before);
    walk->failures.count = failures;
    walk->effects.count = effects;
  }
  return settled ? values : NULL;
}

/* What is known of a counting loop before its first turn. */
struct extent {
  struct value start, bound;
  int64_t turns; /* at most; -1: not bounded */
};

static struct extent measure(struct walk *walk, const struct counting *counting, int object) {
  struct extent extent = {walk->states[object].value, walk_evaluate(walk, counting->bound), -1};
  if (extent.start.kind != VALUE_INTEGER || extent.bound.kind != VALUE_INTEGER) return extent;
  bool up = counting->step > 0;
  int64_t limit = walk_last_value(counting, up ? extent.bound.high : extent.bound.low);
  if (limit >= VALUE_MOST - 4096 || limit <= VALUE_LEAST + 4096) return extent;
  int64_t start = up ? extent.start.low : extent.start.high;
  if (start >= VALUE_MOST - 4096 || start <= VALUE_LEAST + 4096) return extent;
  bool open = ((extent.start.blame | extent.bound.blame) & BLAME_ALWAYS) != 0; /* then the type is no bound */
  if (open && (limit >= INT32_MAX - 4096 || limit <= INT32_MIN + 4096)) return extent;
  if (open && (start >= INT32_MAX - 4096 || start <= INT32_MIN + 4096)) return extent;
  int64_t distance = up ? limit - start : start - limit, step = up ? counting->step : -counting->step;
  extent.turns = distance < 0 ? 0 : distance / step + 1;
  return extent;
}

/* The counter behind the loop. */
static struct value value_behind(const struct counting *counting, const struct extent *extent) {
  struct value value = extent->start;
  bool exact =
      extent->start.low == extent->start.high && extent->bound.low == extent->bound.high && counting->more == NULL;
  bool up = counting->step > 0;
  value.origin |= extent->bound.origin;
  value.loops |= extent->bound.loops;
  value.blame |= extent->bound.loops | extent->bound.blame;
  if (exact) {
    value.low = value.high = extent->start.low + extent->turns * counting->step;
    value.blame = 0;
    return value;
  }
  int64_t least = walk_last_value(counting, extent->bound.low), most = walk_last_value(counting, extent->bound.high);
  if (counting->more != NULL) {
    if (up && bounded_add(most, counting->step) > value.high) value.high = bounded_add(most, counting->step);
    if (!up && bounded_add(least, counting->step) < value.low) value.low = bounded_add(least, counting->step);
    value.blame |= BLAME_ALWAYS;
    value.origin |= ORIGIN_CHOSEN;
  } else if (up) {
    if (bounded_add(least, 1) > value.low) value.low = bounded_add(least, 1);
    if (bounded_add(most, counting->step) > value.high) value.high = bounded_add(most, counting->step);
  } else {
    if (bounded_add(most, -1) < value.high) value.high = bounded_add(most, -1);
    if (bounded_add(least, counting->step) < value.low) value.low = bounded_add(least, counting->step);
  }
  return value;
}

static void fail_unbounded(struct walk *walk, const struct syntax *loop, unsigned origin, uint64_t loops) {
  bool chosen = (origin & (ORIGIN_DATA | ORIGIN_CONFIG)) != 0 && (origin & ORIGIN_UNFOLLOWED) == 0;
  walk_fail(walk, FAILURE_LOOP, chosen && loops == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, loop, loops,
            "how often this loop in '%s' turns %s", walk->frame->function->name,
            origin & ORIGIN_UNFOLLOWED ? "depends on what is not followed: memory, or what a loop changes"
            : origin & ORIGIN_DATA     ? "depends on data"
            : origin & ORIGIN_CONFIG   ? "depends on what was set outside of the hot loop"
                                       : "is not known");
}

/* A loop without a known number of turns: its body once, over anything. */
static void run_unknown(struct walk *walk, struct syntax *loop, struct note *note, const struct variable *counter) {
  bool twice = !walk->hot && calls_kernels(loop);
  uint64_t guards = walk->guards;
  walk->guards |= BLAME_ALWAYS;
  for (int i = 0; i < (twice ? 2 : 1); i++) {
    walk_forget_assigned(walk, note, NULL);
    if (counter == NULL) note->origin |= condition_of(walk, loop).origin;
    struct state *before = walk_save(walk);
    int objects = walk->n_objects;
    if (part(loop, 1) != NULL && loop->kind != SYNTAX_DO) walk_assume(walk, part(loop, 1), true);
    walk_statement(walk, part(loop, 3));
    if (part(loop, 2) != NULL) walk_evaluate(walk, part(loop, 2));
    walk_forget_assumed(walk, note, before, objects);
    walk_drop(walk, before);
  }
  walk->guards = guards;
  walk_forget_assigned(walk, note, NULL);
}

static void run_counting(struct walk *walk, struct syntax *loop, struct note *note, const struct counting *counting) {
  int object = walk_variable(walk, counting->counter);
  struct extent extent = measure(walk, counting, object);
  note->origin |= extent.start.origin | extent.bound.origin;
  if (counting->more != NULL) note->origin |= walk_evaluate(walk, counting->more).origin;
  if (extent.turns < 0 || walk->objects[object].kind == OBJECT_LASTING || walk->n_loops >= MOST_LOOPS) {
    bool border = walk->audit->root != NULL && strcmp(walk->audit->root, walk->frame->function->name) == 0;
    unsigned told = extent.bound.origin & ~(unsigned)ORIGIN_DATA;
    bool of_device = walk->kernel_base > 0 && (told & ~(unsigned)ORIGIN_UNFOLLOWED) == 0; /* it counts steps itself */
    note->counts_steps = counting->counter->lasting && (told == ORIGIN_STEP || of_device);
    note->is_shared_out = border && extent.bound.origin == ORIGIN_STEP && (extent.start.origin & ORIGIN_DATA) == 0;
    if (!note->counts_steps && !note->is_shared_out)
      fail_unbounded(walk, loop, extent.start.origin | extent.bound.origin, extent.start.loops | extent.bound.loops);
    run_unknown(walk, loop, note, counting->counter);
    return;
  }
  if (extent.turns > note->turns) note->turns = extent.turns;
  uint64_t outer = extent.start.loops | extent.bound.loops;
  bool exact = extent.start.low == extent.start.high && extent.bound.low == extent.bound.high;
  struct turns turns = {.loop = loop,
                        .note = note,
                        .object = object,
                        .bit = (uint64_t)1 << walk->n_loops,
                        .inherited = outer,
                        .blame = exact ? 0 : outer | extent.start.blame | extent.bound.blame,
                        .start = extent.start.low,
                        .step = counting->step,
                        .more = counting->more};
  int64_t count = extent.turns;
  if (extent.start.low != extent.start.high) { /* from anywhere in its range, to the bound */
    turns.step = counting->step > 0 ? 1 : -1;
    turns.start = counting->step > 0 ? extent.start.low : extent.start.high;
    count = counting->step > 0 ? walk_last_value(counting, extent.bound.high) - turns.start + 1
                               : turns.start - walk_last_value(counting, extent.bound.low) + 1;
  }
  walk->n_loops++;
  uint64_t guards = walk->guards;
  walk->guards |= turns.blame;
  if (count > 0 && walk_carries_integers(loop, note, counting->counter)) turns.assigned = settle(walk, &turns, count);
  if (count > 0) run_turns(walk, &turns, 0, count, true);
  walk->guards = guards;
  walk->n_loops--;
  walk_take_assigned(walk, note, counting->counter, turns.assigned);
  walk->states[object].value = value_behind(counting, &extent);
  walk_flush(walk);
}

/* Pointers that change from turn to turn are followed turn by turn. */
static bool assigns_pointer(const struct note *note) {
  for (int i = 0; i < note->n_assigned; i++)
    if (note->assigned[i]->type->kind == TYPE_POINTER) return true;
  return false;
}

enum flow walk_loop(struct walk *walk, struct syntax *node) {
  struct note *note = walk_note(walk, node);
  note->seen = true;
  if (walk->depth == 0) walk->starts = false;
  walk_find_assigned(walk, node, note);
  enum flow flow = FLOW_NEXT;
  if (node->kind == SYNTAX_FOR && node->parts[0] != NULL) walk_statement(walk, node->parts[0]);
  if (node->kind == SYNTAX_DO) walk_statement(walk, part(node, 3));
  struct counting counting = {0};
  bool counts = walk_read_counting(walk, node, &counting);
  if (counts && walk_starts_launch(walk, counting.counter)) {
    walk->budget = 4000;
    walk->choosers = (uint64_t)3 << walk->n_loops;
  }
  if (walk_takes_bits(node)) {
    note->turns = node->parts[1]->type->size * 8;
    run_unknown(walk, node, note, NULL);
    return FLOW_NEXT;
  }
  bool every = walk->n_loops == 0 && !walk->in_kernel && calls_kernels(node);
  if (every || !counts || assigns_pointer(note)) {
    int failures = walk->failures.count, effects = walk->effects.count, objects = walk->n_objects;
    struct state *before = walk_save(walk);
    int64_t turns = unroll(walk, node, every ? MOST_TURNS : MOST_SMALL_TURNS, &flow);
    if (turns < 0) walk_restore(walk, before, objects);
    walk_drop(walk, before);
    if (turns >= 0) {
      if (turns > note->turns) note->turns = turns;
      return flow == FLOW_RETURN ? flow : FLOW_NEXT;
    }
    walk->failures.count = failures;
    walk->effects.count = effects;
  }
  if (counts) {
    run_counting(walk, node, note, &counting);
  } else {
    run_unknown(walk, node, note, NULL);
    note->origin |= condition_of(walk, node).origin;
    fail_unbounded(walk, node, note->origin, 0);
  }
  return FLOW_NEXT;
}
