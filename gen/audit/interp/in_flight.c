#include "gen/audit/interp/in_flight.h"

void in_flight_start(struct arena *arena, struct in_flight *list, struct transfer transfer) {
  struct transfer *item = arena_alloc(arena, sizeof *item);
  *item = transfer;
  item->older = list->newest;
  item->number = list->sums;
  list->newest = item;
  if (item->queue == TRANSFER_SUM) list->sums++;
}

int in_flight_end(struct arena *arena, struct in_flight *list,
                  bool (*ends)(const struct transfer *item, const void *with), const void *with) {
  const struct transfer *oldest_ended = NULL;
  int ended = 0;
  for (const struct transfer *item = list->newest; item != NULL; item = item->older)
    if (ends(item, with)) {
      oldest_ended = item;
      ended++;
    }
  if (ended == 0) return 0;
  const struct transfer **end = &list->newest; /* where the rest of the list that is made goes */
  for (const struct transfer *item = list->newest; item != oldest_ended; item = item->older) {
    if (ends(item, with)) continue;
    struct transfer *copy = arena_alloc(arena, sizeof *copy);
    *copy = *item;
    *end = copy;
    end = &copy->older;
  }
  *end = oldest_ended->older;
  return ended;
}

int in_flight_count(const struct in_flight *list) {
  int count = 0;
  for (const struct transfer *item = list->newest; item != NULL; item = item->older) count++;
  return count;
}

static bool is_same(const struct transfer *a, const struct transfer *b) {
  if (a->node != b->node || a->queue != b->queue || a->number != b->number || a->n_memory != b->n_memory) return false;
  for (int i = 0; i < a->n_memory; i++) {
    const struct transfer_memory *x = &a->memory[i], *y = &b->memory[i];
    if (x->object != y->object || x->from != y->from || x->to != y->to || x->use != y->use || x->exact != y->exact)
      return false;
  }
  return true;
}

bool in_flight_same(const struct in_flight *a, const struct in_flight *b, const struct transfer **other) {
  const struct transfer *x = a->newest, *y = b->newest;
  while (x != y && x != NULL && y != NULL && is_same(x, y)) {
    x = x->older;
    y = y->older;
  }
  *other = NULL;
  if (x == y) return a->sums == b->sums;
  *other = x == NULL || (y != NULL && in_flight_count(b) > in_flight_count(a)) ? y : x;
  return false;
}
