#include "runtime/mpi/in_flight.h"

#include "runtime/base/problem.h"
#include "runtime/mpi/channel.h"
#include "runtime/process/fail.h"

#include <stdlib.h>

struct in_flight_list rt_sums = {.what = "the sum of gradients"},
                      rt_sums_chained = {.what = "the sum of parts of gradients"};
struct in_flight_list rt_gathers = {.what = "the weights of all ranks"};

static void make_room(struct in_flight_list *list) {
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

int *rt_in_flight_counts(struct in_flight_list *list, int ranks, size_t shard_size, size_t last) {
  make_room(list);
  int **counts = &list->counts[list->count];
  *counts = rt_shard_counts(*counts, ranks, shard_size, last);
  return *counts;
}

void rt_in_flight_add(struct in_flight_list *list, MPI_Request request, struct in_flight item) {
  make_room(list);
  list->requests[list->count] = request;
  list->items[list->count++] = item;
}

static bool is_over(struct in_flight_list *list) {
  const struct in_flight *item = &list->items[list->ended];
  int done = 0;
  if (item->shared != NULL) return rt_shared_has_ended(item->shared, item->number);
  rt_mpi_check(MPI_Test(&list->requests[list->ended], &done, MPI_STATUS_IGNORE), list->what);
  return done != 0;
}

/* What begins after one may wait, and come back here: the next one ends after that. */
void rt_in_flight_advance(struct in_flight_list *list) {
  if (list->ends) return;
  list->ends = true;
  while (list->ended < list->count && is_over(list)) {
    const struct in_flight item = list->items[list->ended++];
    if (item.end != NULL) item.end(&item);
    if (item.next != NULL) item.next(&item);
  }
  list->ends = false;
}

struct awaited {
  const struct in_flight_list *list;
  int count;
};

static bool have_ended(void *at) {
  const struct awaited *awaited = at;
  return awaited->list->ended >= awaited->count;
}

void rt_in_flight_wait(struct in_flight_list *list, int count) {
  struct awaited awaited = {list, count < list->count ? count : list->count};
  rt_in_flight_advance(list);
  rt_wait_until(have_ended, &awaited, list->what);
}

void rt_in_flight_wait_all(struct in_flight_list *list) {
  do rt_in_flight_wait(list, list->count);
  while (list->ended < list->count);
  list->count = list->ended = 0;
}
