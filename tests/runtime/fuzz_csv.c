/* Any bytes as a table of 1 to 8 columns. */
#include "runtime/data/rows.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct table table;
  struct problem problem;
  if (size < 1) return 0;
  int columns = 1 + bytes[0] % 8;
  if (!rt_csv_read(&table, columns, "fuzz", (const char *)bytes + 1, size - 1, &problem)) return 0;
  for (int64_t i = 0; i < table.rows * columns; i++)
    if (!isfinite(table.values[i])) __builtin_trap();
  struct rows rows = rt_rows_of_table(&table);
  rt_rows_check_classes(&rows, bytes[0], "fuzz", &problem);
  rt_table_free(&table);
  return 0;
}
