/* Operations that move elements. */
#include "gen/stablehlo/state.h"

/* An operation of one operand: "stablehlo.NAME %x MORE : (type) -> type". */
static struct hlo of_one(struct stablehlo *hlo, const char *name, struct hlo x, const char *more, struct shape shape) {
  return hlo_op(hlo, shape, x.type, "stablehlo.%s %s%s : (%s) -> %s", name, hlo_name_of(hlo, x), more,
                hlo_type_of(hlo, x), hlo_type_text(hlo->arena, shape, x.type));
}

struct hlo hlo_reshape(struct stablehlo *hlo, struct hlo x, struct shape shape) {
  return x.is_number || shape_equal(x.shape, shape) ? x : of_one(hlo, "reshape", x, "", shape);
}

struct hlo hlo_broadcast_in(struct stablehlo *hlo, struct hlo x, struct shape shape, struct shape dims) {
  const char *more = arena_printf(hlo->arena, ", dims = [%s]", hlo_numbers(hlo->arena, dims));
  return of_one(hlo, "broadcast_in_dim", x, more, shape);
}

struct hlo hlo_broadcast(struct stablehlo *hlo, struct hlo x, struct shape shape) {
  struct shape dims = {.rank = x.shape.rank};
  if (x.is_number || shape_equal(x.shape, shape)) return x;
  for (int i = 0; i < x.shape.rank; i++) dims.dim[i] = shape.rank - x.shape.rank + i;
  return hlo_broadcast_in(hlo, x, shape, dims);
}

struct hlo hlo_transpose(struct stablehlo *hlo, struct hlo x, struct shape order) {
  struct shape shape = {.rank = x.shape.rank};
  for (int i = 0; i < order.rank; i++) shape.dim[i] = x.shape.dim[order.dim[i]];
  return of_one(hlo, "transpose", x, arena_printf(hlo->arena, ", dims = [%s]", hlo_numbers(hlo->arena, order)), shape);
}

struct hlo hlo_exchange(struct stablehlo *hlo, struct hlo x, int a, int b) {
  struct shape order = {.rank = x.shape.rank};
  for (int i = 0; i < order.rank; i++) order.dim[i] = i == a ? b : i == b ? a : i;
  return a == b ? x : hlo_transpose(hlo, x, order);
}

struct hlo hlo_slice(struct stablehlo *hlo, struct hlo x, int axis, int64_t start, int64_t count) {
  struct text ranges = text_in(hlo->arena);
  struct shape shape = x.shape;
  if (start == 0 && count == shape.dim[axis]) return x;
  shape.dim[axis] = count;
  for (int i = 0; i < shape.rank; i++) {
    const int64_t from = i == axis ? start : 0;
    text_printf(&ranges, "%s%lld:%lld", i > 0 ? ", " : " [", (long long)from, (long long)(from + shape.dim[i]));
  }
  text_puts(&ranges, "]");
  return of_one(hlo, "slice", x, text_string(&ranges), shape);
}

/* The starts of a part of x that is at `start` along an axis, and their types: ", %{4}, %{7}", ", tensor<i32>, ...". */
static void starts_of(struct stablehlo *hlo, struct hlo x, int axis, struct hlo start, struct text *names,
                      struct text *types) {
  const struct hlo zero = hlo_tensor(hlo, hlo_number(0), (struct shape){0}, HLO_I32);
  for (int i = 0; i < x.shape.rank; i++) {
    text_printf(names, ", %s", hlo_name_of(hlo, i == axis ? start : zero));
    text_puts(types, ", tensor<i32>");
  }
}

struct hlo hlo_slice_at(struct stablehlo *hlo, struct hlo x, int axis, struct hlo start, int64_t count) {
  struct text starts = text_in(hlo->arena), types = text_in(hlo->arena);
  struct shape shape = x.shape;
  shape.dim[axis] = count;
  starts_of(hlo, x, axis, start, &starts, &types);
  return hlo_op(hlo, shape, x.type, "stablehlo.dynamic_slice %s%s, sizes = [%s] : (%s%s) -> %s", hlo_name_of(hlo, x),
                text_string(&starts), hlo_numbers(hlo->arena, shape), hlo_type_of(hlo, x), text_string(&types),
                hlo_type_text(hlo->arena, shape, x.type));
}

struct hlo hlo_put_at(struct stablehlo *hlo, struct hlo x, struct hlo part, int axis, struct hlo start) {
  struct text starts = text_in(hlo->arena), types = text_in(hlo->arena);
  const char *type = hlo_type_of(hlo, x);
  starts_of(hlo, x, axis, start, &starts, &types);
  return hlo_op(hlo, x.shape, x.type, "stablehlo.dynamic_update_slice %s, %s%s : (%s, %s%s) -> %s", hlo_name_of(hlo, x),
                hlo_name_of(hlo, part), text_string(&starts), type, hlo_type_of(hlo, part), text_string(&types), type);
}

struct hlo hlo_pad(struct stablehlo *hlo, struct hlo x, int axis, int64_t before, int64_t after, double value) {
  struct shape low = {.rank = x.shape.rank}, high = low, none = low, shape = x.shape;
  if (before == 0 && after == 0) return x;
  low.dim[axis] = before;
  high.dim[axis] = after;
  shape.dim[axis] += before + after;
  const struct hlo filler = hlo_tensor(hlo, hlo_number(value), (struct shape){0}, x.type);
  return hlo_op(hlo, shape, x.type, "stablehlo.pad %s, %s, low = [%s], high = [%s], interior = [%s] : (%s, %s) -> %s",
                hlo_name_of(hlo, x), hlo_name_of(hlo, filler), hlo_numbers(hlo->arena, low),
                hlo_numbers(hlo->arena, high), hlo_numbers(hlo->arena, none), hlo_type_of(hlo, x),
                hlo_type_of(hlo, filler), hlo_type_text(hlo->arena, shape, x.type));
}

struct hlo hlo_concat(struct stablehlo *hlo, const struct hlo *parts, int count, int axis) {
  struct text names = text_in(hlo->arena), types = text_in(hlo->arena);
  struct shape shape = parts[0].shape;
  if (count == 1) return parts[0];
  shape.dim[axis] = 0;
  for (int i = 0; i < count; i++) {
    text_printf(&names, "%s%s", i > 0 ? ", " : "", hlo_name_of(hlo, parts[i]));
    text_printf(&types, "%s%s", i > 0 ? ", " : "", hlo_type_of(hlo, parts[i]));
    shape.dim[axis] += parts[i].shape.dim[axis];
  }
  return hlo_op(hlo, shape, parts[0].type, "stablehlo.concatenate %s, dim = %d : (%s) -> %s", text_string(&names), axis,
                text_string(&types), hlo_type_text(hlo->arena, shape, parts[0].type));
}

struct hlo hlo_reverse(struct stablehlo *hlo, struct hlo x, int axis) {
  return hlo_op(hlo, x.shape, x.type, "stablehlo.reverse %s, dims = [%d] : %s", hlo_name_of(hlo, x), axis,
                hlo_type_of(hlo, x));
}

struct hlo hlo_iota(struct stablehlo *hlo, struct shape shape, int axis, enum hlo_type type) {
  return hlo_op(hlo, shape, type, "stablehlo.iota dim = %d : %s", axis, hlo_type_text(hlo->arena, shape, type));
}

static void add_table(struct text *text, struct arena *arena, const double **values, struct shape shape, int axis,
                      enum hlo_type type) {
  if (axis == shape.rank) {
    text_puts(text, hlo_literal(arena, *(*values)++, type));
    return;
  }
  text_puts(text, "[");
  for (int64_t i = 0; i < shape.dim[axis]; i++) {
    if (i > 0) text_puts(text, ", ");
    add_table(text, arena, values, shape, axis + 1, type);
  }
  text_puts(text, "]");
}

struct hlo hlo_table(struct stablehlo *hlo, const double *values, struct shape shape, enum hlo_type type) {
  struct text text = text_in(hlo->arena);
  add_table(&text, hlo->arena, &values, shape, 0, type);
  return hlo_op(hlo, shape, type, "stablehlo.constant dense<%s> : %s", text_string(&text),
                hlo_type_text(hlo->arena, shape, type));
}
