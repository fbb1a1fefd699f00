#include "runtime/mpi/begun.h"

#include "runtime/mpi/channel.h"
#include "runtime/problem.h"

#include <stdlib.h>

struct begun_list rt_sums = {.what = "the sum of gradients"}, rt_gathers = {.what = "the weights of all ranks"};

void rt_begun_add(struct begun_list *list, MPI_Request request, struct begun item) {
  if (list->count == list->capacity) {
    struct problem problem;
    list->capacity = list->capacity > 0 ? 2 * list->capacity : 64;
    list->requests = realloc(list->requests, (size_t)list->capacity * sizeof *list->requests);
    list->items = realloc(list->items, (size_t)list->capacity * sizeof *list->items);
    rt_problem(&problem, "no memory for the list of collectives");
    if (list->requests == NULL || list->items == NULL) rt_fail(&problem, 1);
  }
  list->requests[list->count] = request;
  list->items[list->count++] = item;
}

void rt_begun_advance(struct begun_list *list) {
  int done;
  if (list->count > list->ended)
    rt_mpi_check(MPI_Testall(list->count - list->ended, list->requests + list->ended, &done, MPI_STATUSES_IGNORE),
                 list->what);
}

void rt_begun_wait(struct begun_list *list, int count) {
  for (; list->ended < count && list->ended < list->count; list->ended++) {
    const struct begun *item = &list->items[list->ended];
    rt_mpi_wait(&list->requests[list->ended], list->what);
    if (item->end != NULL) item->end(item);
    free(item->counts);
  }
}

void rt_begun_wait_all(struct begun_list *list) {
  rt_begun_wait(list, list->count);
  list->count = list->ended = 0;
}
