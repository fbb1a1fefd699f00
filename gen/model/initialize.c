/* Initial values: {...} with and without designators and inner braces, as C17 6.7.9 says. */
#include "gen/model/evaluate.h"

/* The items of a {...} that are still to be assigned. */
struct items {
  const struct syntax *list;
  int next;
};

static void fill_braced(struct evaluator *evaluator, const struct type *type, struct cvalue *target,
                        const struct syntax *list);

static bool takes_whole(const struct type *type, const struct syntax *item) {
  return !ctype_is_aggregate(type) || item->kind == SYNTAX_LIST || ctype_of(item->type) == CTYPE_STRUCT;
}

static void no_text_array(struct evaluator *evaluator, const struct type *type, const struct syntax *item) {
  if (ctype_of(type) == CTYPE_ARRAY && ctype_of(item->type) == CTYPE_ARRAY && item->kind != SYNTAX_LIST)
    evaluate_fail(evaluator, item->where, "write const char *name = \"...\"",
                  "a model cannot use an array of characters");
}

/* One object from one item: a value, or a {...} of its own. */
static void fill_whole(struct evaluator *evaluator, const struct type *type, struct cvalue *target,
                       const struct syntax *item) {
  if (item->kind == SYNTAX_LIST && ctype_is_aggregate(type)) {
    if (ctype_of(type) == CTYPE_ARRAY) *target = new_value(evaluator, type, true, item->where); /* C17 6.7.9, 21 */
    fill_braced(evaluator, type, target, item);
    return;
  }
  if (item->kind == SYNTAX_LIST && item->n_parts == 1) item = item->parts[0]; /* int n = {3} */
  no_text_array(evaluator, type, item);
  store_value(evaluator, target, evaluate(evaluator, item), type, NULL, item->where);
}

/* One object from as many items of the surrounding {...} as it has elements: inner braces may be left out. */
static void fill_flat(struct evaluator *evaluator, const struct type *type, struct cvalue *target,
                      struct items *items) {
  no_text_array(evaluator, type, items->list->parts[items->next]);
  if (takes_whole(type, items->list->parts[items->next])) {
    fill_whole(evaluator, type, target, items->list->parts[items->next++]);
    return;
  }
  for (int64_t i = 0; i < target->count && items->next < items->list->n_parts; i++) {
    if (items->list->parts[items->next]->kind == SYNTAX_DESIGNATED) return;
    fill_flat(evaluator, ctype_part(type, i), &target->items[i], items);
  }
}

/* The index that a designator names in an object of a type. */
static int64_t step_index(struct evaluator *evaluator, const struct type *type, const struct cvalue *target,
                          const struct syntax *step) {
  int64_t index = -1;
  if (step->kind == SYNTAX_DESIGNATOR) {
    if (ctype_of(type) == CTYPE_STRUCT) index = type_member(type, step->text);
  } else {
    struct cvalue value = evaluate(evaluator, step);
    if (ctype_of(type) == CTYPE_ARRAY && value.kind == CVALUE_INTEGER) index = value.integer;
  }
  if (index < 0 || target->kind != CVALUE_AGGREGATE || index >= target->count)
    evaluate_fail(evaluator, step->where, NULL, "a model cannot use this designator");
  return index;
}

/* .a[1].b = value: gives the index of its first step, where the list continues. */
static int64_t fill_designated(struct evaluator *evaluator, const struct type *type, struct cvalue *target,
                               const struct syntax *item) {
  int64_t first = -1;
  for (int i = 0; i + 1 < item->n_parts; i++) {
    int64_t index = step_index(evaluator, type, target, item->parts[i]);
    if (i == 0) first = index;
    type = ctype_part(type, index);
    target = &target->items[index];
  }
  fill_whole(evaluator, type, target, item->parts[item->n_parts - 1]);
  return first;
}

static void fill_braced(struct evaluator *evaluator, const struct type *type, struct cvalue *target,
                        const struct syntax *list) {
  struct items items = {list, 0};
  int64_t position = 0;
  while (items.next < list->n_parts) {
    const struct syntax *item = list->parts[items.next];
    evaluate_step(evaluator, item->where, 1);
    if (item->kind == SYNTAX_DESIGNATED) {
      position = fill_designated(evaluator, type, target, item) + 1;
      items.next++;
      continue;
    }
    if (position >= target->count) return; /* the compiler has warned */
    fill_flat(evaluator, ctype_part(type, position), &target->items[position], &items);
    position++;
  }
}

struct cvalue initialize(struct evaluator *evaluator, const struct type *type, const struct syntax *initial,
                         bool partial) {
  struct cvalue made;
  if (initial->kind == SYNTAX_LIST) {
    made = new_value(evaluator, type, !partial, initial->where);
    fill_whole(evaluator, type, &made, initial);
  } else {
    no_text_array(evaluator, type, initial);
    made = (struct cvalue){.kind = CVALUE_UNSET};
    store_value(evaluator, &made, evaluate(evaluator, initial), type, NULL, initial->where);
  }
  return made;
}
