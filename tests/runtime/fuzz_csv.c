/* Any bytes as a table of 1 to 8 columns. */
#include "runtime/data/rows.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct table table;
  struct problem problem;
  if (size < 1) return 0;
  int columns = 1 + bytes[0] % 8;
  struct accel_index asked[] = {{0, columns / 2, 1 + bytes[0] / 8, 0}, {columns - 1, 1, bytes[0] + 1, -100}};
  struct indices indices = {asked, 2, columns - 1};
  if (!rt_csv_read(&table, &indices, "fuzz", (const char *)bytes + 1, size - 1, &problem)) return 0;
  for (int64_t i = 0; i < table.rows * columns; i++)
    if (!isfinite(table.values[i])) __builtin_trap();
  struct rows rows = rt_rows_of_table(&table);
  if (!rt_rows_check(&rows, 0, rows.count, &indices, "fuzz", "fuzz", &problem)) __builtin_trap();
  rt_table_free(&table);
  return 0;
}
