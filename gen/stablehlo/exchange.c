#include "gen/stablehlo/exchange.h"

#include "gen/stablehlo/state.h"

/* "dense<[[0, 1, 2]]> : tensor<1x3xi64>": one group, of all devices. */
static const char *groups(struct arena *arena, int devices) {
  struct text text = text_in(arena);
  for (int i = 0; i < devices; i++) text_printf(&text, "%s%d", i > 0 ? ", " : "dense<[[", i);
  text_printf(&text, "]]> : tensor<1x%dxi64>", devices);
  return text_string(&text);
}

/* The function by which elements are added up, after an operation's attributes. */
static const char *adding(struct arena *arena, enum hlo_type type) {
  const char *one = hlo_type_text(arena, (struct shape){0}, type);
  return arena_printf(arena,
                      "({\n    ^bb0(%%$a: %s, %%$b: %s):\n      %%$sum = stablehlo.add %%$a, %%$b : %s\n"
                      "      stablehlo.return %%$sum : %s\n    })",
                      one, one, one, one);
}

void hlo_all_reduce(struct stablehlo *hlo, int devices, struct hlo *tensors, int count) {
  struct arena *arena = hlo->arena;
  struct text names = text_in(arena), types = text_in(arena);
  if (devices == 1 || count == 0) return;
  for (int i = 0; i < count; i++) {
    text_printf(&names, "%s%s", i > 0 ? ", " : "", hlo_name_of(hlo, tensors[i]));
    text_printf(&types, "%s%s", i > 0 ? ", " : "", hlo_type_of(hlo, tensors[i]));
  }
  const char *form = count == 1 ? "\"stablehlo.all_reduce\"(%s) <{replica_groups = %s}> %s : (%s) -> %s"
                                : "\"stablehlo.all_reduce\"(%s) <{replica_groups = %s}> %s : (%s) -> (%s)";
  const char *text = arena_printf(arena, form, text_string(&names), groups(arena, devices),
                                  adding(arena, tensors[0].type), text_string(&types), text_string(&types));
  const int item = hlo_add_item(hlo, text, NULL, count);
  for (int i = 0; i < count; i++) tensors[i].item = item, tensors[i].result = i;
}

/* The number of this device, an int32. */
static struct hlo device_number(struct stablehlo *hlo) {
  const struct shape scalar = {0};
  const struct hlo number =
      hlo_op(hlo, scalar, HLO_UI32, "stablehlo.replica_id : %s", hlo_type_text(hlo->arena, scalar, HLO_UI32));
  return hlo_convert(hlo, number, HLO_I32);
}

struct hlo hlo_of_first_device(struct stablehlo *hlo, int devices, struct hlo x) {
  if (devices == 1) return x;
  const struct hlo first = hlo_compare(hlo, "EQ", device_number(hlo), hlo_number(0));
  struct hlo own = hlo_select(hlo, hlo_broadcast(hlo, first, x.shape), x, hlo_number(0));
  hlo_all_reduce(hlo, devices, &own, 1);
  return own;
}

/* ---- Parts ---- */

struct shape hlo_part_shape(struct shape shape, int devices) {
  return shape_of(1, (shape_count(shape) + devices - 1) / devices);
}

/* The parts of all devices, a row each. */
static struct hlo rows_of(struct stablehlo *hlo, int devices, struct hlo x) {
  const int64_t count = shape_count(x.shape), part = hlo_part_shape(x.shape, devices).dim[0];
  const struct hlo flat = hlo_reshape(hlo, x, shape_of(1, count));
  return hlo_reshape(hlo, hlo_pad(hlo, flat, 0, 0, part * devices - count, 0), shape_of(2, (int64_t)devices, part));
}

struct hlo hlo_own_part(struct stablehlo *hlo, int devices, struct hlo x) {
  const struct hlo rows = rows_of(hlo, devices, x);
  return hlo_reshape(hlo, hlo_slice_at(hlo, rows, 0, device_number(hlo), 1), shape_of(1, rows.shape.dim[1]));
}

/* How many of the tensors, each of which is `times` as large on all devices, are a bucket: at least one. */
static int in_bucket(const struct hlo *tensors, int count, int times, int64_t bucket) {
  int64_t bytes = 0;
  for (int i = 0; i < count; i++) {
    bytes += shape_count(tensors[i].shape) * times * dtype_size(DTYPE_FLOAT32);
    if (bytes > bucket && i > 0) return i;
  }
  return count;
}

/* Rows become this device's row of their sum, in one collective. */
static void reduce_rows(struct stablehlo *hlo, int devices, struct hlo *rows, int count) {
  struct arena *arena = hlo->arena;
  const struct hlo all = count > 1 ? hlo_concat(hlo, rows, count, 1) : rows[0];
  const struct shape shape = shape_of(2, (int64_t)1, all.shape.dim[1]);
  const struct hlo own =
      hlo_op(hlo, shape, all.type,
             "\"stablehlo.reduce_scatter\"(%s) <{replica_groups = %s, scatter_dimension = 0 : i64}> %s : (%s) -> %s",
             hlo_name_of(hlo, all), groups(arena, devices), adding(arena, all.type), hlo_type_of(hlo, all),
             hlo_type_text(arena, shape, all.type));
  int64_t first = 0;
  for (int i = 0; i < count; i++) {
    const int64_t part = rows[i].shape.dim[1];
    rows[i] = hlo_reshape(hlo, hlo_slice(hlo, own, 1, first, part), shape_of(1, part));
    first += part;
  }
}

void hlo_reduce_to_parts(struct stablehlo *hlo, int devices, int64_t bucket, struct hlo *tensors, int count) {
  for (int i = 0; i < count; i++) tensors[i] = rows_of(hlo, devices, tensors[i]);
  for (int i = 0, n; i < count; i += n) {
    n = in_bucket(tensors + i, count - i, 1, bucket);
    reduce_rows(hlo, devices, tensors + i, n);
  }
}

/* Parts become tensors, in one collective. */
static void gather_bucket(struct stablehlo *hlo, int devices, struct hlo *parts, const struct shape *shapes,
                          int count) {
  struct arena *arena = hlo->arena;
  const struct hlo flat = count > 1 ? hlo_concat(hlo, parts, count, 0) : parts[0];
  const int64_t width = flat.shape.dim[0];
  const struct hlo own = hlo_reshape(hlo, flat, shape_of(2, (int64_t)1, width));
  const struct shape shape = shape_of(2, (int64_t)devices, width);
  const struct hlo rows = hlo_op(hlo, shape, own.type,
                                 "\"stablehlo.all_gather\"(%s) <{all_gather_dim = 0 : i64, replica_groups = %s}> : "
                                 "(%s) -> %s",
                                 hlo_name_of(hlo, own), groups(arena, devices), hlo_type_of(hlo, own),
                                 hlo_type_text(arena, shape, own.type));
  int64_t first = 0;
  for (int i = 0; i < count; i++) {
    const int64_t part = parts[i].shape.dim[0];
    const struct hlo all = hlo_reshape(hlo, hlo_slice(hlo, rows, 1, first, part), shape_of(1, part * devices));
    parts[i] = hlo_reshape(hlo, hlo_slice(hlo, all, 0, 0, shape_count(shapes[i])), shapes[i]);
    first += part;
  }
}

void hlo_gather_parts(struct stablehlo *hlo, int devices, int64_t bucket, struct hlo *parts, const struct shape *shapes,
                      int count) {
  for (int i = 0, n; i < count; i += n) {
    n = in_bucket(parts + i, count - i, devices, bucket);
    gather_bucket(hlo, devices, parts + i, shapes + i, n);
  }
}
