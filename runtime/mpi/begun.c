#include "runtime/mpi/begun.h"

#include "runtime/mpi/channel.h"
#include "runtime/process/problem.h"

#include <stdlib.h>

struct begun_list rt_sums = {.what = "the sum of gradients"}, rt_gathers = {.what = "the weights of all ranks"};

static void make_room(struct begun_list *list) {
  struct problem problem;
  int before = list->capacity;
  if (list->count < before) return;
  list->capacity = before > 0 ? 2 * before : 64;
  list->requests = realloc(list->requests, (size_t)list->capacity * sizeof *list->requests);
  list->items = realloc(list->items, (size_t)list->capacity * sizeof *list->items);
  list->counts = realloc(list->counts, (size_t)list->capacity * sizeof *list->counts);
  rt_problem(&problem, "no memory for the list of collectives");
  if (list->requests == NULL || list->items == NULL || list->counts == NULL) rt_fail(&problem, 1);
  for (int i = before; i < list->capacity; i++) list->counts[i] = NULL;
}

int *rt_begun_counts(struct begun_list *list, int ranks, size_t piece, size_t last) {
  make_room(list);
  int **counts = &list->counts[list->count];
  *counts = rt_piece_counts(*counts, ranks, piece, last);
  return *counts;
}

void rt_begun_add(struct begun_list *list, MPI_Request request, struct begun item) {
  make_room(list);
  list->requests[list->count] = request;
  list->items[list->count++] = item;
}

void rt_begun_advance(struct begun_list *list) {
  int done;
  if (list->count > list->ended)
    rt_mpi_check(MPI_Testall(list->count - list->ended, list->requests + list->ended, &done, MPI_STATUSES_IGNORE),
                 list->what);
}

static bool is_over(void *at) {
  const struct begun *item = at;
  return rt_shared_has_ended(item->shared, item->number);
}

void rt_begun_wait(struct begun_list *list, int count) {
  for (; list->ended < count && list->ended < list->count; list->ended++) {
    struct begun *item = &list->items[list->ended];
    if (item->shared != NULL)
      rt_wait_until(is_over, item, list->what);
    else
      rt_mpi_wait(&list->requests[list->ended], list->what);
    if (item->end != NULL) item->end(item);
  }
}

void rt_begun_wait_all(struct begun_list *list) {
  rt_begun_wait(list, list->count);
  list->count = list->ended = 0;
}
