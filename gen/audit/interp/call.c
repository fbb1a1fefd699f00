/* Calls of the program's own functions: interpreted inline, or as kernels by a summary of what they do to their
 * parameters. */
#include <string.h>

#include "gen/audit/interp/region.h"

/* ---- Which functions are kernels ---- */

static bool touches_pointers(struct function *function);

static bool find_static_pointer(struct syntax *node, void *data) {
  bool *found = data;
  if (node->kind == SYNTAX_VARIABLE && node->variable->is_static && node->variable->type->kind == TYPE_POINTER)
    *found = true;
  if (node->kind == SYNTAX_CALL && node->function != NULL && !*found) *found = touches_pointers(node->function);
  return !*found;
}

static bool touches_pointers(struct function *function) {
  if (function->role->touches_pointers == 0) {
    function->role->touches_pointers = -1; /* for what calls itself */
    bool found = false;
    syntax_visit(function->body, find_static_pointer, &found);
    if (found) function->role->touches_pointers = 1;
  }
  return function->role->touches_pointers > 0;
}

/* Room for real numbers, which a kernel gets without an extent. */
static bool is_room(const struct variable *parameter) {
  const struct type *type = parameter->type;
  return type->kind == TYPE_POINTER && type->element != NULL && type->element->kind == TYPE_REAL;
}

/* Whether an argument is the start of one slot of the arena, which may hold such numbers. */
static bool is_slot_for(const struct interp *interp, const struct type *element, const struct value *at) {
  return at->kind == VALUE_POINTER && at->object == interp->arena_object && at->slot_size >= 0 && at->low == 0 &&
         at->high == 0 && at->base_width == 0 && at->base % element->size == 0;
}

/* Whether its parameters are arrays with extents and numbers; in a call, `arguments`, a pointer may be to a slot too,
 * whose extent it takes. */
static bool has_kernel_parameters(const struct interp *interp, const struct function *function,
                                  const struct value *arguments) {
  int arrays = 0;
  for (int i = 0; i < function->n_parameters; i++) {
    const struct variable *parameter = function->parameters[i];
    const struct type *type = parameter->type;
    const bool array = type->kind == TYPE_ARRAY && type->count >= 0;
    const bool room = arguments != NULL && is_room(parameter) && is_slot_for(interp, type->element, &arguments[i]);
    if (!array && !room && (type->kind == TYPE_ARRAY || type->kind == TYPE_POINTER)) return false;
    arrays += array;
  }
  return arrays > 0 && function->n_parameters < 64;
}

bool interp_is_kernel(struct function *function) {
  if (function->role->elsewhere != NULL) return true; /* it launches some */
  if (function->role->is_kernel == 0) {
    bool kernel = function->body != NULL && !function->is_device && has_kernel_parameters(NULL, function, NULL) &&
                  !touches_pointers(function) && !interp_reaches_collective(function);
    function->role->is_kernel = kernel ? 1 : -1;
  }
  return function->role->is_kernel > 0;
}

/* Whether a call is that of a kernel too, with the slots that it gets. */
static bool calls_with_room(struct interp *interp, struct function *function, const struct value *arguments) {
  return has_kernel_parameters(interp, function, arguments) && function->result->kind == TYPE_VOID &&
         !function->is_device && interp_is_program(interp, function) && !touches_pointers(function) &&
         !interp_reaches_collective(function);
}

static bool find_kernel(struct syntax *node, void *data) {
  bool *found = data;
  if (node->kind == SYNTAX_CALL && node->function != NULL)
    *found = *found || interp_is_kernel(node->function) || interp_orchestrates(node->function);
  return !*found;
}

bool interp_orchestrates(struct function *function) {
  if (function->role->orchestrates == 0) {
    function->role->orchestrates = -1;
    bool found = false;
    syntax_visit(function->body, find_kernel, &found);
    function->role->orchestrates = found ? 1 : -1;
  }
  return function->role->orchestrates > 0;
}

/* ---- Frames ---- */

static void push_slots(struct interp *interp, const struct function *function) {
  for (int i = 0; i < function->n_slots; i++) interp_object(interp, OBJECT_LOCAL, NULL, "", NULL, -1);
}

static void bind(struct interp *interp, const struct frame *frame, const struct variable *parameter,
                 struct value value) {
  int object = frame->base + parameter->slot;
  interp->objects[object] = (struct object){.kind = OBJECT_LOCAL,
                                            .name = parameter->name,
                                            .variable = parameter,
                                            .type = parameter->type,
                                            .size = parameter->type->size};
  interp->states[object] = (struct state){.value = value_convert(value, parameter->type)};
  interp->states[object].written = interp_all_bytes(interp, parameter->type->size);
}

static struct value run_body(struct interp *interp, struct function *function, struct frame *frame) {
  struct frame *caller = interp->frame;
  bool was_in_step_path = interp->in_step_path;
  frame->caller = caller;
  function->role->is_followed = true;
  interp->frame = frame;
  interp->in_step_path = function->role->in_step_path;
  interp->depth++;
  if (interp->depth > interp->deepest) interp->deepest = interp->depth;
  enum flow flow = interp_statement(interp, function->body);
  if (flow != FLOW_RETURN && frame->returned) interp_agree(interp, &frame->at_return);
  interp->depth--;
  interp->in_step_path = was_in_step_path;
  interp->frame = caller;
  struct value result =
      frame->returned ? value_convert(frame->result, function->result) : value_of_type(function->result, 0);
  result.origin |= frame->chosen;
  return result;
}

/* ---- Arguments ---- */

static int64_t clamp(int64_t number, int64_t low, int64_t high) {
  return number < low ? low : number > high ? high : number;
}

/* The ends of a range stand for what is between, as in memory.c. */
static void check_argument_alignment(struct interp *interp, const struct syntax *argument,
                                     const struct variable *parameter, struct value value) {
  const int64_t needed = parameter->type->element->alignment, from = bounded_add(value.base, value.low);
  const int64_t to = bounded_add(bounded_add(value.base, value.base_width), value.high);
  if (needed <= 1 || (from % needed == 0 && to % needed == 0)) return;
  const bool certain = interp_imprecision(interp, value) == 0;
  interp_fail(interp, FAILURE_ALIGNMENT, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, argument,
              interp_imprecision(interp, value),
              "'%s' is at byte %lld of its object, but '%s' needs a multiple of %lld", interp_spell(interp, argument),
              (long long)(from % needed != 0 ? from : to), parameter->name, (long long)needed);
}

/* A pointer that is passed for a parameter with an extent: the parameter is its own slot of that many elements. */
static struct value narrow_argument(struct interp *interp, struct syntax *call, const struct function *function,
                                    int which, struct value value) {
  const struct variable *parameter = function->parameters[which];
  int64_t needed = parameter->type->count * parameter->type->element->size;
  if (value.kind != VALUE_POINTER || value.object < 0 || value.slot_size < 0) {
    if (!(value.origin & ORIGIN_REPORTED))
      interp_fail(interp, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, call->parts[which + 1],
                  interp_imprecision(interp, value), "what is passed for '%s' of %s is not known", parameter->name,
                  function->name);
    return value_unknown_pointer(value.origin | ORIGIN_REPORTED);
  }
  if (value.low < 0 || bounded_add(value.high, needed) > value.slot_size) {
    int64_t after = value.low < 0 ? 0 : value.slot_size - value.high, size = parameter->type->element->size;
    bool certain = interp_imprecision(interp, value) == 0;
    interp_fail(interp, FAILURE_BOUNDS, certain ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, call->parts[which + 1],
                interp_imprecision(interp, value), "'%s' of %s needs %lld elements; %s has %lld from there",
                parameter->name, function->name, (long long)parameter->type->count, interp_slot_name(interp, value),
                (long long)(after < 0 ? 0 : after / size));
  }
  check_argument_alignment(interp, call->parts[which + 1], parameter, value);
  value.low = clamp(value.low, 0, value.slot_size); /* what is inside is followed all the same */
  value.high = clamp(value.high, value.low, value.slot_size);
  value.linear = NULL;
  int64_t left = value.slot_size - value.high;
  value.base += value.low;
  value.base_width += value.high - value.low;
  value.low = value.high = 0;
  value.slot_size = left < needed ? left : needed;
  return value;
}

static void take_arguments(struct interp *interp, struct syntax *node, const struct function *function,
                           struct value *arguments) {
  for (int i = 0; i < function->n_parameters; i++) {
    const struct type *type = function->parameters[i]->type;
    arguments[i] = i + 1 < node->n_parts ? interp_evaluate(interp, node->parts[i + 1]) : value_of_type(type, 0);
    if (type->kind == TYPE_ARRAY && type->count >= 0 && function->role->in_step_path)
      arguments[i] = narrow_argument(interp, node, function, i, arguments[i]);
    bool constant = arguments[i].origin == 0 && (arguments[i].kind == VALUE_POINTER || arguments[i].is_known ||
                                                 arguments[i].low == arguments[i].high);
    if (!interp->in_step_path && function->role->in_step_path && !constant)
      arguments[i].origin = ORIGIN_STEP | (arguments[i].origin & (ORIGIN_UNTRACKED | ORIGIN_RANK));
  }
}

static struct value call_inline(struct interp *interp, struct function *function, const struct value *arguments) {
  struct frame frame = {.function = function, .base = interp->n_objects};
  push_slots(interp, function);
  for (int i = 0; i < function->n_parameters; i++) bind(interp, &frame, function->parameters[i], arguments[i]);
  struct value result = run_body(interp, function, &frame);
  interp_require_no_locals_in_flight(interp, function, frame.base);
  interp->n_objects = frame.base;
  return result;
}

/* ---- Kernels ---- */

static bool same_argument(const struct type *type, struct value a, struct value b) {
  if (type->kind == TYPE_ARRAY) return (a.object < 0) == (b.object < 0);
  if (type->kind == TYPE_POINTER) return a.slot_size == b.slot_size;
  if (type->kind == TYPE_INTEGER) return a.low == b.low && a.high == b.high && a.origin == b.origin;
  return a.origin == b.origin && a.is_known == b.is_known && (!a.is_known || a.real == b.real);
}

static bool same_content(struct content a, struct content b) {
  return a.known == b.known && (!a.known || (a.low == b.low && a.high == b.high && a.exact == b.exact &&
                                             grouping_same(a.grouping, b.grouping)));
}

static const struct summary *find_summary(const struct interp *interp, const struct function *function,
                                          const struct value *arguments, const struct content *contents) {
  for (int i = 0; i < interp->summaries.count; i++) {
    const struct summary *summary = &interp->summaries.items[i];
    bool same = summary->function == function;
    for (int j = 0; same && j < function->n_parameters; j++)
      same = same_argument(function->parameters[j]->type, summary->arguments[j], arguments[j]) &&
             same_content(summary->contents[j], contents[j]);
    if (same) return summary;
  }
  return NULL;
}

/* The parameters as objects of their own, in order; what is no array gets an object too, so that indices agree. */
static void push_parameters(struct interp *interp, const struct function *function, const struct value *arguments,
                            const struct content *contents, struct value *inner) {
  for (int i = 0; i < function->n_parameters; i++) {
    const struct variable *parameter = function->parameters[i];
    const struct type *type = parameter->type;
    bool array = type->kind == TYPE_ARRAY, room = is_room(parameter);
    int64_t size = array ? type->count * type->element->size : room ? arguments[i].slot_size : 0;
    int object = interp_object(interp, OBJECT_PARAMETER, parameter, parameter->name, type, size);
    interp->states[object].content = contents[i];
    inner[i] = (array || room) && arguments[i].object >= 0 ? interp_address(interp, object) : arguments[i];
    inner[i].linear = NULL;
  }
}

static void move_failures(struct interp *interp, int from) {
  for (int i = from; i < interp->failures.count; i++)
    ARENA_PUSH(interp->memory, interp->kernel_failures, interp->failures.items[i]);
  interp->failures.count = from;
}

/* A kernel that declares an extent and does not access elements at an end contradicts it. */
static void check_extents(struct interp *interp, const struct function *function, int first) {
  for (int i = 0; i < function->n_parameters; i++) {
    const struct state *state = &interp->states[first + i];
    const struct object *object = &interp->objects[first + i];
    const struct ranges *ranges = state->written != NULL ? state->written : state->exposed;
    if (object->size <= 0 || object->type->kind != TYPE_ARRAY || ranges == NULL || state->by_data) continue;
    int64_t from = ranges->items[0].from, to = ranges->items[ranges->count - 1].to;
    int64_t size = object->type->element->size;
    struct syntax definition = {.where = function->where};
    if (from > 0 || to < object->size)
      interp_fail(interp, FAILURE_PARTIAL, VERDICT_BROKEN, &definition, 0,
                  "%s %s elements %lld to %lld of '%s', which has %lld", function->name,
                  state->written != NULL ? "writes" : "reads", (long long)(from / size), (long long)(to / size - 1),
                  object->name, (long long)object->type->count);
  }
}

static void *copy_of(struct interp *interp, const void *items, size_t size) {
  return memcpy(arena_alloc(interp->memory, size), items, size);
}

static const struct summary *summarise(struct interp *interp, struct function *function, const struct value *arguments,
                                       const struct content *contents) {
  size_t count = (size_t)function->n_parameters + 1;
  const struct ranges **read = arena_alloc(interp->memory, count * sizeof(const struct ranges *));
  const struct ranges **written = arena_alloc(interp->memory, count * sizeof(const struct ranges *));
  struct content *stored = arena_alloc(interp->memory, count * sizeof *stored);
  uint64_t *noalias = arena_alloc(interp->memory, count * sizeof *noalias);
  struct value *inner = arena_alloc(interp->memory, count * sizeof *inner);
  int first = interp->n_objects, failures = interp->failures.count, loops = interp->n_loops;
  int outer_first = interp->first_parameter;
  int64_t budget = interp->budget;
  push_parameters(interp, function, arguments, contents, inner);
  interp->first_parameter = first;
  interp->n_loops = 0;
  int64_t iterations = interp->iterations;
  interp->iterations = 1;
  interp->sorted_index = -1;
  interp->rows.object = -1;
  uint64_t guards = interp->guards;
  interp->guards = 0;
  interp->in_kernel = true;
  struct sharing *sharing = arena_alloc(interp->memory, sizeof *sharing);
  interp->sharing = sharing;
  const int symbols = interp->symbols.count;
  const struct arena_mark forms = arena_mark(interp->forms);
  const bool has_open_races = interp->has_open_races;
  const int rehearsals = interp->rehearsals;
  interp->has_open_races = false;
  interp->rehearsals = 0;
  interp->budget = 200000;
  call_inline(interp, function, inner);
  interp_end_rows(interp, function->body);
  interp->budget = budget;
  interp->in_kernel = false;
  interp->guards = guards;
  interp->n_loops = loops;
  interp->iterations = iterations;
  interp->first_parameter = outer_first;
  check_extents(interp, function, first);
  move_failures(interp, failures);
  for (int i = 0; i < function->n_parameters; i++) {
    read[i] = interp->states[first + i].exposed;
    written[i] = interp->states[first + i].written;
    stored[i] = interp->states[first + i].stored;
    noalias[i] = interp->states[first + i].noalias;
  }
  interp->symbols.count = symbols;
  arena_release(interp->forms, forms);
  interp->has_open_races = has_open_races;
  interp->rehearsals = rehearsals;
  interp->n_objects = first;
  interp->n_kernels++;
  struct summary summary = {function,
                            copy_of(interp, arguments, count * sizeof *arguments),
                            copy_of(interp, contents, count * sizeof *contents),
                            read,
                            written,
                            stored,
                            noalias,
                            sharing};
  if (interp->in_step_path) { /* no claims about what is called at the start alone */
    ARENA_PUSH(interp->memory, interp->summaries, summary);
    return &interp->summaries.items[interp->summaries.count - 1];
  }
  struct summary *once = arena_alloc(interp->memory, sizeof *once);
  *once = summary;
  return once;
}

static void apply_ranges(struct interp *interp, struct syntax *node, int which, struct value pointer,
                         const struct ranges *ranges, bool is_write) {
  for (int i = 0; ranges != NULL && pointer.object >= 0 && i < ranges->count; i++) {
    struct value at = pointer;
    int64_t from = ranges->items[i].from, to = ranges->items[i].to;
    at.low = at.high = from;
    if (to > pointer.slot_size) to = pointer.slot_size; /* what is missing was reported at the argument */
    if (from < to) interp_access(interp, at, to - from, is_write, node->parts[which + 1]);
  }
}

/* Parameters of one call that share memory though one is written: as different members of a union, or where the
 * kernel hands both to a function that does not allow it. */
static void check_noalias(struct interp *interp, struct syntax *node, const struct summary *summary,
                          const struct value *arguments) {
  int count = summary->function->n_parameters;
  for (int i = 0; i < count; i++)
    for (int j = 0; j < count; j++) {
      if (i == j || summary->written[i] == NULL) continue;
      bool used = summary->read[j] != NULL || summary->written[j] != NULL;
      bool noalias = (summary->noalias[i] >> j & 1) != 0;
      if (noalias || (used && paths_exclude(arguments[i].path, arguments[j].path)))
        interp_require_noalias(interp, node, summary->function->name, arguments[i], arguments[j]);
    }
}

/* Memory that is two parameters, one of which a region of the kernel writes: each of its iterations, or of its threads,
 * must have the same part of both. */
static void check_sharing(struct interp *interp, struct syntax *node, const struct summary *summary,
                          const struct value *arguments) {
  const struct function *function = summary->function;
  for (int i = 0; i < function->n_parameters; i++)
    for (int j = i + 1; j < function->n_parameters && summary->sharing->both[i] != 0; j++) {
      const struct value a = arguments[i], b = arguments[j];
      if ((summary->sharing->both[i] >> j & 1) == 0 || !interp_may_overlap(a, b)) continue;
      const bool known = a.base_width == 0 && b.base_width == 0 && a.low == a.high && b.low == b.high;
      if (known && !interp_region_races(summary->sharing, i, j, b.base + b.low - a.base - a.low)) continue;
      interp_fail(interp, FAILURE_RACE, interp_imprecision(interp, a) == 0 ? VERDICT_BROKEN : VERDICT_CANNOT_TELL, node,
                  0, "'%s' and '%s' of %s share %s, where other iterations or threads use one while it is written",
                  function->parameters[i]->name, function->parameters[j]->name, function->name,
                  interp_slot_name(interp, a));
    }
  for (int i = 0; i < summary->sharing->named.count; i++) {
    const struct named_object named = summary->sharing->named.items[i];
    if (arguments[named.parameter].object != named.object) continue;
    interp_fail(interp, FAILURE_RACE, VERDICT_CANNOT_TELL, node, 0, "'%s' of %s is %s, which it also uses by its name",
                function->parameters[named.parameter]->name, function->name, interp->objects[named.object].name);
  }
}

/* The integers that a kernel left in a parameter; not known when it wrote a part alone. */
static void set_stored(struct interp *interp, const struct type *type, struct value pointer,
                       const struct ranges *written, struct content stored) {
  int64_t missing;
  if (type->element == NULL || type->element->kind != TYPE_INTEGER || pointer.object < 0) return;
  if (!ranges_cover(written, 0, pointer.slot_size, &missing)) stored.known = false;
  interp_set_content(interp, pointer, pointer.slot_size, stored);
}

static bool has_integers(const struct function *function, int parameter) {
  const struct type *type = function->parameters[parameter]->type;
  return type->kind == TYPE_ARRAY && type->element->kind == TYPE_INTEGER;
}

/* Whether a kernel may change the integers of a parameter through another one. */
static bool shares_integers(const struct function *function, const struct value *arguments, int parameter) {
  for (int i = 0; i < function->n_parameters; i++)
    if (i != parameter && has_integers(function, i) && interp_may_overlap(arguments[i], arguments[parameter]))
      return true;
  return false;
}

static struct value call_kernel(struct interp *interp, struct syntax *node, struct function *function,
                                const struct value *arguments) {
  struct content *contents = arena_alloc(interp->arguments, ((size_t)function->n_parameters + 1) * sizeof *contents);
  for (int i = 0; i < function->n_parameters; i++)
    if (has_integers(function, i) && !shares_integers(function, arguments, i))
      contents[i] = interp_content(interp, arguments[i]);
  for (int i = 0; i < function->n_parameters; i++) interp_grouping_enters(interp, function, arguments, &contents[i]);
  const struct summary *summary = find_summary(interp, function, arguments, contents);
  if (summary == NULL) summary = summarise(interp, function, arguments, contents);
  struct summary copy = *summary;
  check_noalias(interp, node, &copy, arguments);
  check_sharing(interp, node, &copy, arguments);
  for (int i = 0; i < function->n_parameters; i++) apply_ranges(interp, node, i, arguments[i], copy.read[i], false);
  for (int i = 0; i < function->n_parameters; i++) {
    apply_ranges(interp, node, i, arguments[i], copy.written[i], true);
    struct content stored = copy.stored[i];
    interp_grouping_leaves(interp, function, arguments, copy.written, &stored);
    if (copy.written[i] != NULL)
      set_stored(interp, function->parameters[i]->type, arguments[i], copy.written[i], stored);
  }
  return value_of_type(function->result, ORIGIN_DATA);
}

/* ---- All ---- */

static struct value call_other(struct interp *interp, struct syntax *node) {
  struct value *arguments =
      arena_alloc(interp->arguments, ((size_t)node->n_parts + SPARE_ARGUMENTS) * sizeof *arguments);
  for (int i = 1; i < node->n_parts; i++) arguments[i - 1] = interp_evaluate(interp, node->parts[i]);
  if (node->function == NULL || node->function->body != NULL) {
    interp_lose_track(interp, node, node->function == NULL ? "a call through a pointer" : "this call");
    return value_of_type(node->type, ORIGIN_CONFIG);
  }
  return interp_external(interp, node, arguments, node->n_parts - 1);
}

void interp_run(struct interp *interp, struct function *function, const struct value *arguments) {
  call_inline(interp, function, arguments);
}

static struct value call(struct interp *interp, struct syntax *node) {
  struct function *function = node->function;
  if (function != NULL && function->role->elsewhere != NULL) function = function->role->elsewhere;
  bool reads_result =
      interp->starts || interp->depth > 0; /* the interpreted function reads there what a function leaves */
  bool followed = function != NULL && function->body != NULL &&
                  (function->role->in_step_path || reads_result || interp_reaches_collective(function)) &&
                  interp->depth < DEEPEST_CALL;
  if (!followed) return call_other(interp, node);
  struct value *arguments = arena_alloc(interp->arguments, ((size_t)function->n_parameters + 1) * sizeof *arguments);
  bool was_in_step_path = interp->in_step_path;
  take_arguments(interp, node, function, arguments);
  uint64_t guards = interp->guards;
  if (!was_in_step_path && function->role->in_step_path)
    interp->guards = 0; /* the claims are about what a step does when it is taken */
  interp->in_step_path = function->role->in_step_path;
  int kernel_base = interp->kernel_base;
  if (function->role->is_launched && kernel_base == 0) {
    interp->kernel_base = interp->n_objects;
    for (int i = 0; i < function->n_parameters && i + 1 < node->n_parts; i++)
      if (arguments[i].kind == VALUE_POINTER) interp_check_address_space(interp, arguments[i], node->parts[i + 1]);
  }
  int64_t budget = interp->budget;
  interp->taking_step += function->role->is_root;
  struct value result = value_of_type(function->result, 0);
  const bool entered = interp_grid_enters(interp, node, function);
  const bool is_kernel = interp_is_kernel(function) || calls_with_room(interp, function, arguments);
  if (is_kernel && !interp->in_kernel && interp->region == NULL)
    result = call_kernel(interp, node, function, arguments);
  else if (interp->region != NULL || !interp_call_again(interp, function, arguments))
    result = call_inline(interp, function, arguments);
  interp_grid_leaves(interp, entered);
  interp->taking_step -= function->role->is_root;
  interp->budget = budget;
  interp->kernel_base = kernel_base;
  interp->in_step_path = was_in_step_path;
  interp->guards = guards;
  bool is_step = interp->audit->root != NULL && strcmp(function->name, interp->audit->root) == 0;
  if (is_step) interp_require_none_in_flight(interp, function->where, "the step ends");
  return result;
}

struct value interp_call(struct interp *interp, struct syntax *node) {
  const struct arena_mark before = arena_mark(interp->arguments);
  const struct value result = call(interp, node);
  arena_release(interp->arguments, before);
  return result;
}
