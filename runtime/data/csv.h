/* Tables of numbers from comma-separated text. Knows nothing of files, so that it can be fuzzed. */
#ifndef RUNTIME_DATA_CSV_H
#define RUNTIME_DATA_CSV_H

#include "runtime/process/problem.h"

#include <stddef.h>
#include <stdint.h>

struct table {
  float *values; /* [rows][columns] */
  int64_t rows;
  int columns;
};

/* Reads `size` bytes of text into a new table of exactly `columns` columns. A first line with a cell that is not a
 * number is a header and is skipped; so are empty lines. `path` is for messages. */
bool rt_csv_read(struct table *table, int columns, const char *path, const char *text, size_t size,
                 struct problem *problem);

void rt_table_free(struct table *table);

#endif
