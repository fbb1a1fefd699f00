/* accel/model.h's functions whose positions are numbers: those that an index names, or that a comparison finds. */
#include <math.h>
#include <stdlib.h>

#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/tape.h"

/* A number of an index, which is below `below`. */
static int64_t number_of(tensor index, int64_t i, int64_t below, const char *function) {
  double number = index->values[i];
  if (!(number >= 0) || !(number < (double)below))
    tape_refuse("%s: an index is %g, where there are %lld", function, number, (long long)below);
  return (int64_t)number;
}

tensor take(tensor x, tensor index) {
  if (x->rank != 2) tape_refuse("take: x has %d axes, not 2", x->rank);
  int64_t dim[MOST_AXES], columns = x->dim[1];
  for (int i = 0; i < index->rank; i++) dim[i] = index->dim[i];
  dim[index->rank] = columns;
  int64_t *places = tape_memory(index->count * columns, sizeof *places);
  for (int64_t i = 0; i < index->count * columns; i++)
    places[i] = number_of(index, i / columns, x->dim[0], "take") * columns + i % columns;
  return pick(x, index->rank + 1, dim, places);
}

tensor index_add(tensor x, tensor index, int rows) {
  const int64_t columns = columns_of(x);
  int64_t *places = tape_memory(x->count, sizeof *places);
  for (int64_t i = 0; i < x->count; i++)
    places[i] = number_of(index, i / columns, rows, "index_add") * columns + i % columns;
  return drop(x, 2, (const int64_t[]){rows, columns}, places);
}

tensor gather(tensor x, int axis, tensor index) {
  axis = tape_axis(x, axis, "gather");
  const int64_t inner = extent(x, axis + 1, x->rank), count = index->dim[axis];
  int64_t *places = tape_memory(index->count, sizeof *places);
  for (int64_t i = 0; i < index->count; i++)
    places[i] = (i / (inner * count) * x->dim[axis] + number_of(index, i, x->dim[axis], "gather")) * inner + i % inner;
  return pick(x, index->rank, index->dim, places);
}

tensor scatter_add(tensor x, int axis, tensor index, int size) {
  axis = tape_axis(x, axis, "scatter_add");
  const int64_t inner = extent(x, axis + 1, x->rank), count = x->dim[axis];
  int64_t dim[MOST_AXES];
  for (int i = 0; i < x->rank; i++) dim[i] = i == axis ? size : x->dim[i];
  int64_t *places = tape_memory(x->count, sizeof *places);
  for (int64_t i = 0; i < x->count; i++)
    places[i] = (i / (inner * count) * size + number_of(index, i, size, "scatter_add")) * inner + i % inner;
  return drop(x, x->rank, dim, places);
}

/* ---- What a comparison finds ---- */

/* The place of the largest of each position but along the axis, sign -1: of the smallest; the first of equal ones. */
static int64_t *extremes(tensor x, int axis, double sign, int64_t *count) {
  const int64_t inner = extent(x, axis + 1, x->rank), outer = extent(x, 0, axis), among = x->dim[axis];
  int64_t *places = tape_memory(outer * inner, sizeof *places);
  *count = outer * inner;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      int64_t best = o * among * inner + i;
      for (int64_t j = 1; j < among; j++) {
        int64_t place = (o * among + j) * inner + i;
        if (sign * x->values[place] > sign * x->values[best]) best = place;
      }
      places[o * inner + i] = best;
    }
  return places;
}

static tensor extreme_along(tensor x, int axis, double sign, const char *function) {
  axis = tape_axis(x, axis, function);
  int64_t count, dim[MOST_AXES];
  int rank = 0;
  for (int i = 0; i < x->rank; i++)
    if (i != axis) dim[rank++] = x->dim[i];
  return pick(x, rank, dim, extremes(x, axis, sign, &count));
}

tensor max_along(tensor x, int axis) {
  return extreme_along(x, axis, 1, "max_along");
}

tensor min_along(tensor x, int axis) {
  return extreme_along(x, axis, -1, "min_along");
}

tensor argmax(tensor x, int axis) {
  axis = tape_axis(x, axis, "argmax");
  int64_t count, dim[MOST_AXES];
  int rank = 0;
  for (int i = 0; i < x->rank; i++)
    if (i != axis) dim[rank++] = x->dim[i];
  const int64_t *places = extremes(x, axis, 1, &count);
  tensor y = tape_new(rank, dim);
  y->whole = true;
  for (int64_t i = 0; i < count; i++) y->values[i] = (double)(places[i] / extent(x, axis + 1, x->rank) % x->dim[axis]);
  return y;
}

/* The places of the k largest of each row, from the largest down; the first of equal ones first. */
static int64_t *largest(tensor x, int k, const char *function) {
  const int64_t columns = columns_of(x), rows = rows_of(x);
  if (k < 1 || k > columns) tape_refuse("%s: k is %d of %lld", function, k, (long long)columns);
  int64_t *places = tape_memory(rows * k, sizeof *places);
  bool *taken = tape_memory(x->count, sizeof *taken);
  for (int64_t r = 0; r < rows; r++)
    for (int j = 0; j < k; j++) {
      int64_t best = -1;
      for (int64_t at = r * columns; at < (r + 1) * columns; at++)
        if (!taken[at] && (best < 0 || x->values[at] > x->values[best])) best = at;
      taken[best] = true;
      places[r * k + j] = best;
    }
  return places;
}

/* The extents of x with k as the last. */
static void with_columns(tensor x, int64_t k, int64_t *dim) {
  for (int i = 0; i < x->rank; i++) dim[i] = i == x->rank - 1 ? k : x->dim[i];
}

tensor top_k(tensor x, int k) {
  int64_t dim[MOST_AXES];
  with_columns(x, k, dim);
  return pick(x, x->rank, dim, largest(x, k, "top_k"));
}

tensor top_k_indices(tensor x, int k) {
  int64_t dim[MOST_AXES];
  const int64_t *places = largest(x, k, "top_k_indices");
  with_columns(x, k, dim);
  tensor y = tape_new(x->rank, dim);
  y->whole = true;
  for (int64_t i = 0; i < y->count; i++) y->values[i] = (double)(places[i] % columns_of(x));
  return y;
}

tensor top_k_mask(tensor x, int k) {
  const int64_t *places = largest(x, k, "top_k_mask");
  tensor y = tape_like(x);
  for (int64_t i = 0; i < rows_of(x) * k; i++) y->values[places[i]] = 1;
  return y;
}

tensor one_hot(tensor tokens, int classes) {
  int64_t dim[MOST_AXES];
  for (int i = 0; i < tokens->rank; i++) dim[i] = tokens->dim[i];
  dim[tokens->rank] = classes;
  tensor y = tape_new(tokens->rank + 1, dim);
  for (int64_t i = 0; i < tokens->count; i++) y->values[i * classes + number_of(tokens, i, classes, "one_hot")] = 1;
  return y;
}

/* ---- Groups ---- */

/* Positions in the order of the groups: of each of the leading dimensions at most `capacity` in a group, first choices
 * in the order of the rows, then second ones; those that come too late are last. `starts` gets where groups start. */
static int64_t *grouped(tensor index, int groups, int capacity, int64_t *starts) {
  const int64_t k = columns_of(index), rows = index->rank >= 2 ? index->dim[index->rank - 2] : 1;
  const int64_t blocks = index->count / (rows * k);
  bool *late = tape_memory(index->count, sizeof *late);
  int64_t *taken = tape_memory(blocks * groups, sizeof *taken), *order = tape_memory(index->count, sizeof *order),
          at = 0;
  for (int64_t b = 0; b < blocks; b++)
    for (int64_t choice = 0; choice < k; choice++)
      for (int64_t r = 0; r < rows; r++) {
        int64_t position = (b * rows + r) * k + choice;
        int64_t *count = &taken[b * groups + number_of(index, position, groups, "group_positions")];
        late[position] = capacity > 0 && *count >= capacity;
        *count += !late[position];
      }
  for (int64_t g = 0; g < groups; g++) {
    starts[g] = at;
    for (int64_t i = 0; i < index->count; i++)
      if (!late[i] && (int64_t)index->values[i] == g) order[at++] = i;
  }
  starts[groups] = at;
  for (int64_t i = 0; i < index->count; i++)
    if (late[i]) order[at++] = i;
  return order;
}

/* int32 [count] of numbers, each divided by `by`. */
static tensor numbers(const int64_t *from, int64_t count, int64_t by) {
  tensor y = tape_new(1, &count);
  y->whole = true;
  for (int64_t i = 0; i < count; i++) y->values[i] = (double)(from[i] / by);
  return y;
}

tensor group_positions(tensor index, int groups, int capacity) {
  int64_t *starts = tape_memory(groups + 1, sizeof *starts);
  return numbers(grouped(index, groups, capacity, starts), index->count, 1);
}

tensor group_rows(tensor index, int groups, int capacity) {
  int64_t *starts = tape_memory(groups + 1, sizeof *starts);
  return numbers(grouped(index, groups, capacity, starts), index->count, columns_of(index));
}

tensor group_starts(tensor index, int groups, int capacity) {
  int64_t *starts = tape_memory(groups + 1, sizeof *starts);
  grouped(index, groups, capacity, starts);
  return numbers(starts, groups + 1, 1);
}
