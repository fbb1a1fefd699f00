/* accel_gpu_multiply(gemm, stream, y, a, b, bias, aux) of accel/gpu/gemm.h. */
#include <string.h>

#include "gen/audit/interp/external.h"

enum { Y = 2, A, B, BIAS, AUX };

struct shape {
  const struct interp *interp;
  const struct object *gemm;
  int64_t rows, columns, depth;
};

static int64_t member(const struct shape *shape, const char *name) {
  return external_member(shape->interp, shape->gemm, name, 0);
}

/* The bytes of a batch of matrices of one step. */
static int64_t bytes_of(const struct shape *shape, int64_t rows, int64_t row, int64_t columns, int64_t column,
                        const char *step, int64_t size) {
  int64_t last = bounded_add(bounded_multiply(rows - 1, row), bounded_multiply(columns - 1, column));
  int64_t batch = member(shape, "batch");
  if (batch > 1) last = bounded_add(last, bounded_multiply(batch - 1, member(shape, step)));
  return bounded_multiply(bounded_add(last, 1), size);
}

/* The bytes of an element of an enum accel_element. */
static int64_t size_of(int64_t element) {
  return element == 0 ? 4 : element < 3 ? 2 : 1;
}

/* What follows a matmul, by the name of its epilogue. */
static void touch_epilogue(const struct call *call, const struct shape *shape, int64_t y, int64_t size) {
  static const char prefix[] = "ACCEL_";
  const char *name = external_enumerator(shape->interp, shape->gemm, "epilogue");
  if (strncmp(name, prefix, sizeof prefix - 1) == 0) name += sizeof prefix - 1;
  if (strcmp(name, "SCALED") == 0) { /* a float for each factor */
    external_touch(call, BIAS, 4, false);
    external_touch(call, AUX, 4, false);
    return;
  }
  bool goes_back = name[0] == 'D', adds = strncmp(name, "BIAS", 4) == 0, sums = strstr(name, "SUM") != NULL;
  if (strstr(name, "GELU") != NULL) external_touch(call, AUX, y, !goes_back);
  if (strstr(name, "RELU") != NULL) /* a bit for each element, in rows of 128 */
    external_touch(call, AUX, bounded_multiply(shape->rows, (shape->columns + 127) / 128 * 16), !goes_back);
  int64_t length = strcmp(name, "SUM_A") == 0 ? shape->rows : shape->columns;
  if (adds || sums) external_touch(call, BIAS, bounded_multiply(length, size), sums);
}

struct value external_multiply_on_device(const struct call *call) {
  const struct object *gemm = external_described(call);
  if (gemm == NULL) return value_number(ORIGIN_DATA);
  struct shape shape = {.interp = call->interp, .gemm = gemm};
  shape.rows = member(&shape, "rows");
  shape.columns = member(&shape, "columns");
  shape.depth = member(&shape, "depth");
  int64_t size = size_of(member(&shape, "type")), y_size = size_of(member(&shape, "result"));
  int64_t y = bytes_of(&shape, shape.rows, member(&shape, "y_row"), shape.columns, 1, "y_step", y_size);
  external_touch(
      call, A,
      bytes_of(&shape, shape.rows, member(&shape, "a_row"), shape.depth, member(&shape, "a_column"), "a_step", size),
      false);
  external_touch(
      call, B,
      bytes_of(&shape, shape.depth, member(&shape, "b_row"), shape.columns, member(&shape, "b_column"), "b_step", size),
      false);
  if (member(&shape, "accumulate") != 0) external_touch(call, Y, y, false);
  touch_epilogue(call, &shape, y, y_size);
  external_touch(call, Y, y, true);
  external_require_noalias(call, Y, A);
  external_require_noalias(call, Y, B);
  return value_number(ORIGIN_DATA);
}
