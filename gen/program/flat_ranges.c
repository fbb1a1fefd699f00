#include "gen/program/flat_ranges.h"

void flat_range_add(struct program *program, struct flat_range_list *list, struct flat_range range) {
  if (list->first_of == NULL)
    list->first_of = arena_alloc(program->arena, (size_t)program->weights->count * sizeof *list->first_of);
  int *first = &list->first_of[range.weight - program->weights->items];
  range.again = range.shared = *first > 0;
  if (*first > 0)
    list->items[*first - 1].shared = true;
  else
    *first = list->count + 1;
  ARENA_PUSH(program->arena, *list, range);
}

const struct flat_range *flat_range_of(const struct program *program, const struct flat_range_list *list,
                                       const struct weight *weight) {
  const int first = list->first_of != NULL ? list->first_of[weight - program->weights->items] : 0;
  return first > 0 ? &list->items[first - 1] : NULL;
}
