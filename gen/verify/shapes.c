/* accel/model.h's functions over shapes and positions: each result is a pick of what it takes. */
#include <math.h>
#include <stdarg.h>

#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/tape.h"
#include "gen/verify/tape/trace.h"

/* ---- Constants ---- */

tensor constant_of(double value, int rank, ...) {
  int64_t dim[MOST_AXES];
  va_list list;
  va_start(list, rank);
  for (int i = 0; i < rank && i < MOST_AXES; i++) dim[i] = va_arg(list, int);
  va_end(list);
  tensor y = tape_new(rank, dim);
  trace_argument(value);
  for (int64_t i = 0; i < y->count; i++) y->values[i] = (double)(float)value;
  return y;
}

tensor arange(int count) {
  tensor y = tape_new(1, (const int64_t[]){count});
  y->whole = true;
  for (int64_t i = 0; i < count; i++) y->values[i] = (double)i;
  return y;
}

tensor table_of(int count, const double *numbers) {
  tensor y = tape_new(1, (const int64_t[]){count});
  for (int64_t i = 0; i < count; i++) y->values[i] = (double)(float)numbers[i];
  tape_note_table(count, y->values);
  trace_arguments(y->values, count);
  return y;
}

tensor int_table_of(int count, const int *numbers) {
  tensor y = tape_new(1, (const int64_t[]){count});
  y->whole = true;
  for (int64_t i = 0; i < count; i++) y->values[i] = numbers[i];
  tape_note_table(count, y->values);
  trace_arguments(y->values, count);
  return y;
}

/* ---- Shapes ---- */

int dim(tensor x, int axis) {
  return (int)x->dim[tape_axis(x, axis, "dim")];
}

int rank(tensor x) {
  return x->rank;
}

tensor reshaped(tensor x, int rank, const int64_t *dim) {
  return tape_view(x, rank, dim);
}

tensor reshape_to(tensor x, int rank, ...) {
  int64_t dim[MOST_AXES], known = 1;
  int open = -1;
  va_list list;
  va_start(list, rank);
  for (int i = 0; i < rank && i < MOST_AXES; i++) {
    dim[i] = va_arg(list, int);
    if (dim[i] == -1)
      open = i;
    else
      known *= dim[i];
  }
  va_end(list);
  if (open >= 0) dim[open] = known != 0 ? x->count / known : 0;
  return reshaped(x, rank, dim);
}

/* A pick along one axis: position j of the result is position from(j) of x, or 0 where that is negative. */
static tensor along(tensor x, int axis, int64_t count, int64_t (*from)(int64_t j, int64_t extent, int64_t number),
                    int64_t number) {
  int64_t dim[MOST_AXES];
  for (int i = 0; i < x->rank; i++) dim[i] = i == axis ? count : x->dim[i];
  const int64_t inner = extent(x, axis + 1, x->rank), outer = extent(x, 0, axis), old = x->dim[axis];
  trace_argument((double)number);
  int64_t *places = tape_memory(outer * count * inner, sizeof *places), at = 0;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t j = 0; j < count; j++)
      for (int64_t i = 0; i < inner; i++) {
        int64_t place = from(j, old, number);
        places[at++] = place < 0 ? -1 : (o * old + place) * inner + i;
      }
  return pick(x, x->rank, dim, places);
}

static int64_t from_start(int64_t j, int64_t extent, int64_t start) {
  (void)extent;
  return start + j;
}

static int64_t from_end(int64_t j, int64_t extent, int64_t number) {
  (void)number;
  return extent - 1 - j;
}

static int64_t from_rolled(int64_t j, int64_t extent, int64_t shift) {
  return ((j - shift) % extent + extent) % extent;
}

static int64_t from_padded(int64_t j, int64_t extent, int64_t before) {
  return j < before || j >= before + extent ? -1 : j - before;
}

tensor slice(tensor x, int axis, int start, int count) {
  axis = tape_axis(x, axis, "slice");
  if (start < 0 || count < 0 || start + count > x->dim[axis]) tape_refuse("slice: positions beyond the axis");
  return along(x, axis, count, from_start, start);
}

tensor split(tensor x, int axis, int parts, int which) {
  axis = tape_axis(x, axis, "split");
  int64_t each = parts > 0 ? x->dim[axis] / parts : 0;
  if (parts <= 0 || each * parts != x->dim[axis] || which < 0 || which >= parts)
    tape_refuse("split: the axis has no such part");
  return along(x, axis, each, from_start, which * each);
}

tensor flip(tensor x, int axis) {
  axis = tape_axis(x, axis, "flip");
  return along(x, axis, x->dim[axis], from_end, 0);
}

tensor roll(tensor x, int axis, int shift) {
  axis = tape_axis(x, axis, "roll");
  return along(x, axis, x->dim[axis], from_rolled, shift);
}

tensor pad(tensor x, int axis, int before, int after) {
  axis = tape_axis(x, axis, "pad");
  return along(x, axis, before + x->dim[axis] + after, from_padded, before);
}

tensor transpose(tensor x, int a, int b) {
  a = tape_axis(x, a, "transpose");
  b = tape_axis(x, b, "transpose");
  int64_t dim[MOST_AXES], stride[MOST_AXES];
  trace_argument(a * MOST_AXES + b);
  for (int i = 0; i < x->rank; i++) {
    int from = i == a ? b : i == b ? a : i;
    dim[i] = x->dim[from];
    stride[i] = extent(x, from + 1, x->rank);
  }
  int64_t *places = tape_memory(x->count, sizeof *places);
  for (int64_t i = 0; i < x->count; i++) {
    int64_t rest = i, place = 0;
    for (int axis = x->rank - 1; axis >= 0; axis--) {
      place += rest % dim[axis] * stride[axis];
      rest /= dim[axis];
    }
    places[i] = place;
  }
  tensor y = pick(x, x->rank, dim, places);
  return y;
}

tensor concat_of(int axis, int count, ...) {
  tensor all = NULL;
  int64_t total = 0, before = 0;
  va_list list, again;
  va_start(list, count);
  va_copy(again, list);
  for (int i = 0; i < count; i++) {
    tensor x = va_arg(list, tensor);
    if (i == 0) axis = tape_axis(x, axis, "concat");
    total += x->dim[axis];
  }
  for (int i = 0; i < count; i++) {
    tensor x = va_arg(again, tensor);
    tensor part = pad(x, axis, (int)before, (int)(total - before - x->dim[axis]));
    before += x->dim[axis];
    all = all == NULL ? part : joined(all, part);
  }
  va_end(again);
  va_end(list);
  return all;
}

static void joined_backward(tensor y) {
  for (int k = 0; k < 2; k++) {
    double *to = tape_gradient(y->of[k]);
    for (int64_t i = 0; to != NULL && i < y->count; i++) to[i] += y->gradient[i];
  }
}

tensor joined(tensor a, tensor b) {
  tensor y = tape_like(a);
  y->whole = a->whole && b->whole;
  for (int64_t i = 0; i < y->count; i++) y->values[i] = a->values[i] + b->values[i];
  return tape_end(y, joined_backward, 0, a, b, NULL);
}
