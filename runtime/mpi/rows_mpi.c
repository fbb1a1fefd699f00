/* Rows of groups over MPI: one all-to-all, in which each message is one block of the rank that has the rows and a block
 * a group of the rank that has the groups. */
#include "include/accel/collectives.h"

#include "runtime/base/problem.h"
#include "runtime/mpi/channel.h"
#include "runtime/process/fail.h"

#include <stdlib.h>
#include <string.h>

static const char what[] = "rows of groups";

/* How the rows of a rank's groups are ordered on it: of each rank's, one block a group. */
struct layout {
  MPI_Comm channel;
  int ranks, own;
  size_t groups, each;  /* all, a rank's */
  const int32_t *all;   /* [ranks][groups + 1] */
  int *firsts, *counts; /* [ranks][each] */
  size_t end;           /* after the last row of this rank's groups */
};

static int start_of(const struct layout *layout, int rank, size_t group) {
  return layout->all[(size_t)rank * (layout->groups + 1) + group];
}

/* Kept from call to call: MPI reads it until a collective has ended. */
static int *counts_of(size_t count) {
  static int *counts;
  static size_t capacity;
  if (count <= capacity) return counts;
  free(counts);
  counts = malloc(count * sizeof *counts);
  capacity = count;
  struct problem problem;
  rt_problem(&problem, "no memory to exchange the rows of %zu groups", count);
  if (counts == NULL) rt_fail(&problem, 1);
  return counts;
}

static struct layout layout_of(enum accel_axis axis, const int32_t *all, size_t groups) {
  struct layout layout = {.channel = rt_channel_along(axis), .groups = groups, .all = all};
  MPI_Comm_size(layout.channel, &layout.ranks);
  MPI_Comm_rank(layout.channel, &layout.own);
  layout.each = groups / (size_t)layout.ranks;
  layout.firsts = counts_of(2 * groups);
  layout.counts = layout.firsts + groups;
  for (size_t e = 0; e < layout.each; e++)
    for (int rank = 0; rank < layout.ranks; rank++) {
      size_t group = (size_t)layout.own * layout.each + e, at = (size_t)rank * layout.each + e;
      layout.counts[at] = start_of(&layout, rank, group + 1) - start_of(&layout, rank, group);
      layout.firsts[at] = (int)layout.end;
      layout.end += (size_t)layout.counts[at];
    }
  return layout;
}

/* ---- Where groups start ---- */

static void require_ascending(const int32_t *starts, size_t groups, size_t rows) {
  struct problem problem;
  bool good = starts[0] == 0 && (size_t)starts[groups] <= rows;
  for (size_t g = 0; g < groups; g++) good = good && starts[g] <= starts[g + 1];
  rt_problem(&problem, "the starts of %zu groups do not ascend from 0 to %zu rows", groups, rows);
  if (!good) rt_fail(&problem, 1);
}

void accel_exchange_starts(enum accel_axis axis, const int32_t *starts, int32_t *own, int32_t *all, size_t groups,
                           size_t rows) {
  MPI_Comm channel = rt_channel_along(axis);
  MPI_Request request;
  int count = (int)groups + 1;
  require_ascending(starts, groups, rows);
  rt_mpi_check(MPI_Iallgather(starts, count, MPI_INT32_T, all, count, MPI_INT32_T, channel, &request), what);
  rt_mpi_wait(&request, what);
  const struct layout layout = layout_of(axis, all, groups);
  for (size_t e = 0; e < layout.each; e++) own[e] = layout.firsts[e];
  own[layout.each] = (int32_t)layout.end;
}

/* ---- Rows ---- */

/* Of what goes between this rank and another: a block of this one's rows, and blocks of its groups. */
static MPI_Datatype rows_with(const struct layout *layout, int rank, MPI_Datatype row) {
  MPI_Datatype type;
  int first = start_of(layout, layout->own, (size_t)rank * layout->each);
  int count = start_of(layout, layout->own, (size_t)(rank + 1) * layout->each) - first;
  MPI_Type_indexed(1, &count, &first, row, &type);
  MPI_Type_commit(&type);
  return type;
}

static MPI_Datatype groups_with(const struct layout *layout, int rank, MPI_Datatype row) {
  MPI_Datatype type;
  size_t at = (size_t)rank * layout->each;
  MPI_Type_indexed((int)layout->each, layout->counts + at, layout->firsts + at, row, &type);
  MPI_Type_commit(&type);
  return type;
}

/* One message to each other rank and from it. */
static void exchange(const struct layout *layout, const void *from, MPI_Datatype *given, void *to,
                     MPI_Datatype *taken) {
  int ranks = layout->ranks, ones[ranks], zeros[ranks];
  MPI_Request request;
  for (int rank = 0; rank < ranks; rank++) {
    ones[rank] = rank != layout->own;
    zeros[rank] = 0;
  }
  rt_mpi_check(MPI_Ialltoallw(from, ones, zeros, given, to, ones, zeros, taken, layout->channel, &request), what);
  rt_mpi_wait(&request, what);
}

static void move(const struct layout *layout, const void *x, void *y, size_t width, bool back) {
  MPI_Datatype row, of_rows[layout->ranks], of_groups[layout->ranks];
  MPI_Type_contiguous((int)width, MPI_BYTE, &row);
  for (int rank = 0; rank < layout->ranks; rank++) {
    of_rows[rank] = rows_with(layout, rank, row);
    of_groups[rank] = groups_with(layout, rank, row);
  }
  exchange(layout, x, back ? of_groups : of_rows, y, back ? of_rows : of_groups);
  for (int rank = 0; rank < layout->ranks; rank++) {
    MPI_Type_free(&of_rows[rank]);
    MPI_Type_free(&of_groups[rank]);
  }
  MPI_Type_free(&row);
}

/* Rows of this rank that are of its own groups, which no message carries. */
static void move_own(const struct layout *layout, const char *x, char *y, size_t width, bool back) {
  for (size_t e = 0; e < layout->each; e++) {
    size_t at = (size_t)layout->own * layout->each + e;
    size_t first = (size_t)start_of(layout, layout->own, at) * width, place = (size_t)layout->firsts[at] * width;
    memcpy(y + (back ? first : place), x + (back ? place : first), (size_t)layout->counts[at] * width);
  }
}

void accel_dispatch_rows(enum accel_axis axis, const void *x, void *y, const int32_t *all, size_t groups, size_t rows,
                         size_t width) {
  const struct layout layout = layout_of(axis, all, groups);
  move_own(&layout, x, y, width, false);
  memset((char *)y + layout.end * width, 0, ((size_t)layout.ranks * rows - layout.end) * width);
  move(&layout, x, y, width, false);
}

void accel_collect_rows(enum accel_axis axis, const void *x, void *y, const int32_t *all, size_t groups, size_t rows,
                        size_t width) {
  const struct layout layout = layout_of(axis, all, groups);
  size_t end = (size_t)start_of(&layout, layout.own, groups);
  move_own(&layout, x, y, width, true);
  memset((char *)y + end * width, 0, (rows - end) * width);
  move(&layout, x, y, width, true);
}
