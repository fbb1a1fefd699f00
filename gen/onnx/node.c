/* The node that a rule is of. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "gen/onnx/state.h"

const struct node *onnx_node_at(const struct onnx *onnx, int size) {
  return onnx->flats[size]->nodes.items[onnx->node].node;
}

const char *onnx_fail(struct onnx *onnx, const char *format, ...) {
  const struct node *node = onnx_node_at(onnx, 0);
  va_list arguments;
  if (onnx->failed) return "";
  va_start(arguments, format);
  const char *why = arena_vprintf(onnx->arena, format, arguments);
  va_end(arguments);
  diag_error(onnx->diags, node->where, "'%s' cannot be exported as ONNX: %s", node->kind->name, why);
  onnx->failed = true;
  return "";
}

static void fail_to_follow(struct onnx *onnx, const char *what) {
  if (onnx->failed) return;
  onnx_fail(onnx, "%s changes with the length of the sequence, or with the batch", what);
  diag_help(onnx->diags, "--sequence N and --batch N fix them");
}

struct arena *onnx_arena(const struct onnx *onnx) {
  return onnx->arena;
}

int onnx_n_inputs(const struct onnx *onnx) {
  return onnx_node_at(onnx, 0)->n_inputs;
}

const char *onnx_input(struct onnx *onnx, int input) {
  const int number = onnx->flats[0]->nodes.items[onnx->node].inputs[input];
  onnx->taken[number] = true;
  return onnx->names[number];
}

int onnx_rank(const struct onnx *onnx, int input) {
  return onnx_node_at(onnx, 0)->inputs[input]->shape.rank;
}

enum dtype onnx_dtype(const struct onnx *onnx, int input) {
  return onnx_node_at(onnx, 0)->inputs[input]->dtype;
}

int onnx_result_rank(const struct onnx *onnx) {
  return onnx_node_at(onnx, 0)->outputs[0]->shape.rank;
}

enum dtype onnx_result_dtype(const struct onnx *onnx) {
  return onnx_node_at(onnx, 0)->outputs[0]->dtype;
}

void onnx_result(struct onnx *onnx, int output, const char *tensor) {
  onnx->names[onnx->flats[0]->nodes.items[onnx->node].outputs[output]] = tensor;
}

/* ---- Extents ---- */

bool onnx_fit(const struct onnx *onnx, const int64_t numbers[ONNX_SIZES], struct onnx_extent *extent) {
  const int64_t *b = onnx->sizes->batch, *t = onnx->sizes->sequence, *n = numbers;
  const int64_t batches = b[1] - b[0], lengths = t[2] - t[0];
  struct onnx_extent e = {0};
  if (batches != 0 && lengths != 0) e.both = (n[3] - n[2] - n[1] + n[0]) / (batches * lengths);
  if (batches != 0) e.batch = (n[1] - n[0]) / batches - e.both * t[0];
  if (lengths != 0) e.sequence = (n[2] - n[0]) / lengths - e.both * b[0];
  e.base = n[0] - e.batch * b[0] - e.sequence * t[0] - e.both * b[0] * t[0];
  for (int i = 0; i < ONNX_SIZES; i++)
    if (e.base + e.batch * b[i] + e.sequence * t[i] + e.both * b[i] * t[i] != n[i]) return false;
  *extent = e;
  return true;
}

static struct onnx_extent fitted(struct onnx *onnx, const int64_t numbers[ONNX_SIZES], const char *what) {
  struct onnx_extent extent = {0};
  if (!onnx_fit(onnx, numbers, &extent)) fail_to_follow(onnx, what);
  return extent;
}

static struct onnx_extent extent_of(struct onnx *onnx, bool result, int index, int axis) {
  int64_t numbers[ONNX_SIZES];
  for (int i = 0; i < ONNX_SIZES; i++) {
    const struct node *node = onnx_node_at(onnx, i);
    const struct shape shape = result ? node->outputs[index]->shape : node->inputs[index]->shape;
    numbers[i] = shape.dim[axis < 0 ? axis + shape.rank : axis];
  }
  return fitted(onnx, numbers, "an extent");
}

struct onnx_extent onnx_dim(struct onnx *onnx, int input, int axis) {
  return extent_of(onnx, false, input, axis);
}

struct onnx_extent onnx_result_dim(struct onnx *onnx, int axis) {
  return extent_of(onnx, true, 0, axis);
}

bool onnx_is_fixed(struct onnx_extent extent) {
  return extent.batch == 0 && extent.sequence == 0 && extent.both == 0;
}

bool onnx_is_same(struct onnx_extent a, struct onnx_extent b) {
  return a.base == b.base && a.batch == b.batch && a.sequence == b.sequence && a.both == b.both;
}

struct onnx_extent onnx_fixed(int64_t value) {
  return (struct onnx_extent){.base = value};
}

struct onnx_extent onnx_plus(struct onnx_extent a, struct onnx_extent b) {
  return (struct onnx_extent){a.base + b.base, a.batch + b.batch, a.sequence + b.sequence, a.both + b.both};
}

struct onnx_extent onnx_times(struct onnx_extent a, int64_t factor) {
  return (struct onnx_extent){a.base * factor, a.batch * factor, a.sequence * factor, a.both * factor};
}

/* ---- Attributes ---- */

bool onnx_has(const struct onnx *onnx, const char *name) {
  const struct node *node = onnx_node_at(onnx, 0);
  for (int i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, name) == 0) return true;
  return false;
}

static void mark_read(struct onnx *onnx, const char *name) {
  const struct node *node = onnx_node_at(onnx, 0);
  for (int i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, name) == 0) onnx->read |= UINT32_C(1) << i;
}

void onnx_ignore(struct onnx *onnx, const char *name) {
  mark_read(onnx, name);
}

void onnx_check_read(struct onnx *onnx) {
  const struct node *node = onnx_node_at(onnx, 0);
  for (int i = 0; i < node->n_attributes; i++)
    if ((onnx->read >> i & 1) == 0) onnx_fail(onnx, "its rule does not read '%s'", node->attributes[i].name);
}

int64_t onnx_int(struct onnx *onnx, const char *name) {
  mark_read(onnx, name);
  const int64_t value = node_int(onnx_node_at(onnx, 0), name);
  for (int i = 1; i < ONNX_SIZES; i++)
    if (node_int(onnx_node_at(onnx, i), name) != value) fail_to_follow(onnx, name);
  return value;
}

double onnx_real(struct onnx *onnx, const char *name) {
  mark_read(onnx, name);
  const double value = node_real(onnx_node_at(onnx, 0), name);
  for (int i = 1; i < ONNX_SIZES; i++) {
    const double other = node_real(onnx_node_at(onnx, i), name);
    if (memcmp(&other, &value, sizeof value) != 0) fail_to_follow(onnx, name);
  }
  return value;
}

struct shape onnx_ints(struct onnx *onnx, const char *name) {
  mark_read(onnx, name);
  const struct shape value = node_ints(onnx_node_at(onnx, 0), name);
  for (int i = 1; i < ONNX_SIZES; i++)
    if (!shape_equal(node_ints(onnx_node_at(onnx, i), name), value)) fail_to_follow(onnx, name);
  return value;
}

static int64_t list_length(const struct node *node, const char *name) {
  for (int i = 0; i < node->n_attributes; i++)
    if (strcmp(node->attributes[i].name, name) == 0) return node->attributes[i].n_reals;
  return 0;
}

const double *onnx_reals(struct onnx *onnx, const char *name) {
  mark_read(onnx, name);
  const int64_t count = list_length(onnx_node_at(onnx, 0), name);
  const double *values = node_reals(onnx_node_at(onnx, 0), name);
  for (int i = 1; i < ONNX_SIZES; i++)
    if (list_length(onnx_node_at(onnx, i), name) != count ||
        memcmp(node_reals(onnx_node_at(onnx, i), name), values, (size_t)count * sizeof *values) != 0)
      fail_to_follow(onnx, name);
  return values;
}

struct onnx_extent onnx_int_extent(struct onnx *onnx, const char *name) {
  int64_t numbers[ONNX_SIZES];
  mark_read(onnx, name);
  for (int i = 0; i < ONNX_SIZES; i++) numbers[i] = node_int(onnx_node_at(onnx, i), name);
  return fitted(onnx, numbers, name);
}

const char *onnx_real_tensor(struct onnx *onnx, const char *name) {
  const double value = node_real(onnx_node_at(onnx, 0), name);
  int64_t numbers[ONNX_SIZES];
  bool same = true;
  mark_read(onnx, name);
  for (int i = 0; i < ONNX_SIZES; i++) {
    const double number = node_real(onnx_node_at(onnx, i), name);
    same &= memcmp(&number, &value, sizeof value) == 0;
    if (!same && (fabs(number) > 1e15 || number != trunc(number))) return fail_to_follow(onnx, name), "";
    numbers[i] = fabs(number) < 1e15 ? (int64_t)number : 0;
  }
  if (same) return onnx_float(onnx, value);
  return onnx_cast(onnx, onnx_count(onnx, fitted(onnx, numbers, name)), DTYPE_FLOAT32);
}

int64_t onnx_window(struct onnx *onnx, const char *name, int input, int axis) {
  int64_t window = 0, longest = 0;
  mark_read(onnx, name);
  for (int i = 0; i < ONNX_SIZES; i++) {
    const struct node *node = onnx_node_at(onnx, i);
    const int64_t number = node_int(node, name), positions = node->inputs[input]->shape.dim[axis];
    if (number > 0 && number < positions && window != 0 && number != window) fail_to_follow(onnx, name);
    if (number > 0 && number < positions)
      window = number;
    else if (positions > longest)
      longest = positions;
  }
  if (window > 0 && longest > window) fail_to_follow(onnx, name);
  return window;
}
