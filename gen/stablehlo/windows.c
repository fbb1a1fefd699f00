/* Windows that move over images. */
#include <math.h>

#include "gen/stablehlo/state.h"

/* "[1, 2]", "[[0, 1], [1, 1]]" */
static const char *pair(struct arena *arena, const int64_t numbers[2]) {
  return arena_printf(arena, "[%lld, %lld]", (long long)numbers[0], (long long)numbers[1]);
}

static const char *pairs(struct arena *arena, const int64_t first[2], const int64_t second[2]) {
  const int64_t rows[2] = {first[0], second[0]}, columns[2] = {first[1], second[1]};
  return arena_printf(arena, "[%s, %s]", pair(arena, rows), pair(arena, columns));
}

struct hlo hlo_convolve(struct stablehlo *hlo, struct hlo a, struct hlo b, const struct hlo_convolution *how) {
  struct arena *arena = hlo->arena;
  return hlo_op(hlo, how->shape, HLO_F32,
                "stablehlo.convolution(%s, %s) dim_numbers = %s, window = {stride = %s, pad = %s, lhs_dilate = %s, "
                "rhs_dilate = %s} {batch_group_count = %lld : i64, feature_group_count = %lld : i64} : (%s, %s) -> %s",
                hlo_name_of(hlo, a), hlo_name_of(hlo, b), how->dims, pair(arena, how->step),
                pairs(arena, how->before, how->after), pair(arena, how->spread_a), pair(arena, how->spread_b),
                (long long)how->batch_groups, (long long)how->groups, hlo_type_of(hlo, a), hlo_type_of(hlo, b),
                hlo_type_text(arena, how->shape, HLO_F32));
}

/* The attributes of windows, which are of one sample and channel. */
static const char *attributes(struct arena *arena, const struct hlo_windows *windows) {
  return arena_printf(arena,
                      "window_dimensions = array<i64: 1, 1, %lld, %lld>, window_strides = array<i64: 1, 1, %lld, "
                      "%lld>, padding = dense<[[0, 0], [0, 0], [%lld, %lld], [%lld, %lld]]> : tensor<4x2xi64>",
                      (long long)windows->size[0], (long long)windows->size[1], (long long)windows->step[0],
                      (long long)windows->step[1], (long long)windows->padding[0], (long long)windows->padding[0],
                      (long long)windows->padding[1], (long long)windows->padding[1]);
}

/* The body of a function of two scalars of this type. */
static const char *body(struct arena *arena, const char *name, const char *operation, const char *type,
                        const char *given) {
  return arena_printf(arena,
                      "{\n    ^bb0(%%$a: %s, %%$b: %s):\n      %%$%s = stablehlo.%s\n"
                      "      stablehlo.return %%$%s : %s\n    }",
                      type, type, name, operation, name, given);
}

struct hlo hlo_window_max(struct stablehlo *hlo, struct hlo x, const struct hlo_windows *windows, struct shape shape) {
  const struct hlo least = hlo_tensor(hlo, hlo_number(-INFINITY), (struct shape){0}, x.type);
  const char *one = hlo_type_of(hlo, least);
  const char *largest = body(hlo->arena, "most", arena_printf(hlo->arena, "maximum %%$a, %%$b : %s", one), one, one);
  return hlo_op(hlo, shape, x.type, "\"stablehlo.reduce_window\"(%s, %s) <{%s}> (%s) : (%s, %s) -> %s",
                hlo_name_of(hlo, x), hlo_name_of(hlo, least), attributes(hlo->arena, windows), largest,
                hlo_type_of(hlo, x), one, hlo_type_text(hlo->arena, shape, x.type));
}

struct hlo hlo_window_max_backward(struct stablehlo *hlo, struct hlo dy, struct hlo x,
                                   const struct hlo_windows *windows) {
  struct arena *arena = hlo->arena;
  const struct hlo zero = hlo_tensor(hlo, hlo_number(0), (struct shape){0}, x.type);
  const char *one = hlo_type_of(hlo, zero);
  const char *chosen =
      body(arena, "first", arena_printf(arena, "compare GE, %%$a, %%$b, FLOAT : (%s, %s) -> tensor<i1>", one, one), one,
           "tensor<i1>");
  const char *sum = body(arena, "sum", arena_printf(arena, "add %%$a, %%$b : %s", one), one, one);
  return hlo_op(hlo, x.shape, x.type,
                "\"stablehlo.select_and_scatter\"(%s, %s, %s) <{%s}> (%s, %s) : (%s, %s, %s) -> %s",
                hlo_name_of(hlo, x), hlo_name_of(hlo, dy), hlo_name_of(hlo, zero), attributes(arena, windows), chosen,
                sum, hlo_type_of(hlo, x), hlo_type_of(hlo, dy), one, hlo_type_of(hlo, x));
}
