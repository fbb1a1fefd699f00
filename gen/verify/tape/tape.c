#include "gen/verify/tape/tape.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/tape/known.h"
#include "gen/verify/tape/philox.h"
#include "gen/verify/tape/reading.h"
#include "gen/verify/tape/trace.h"

struct reading *reading_now;

/* ---- Refusals ---- */

static jmp_buf left;
static char reason[400];

void tape_refuse(const char *format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(reason, sizeof reason, format, list);
  va_end(list);
  reading_now->refused = reason;
  longjmp(left, 1);
}

bool reading_run(struct reading *reading, void (*run)(void *context), void *context) {
  reading_now = reading;
  if (setjmp(left) != 0) {
    tape_clear(reading);
    return false;
  }
  run(context);
  return true;
}

/* ---- Memory ---- */

/* A piece of memory of the tape. */
struct piece {
  struct piece *next;
  size_t size;
  _Alignas(64) unsigned char bytes[];
};

/* What the tape has, and large pieces that a tape before it had: evaluations of a model want the same sizes again, and
 * memory that is new to a process costs more than to compute what is put there. */
static struct piece *pieces, *spare;

enum { LARGE_PIECE = 1 << 16 };

static struct piece *take_spare(size_t size) {
  for (struct piece **at = &spare; *at != NULL; at = &(*at)->next) {
    struct piece *piece = *at;
    if (piece->size != size) continue;
    *at = piece->next;
    return piece;
  }
  return NULL;
}

void *tape_memory(int64_t count, int64_t size) {
  const size_t bytes = (size_t)(count > 0 ? count : 1) * (size_t)size;
  struct piece *piece = bytes >= LARGE_PIECE ? take_spare(bytes) : NULL;
  if (piece == NULL) piece = malloc(sizeof *piece + bytes);
  if (piece == NULL) tape_refuse("there is not enough memory for the second reading");
  memset(piece->bytes, 0, bytes);
  piece->size = bytes;
  piece->next = pieces;
  pieces = piece;
  return piece->bytes;
}

void tape_clear(struct reading *reading) {
  while (pieces != NULL) {
    struct piece *piece = pieces;
    pieces = piece->next;
    if (piece->size >= LARGE_PIECE) {
      piece->next = spare;
      spare = piece;
    } else {
      free(piece);
    }
  }
  reading->tape = NULL;
}

void tape_release(void) {
  while (spare != NULL) {
    struct piece *next = spare->next;
    free(spare);
    spare = next;
  }
}

/* One without values. */
static tensor tensor_of(int rank, const int64_t *dim) {
  if (rank > MOST_AXES) tape_refuse("a tensor has more than %d axes", MOST_AXES);
  tensor y = tape_memory(1, sizeof *y);
  y->rank = rank;
  y->count = 1;
  for (int i = 0; i < rank; i++) {
    y->dim[i] = dim[i];
    y->count *= dim[i];
  }
  y->next = reading_now->tape;
  reading_now->tape = y;
  trace_note((struct trace_event){.kind = TRACE_TENSOR, .tensor = y});
  return y;
}

tensor tape_new(int rank, const int64_t *dim) {
  tensor y = tensor_of(rank, dim);
  y->values = tape_memory(y->count, sizeof *y->values);
  return y;
}

tensor tape_like(tensor x) {
  return tape_new(x->rank, x->dim);
}

tensor tape_view(tensor x, int rank, const int64_t *dim) {
  tensor y = tensor_of(rank, dim);
  if (y->count != x->count) tape_refuse("reshape: the extents are not of as many elements");
  y->whole = x->whole;
  y->varies = x->varies;
  y->values = x->values;
  y->of[0] = x;
  y->is_view = true;
  return y;
}

/* ---- Noise and gradients ---- */

static double draw_of(uint64_t z) {
  return (double)(int64_t)splitmix_mixed(z) * 0x1p-63;
}

double tape_draw(struct reading *reading) {
  return draw_of(reading->state += SPLITMIX_STEP);
}

void tape_move(double *values, int64_t count, double by) {
  if (by == 0) return;
  const uint64_t first = reading_now->state;
#pragma omp parallel for schedule(static) if (count > MANY)
  for (int64_t i = 0; i < count; i++) values[i] *= 1 + by * draw_of(first + (uint64_t)(i + 1) * SPLITMIX_STEP);
  reading_now->state = first + (uint64_t)count * SPLITMIX_STEP;
}

tensor tape_end(tensor y, void (*backward)(tensor y), double spread, tensor a, tensor b, tensor c) {
  tensor operands[MOST_OPERANDS] = {a, b, c};
  for (int i = 0; i < MOST_OPERANDS; i++) {
    y->of[i] = operands[i];
    y->varies = y->varies || (operands[i] != NULL && operands[i]->varies);
  }
  y->backward = y->varies ? backward : NULL;
  if (reading_now->noise > 0 && spread > 0 && !y->whole) tape_move(y->values, y->count, reading_now->noise * spread);
  y->spread = spread;
  return y;
}

double *tape_gradient(tensor x) {
  if (!x->varies) return NULL;
  if (x->is_view) x->gradient = tape_gradient(x->of[0]);
  if (x->gradient == NULL) x->gradient = tape_memory(x->count, sizeof *x->gradient);
  return x->gradient;
}

static void keep_gradient(tensor x) {
#pragma omp parallel for schedule(static) if (x->count > MANY)
  for (int64_t i = 0; i < x->count; i++) x->stored->gradient[i] += x->gradient[i];
}

void tape_backward(tensor loss, double factor) {
  double *gradient = tape_gradient(loss);
  if (gradient == NULL) return;
  gradient[0] = factor;
  for (tensor y = reading_now->tape; y != NULL; y = y->next) {
    if (y->gradient == NULL) continue;
    if (reading_now->noise > 0 && y->spread > 0 && y != loss)
      tape_move(y->gradient, y->count, reading_now->noise * y->spread);
    if (y->backward != NULL) y->backward(y);
    if (y->stored != NULL && y->stored->gradient != NULL) keep_gradient(y);
  }
}

/* ---- Primitives ---- */

static void pick_backward(tensor y) {
  double *dx = tape_gradient(y->of[0]);
  for (int64_t i = 0; i < y->count; i++)
    if (y->places[i] >= 0) dx[y->places[i]] += y->gradient[i];
}

tensor pick(tensor x, int rank, const int64_t *dim, int64_t *places) {
  tensor y = tape_new(rank, dim);
  y->whole = x->whole;
  y->places = places;
#pragma omp parallel for schedule(static) if (y->count > MANY)
  for (int64_t i = 0; i < y->count; i++) y->values[i] = places[i] >= 0 ? x->values[places[i]] : 0;
  return tape_end(y, pick_backward, 0, x, NULL, NULL);
}

static void drop_backward(tensor y) {
  double *dx = tape_gradient(y->of[0]);
  for (int64_t i = 0; i < y->of[0]->count; i++)
    if (y->places[i] >= 0) dx[i] += y->gradient[y->places[i]];
}

tensor drop(tensor x, int rank, const int64_t *dim, int64_t *places) {
  tensor y = tape_new(rank, dim);
  y->places = places;
  for (int64_t i = 0; i < x->count; i++)
    if (places[i] >= 0) y->values[places[i]] += x->values[i];
  double terms = y->count > 0 ? (double)x->count / (double)y->count : 1;
  return tape_end(y, drop_backward, 1 + sqrt(terms / 8), x, NULL, NULL);
}

static void unary_backward(tensor y) {
  double *dx = tape_gradient(y->of[0]);
  const double *x = y->of[0]->values;
#pragma omp parallel for schedule(static) if (y->count > MANY)
  for (int64_t i = 0; i < y->count; i++)
    dx[i] += y->gradient[i] * y->rule->slope(x[i], y->values[i], y->numbers[0], y->numbers[1]);
}

static void note_constant(struct reading *reading, double constant) {
  for (int i = 0; i < reading->n_constants; i++)
    if (reading->constants[i] == constant) return;
  if (reading->n_constants < (int)(sizeof reading->constants / sizeof *reading->constants))
    reading->constants[reading->n_constants++] = constant;
}

void tape_note_table(int64_t count, const double *numbers) {
  const size_t size = (size_t)count * sizeof *numbers;
  for (const struct known_table *at = reading_now->tables; at != NULL; at = at->next)
    if (at->count == count && memcmp(at->numbers, numbers, size) == 0) return;
  struct known_table *table = malloc(sizeof *table + size);
  if (table == NULL) tape_refuse("there is not enough memory for a table of the model");
  *table = (struct known_table){count, memcpy(table + 1, numbers, size), reading_now->tables};
  reading_now->tables = table;
}

void tape_note_convolution(const struct known_convolution *shape) {
  struct known_convolution one = *shape;
  for (const struct known_convolution *at = reading_now->convolutions; at != NULL; at = at->next) {
    one.next = at->next;
    if (memcmp(at, &one, sizeof one) == 0) return;
  }
  struct known_convolution *kept = malloc(sizeof *kept);
  if (kept == NULL) tape_refuse("there is not enough memory for a convolution of the model");
  *kept = *shape;
  kept->next = reading_now->convolutions;
  reading_now->convolutions = kept;
}

tensor unary(tensor x, const struct unary *rule, double a, double b) {
  note_constant(reading_now, a);
  tensor y = tape_like(x);
  y->rule = rule;
  y->numbers[0] = a;
  y->numbers[1] = b;
  bool beyond = false;
#pragma omp parallel for schedule(static) reduction(|| : beyond) if (x->count > MANY)
  for (int64_t i = 0; i < x->count; i++) {
    const double value = y->values[i] = rule->value(x->values[i], a, b);
    beyond = beyond || (fabs(value) > (double)FLT_MAX && isfinite(value));
  }
  if (beyond) tape_refuse("the model computes numbers that float32 does not hold");
  return tape_end(y, rule->slope != NULL ? unary_backward : NULL, 1, x, NULL, NULL);
}

/* ---- Extents ---- */

int tape_axis(tensor x, int axis, const char *function) {
  int at = axis < 0 ? axis + x->rank : axis;
  if (at < 0 || at >= x->rank) tape_refuse("%s: a tensor of %d axes has no axis %d", function, x->rank, axis);
  return at;
}

int64_t extent(tensor x, int from, int to) {
  int64_t product = 1;
  for (int i = from; i < to; i++) product *= x->dim[i];
  return product;
}

int64_t columns_of(tensor x) {
  return x->rank > 0 ? x->dim[x->rank - 1] : 1;
}

int64_t rows_of(tensor x) {
  return columns_of(x) > 0 ? x->count / columns_of(x) : 0;
}

tensor expand(tensor x, int rank, const int64_t *dim, const char *function) {
  bool same = x->rank == rank;
  int64_t count = 1, stride[MOST_AXES] = {0}, at = 1;
  for (int i = 0; i < rank; i++) count *= dim[i];
  if (x->rank > rank) tape_refuse("%s: shapes do not broadcast", function);
  for (int i = x->rank - 1; i >= 0; i--) {
    int to = i + rank - x->rank;
    if (x->dim[i] != 1 && x->dim[i] != dim[to]) tape_refuse("%s: shapes do not broadcast", function);
    same = same && x->dim[i] == dim[to];
    stride[to] = x->dim[i] == 1 ? 0 : at;
    at *= x->dim[i];
  }
  if (same) return x;
  int64_t *places = tape_memory(count, sizeof *places);
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = i, place = 0;
    for (int axis = rank - 1; axis >= 0; axis--) {
      place += rest % dim[axis] * stride[axis];
      rest /= dim[axis];
    }
    places[i] = place;
  }
  return pick(x, rank, dim, places);
}

static void row_sums_backward(tensor y) {
  double *dx = tape_gradient(y->of[0]);
  const int64_t columns = columns_of(y), rows = rows_of(y);
  for (int64_t r = 0; r < rows; r++) {
    double sum = 0;
    for (int64_t c = 0; c < columns; c++) sum += y->gradient[r * columns + c];
    for (int64_t c = 0; c < columns; c++) dx[r * columns + c] += sum;
  }
}

tensor row_sums(tensor x) {
  const int64_t columns = columns_of(x), rows = rows_of(x);
  tensor y = tape_like(x);
  for (int64_t r = 0; r < rows; r++) {
    double sum = 0;
    for (int64_t c = 0; c < columns; c++) sum += x->values[r * columns + c];
    sum *= 1 + reading_now->noise * sqrt((double)columns / 8) * tape_draw(reading_now);
    for (int64_t c = 0; c < columns; c++) y->values[r * columns + c] = sum;
  }
  return tape_end(y, row_sums_backward, 0, x, NULL, NULL);
}
