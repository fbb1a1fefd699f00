/* Counting sorts: what their arrays hold. */
#include "gen/audit/interp/grouping.h"

#include "gen/audit/interp/loop.h"

bool linear_same_element(const struct linear *a, const struct linear *b) {
  return a->starts == b->starts && a->element == b->element;
}

bool grouping_same(const struct grouping *a, const struct grouping *b) {
  if (a == NULL || b == NULL) return a == b;
  return a->kind == b->kind && a->total == b->total && a->from_zero == b->from_zero && a->index_from == b->index_from &&
         a->index_to == b->index_to && a->index_parameter == b->index_parameter;
}

static const struct grouping *make(struct interp *interp, struct grouping grouping) {
  struct grouping *made = arena_alloc(interp->memory, sizeof *made);
  *made = grouping;
  return made;
}

/* An expression without casts that keep its value, as those to 32 bits do of what an array of int counts. */
static struct syntax *plain(struct syntax *node) {
  while (node->kind == SYNTAX_CAST && node->type->kind == TYPE_INTEGER && node->type->size >= 4) node = node->parts[0];
  return node;
}

/* ---- Each element of an array once ---- */

/* A sum of loop counters times factors. */
struct affine {
  int64_t factors[MAX_LOOPS], constant;
  bool known;
};

static void add_affine(const struct interp *interp, struct syntax *node, int64_t times, struct affine *sum) {
  int64_t number;
  node = plain(node);
  if (constant_integer(node, &number)) {
    sum->constant = bounded_add(sum->constant, bounded_multiply(times, number));
    return;
  }
  if (node->kind == SYNTAX_BINARY && node->operation == OPERATOR_ADD) {
    add_affine(interp, node->parts[0], times, sum);
    add_affine(interp, node->parts[1], times, sum);
    return;
  }
  if (node->kind == SYNTAX_BINARY && node->operation == OPERATOR_MULTIPLY &&
      constant_integer(node->parts[1], &number)) {
    add_affine(interp, node->parts[0], bounded_multiply(times, number), sum);
    return;
  }
  if (node->kind == SYNTAX_VARIABLE && node->variable->is_constant && node->variable->initial != NULL &&
      !node->variable->is_static) {
    add_affine(interp, node->variable->initial, times, sum);
    return;
  }
  for (int i = 0; node->kind == SYNTAX_VARIABLE && i < interp->n_loops; i++)
    if (interp->open[i].counter == node->variable) {
      sum->factors[i] = bounded_add(sum->factors[i], times);
      return;
    }
  sum->known = false;
}

/* Whether the open loops' iterations give an expression each of 0 .. count - 1 once: as digits of a number in mixed
 * radix. */
static bool visits_each_once(const struct interp *interp, struct syntax *position, int64_t count) {
  struct affine sum = {.known = true};
  int64_t weight = 1;
  add_affine(interp, position, 1, &sum);
  if (!sum.known || sum.constant != 0 || interp->guards != 0) return false;
  for (int digits = 0; digits < interp->n_loops; digits++) { /* the next digit is that of this weight */
    int next = -1;
    for (int i = 0; i < interp->n_loops; i++) {
      if (!interp->open[i].is_whole) return false;
      if (interp->open[i].count > 1 && sum.factors[i] == weight) next = i;
    }
    if (next < 0) break;
    weight = bounded_multiply(weight, interp->open[next].count);
  }
  int64_t iterations = 1;
  for (int i = 0; i < interp->n_loops; i++) iterations = bounded_multiply(iterations, interp->open[i].count);
  return weight == count && iterations == count && interp->iterations == count;
}

/* The kernel's parameter of which `group` is an element, where the open loops go through each of its elements once; -1:
 * it is none. */
static int grouped_parameter(struct interp *interp, struct syntax *group) {
  group = plain(group);
  if (group->kind != SYNTAX_VARIABLE || !group->variable->is_constant || group->variable->initial == NULL ||
      group->variable->is_static || group->variable->type->size != 4)
    return -1;
  struct syntax *element = plain(group->variable->initial);
  if (element->kind != SYNTAX_INDEX || !interp->in_kernel) return -1;
  struct syntax *array = syntax_bare(element->parts[0]);
  if (array->kind != SYNTAX_VARIABLE || !array->variable->is_parameter) return -1;
  struct value at = interp->states[interp_variable(interp, array->variable)].value;
  if (at.kind != VALUE_POINTER || at.object < interp->first_parameter || at.base != 0 || at.low != 0 || at.high != 0 ||
      interp->objects[at.object].kind != OBJECT_PARAMETER || interp->states[at.object].written != NULL)
    return -1;
  const struct object *object = &interp->objects[at.object];
  int64_t count = object->type->kind == TYPE_ARRAY ? object->type->count : -1;
  bool once = count > 0 && at.slot_size == object->size && visits_each_once(interp, element->parts[1], count);
  return once ? at.object - interp->first_parameter : -1;
}

/* ---- Counts and cursors ---- */

/* group of group + 1; NULL: it is something else. */
static struct syntax *before_one(struct syntax *node) {
  int64_t one;
  node = plain(node);
  bool adds = node->kind == SYNTAX_BINARY && node->operation == OPERATOR_ADD;
  return adds && constant_integer(node->parts[1], &one) && one == 1 ? node->parts[0] : NULL;
}

static void set_contents(struct interp *interp, int object, int64_t high, const struct grouping *grouping) {
  struct state *state = &interp->states[object];
  state->content = (struct content){.known = true, .low = 0, .high = high, .grouping = grouping};
  if (interp->objects[object].kind == OBJECT_PARAMETER) state->stored = state->content;
}

/* An element of an array of zeros, or of counts, is one more: so is their sum. */
static const struct grouping *count(struct interp *interp, struct syntax *node, struct content before) {
  const struct grouping *counts = before.grouping;
  bool first = before.known && before.exact && before.low == 0 && before.high == 0;
  bool more = counts != NULL && counts->kind == GROUPING_COUNTS;
  if (!first && !more) return NULL;
  struct grouping made = {.kind = GROUPING_COUNTS, .index_parameter = -1};
  made.total = bounded_add(more ? counts->total : 0, interp->iterations);
  struct syntax *group = before_one(syntax_bare(node->parts[0])->parts[1]);
  int parameter = first && group != NULL ? grouped_parameter(interp, group) : -1;
  if (parameter >= 0) {
    made.from_zero = true;
    made.index_parameter = parameter;
    made.index_to = interp->objects[interp->first_parameter + parameter].size;
  }
  return made.total <= INT32_MAX ? make(interp, made) : NULL;
}

/* A start of the group that each element of what was counted has, and of no other element: it stays below the start of
 * the next group. */
static const struct grouping *move_cursor(struct interp *interp, struct syntax *node, struct content before) {
  const struct grouping *starts = before.grouping;
  if (starts == NULL || starts->kind != GROUPING_STARTS || starts->index_to == 0 || node->prefix) return NULL;
  int parameter = grouped_parameter(interp, syntax_bare(node->parts[0])->parts[1]);
  if (parameter < 0 || parameter != starts->index_parameter) return NULL;
  struct grouping cursors = *starts;
  cursors.kind = GROUPING_CURSORS;
  interp->sorted_index = interp->first_parameter + parameter;
  return make(interp, cursors);
}

struct content interp_content_before(const struct interp *interp, const struct syntax *node, struct lvalue lvalue) {
  bool is_element = syntax_bare(node->parts[0])->kind == SYNTAX_INDEX && lvalue.type->kind == TYPE_INTEGER &&
                    lvalue.type->size == 4 && lvalue.at.object >= 0 && node->integer == 1;
  if (!is_element || interp->objects[lvalue.at.object].kind == OBJECT_ARENA) return (struct content){0};
  return interp->states[lvalue.at.object].content;
}

void interp_count(struct interp *interp, struct syntax *node, struct lvalue lvalue, struct content before,
                  struct value *old) {
  int object = lvalue.at.object;
  if (!before.known || object < 0) return;
  const struct grouping *grouping = move_cursor(interp, node, before);
  if (grouping != NULL) {
    old->low = 0;
    old->high = grouping->total - 1;
    set_contents(interp, object, grouping->total, grouping);
    return;
  }
  grouping = count(interp, node, before);
  if (grouping != NULL) set_contents(interp, object, grouping->total, grouping);
}

/* ---- Prefix sums ---- */

/* The array of y[g + 1] += y[g]; NULL: it is something else. */
static const struct variable *summed_array(struct syntax *body, const struct variable *counter) {
  while (body->kind == SYNTAX_BLOCK && body->n_parts == 1) body = body->parts[0];
  body = syntax_bare(body);
  if (body->kind != SYNTAX_ASSIGN || body->operation != OPERATOR_ADD) return NULL;
  struct syntax *to = syntax_bare(body->parts[0]), *from = syntax_bare(body->parts[1]);
  if (to->kind != SYNTAX_INDEX || from->kind != SYNTAX_INDEX) return NULL;
  struct syntax *array = syntax_bare(to->parts[0]), *other = syntax_bare(from->parts[0]);
  struct syntax *next = before_one(to->parts[1]), *own = plain(from->parts[1]);
  bool sums = next != NULL && own->kind == SYNTAX_VARIABLE && own->variable == counter &&
              plain(next)->kind == SYNTAX_VARIABLE && plain(next)->variable == counter;
  bool same = array->kind == SYNTAX_VARIABLE && other->kind == SYNTAX_VARIABLE && array->variable == other->variable;
  return sums && same ? array->variable : NULL;
}

int interp_sums_counts(struct interp *interp, struct syntax *loop, const struct variable *counter, int64_t first,
                       int64_t iterations, const struct grouping **starts) {
  const struct variable *array = summed_array(loop->parts[3], counter);
  if (array == NULL || first != 0 || interp->guards != 0 || interp->n_loops != 0) return -1;
  struct value at = interp->states[interp_variable(interp, array)].value;
  int object = array->is_parameter && at.kind == VALUE_POINTER ? at.object : interp_variable(interp, array);
  if (object < 0 || (array->is_parameter && (at.base != 0 || at.low != 0 || at.high != 0))) return -1;
  const struct type *type = interp->objects[object].type;
  const struct grouping *counts = interp->states[object].content.grouping;
  bool all = type != NULL && type->kind == TYPE_ARRAY && type->element->size == 4 && type->count == iterations + 1;
  if (!all || counts == NULL || counts->kind != GROUPING_COUNTS) return -1;
  struct grouping made = *counts;
  made.kind = GROUPING_STARTS;
  *starts = make(interp, made);
  return object;
}

void interp_set_starts(struct interp *interp, int object, const struct grouping *starts) {
  set_contents(interp, object, starts->total, starts);
}

const struct grouping *interp_starts_up_to(struct interp *interp, int64_t total) {
  return make(interp,
              (struct grouping){.kind = GROUPING_STARTS, .total = total, .from_zero = true, .index_parameter = -1});
}

/* ---- Into kernels and out of them ---- */

static bool is_range(const struct interp *interp, struct value at, int64_t from, int64_t bytes) {
  return at.kind == VALUE_POINTER && at.object == interp->arena_object && at.base_width == 0 && at.low == at.high &&
         at.base + at.low == from && bytes > 0;
}

void interp_grouping_enters(struct interp *interp, const struct function *function, const struct value *arguments,
                            struct content *content) {
  const struct grouping *outer = content->grouping;
  if (outer == NULL) return;
  struct grouping inner = *outer;
  inner.index_parameter = -1;
  inner.index_from = inner.index_to = 0;
  for (int i = 0; outer->index_to > 0 && i < function->n_parameters; i++) {
    const struct type *type = function->parameters[i]->type;
    int64_t bytes = type->kind == TYPE_ARRAY && type->count > 0 ? type->count * type->element->size : 0;
    if (!is_range(interp, arguments[i], outer->index_from, bytes) || bytes != outer->index_to - outer->index_from)
      continue;
    inner.index_parameter = i;
    inner.index_to = bytes;
  }
  content->grouping = make(interp, inner);
}

void interp_grouping_leaves(struct interp *interp, const struct function *function, const struct value *arguments,
                            const struct ranges *const *written, struct content *content) {
  const struct grouping *inner = content->grouping;
  if (inner == NULL) return;
  struct grouping outer = *inner;
  int parameter = inner->index_parameter;
  outer.index_parameter = -1;
  outer.index_from = outer.index_to = 0;
  for (int i = 0; parameter >= 0 && i < function->n_parameters; i++)
    if (i != parameter && written[i] != NULL && interp_may_overlap(arguments[i], arguments[parameter])) parameter = -1;
  if (parameter >= 0 && parameter < function->n_parameters && inner->index_to > 0 && written[parameter] == NULL &&
      is_range(interp, arguments[parameter], arguments[parameter].base + arguments[parameter].low, inner->index_to)) {
    outer.index_from = arguments[parameter].base + arguments[parameter].low;
    outer.index_to = outer.index_from + inner->index_to;
  }
  content->grouping = inner->kind == GROUPING_STARTS ? make(interp, outer) : NULL;
}

const struct grouping *interp_grouping_after_write(struct interp *interp, const struct grouping *grouping, int64_t from,
                                                   int64_t to) {
  if (grouping == NULL || grouping->index_to == 0 || to <= grouping->index_from || from >= grouping->index_to)
    return grouping;
  struct grouping other = *grouping;
  other.index_from = other.index_to = 0;
  return make(interp, other);
}
