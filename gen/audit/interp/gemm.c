/* Matrix products and convolutions: what each reads and writes. */
#include "gen/audit/interp/external.h"

#include <string.h>

int64_t external_matrix_bytes(struct matrix matrix) {
  int64_t rows = matrix.rows.kind == VALUE_INTEGER ? matrix.rows.high : VALUE_MAX;
  if (rows <= 0 || matrix.columns <= 0) return 0;
  return bounded_multiply(bounded_add(bounded_multiply(rows - 1, matrix.step), matrix.columns), matrix.size);
}

static int64_t pointed_size(const struct call *call, int which) {
  const struct syntax *argument = call->node->parts[which + 1];
  while (argument->kind == SYNTAX_CAST && argument->type->kind != TYPE_POINTER) argument = argument->parts[0];
  const struct type *type = argument->type;
  return (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY) && type->element->size > 0 ? type->element->size : 4;
}

/* Looks at what a product adds beta times, before it is written. */
static void touch_added(const struct call *call, int which, int result, struct matrix matrix) {
  const struct value beta = call->arguments[which];
  if (!beta.is_known && beta.loops != 0) /* over fewer iterations it may be: the first writes what the others add to */
    interp_fail(call->interp, FAILURE_UNWRITTEN, VERDICT_CANNOT_TELL, call->node, beta.loops,
                "whether %s adds to what it writes is not known", call->node->function->name);
  if (!beta.is_known || beta.real != 0.0) external_touch_rows(call, result, matrix, false);
}

/* gemm(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), row by row. */
struct value external_multiply(const struct call *call) {
  if (call->count != 13) return value_number(ORIGIN_DATA);
  bool transa = external_max(call, 0) == 'T' || external_max(call, 0) == 't',
       transb = external_max(call, 1) == 'T' || external_max(call, 1) == 't';
  int64_t m = external_max(call, 2), n = external_max(call, 3), k = external_max(call, 4);
  const struct matrix left = {call->arguments[transa ? 4 : 2], transa ? m : k, external_max(call, 7),
                              pointed_size(call, 6)};
  const struct matrix right = {call->arguments[transb ? 3 : 4], transb ? k : n, external_max(call, 9),
                               pointed_size(call, 8)};
  const struct matrix result = {call->arguments[2], n, external_max(call, 12), pointed_size(call, 11)};
  external_touch_rows(call, 6, left, false);
  external_touch_rows(call, 8, right, false);
  touch_added(call, 10, 11, result);
  external_touch_rows(call, 11, result, true);
  if (external_max(call, 7) < (transa ? m : k) || external_max(call, 9) < (transb ? k : n) ||
      external_max(call, 12) < n)
    interp_fail(call->interp, FAILURE_BOUNDS, VERDICT_BROKEN, call->node, 0, "rows of %s reach into the next ones",
                call->node->function->name);
  external_require_noalias(call, 11, 6);
  external_require_noalias(call, 11, 8);
  return value_of_type(call->node->type, ORIGIN_DATA);
}

/* accel_gemv(columns, depth, y, x, b, b_step, beta) of accel/gemv.h. */
struct value external_gemv(const struct call *call) {
  enum { COLUMNS, DEPTH, Y, X, B, B_STEP, BETA, SIZE = 4 };
  if (call->count != BETA + 1) return value_number(ORIGIN_DATA);
  const int64_t depth = external_max(call, DEPTH), step = external_max(call, B_STEP);
  const struct matrix x = {call->arguments[DEPTH], 1, 1, SIZE}, y = {call->arguments[COLUMNS], 1, 1, SIZE};
  const struct matrix b = {call->arguments[COLUMNS], depth, step, SIZE};
  external_touch_rows(call, X, x, false);
  external_touch_rows(call, B, b, false);
  touch_added(call, BETA, Y, y);
  external_touch_rows(call, Y, y, true);
  if (step < depth)
    interp_fail(call->interp, FAILURE_BOUNDS, VERDICT_BROKEN, call->node, 0, "rows of %s reach into the next ones",
                call->node->function->name);
  external_require_noalias(call, Y, X);
  external_require_noalias(call, Y, B);
  return value_of_type(call->node->type, ORIGIN_DATA);
}

/* The bytes that a matrix of a batch takes: rows and columns are `row` and `column` elements apart. */
static int64_t batch_bytes(const struct interp *interp, const struct object *gemm, int64_t rows, int64_t row,
                           int64_t columns, int64_t column, const char *step, int64_t size) {
  int64_t last = bounded_add(bounded_multiply(rows - 1, row), bounded_multiply(columns - 1, column));
  for (int64_t i = 0; i < external_member(interp, gemm, "batch_rank", 0); i++)
    last = bounded_add(
        last, bounded_multiply(external_member(interp, gemm, "batch", i) - 1, external_member(interp, gemm, step, i)));
  return bounded_multiply(bounded_add(last, 1), size);
}

const struct object *external_described(const struct call *call) {
  struct interp *interp = call->interp;
  struct value at = call->arguments[0];
  bool known = at.kind == VALUE_POINTER && at.object >= 0 && interp->objects[at.object].kind == OBJECT_STATIC &&
               interp->objects[at.object].type->kind == TYPE_RECORD && !interp->objects[at.object].is_set_by_steps;
  if (known) return &interp->objects[at.object];
  interp_fail(interp, FAILURE_BOUNDS, VERDICT_CANNOT_TELL, call->node, 0, "which matmul this is, is not known");
  return NULL;
}

/* accel_multiply(gemm, y, a, b) of accel/gemm.h. */
struct value external_multiply_described(const struct call *call) {
  struct interp *interp = call->interp;
  const struct object *gemm = external_described(call);
  if (gemm == NULL) return value_number(ORIGIN_DATA);
  int64_t rows = external_member(interp, gemm, "rows", 0), columns = external_member(interp, gemm, "columns", 0);
  int64_t depth = external_member(interp, gemm, "depth", 0);
  int64_t size = external_member(interp, gemm, "type", 0) == 0 ? 4 : 2;
  int64_t y_size = external_member(interp, gemm, "result", 0) == 0 ? 4 : 2;
  external_touch(call, 2,
                 batch_bytes(interp, gemm, rows, external_member(interp, gemm, "a_row", 0), depth,
                             external_member(interp, gemm, "a_column", 0), "a_step", size),
                 false);
  external_touch(call, 3,
                 batch_bytes(interp, gemm, depth, external_member(interp, gemm, "b_row", 0), columns,
                             external_member(interp, gemm, "b_column", 0), "b_step", size),
                 false);
  int64_t bytes =
      batch_bytes(interp, gemm, rows, external_member(interp, gemm, "y_row", 0), columns, 1, "y_step", y_size);
  if (external_member(interp, gemm, "accumulate", 0) != 0) external_touch(call, 1, bytes, false);
  external_touch(call, 1, bytes, true);
  external_require_noalias(call, 1, 2);
  external_require_noalias(call, 1, 3);
  return value_number(ORIGIN_DATA);
}

/* Whether what is passed as an argument, before it becomes a pointer to void, points to bytes. */
static bool points_to_bytes(const struct call *call, int which) {
  const struct syntax *argument = call->node->parts[which + 1];
  while (argument->kind == SYNTAX_CAST) argument = argument->parts[0];
  const struct type *type = argument->type;
  return (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY) && type->element->size == 1;
}

/* Codes as accel/quantized_gemm.h has them: so many elements in so many bytes; bytes of a scale, 0: codes have them;
 * how many elements share one, 0: those of a row. */
struct code_bytes {
  const char *name;
  int64_t elements, bytes, scale, share;
  bool by_groups; /* the product says how many share one */
};

static struct code_bytes code_bytes(const char *name) {
  static const struct code_bytes all[] = {
      {"ACCEL_CODES_INT8", 1, 1, 4, 0, false},       {"ACCEL_CODES_INT8_GROUPS", 1, 1, 4, 0, true},
      {"ACCEL_CODES_INT4_GROUPS", 2, 1, 8, 0, true}, {"ACCEL_CODES_Q8_0", 32, 34, 0, 32, false},
      {"ACCEL_CODES_Q4_0", 32, 18, 0, 32, false},    {"ACCEL_CODES_Q4_K", 256, 144, 0, 256, false},
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(name, all[i].name) == 0) return all[i];
  return (struct code_bytes){name, 2, 1, 4, 64, false};
}

/* accel_multiply_quantized(gemm, y, x, codes, absmax, nested_absmax, nested_offset) of accel/quantized_gemm.h. */
struct value external_multiply_quantized(const struct call *call) {
  enum { Y = 1, X, CODES, ABSMAX, NESTED_ABSMAX, NESTED_OFFSET, NESTED = 256 };
  struct interp *interp = call->interp;
  const struct object *gemm = external_described(call);
  if (gemm == NULL || call->count != NESTED_OFFSET + 1) return value_number(ORIGIN_DATA);
  const int64_t rows = external_member(interp, gemm, "rows", 0), out = external_member(interp, gemm, "out", 0);
  const int64_t in = external_member(interp, gemm, "in", 0), count = bounded_multiply(out, in);
  const struct code_bytes as = code_bytes(external_enumerator(interp, gemm, "as"));
  const int64_t group = as.by_groups ? external_member(interp, gemm, "group", 0) : as.share;
  const int64_t blocks = group > 0 ? bounded_add(count, group - 1) / group : out;
  const bool straight = external_member(interp, gemm, "straight", 0) != 0;
  const bool nested = as.scale > 0 && points_to_bytes(call, ABSMAX);
  const int64_t size = external_member(interp, gemm, "type", 0) == 0 ? 4 : 2;
  const int64_t bytes = bounded_multiply(bounded_multiply(rows, straight ? in : out), size);
  external_touch(call, X, bounded_multiply(bounded_multiply(rows, straight ? out : in), size), false);
  external_touch(call, CODES, bounded_add(bounded_multiply(count, as.bytes), as.elements - 1) / as.elements, false);
  if (as.scale > 0) external_touch(call, ABSMAX, bounded_multiply(blocks, nested ? 1 : as.scale), false);
  if (nested) {
    external_touch(call, NESTED_ABSMAX, bounded_multiply(bounded_add(blocks, NESTED - 1) / NESTED, 4), false);
    external_touch(call, NESTED_OFFSET, 4, false);
  }
  if (external_member(interp, gemm, "accumulate", 0) != 0) external_touch(call, Y, bytes, false);
  external_touch(call, Y, bytes, true);
  for (int i = X; i <= (nested ? NESTED_OFFSET : as.scale > 0 ? ABSMAX : CODES); i++)
    external_require_noalias(call, Y, i);
  return value_number(ORIGIN_DATA);
}

/* accel_multiply_int8(gemm, y, row_codes, row_scales, outliers, x, codes, scales, valid) of accel/int8_gemm.h. */
struct value external_multiply_int8(const struct call *call) {
  enum { Y = 1, ROW_CODES, ROW_SCALES, OUTLIERS, X, CODES, SCALES, VALID };
  struct interp *interp = call->interp;
  const struct object *gemm = external_described(call);
  if (gemm == NULL || call->count != VALID + 1) return value_number(ORIGIN_DATA);
  const int64_t rows = external_member(interp, gemm, "rows", 0), out = external_member(interp, gemm, "out", 0);
  const int64_t in = external_member(interp, gemm, "in", 0), elements = bounded_multiply(rows, in);
  const int64_t size = external_member(interp, gemm, "type", 0) == 0 ? 4 : 2;
  external_touch(call, X, bounded_multiply(elements, size), false);
  external_touch(call, CODES, bounded_multiply(out, in), false);
  external_touch(call, SCALES, bounded_multiply(out, 4), false);
  const bool all = value_is_null(call->arguments[VALID]);
  if (!all) external_touch(call, VALID, 4, false);
  external_touch(call, ROW_CODES, elements, true);
  external_touch(call, ROW_SCALES, bounded_multiply(rows, 4), true);
  external_touch(call, OUTLIERS, bounded_multiply(bounded_add(in, 1), 4), true);
  external_touch(call, Y, bounded_multiply(bounded_multiply(rows, out), size), true);
  for (int i = Y; i <= OUTLIERS; i++)
    for (int k = i + 1; k <= (all ? SCALES : VALID); k++) external_require_noalias(call, i, k);
  return value_number(ORIGIN_DATA);
}

/* accel_multiply_q8_0(gemm, y, row_codes, row_scales, x, codes) of accel/q8_0_gemm.h. */
struct value external_multiply_q8_0(const struct call *call) {
  enum { Y = 1, ROW_CODES, ROW_SCALES, X, CODES };
  struct interp *interp = call->interp;
  const struct object *gemm = external_described(call);
  if (gemm == NULL || call->count != CODES + 1) return value_number(ORIGIN_DATA);
  const int64_t rows = external_member(interp, gemm, "rows", 0), out = external_member(interp, gemm, "out", 0);
  const int64_t in = external_member(interp, gemm, "in", 0), elements = bounded_multiply(rows, in);
  const struct code_bytes as = code_bytes(external_enumerator(interp, gemm, "as"));
  const int64_t size = external_member(interp, gemm, "type", 0) == 0 ? 4 : 2;
  external_touch(call, X, bounded_multiply(elements, size), false);
  external_touch(call, CODES, bounded_multiply(bounded_multiply(out, in), as.bytes) / as.elements, false);
  external_touch(call, ROW_CODES, elements, true);
  external_touch(call, ROW_SCALES, bounded_multiply(elements / as.elements, 4), true);
  external_touch(call, Y, bounded_multiply(bounded_multiply(rows, out), size), true);
  for (int i = Y; i <= ROW_SCALES; i++)
    for (int k = i + 1; k <= CODES; k++) external_require_noalias(call, i, k);
  return value_number(ORIGIN_DATA);
}

/* The product of a convolution's members and of the pairs among them, times the size of an element. */
static int64_t convolved_bytes(const struct interp *interp, const struct object *record, const char *first,
                               const char *second, const char *pair, int64_t size) {
  int64_t bytes =
      bounded_multiply(external_member(interp, record, first, 0), external_member(interp, record, second, 0));
  for (int i = 0; i < 2; i++) bytes = bounded_multiply(bytes, external_member(interp, record, pair, i));
  return bounded_multiply(bytes, size);
}

/* What a convolution reads and writes: argument `to` is its result, of `result` bytes an element, and its operands
 * follow. */
static void convolve(const struct call *call, const struct object *record, int to, int64_t result) {
  struct interp *interp = call->interp;
  int64_t makes = external_member(interp, record, "makes", 0), groups = external_member(interp, record, "groups", 0);
  int64_t size = external_member(interp, record, "type", 0) == 0 ? 4 : 2;
  enum { MAKES_Y, MAKES_X, MAKES_WEIGHTS };
  int64_t x = convolved_bytes(interp, record, "batch", "x_channels", "x", makes == MAKES_X ? result : size);
  int64_t y = convolved_bytes(interp, record, "batch", "y_channels", "y", makes == MAKES_Y ? result : size);
  int64_t weights =
      convolved_bytes(interp, record, "x_channels", "y_channels", "kernel", makes == MAKES_WEIGHTS ? result : size);
  if (groups > 0) weights /= groups;
  int64_t made = makes == MAKES_Y ? y : makes == MAKES_X ? x : weights;
  external_touch(call, to + 1, makes == MAKES_Y ? x : y, false);
  external_touch(call, to + 2, makes == MAKES_WEIGHTS ? x : weights, false);
  if (external_member(interp, record, "accumulate", 0) != 0) external_touch(call, to, made, false);
  external_touch(call, to, made, true);
  for (int i = 1; i < 3; i++) external_require_noalias(call, to, to + i);
}

/* accel_convolve(convolution, to, a, b, workspace) of accel/convolution.h. */
struct value external_convolve_described(const struct call *call) {
  const struct object *record = external_described(call);
  if (record == NULL) return value_number(ORIGIN_DATA);
  convolve(call, record, 1, external_member(call->interp, record, "result", 0) == 0 ? 4 : 2);
  external_touch(call, 4, bounded_multiply(external_member(call->interp, record, "workspace", 0), 4), true);
  for (int i = 1; i < 4; i++) external_require_noalias(call, 4, i);
  return value_number(ORIGIN_DATA);
}

/* accel_gpu_convolve(convolution, stream, to, a, b) of accel/gpu/convolution.h. */
struct value external_convolve_on_device(const struct call *call) {
  const struct object *record = external_described(call);
  if (record == NULL) return value_number(ORIGIN_DATA);
  convolve(call, record, 2, external_member(call->interp, record, "type", 0) == 0 ? 4 : 2);
  return value_number(ORIGIN_DATA);
}
