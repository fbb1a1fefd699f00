/* Sums, products, and rows that an index chooses. */
#include <math.h>
#include <string.h>

#include "gen/stablehlo/state.h"

static double neutral(const char *operation, enum hlo_type type) {
  const bool whole = hlo_is_whole(type);
  if (strcmp(operation, "add") == 0) return 0;
  if (strcmp(operation, "maximum") == 0) return whole ? (double)INT32_MIN : (double)-INFINITY;
  return whole ? (double)INT32_MAX : (double)INFINITY;
}

/* So many dimensions from one on: "2, 3". */
static const char *dims_from(struct arena *arena, int first, int count) {
  struct shape dims = {.rank = count};
  for (int i = 0; i < count; i++) dims.dim[i] = first + i;
  return hlo_numbers(arena, dims);
}

static bool has(struct shape list, int number) {
  for (int i = 0; i < list.rank; i++)
    if (list.dim[i] == number) return true;
  return false;
}

struct hlo hlo_reduce(struct stablehlo *hlo, const char *operation, struct hlo x, struct shape axes, bool keeps) {
  struct shape rest = {0}, kept = x.shape;
  if (axes.rank == 0) return x;
  for (int i = 0; i < x.shape.rank; i++) {
    if (has(axes, i))
      kept.dim[i] = 1;
    else
      rest.dim[rest.rank++] = x.shape.dim[i];
  }
  const struct hlo from = hlo_tensor(hlo, hlo_number(neutral(operation, x.type)), (struct shape){0}, x.type);
  const struct hlo sum = hlo_op(hlo, rest, x.type,
                                "stablehlo.reduce(%s init: %s) applies stablehlo.%s across dimensions = [%s] : "
                                "(%s, %s) -> %s",
                                hlo_name_of(hlo, x), hlo_name_of(hlo, from), operation, hlo_numbers(hlo->arena, axes),
                                hlo_type_of(hlo, x), hlo_type_of(hlo, from), hlo_type_text(hlo->arena, rest, x.type));
  return keeps ? hlo_reshape(hlo, sum, kept) : sum;
}

struct hlo hlo_reduce_rows(struct stablehlo *hlo, const char *operation, struct hlo x) {
  return hlo_reduce(hlo, operation, x, shape_of(1, (int64_t)x.shape.rank - 1), true);
}

struct hlo hlo_row_mean(struct stablehlo *hlo, struct hlo x) {
  const double count = (double)x.shape.dim[x.shape.rank - 1];
  return hlo_div(hlo, hlo_reduce_rows(hlo, "add", x), hlo_number(count));
}

struct hlo hlo_column_sums(struct stablehlo *hlo, struct hlo x) {
  struct shape axes = {.rank = x.shape.rank - 1};
  for (int i = 0; i < axes.rank; i++) axes.dim[i] = i;
  return hlo_reduce(hlo, "add", x, axes, false);
}

struct hlo hlo_log_sum_exp(struct stablehlo *hlo, struct hlo x) {
  const struct hlo highest = hlo_reduce_rows(hlo, "maximum", x);
  const struct hlo parts = hlo_unary(hlo, "exponential", hlo_sub(hlo, x, highest));
  return hlo_add(hlo, highest, hlo_unary(hlo, "log", hlo_reduce_rows(hlo, "add", parts)));
}

struct hlo hlo_argmax(struct stablehlo *hlo, struct hlo x, int axis) {
  const struct shape axes = shape_of(1, (int64_t)axis);
  const struct hlo is_largest = hlo_compare(hlo, "EQ", x, hlo_reduce(hlo, "maximum", x, axes, true));
  const struct hlo numbers = hlo_iota(hlo, x.shape, axis, HLO_I32);
  return hlo_reduce(hlo, "minimum", hlo_select(hlo, is_largest, numbers, hlo_number(INT32_MAX)), axes, false);
}

struct hlo hlo_order(struct stablehlo *hlo, struct hlo x, bool descending) {
  const int axis = x.shape.rank - 1;
  const struct hlo numbers = hlo_iota(hlo, x.shape, axis, HLO_I32);
  const char *one = hlo_type_text(hlo->arena, (struct shape){0}, x.type), *all = hlo_type_of(hlo, x);
  const char *index = hlo_type_of(hlo, numbers);
  const char *text =
      arena_printf(hlo->arena,
                   "\"stablehlo.sort\"(%s, %s) <{dimension = %d : i64, is_stable = true}> ({\n"
                   "    ^bb0(%%$a: %s, %%$b: %s, %%$i: tensor<i32>, %%$j: tensor<i32>):\n"
                   "      %%$before = stablehlo.compare %s, %%$a, %%$b, %s : (%s, %s) -> tensor<i1>\n"
                   "      stablehlo.return %%$before : tensor<i1>\n    }) : (%s, %s) -> (%s, %s)",
                   hlo_name_of(hlo, x), hlo_name_of(hlo, numbers), axis, one, one, descending ? "GT" : "LT",
                   hlo_is_whole(x.type) ? "SIGNED" : "FLOAT", one, one, all, index, all, index);
  return (struct hlo){.item = hlo_add_item(hlo, text, NULL, 2), .result = 1, .shape = x.shape, .type = HLO_I32};
}

struct hlo hlo_dot(struct stablehlo *hlo, struct hlo a, struct hlo b, int batch, int along_a, int along_b) {
  struct shape shape = {.rank = batch};
  const char *both = dims_from(hlo->arena, 0, batch);
  for (int i = 0; i < batch; i++) shape.dim[i] = a.shape.dim[i];
  for (int i = batch; i < a.shape.rank; i++)
    if (i != along_a) shape.dim[shape.rank++] = a.shape.dim[i];
  for (int i = batch; i < b.shape.rank; i++)
    if (i != along_b) shape.dim[shape.rank++] = b.shape.dim[i];
  const char *together = batch == 0 ? "" : arena_printf(hlo->arena, "batching_dims = [%s] x [%s], ", both, both);
  return hlo_op(hlo, shape, HLO_F32, "stablehlo.dot_general %s, %s, %scontracting_dims = [%d] x [%d] : (%s, %s) -> %s",
                hlo_name_of(hlo, a), hlo_name_of(hlo, b), together, along_a, along_b, hlo_type_of(hlo, a),
                hlo_type_of(hlo, b), hlo_type_text(hlo->arena, shape, HLO_F32));
}

/* ---- Rows ---- */

struct hlo hlo_rows(struct stablehlo *hlo, struct hlo x, struct hlo index) {
  struct shape shape = index.shape;
  struct text sizes = text_in(hlo->arena);
  text_puts(&sizes, "1");
  for (int i = 1; i < x.shape.rank; i++) {
    shape.dim[shape.rank++] = x.shape.dim[i];
    text_printf(&sizes, ", %lld", (long long)x.shape.dim[i]);
  }
  return hlo_op(
      hlo, shape, x.type,
      "\"stablehlo.gather\"(%s, %s) <{dimension_numbers = #stablehlo.gather<offset_dims = [%s], "
      "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = %d>, indices_are_sorted = false, "
      "slice_sizes = array<i64: %s>}> : (%s, %s) -> %s",
      hlo_name_of(hlo, x), hlo_name_of(hlo, index), dims_from(hlo->arena, index.shape.rank, x.shape.rank - 1),
      index.shape.rank, text_string(&sizes), hlo_type_of(hlo, x), hlo_type_of(hlo, index),
      hlo_type_text(hlo->arena, shape, x.type));
}

/* A sum into zeros of `shape`: of `x`, whose first dimensions are those of the index. `dims`: what says which
 * dimensions are whose. */
static struct hlo scatter(struct stablehlo *hlo, struct shape shape, struct hlo index, struct hlo x, const char *dims) {
  const struct hlo zero = hlo_tensor(hlo, hlo_number(0), shape, x.type);
  const char *one = hlo_type_text(hlo->arena, (struct shape){0}, x.type), *all = hlo_type_of(hlo, zero);
  return hlo_op(hlo, shape, x.type,
                "\"stablehlo.scatter\"(%s, %s, %s) <{scatter_dimension_numbers = #stablehlo.scatter<%s>, "
                "indices_are_sorted = false, unique_indices = false}> ({\n"
                "    ^bb0(%%$a: %s, %%$b: %s):\n      %%$sum = stablehlo.add %%$a, %%$b : %s\n"
                "      stablehlo.return %%$sum : %s\n    }) : (%s, %s, %s) -> %s",
                hlo_name_of(hlo, zero), hlo_name_of(hlo, index), hlo_name_of(hlo, x), dims, one, one, one, one, all,
                hlo_type_of(hlo, index), hlo_type_of(hlo, x), all);
}

struct hlo hlo_add_rows(struct stablehlo *hlo, int64_t rows, struct hlo index, struct hlo x) {
  struct shape shape = shape_of(1, rows);
  for (int i = index.shape.rank; i < x.shape.rank; i++) shape.dim[shape.rank++] = x.shape.dim[i];
  return scatter(hlo, shape, index, x,
                 arena_printf(hlo->arena,
                              "update_window_dims = [%s], inserted_window_dims = [0], "
                              "scatter_dims_to_operand_dims = [0], index_vector_dim = %d",
                              dims_from(hlo->arena, index.shape.rank, x.shape.rank - index.shape.rank),
                              index.shape.rank));
}

/* ---- Elements ---- */

/* Of each element of the index all coordinates, on a new last axis: its own, but for the one along `axis`. */
static struct hlo coordinates(struct stablehlo *hlo, struct hlo index, int axis) {
  struct hlo parts[MAX_RANK];
  struct shape shape = index.shape;
  shape.dim[shape.rank++] = 1;
  for (int i = 0; i < index.shape.rank; i++)
    parts[i] = i == axis ? hlo_reshape(hlo, index, shape) : hlo_iota(hlo, shape, i, HLO_I32);
  return hlo_concat(hlo, parts, index.shape.rank, index.shape.rank);
}

struct hlo hlo_take(struct stablehlo *hlo, struct hlo x, struct hlo index, int axis) {
  const struct hlo at = coordinates(hlo, index, axis);
  const char *all = dims_from(hlo->arena, 0, x.shape.rank);
  struct text sizes = text_in(hlo->arena);
  for (int i = 0; i < x.shape.rank; i++) text_puts(&sizes, i > 0 ? ", 1" : "1");
  return hlo_op(hlo, index.shape, x.type,
                "\"stablehlo.gather\"(%s, %s) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [%s], "
                "start_index_map = [%s], index_vector_dim = %d>, indices_are_sorted = false, "
                "slice_sizes = array<i64: %s>}> : (%s, %s) -> %s",
                hlo_name_of(hlo, x), hlo_name_of(hlo, at), all, all, x.shape.rank, text_string(&sizes),
                hlo_type_of(hlo, x), hlo_type_of(hlo, at), hlo_type_text(hlo->arena, index.shape, x.type));
}

struct hlo hlo_put(struct stablehlo *hlo, struct shape shape, struct hlo index, struct hlo x, int axis) {
  const char *all = dims_from(hlo->arena, 0, shape.rank);
  return scatter(hlo, shape, coordinates(hlo, index, axis), x,
                 arena_printf(hlo->arena,
                              "inserted_window_dims = [%s], scatter_dims_to_operand_dims = [%s], index_vector_dim = %d",
                              all, all, shape.rank));
}
