/* Any bytes as a table: of 1 to 8 columns by their positions, or of three that a header names. */
#include "runtime/data/rows.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static bool is_finite(const struct rows *rows, int64_t row) {
  float numbers[8];
  double found;
  for (int i = 0; i < rows->n_inputs; i++) {
    if (!rt_rows_load(rows, row, i, numbers, &found)) return false;
    for (int64_t k = 0; rows->inputs[i].dtype == ACCEL_FLOAT32 && k < rows->inputs[i].width; k++)
      if (!isfinite(numbers[k])) return false;
  }
  return true;
}

static void read(const struct accel_program *program, const char *text, size_t size) {
  struct indices indices;
  struct problem problem;
  struct table table;
  if (rt_indices_of(&indices, program, NULL, &problem) &&
      rt_csv_read(&table, &indices, size % 2 == 0 ? "fuzz.csv" : "fuzz.tsv", text, size, &problem)) {
    struct rows rows = rt_rows_begin(program);
    rt_rows_add_table(&rows, &table, &indices, "fuzz");
    for (int64_t row = 0; row < rows.count; row++)
      if (!is_finite(&rows, row)) __builtin_trap();
    if (!rt_rows_check(&rows, 0, rows.count, &indices, &problem)) __builtin_trap();
    rt_table_free(&table);
  }
  rt_indices_free(&indices);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size < 1) return 0;
  int columns = 1 + bytes[0] % 7;
  const struct accel_input features = {"features", NULL, ACCEL_FLOAT32, columns, 0, 0, false};
  const struct accel_input labels = {"labels", NULL, ACCEL_INT32, 1, bytes[0] + 1, -100, true};
  const struct accel_input a = {"a", "a", ACCEL_FLOAT32, 1, 0, 0, false}, b = {"b", "b\"", ACCEL_INT32, 1, 0, 0, false};
  const struct accel_input c = {"c", "", ACCEL_INT32, 1, 9, 0, false};
  const struct accel_index index = {0, columns / 2, 1 + bytes[0] / 8, 0};
  const struct accel_input by_position[] = {features, labels}, by_name[] = {a, b, c};
  const struct accel_program programs[] = {
      {.inputs = by_position, .n_inputs = 2, .indices = &index, .n_indices = columns > 1},
      {.inputs = by_name, .n_inputs = 3},
  };
  read(&programs[bytes[0] >= 192], (const char *)bytes + 1, size - 1);
  return 0;
}
