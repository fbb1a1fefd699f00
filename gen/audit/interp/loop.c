/* Loops: the number of their iterations, and their bodies for all iterations at once. */
#include <string.h>

#include "gen/audit/interp/region.h"

/* ---- Loops that are unrolled ---- */

static bool find_kernel_call(struct syntax *node, void *data) {
  bool *found = data;
  if (node->kind == SYNTAX_CALL && node->function != NULL &&
      (interp_is_kernel(node->function) || interp_orchestrates(node->function)))
    *found = true;
  return !*found;
}

static bool calls_kernels(struct syntax *loop) {
  bool found = false;
  syntax_visit(loop, find_kernel_call, &found);
  return found;
}

/* Whether a loop is followed iteration by iteration wherever possible. */
static bool is_unrolled(struct interp *interp, struct syntax *loop) {
  struct note *note = interp_note(interp, loop);
  if (note->is_unrolled == 0)
    note->is_unrolled = calls_kernels(loop) || interp_has_collective(loop) || interp_has_transfer(loop) ? 1 : -1;
  return note->is_unrolled > 0;
}

/* The most iterations of a loop that is unrolled: of one that calls kernels or collectives, and of another. */
enum { MAX_UNROLLED = 4096, MAX_UNROLLED_SMALL = 64 };

static struct syntax *part(struct syntax *loop, int which) {
  if (loop->kind == SYNTAX_FOR) return loop->parts[which];
  int condition = loop->kind == SYNTAX_WHILE ? 0 : 1;
  if (which == 1) return loop->n_parts > condition ? loop->parts[condition] : NULL;
  return which == 3 && loop->n_parts > !condition ? loop->parts[!condition] : NULL;
}

static struct value condition_of(struct interp *interp, struct syntax *loop) {
  struct syntax *condition = part(loop, 1);
  return condition == NULL ? value_integer(1, 1) : interp_evaluate(interp, condition);
}

/* Runs the loop iteration by iteration while its condition is certain. The number of iterations; -1 when the condition
 * is not certain, or after more than `most`. */
static int64_t unroll(struct interp *interp, struct syntax *loop, int64_t most, enum flow *flow) {
  for (int64_t iterations = 0; iterations <= most; iterations++) {
    struct value condition = condition_of(interp, loop);
    interp_note(interp, loop)->origin |= condition.origin;
    int truth = value_truth(condition);
    if (truth == 0) return iterations;
    if (truth < 0) return -1;
    uint64_t guards = interp->guards;
    struct state *before = interp_save(interp);
    int objects = interp->n_objects;
    *flow = interp_statement(interp, part(loop, 3));
    if (*flow != FLOW_RETURN) interp_forget_assumed(interp, interp_note(interp, loop), before, objects);
    interp_drop(interp, before);
    if (*flow == FLOW_NEXT || *flow == FLOW_CONTINUE) interp->guards = guards;
    if (*flow == FLOW_NEXT) interp_agree_with_left(interp);
    if (*flow == FLOW_BREAK) return iterations + 1;
    if (*flow == FLOW_RETURN) return iterations + 1;
    if (part(loop, 2) != NULL) interp_evaluate(interp, part(loop, 2));
  }
  return -1;
}

/* ---- Loops that count ---- */

/* The iterations of a counting loop, as first value and step of its counter. */
struct iteration_space {
  struct syntax *loop;
  const struct note *note;
  int object;
  uint64_t bit;       /* of this loop */
  uint64_t inherited; /* loops that its start and its bound depend on */
  uint64_t blame;     /* loops that make its start or its bound a range */
  int64_t start, step, count;
  struct value first; /* the counter before the loop */
  int64_t by;         /* what an iteration adds to it */
  int64_t distance;   /* the most iterations from one `first` on */
  bool is_exact;      /* the iterations are these, and no fewer */
  struct syntax *more;
  const struct value *assigned; /* of the integers that the body assigns, at the start of each iteration; NULL: any */
};

/* Whether this loop is next: the outermost one that is open. Threads of a kernel are many and start alike, so of its
 * loops the innermost one does, but for the two that choose a matrix or a row of a table, the grid's y and z. */
static bool halving_helps(const struct interp *interp, const struct iteration_space *space, uint64_t loops) {
  if ((loops & space->bit) == 0) return false;
  uint64_t grid_loops = interp->frame->function->is_device ? loops & interp->grid_loops : loops;
  return grid_loops == 0 || (grid_loops & (space->bit - 1)) == 0;
}

/* Whether a write of weights goes by a row of a table that this loop of a grid chooses: which part of them it is. */
static bool chooses_update(const struct interp *interp, const struct iteration_space *space, int access) {
  return (space->bit & interp->grid_loops) != 0 && interp->is_launched &&
         interp_is_open_update(interp, &interp->pending.items[access]);
}

static bool find_leave(struct syntax *node, void *data) {
  bool *found = data;
  *found = *found || node->kind == SYNTAX_BREAK || node->kind == SYNTAX_RETURN || node->kind == SYNTAX_GOTO;
  return !*found;
}

/* Whether these are all iterations of a loop from 0 on, which nothing in it ends early. */
static bool is_whole(struct interp *interp, const struct iteration_space *space, int64_t first, int64_t count) {
  struct note *note = interp_note(interp, space->loop);
  if (first != 0 || count != space->count || space->start != 0 || space->step != 1) return false;
  if (space->blame != 0 || space->more != NULL) return false;
  if (note->leaves == 0) {
    bool found = false;
    syntax_visit(space->loop->parts[3], find_leave, &found);
    note->leaves = found ? 1 : -1;
  }
  return note->leaves < 0;
}

/* Of starts that are a step apart, and a step of the loop that is a multiple of it, the counter is no other number.
 * False: none of its range. */
static bool keep_steps(const struct iteration_space *space, struct value *value) {
  const int64_t step = space->first.step;
  if (space->by < 0 || step < 2 || space->by % step != 0 || space->first.low == space->first.high) return true;
  value->low += (step - (value->low - space->first.low) % step) % step;
  value->high -= (value->high - space->first.low) % step;
  value->step = step;
  return value->low <= value->high;
}

/* Of the failures from there on, keeps those of writes that leave out places: halves of a range tell nothing of them.
 */
static int keep_places(struct interp *interp, int from) {
  int kept = from;
  for (int i = from; i < interp->failures.count; i++)
    if (interp->failures.items[i].kind == FAILURE_PARTIAL) interp->failures.items[kept++] = interp->failures.items[i];
  return kept;
}

/* Runs the body for iterations first .. first + count - 1 at once; in halves where that proves too little and `halves`
 * allows it. */
static void run_iterations(struct interp *interp, const struct iteration_space *space, int64_t first, int64_t count,
                           bool halves) {
  int64_t a = space->start + first * space->step, b = space->start + (first + count - 1) * space->step;
  struct value value = value_integer(a < b ? a : b, a < b ? b : a);
  if (!keep_steps(space, &value)) return;
  int failures = interp->failures.count, pending = interp->pending.count, objects = interp->n_objects;
  struct state *before = interp_save(interp);
  interp_take_assigned(interp, space->note, interp->objects[space->object].variable, space->assigned);
  value.loops = space->inherited | (count > 1 ? space->bit : 0);
  value.blame = space->blame;
  const bool moves = space->first.low != space->first.high; /* where an iteration is the first one differs */
  value.form = interp_region_counter(interp, space->loop, space->first, interp->objects[space->object].variable,
                                     space->by, moves ? 0 : first, moves ? space->distance : count, space->is_exact);
  value.form = interp_grid_counter(interp, value);
  interp->states[space->object].value = value;
  interp->open[interp->n_loops - 1] = (struct open_loop){.counter = interp->objects[space->object].variable,
                                                         .count = count,
                                                         .is_whole = is_whole(interp, space, first, count)};
  int64_t iterations = interp->iterations;
  interp->iterations = bounded_multiply(iterations, count);
  interp->budget--;
  uint64_t guards = interp->guards;
  bool can_be = true;
  if (space->more != NULL) {
    struct value condition = interp_evaluate(interp, space->more);
    if (value_truth(condition) < 0) interp->guards |= interp_guard(condition);
    can_be = value_truth(condition) != 0 && interp_assume(interp, space->more, true);
  }
  if (can_be) interp_statement(interp, space->loop->parts[3]);
  interp->guards = guards;
  interp->iterations = iterations;
  bool helps = false;
  for (int i = failures; i < interp->failures.count; i++) { /* the outermost loop that helps goes first */
    uint64_t loops = interp->failures.items[i].loops;
    helps = helps || halving_helps(interp, space, loops);
  }
  for (int i = pending; i < interp->pending.count && !helps && count > 1; i++)
    helps = halving_helps(interp, space, interp->pending.items[i].loops) &&
            (interp_reads_unwritten(interp, i) || chooses_update(interp, space, i));
  bool again = helps && halves && count > 1 && interp->budget >= 0 && interp->region == NULL;
  if (again)
    interp_restore(interp, before, objects);
  else
    interp_forget_assumed(interp, space->note, before, objects);
  interp_drop(interp, before);
  if (!again) return;
  if (interp->is_launched) failures = keep_places(interp, failures);
  interp->failures.count = failures;
  interp->pending.count = pending;
  interp->rehearsals++;
  interp->halvings += interp->is_launched;
  run_iterations(interp, space, first, count / 2, true);
  int found = interp->failures.count;
  run_iterations(interp, space, first + count / 2, count - count / 2, found == failures);
  interp->halvings -= interp->is_launched;
  interp->rehearsals--;
  if (found > failures) interp->failures.count = found; /* one iteration that fails is enough */
}

/* The ranges of the integers that the body assigns, at the start of every iteration: the fixpoint of widening them,
 * when a few rounds over all iterations reach it; NULL: they may be anything. */
static const struct value *find_fixpoint(struct interp *interp, struct iteration_space *space, int64_t count) {
  int failures = interp->failures.count, pending = interp->pending.count, objects = interp->n_objects;
  struct value *values = interp_assigned_values(interp, space->note);
  bool stable = false;
  for (int round = 0; round < 3 && !stable; round++) {
    struct state *before = interp_save(interp);
    space->assigned = values;
    interp->rehearsals++;
    run_iterations(interp, space, 0, count, false);
    interp->rehearsals--;
    stable = interp_widen_assigned(space->note, values, interp_assigned_values(interp, space->note));
    interp_restore(interp, before, objects);
    interp_drop(interp, before);
    interp->failures.count = failures;
    interp->pending.count = pending;
  }
  return stable ? values : NULL;
}

/* What is known of a counting loop before its first iteration. */
struct extent {
  struct value start, bound;
  int64_t iterations; /* at most; -1: not bounded */
  bool wraps;         /* the counter leaves its type before the condition is false */
};

/* Whether the counter, a step after the last value that its condition lets pass, is no number of its type. */
static bool leaves_type(const struct type *type, int64_t after) {
  if (type->kind != TYPE_INTEGER || type->size < 1 || type->size > 8) return true;
  if (!type->is_signed && after < 0) return true;
  if (type->size == 8) return false;
  const int bits = (int)type->size * 8 - type->is_signed;
  return after >= (int64_t)1 << bits || after < -((int64_t)1 << bits);
}

static struct extent measure(struct interp *interp, const struct counting *counting, int object) {
  struct extent extent = {interp->states[object].value, interp_evaluate(interp, counting->bound), -1, false};
  if (extent.start.kind != VALUE_INTEGER || extent.bound.kind != VALUE_INTEGER) return extent;
  bool up = counting->step > 0;
  int64_t limit = interp_last_value(counting, up ? extent.bound.high : extent.bound.low);
  if (limit >= VALUE_MAX - 4096 || limit <= VALUE_MIN + 4096) return extent;
  int64_t start = up ? extent.start.low : extent.start.high;
  if (start >= VALUE_MAX - 4096 || start <= VALUE_MIN + 4096) return extent;
  bool open = ((extent.start.blame | extent.bound.blame) & BLAME_ALWAYS) != 0; /* then the type is no bound */
  if (open && (limit >= INT32_MAX - 4096 || limit <= INT32_MIN + 4096)) return extent;
  if (open && (start >= INT32_MAX - 4096 || start <= INT32_MIN + 4096)) return extent;
  int64_t distance = up ? limit - start : start - limit, step = up ? counting->step : -counting->step;
  extent.iterations = distance < 0 ? 0 : distance / step + 1;
  bool exact = extent.start.low == extent.start.high && extent.bound.low == extent.bound.high;
  int64_t last = exact ? start + (extent.iterations - 1) * counting->step : limit;
  extent.wraps = extent.iterations > 0 && counting->more == NULL && counting->operation != OPERATOR_NOT_EQUAL &&
                 leaves_type(counting->counter->type, bounded_add(last, counting->step));
  return extent;
}

/* The counter after the loop. */
static struct value value_after(const struct counting *counting, const struct extent *extent) {
  struct value value = extent->start;
  value.linear = NULL;
  value.form = NULL;
  bool exact =
      extent->start.low == extent->start.high && extent->bound.low == extent->bound.high && counting->more == NULL;
  bool up = counting->step > 0;
  value.origin |= extent->bound.origin;
  value.loops |= extent->bound.loops;
  value.blame |= extent->bound.loops | extent->bound.blame;
  if (exact) {
    value.low = value.high = extent->start.low + extent->iterations * counting->step;
    value.blame = 0;
    return value;
  }
  int64_t least = interp_last_value(counting, extent->bound.low),
          most = interp_last_value(counting, extent->bound.high);
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

static void fail_unbounded(struct interp *interp, const struct syntax *loop, unsigned origin, uint64_t loops) {
  bool chosen = (origin & (ORIGIN_DATA | ORIGIN_CONFIG)) != 0 && (origin & ORIGIN_UNTRACKED) == 0;
  interp_fail(interp, FAILURE_LOOP, chosen && loops == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, loop, loops,
              "the number of iterations of this loop in '%s' %s", interp->frame->function->name,
              origin & ORIGIN_UNTRACKED ? "depends on what is not followed: memory, or what a loop changes"
              : origin & ORIGIN_DATA    ? "depends on data"
              : origin & ORIGIN_CONFIG  ? "depends on what was set outside of the step path"
                                        : "is not known");
}

/* A loop whose number of iterations is not known: runs its body once, over any values. */
static void run_unknown(struct interp *interp, struct syntax *loop, struct note *note, const struct variable *counter) {
  bool twice = !interp->in_step_path && calls_kernels(loop);
  uint64_t guards = interp->guards;
  int64_t iterations = interp->iterations;
  interp->iterations = VALUE_MAX;
  interp->guards |= BLAME_ALWAYS;
  for (int i = 0; i < (twice ? 2 : 1); i++) {
    interp_forget_assigned(interp, note, NULL);
    if (counter == NULL) note->origin |= condition_of(interp, loop).origin;
    struct state *before = interp_save(interp);
    int objects = interp->n_objects;
    if (part(loop, 1) != NULL && loop->kind != SYNTAX_DO) interp_assume(interp, part(loop, 1), true);
    int round = interp_round_begins(interp);
    struct in_flight in_flight = interp->in_flight;
    interp_statement(interp, part(loop, 3));
    interp_round_ends(interp, loop, round);
    interp_agree_with_left(interp);
    interp_agree_in_loop(interp, loop, &in_flight);
    if (part(loop, 2) != NULL) interp_evaluate(interp, part(loop, 2));
    interp_forget_assumed(interp, note, before, objects);
    interp_drop(interp, before);
  }
  interp->guards = guards;
  interp->iterations = iterations;
  interp_forget_assigned(interp, note, NULL);
}

/* A counting loop whose iterations are not known, or too many loops deep. */
static void run_uncounted(struct interp *interp, struct syntax *loop, struct note *note,
                          const struct counting *counting, const struct extent *extent) {
  bool in_step = interp->audit->root != NULL && strcmp(interp->audit->root, interp->frame->function->name) == 0;
  unsigned origins = extent->bound.origin & ~(unsigned)ORIGIN_DATA;
  bool of_device = interp->kernel_base > 0 && (origins & ~(unsigned)ORIGIN_UNTRACKED) == 0; /* it counts steps itself */
  note->counts_steps = counting->counter->is_static && (origins == ORIGIN_STEP || of_device);
  note->is_shared_out = in_step && extent->bound.origin == ORIGIN_STEP && (extent->start.origin & ORIGIN_DATA) == 0;
  if (!note->counts_steps && !note->is_shared_out)
    fail_unbounded(interp, loop, extent->start.origin | extent->bound.origin,
                   extent->start.loops | extent->bound.loops);
  run_unknown(interp, loop, note, counting->counter);
}

static bool is_exact(const struct extent *extent) {
  return extent->start.low == extent->start.high && extent->bound.low == extent->bound.high;
}

/* Whether each iteration from the least start to the bound is one of some thread's. */
static bool is_sweep(const struct interp *interp, const struct counting *counting, const struct extent *extent) {
  return counting->more == NULL &&
         interp_is_sweep(interp, extent->start, extent->bound, extent->iterations == 1 ? 1 : counting->step);
}

/* The iterations of a loop of this extent: where the start is not one number, those from anywhere in its range to the
 * bound. */
static struct iteration_space space_of(const struct interp *interp, struct syntax *loop, struct note *note, int object,
                                       const struct counting *counting, const struct extent *extent) {
  const uint64_t outer = extent->start.loops | extent->bound.loops;
  const bool sweeps = is_sweep(interp, counting, extent), is_whole = is_exact(extent) || sweeps;
  struct iteration_space space = {.loop = loop,
                                  .note = note,
                                  .object = object,
                                  .bit = (uint64_t)1 << interp->n_loops,
                                  .inherited = outer,
                                  .blame = is_whole ? 0 : outer | extent->start.blame | extent->bound.blame,
                                  .start = extent->start.low,
                                  .step = counting->step,
                                  .count = extent->iterations,
                                  .first = extent->start,
                                  .by = counting->step,
                                  .distance = extent->iterations,
                                  .is_exact = is_exact(extent) && counting->more == NULL,
                                  .more = counting->more};
  if (extent->start.low == extent->start.high) return space;
  const bool up = counting->step > 0;
  space.step = up ? 1 : -1;
  space.start = up ? extent->start.low : extent->start.high;
  space.count = up ? interp_last_value(counting, extent->bound.high) - space.start + 1
                   : space.start - interp_last_value(counting, extent->bound.low) + 1;
  const int64_t starts = extent->start.high - extent->start.low + 1;
  if (sweeps && extent->iterations == 1 && space.count > starts) space.count = starts;
  return space;
}

/* How many iterations there are from any first one to the bound that goes with it, by the forms of both. */
static void measure_distance(struct interp *interp, const struct counting *counting, const struct extent *extent,
                             struct iteration_space *space) {
  const bool up = counting->step > 0;
  int64_t last = up ? interp_region_distance(interp, extent->start, extent->bound)
                    : interp_region_distance(interp, extent->bound, extent->start);
  if (last == VALUE_MAX) return;
  last = bounded_add(last, up ? -counting->added : counting->added);
  const bool is_open = counting->operation != OPERATOR_LESS_EQUAL && counting->operation != OPERATOR_GREATER_EQUAL;
  const int64_t size = up ? counting->step : -counting->step,
                most = last - is_open < 0 ? 0 : (last - is_open) / size + 1;
  if (most < space->distance) space->distance = most;
  if (interp->region != NULL && extent->start.low == extent->start.high && most < space->count) space->count = most;
}

/* Of a listed region, where less does not decide, the last iterations are followed singly. */
static void run_parts(struct interp *interp, const struct iteration_space *space) {
  const bool from_one = space->first.low == space->first.high;
  const int64_t single = from_one ? interp_region_single(interp, space->loop, space->count) : 0;
  if (space->count > single) run_iterations(interp, space, 0, space->count - single, true);
  if (single > 1) interp->region->parts *= single;
  for (int64_t i = space->count - single; i < space->count; i++) run_iterations(interp, space, i, 1, true);
  if (single > 1) interp->region->parts /= single;
  if (space->count < 2 || !interp_grid_meets(interp, space->loop)) return;
  const struct syntax *outer = interp->region->grid.next;
  interp->region->grid.next = space->loop; /* a thread may be in the next iteration already */
  run_iterations(interp, space, 0, space->count - 1, false);
  interp->region->grid.next = outer;
}

static void run_all(struct interp *interp, const struct iteration_space *space) {
  const bool lanes = interp_grid_lanes_meet(interp, space->loop);
  if (lanes) interp->region->grid.n_warp_loops++;
  run_parts(interp, space);
  if (lanes) interp->region->grid.n_warp_loops--;
}

static void run_counting(struct interp *interp, struct syntax *loop, struct note *note,
                         const struct counting *counting) {
  int object = interp_variable(interp, counting->counter);
  struct extent extent = measure(interp, counting, object);
  note->origin |= extent.start.origin | extent.bound.origin;
  if (counting->more != NULL) note->origin |= interp_evaluate(interp, counting->more).origin;
  if (extent.iterations < 0 || interp->objects[object].kind == OBJECT_STATIC || interp->n_loops >= MAX_LOOPS) {
    run_uncounted(interp, loop, note, counting, &extent);
    return;
  }
  if (extent.wraps)
    interp_fail(interp, FAILURE_LOOP, VERDICT_BROKEN, loop, 0, "the counter '%s' wraps before this loop in '%s' ends",
                counting->counter->name, interp->frame->function->name);
  if (extent.iterations > note->iterations) note->iterations = extent.iterations;
  struct iteration_space space = space_of(interp, loop, note, object, counting, &extent);
  measure_distance(interp, counting, &extent, &space);
  const struct grouping *starts = NULL;
  int summed = counting->step == 1 && is_exact(&extent) && counting->more == NULL
                   ? interp_sums_counts(interp, loop, counting->counter, extent.start.low, space.count, &starts)
                   : -1;
  interp->n_loops++;
  uint64_t guards = interp->guards;
  interp->guards |= space.blame;
  if (space.count > 0 && interp_carries_integers(loop, note, counting->counter))
    space.assigned = find_fixpoint(interp, &space, space.count);
  if (space.count > 0) run_all(interp, &space);
  interp->guards = guards;
  interp->n_loops--;
  interp_take_assigned(interp, note, counting->counter, space.assigned);
  interp->states[object].value = value_after(counting, &extent);
  if (summed >= 0) interp_set_starts(interp, summed, starts);
  interp_flush(interp);
}

/* Whether a node is an element of an array of pointers. */
static bool find_pointer_element(struct syntax *node, void *data) {
  bool *found = data;
  bool is_element = node->kind == SYNTAX_INDEX && node->type->kind == TYPE_POINTER;
  *found = *found || (is_element && syntax_bare(node->parts[0])->type->kind == TYPE_ARRAY);
  return !*found;
}

/* A loop that changes pointers, or that takes one of several, is unrolled. */
static bool takes_pointers(struct syntax *loop, struct note *note) {
  if (note->takes_pointers == 0) {
    bool found = false;
    syntax_visit(loop, find_pointer_element, &found);
    note->takes_pointers = found ? 1 : -1;
  }
  return note->takes_pointers > 0;
}

static bool assigns_pointer(const struct note *note) {
  for (int i = 0; i < note->n_assigned; i++)
    if (note->assigned[i]->type->kind == TYPE_POINTER) return true;
  return false;
}

static enum flow run_loop(struct interp *interp, struct syntax *node) {
  struct note *note = interp_note(interp, node);
  note->seen = true;
  if (interp->depth == 0) interp->starts = false;
  /* The runtime's headers have loops that fill tables. */
  if (interp->taking_step == 0 && interp_is_own(interp, node->where)) interp->has_looped = true;
  interp_find_assigned(interp, node, note);
  enum flow flow = FLOW_NEXT;
  if (node->kind == SYNTAX_FOR && node->parts[0] != NULL) interp_statement(interp, node->parts[0]);
  if (node->kind == SYNTAX_DO) interp_statement(interp, part(node, 3));
  struct counting counting = {0};
  bool counts = interp_read_counting(interp, node, &counting);
  if (counts && interp_starts_launch(interp, counting.counter)) {
    if (interp->region == NULL && interp->rehearsals == 0) interp_grid_check(interp, node);
    interp->budget = 4000;
    interp->grid_loops = (uint64_t)3 << interp->n_loops;
    interp->is_launched = true;
    interp->first_symbol = interp->symbols.count;
  }
  if (interp_iterates_bits(node)) {
    note->iterations = node->parts[1]->type->size * 8;
    run_unknown(interp, node, note, NULL);
    return FLOW_NEXT;
  }
  bool every = interp->n_loops == 0 && !interp->in_kernel && is_unrolled(interp, node);
  const bool divided = interp_region_divides(interp, node), unrolls = interp_region_unrolls(interp, node);
  const bool varies = !counts || assigns_pointer(note) || takes_pointers(node, note);
  every = every || unrolls;
  if ((every || varies) && !divided) {
    int failures = interp->failures.count, pending = interp->pending.count, objects = interp->n_objects;
    struct state *before = interp_save(interp);
    int64_t iterations = unroll(interp, node, every ? MAX_UNROLLED : MAX_UNROLLED_SMALL, &flow);
    if (iterations < 0) interp_restore(interp, before, objects);
    interp_drop(interp, before);
    if (iterations >= 0) {
      if (iterations > note->iterations) note->iterations = iterations;
      return flow == FLOW_RETURN ? flow : FLOW_NEXT;
    }
    interp->failures.count = failures;
    interp->pending.count = pending;
    if (unrolls) interp_region_lost(interp, node, "a loop in which threads share something out");
  }
  if (divided && !counts) interp_region_lost(interp, node, "a loop that does not count");
  if (counts) {
    run_counting(interp, node, note, &counting);
  } else {
    run_unknown(interp, node, note, NULL);
    note->origin |= condition_of(interp, node).origin;
    fail_unbounded(interp, node, note->origin, 0);
  }
  return FLOW_NEXT;
}

enum flow interp_loop(struct interp *interp, struct syntax *node) {
  const bool outer_has_left = interp->has_left, was_launched = interp->is_launched;
  struct in_flight outer = interp->left_with;
  interp->has_left = false;
  enum flow flow = run_loop(interp, node);
  interp_agree_with_left(interp);
  interp->has_left = outer_has_left;
  interp->is_launched = was_launched;
  interp->left_with = outer;
  return flow;
}
