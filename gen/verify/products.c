/* accel/model.h's matrix products. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "gen/verify/tape/elements.h"
#include "gen/verify/tape/multiply.h"
#include "gen/verify/tape/tape.h"

/* ---- The product of two stacks of matrices ---- */

/* y [...][m][n] = a [...][m][k] times b, [...][k][n] or `turned` [...][n][k]; b of as many leading matrices as y, or of
 * one for all, when those of a are rows of one matrix. */
struct shape {
  int64_t m, k, n, stacks, turned;
};

static void multiply_or_refuse(double *y, struct matrices_at a, struct matrices_at b, int64_t m, int64_t k, int64_t n,
                               int64_t stacks) {
  if (!multiply(y, a, b, m, k, n, stacks)) tape_refuse("there is not enough memory for a product");
}

/* A stack of matrices [rows][columns], and the same with rows and columns exchanged. */
static struct matrices_at as_is(const double *at, int64_t rows, int64_t columns) {
  return (struct matrices_at){at, rows * columns, columns, 1};
}

static struct matrices_at exchanged(const double *at, int64_t rows, int64_t columns) {
  return (struct matrices_at){at, rows * columns, 1, columns};
}

static void product_backward(tensor y) {
  struct shape p;
  memcpy(&p, y->places, sizeof p);
  double *da = tape_gradient(y->of[0]), *db = tape_gradient(y->of[1]);
  const double *a = y->of[0]->values, *b = y->of[1]->values, *dy = y->gradient;
  if (da != NULL)
    multiply_or_refuse(da, as_is(dy, p.m, p.n), p.turned ? as_is(b, p.n, p.k) : exchanged(b, p.k, p.n), p.m, p.n, p.k,
                       p.stacks);
  if (db != NULL && p.turned)
    multiply_or_refuse(db, exchanged(dy, p.m, p.n), as_is(a, p.m, p.k), p.n, p.m, p.k, p.stacks);
  else if (db != NULL)
    multiply_or_refuse(db, exchanged(a, p.m, p.k), as_is(dy, p.m, p.n), p.k, p.m, p.n, p.stacks);
}

/* Products of k terms are rounded in each of them. */
static double of_terms(int64_t k) {
  return 1 + sqrt((double)k / 8);
}

static tensor product(tensor a, tensor b, bool turned) {
  if (a->rank < 2 || b->rank < 2) tape_refuse("matmul: an operand has fewer than two axes");
  const int64_t m = a->dim[a->rank - 2], k = a->dim[a->rank - 1], n = b->dim[b->rank - 1 - turned];
  if (b->dim[b->rank - 2 + turned] != k) tape_refuse("matmul: the inner extents differ");
  const bool one = b->rank == 2;
  int64_t dim[MOST_AXES], of_b[MOST_AXES];
  for (int i = 0; i < a->rank; i++) {
    dim[i] = i == a->rank - 1 ? n : a->dim[i];
    of_b[i] = i < a->rank - 2 ? a->dim[i] : b->dim[b->rank - a->rank + i];
  }
  if (!one) b = expand(b, a->rank, of_b, "matmul");
  tensor y = tape_new(a->rank, dim);
  const int64_t stacks = one ? 1 : extent(a, 0, a->rank - 2), rows = one ? extent(a, 0, a->rank - 1) : m;
  const struct shape shape = {rows, k, n, stacks, turned};
  y->places = tape_memory(sizeof shape / sizeof *y->places, sizeof *y->places);
  memcpy(y->places, &shape, sizeof shape);
  multiply_or_refuse(y->values, as_is(a->values, rows, k), turned ? exchanged(b->values, n, k) : as_is(b->values, k, n),
                     rows, k, n, stacks);
  return tape_end(y, product_backward, of_terms(k), a, b, NULL);
}

tensor matmul(tensor a, tensor b) {
  return product(a, b, false);
}

tensor matmul_transposed(tensor a, tensor b) {
  return product(a, b, true);
}

/* ---- einsum ---- */

/* The labels of an operand or the result: letters, and '.' for each axis that "..." stands for. */
struct labels {
  int count;
  char of[MOST_AXES * 2];
};

/* Reads labels up to a ',' or an end; of "..." as many marks as the operand has axes more, numbered from the last. */
static const char *read_labels(const char *at, const char *end, int rank, int *ellipsis, struct labels *labels) {
  int letters = 0;
  for (const char *c = at; c < end && *c != ','; c++) letters += *c != ' ' && *c != '.';
  labels->count = 0;
  for (; at < end && *at != ','; at++) {
    if (*at == ' ') continue;
    if (*at != '.') {
      labels->of[labels->count++] = *at;
      continue;
    }
    const int more = rank >= 0 ? rank - letters : *ellipsis;
    for (int i = 0; i < more; i++) labels->of[labels->count++] = (char)(1 + more - i);
    if (more > *ellipsis) *ellipsis = more;
    at += 2;
  }
  return at < end ? at + 1 : at;
}

/* x with an axis for each of `all`, in that order: 1 where x has none; its diagonal where it has one twice. */
static tensor arranged(tensor x, const struct labels *own, const struct labels *all, const int64_t *extents) {
  int64_t dim[MOST_AXES * 2], stride[MOST_AXES * 2], count = 1;
  for (int i = 0; i < all->count; i++) {
    dim[i] = extents[i];
    stride[i] = 0;
    for (int j = 0; j < own->count; j++)
      if (own->of[j] == all->of[i] && x->dim[j] != 1) stride[i] += extent(x, j + 1, x->rank);
    count *= dim[i];
  }
  int64_t *places = tape_memory(count, sizeof *places);
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = i, place = 0;
    for (int axis = all->count - 1; axis >= 0; axis--) {
      place += rest % dim[axis] * stride[axis];
      rest /= dim[axis];
    }
    places[i] = place;
  }
  return pick(x, 1, &count, places);
}

/* The labels of the result, then those that are summed over. */
static void all_labels(const struct labels *operands, int count, tensor *x, struct labels *all, int64_t *extents) {
  for (int k = 0; k < count; k++)
    for (int j = 0; j < operands[k].count; j++) {
      int at = 0;
      while (at < all->count && all->of[at] != operands[k].of[j]) at++;
      if (at == all->count) {
        if (at == MOST_AXES * 2) tape_refuse("einsum: there are too many labels");
        all->of[all->count++] = operands[k].of[j];
        extents[at] = 1;
      }
      if (x[k]->dim[j] != 1) extents[at] = x[k]->dim[j];
    }
}

/* The labels of a result that is not written: those that occur once, in their order, after those of "...". */
static void labels_once(const struct labels *operands, int count, int ellipsis, struct labels *result) {
  result->count = 0;
  for (int i = ellipsis + 1; i > 1; i--) result->of[result->count++] = (char)i;
  for (char letter = 'A'; letter <= 'z'; letter++) {
    int found = 0;
    for (int k = 0; k < count; k++)
      for (int j = 0; j < operands[k].count; j++) found += operands[k].of[j] == letter;
    if (found == 1) result->of[result->count++] = letter;
  }
}

tensor einsum_of(const char *spec, int count, ...) {
  enum { MOST = 8 };
  tensor x[MOST];
  struct labels operands[MOST], result, all;
  int64_t extents[MOST_AXES * 2] = {0};
  int ellipsis = 0;
  if (count < 1 || count > MOST) tape_refuse("einsum: %d operands", count);
  va_list list;
  va_start(list, count);
  for (int k = 0; k < count; k++) x[k] = va_arg(list, tensor);
  va_end(list);
  const char *arrow = strstr(spec, "->"), *end = spec + strlen(spec), *at = spec;
  for (int k = 0; k < count; k++)
    at = read_labels(at, arrow != NULL ? arrow : end, x[k]->rank, &ellipsis, &operands[k]);
  if (arrow != NULL)
    read_labels(arrow + 2, end, -1, &ellipsis, &result);
  else
    labels_once(operands, count, ellipsis, &result);
  all = result;
  for (int i = 0; i < MOST_AXES * 2; i++) extents[i] = 1;
  all_labels(operands, count, x, &all, extents);
  tensor y = arranged(x[0], &operands[0], &all, extents);
  for (int k = 1; k < count; k++) y = mul(y, arranged(x[k], &operands[k], &all, extents));
  int64_t kept = 1, summed = 1;
  for (int i = 0; i < all.count; i++) *(i < result.count ? &kept : &summed) *= extents[i];
  y = sum(reshaped(y, 2, (const int64_t[]){kept, summed}), 1);
  return reshaped(y, result.count, extents);
}

/* ---- Sparse matrices and groups ---- */

tensor sparse_matmul(tensor rows, tensor columns, tensor values, tensor x, int count) {
  tensor terms = mul(take(x, columns), reshaped(values, 2, (const int64_t[]){values->count, 1}));
  return index_add(terms, rows, count);
}

tensor sparse_matmul_csr(tensor starts, tensor columns, tensor values, tensor x) {
  tensor rows = tape_like(columns);
  rows->whole = true;
  for (int64_t r = 0; r + 1 < starts->count; r++)
    for (int64_t e = (int64_t)starts->values[r]; e < (int64_t)starts->values[r + 1] && e < rows->count; e++)
      rows->values[e] = (double)r;
  return sparse_matmul(rows, columns, values, x, (int)starts->count - 1);
}

tensor grouped_matmul(tensor x, tensor starts, int count, const tensor *weights) {
  const int64_t out = weights[0]->dim[0];
  tensor y = tape_new(2, (const int64_t[]){x->dim[0], out});
  for (int g = 0; g < count; g++) {
    int from = (int)starts->values[g], rows = (int)starts->values[g + 1] - from;
    if (rows == 0) continue;
    tensor part = matmul_transposed(slice(x, 0, from, rows), weights[g]);
    y = joined(y, pad(part, 0, from, (int)x->dim[0] - from - rows));
  }
  return y;
}
