/* Tables of numbers from comma-separated text. Knows nothing of files, so that it can be fuzzed. */
#ifndef RUNTIME_DATA_CSV_H
#define RUNTIME_DATA_CSV_H

#include "runtime/base/problem.h"
#include "runtime/data/indices.h"

#include <stddef.h>
#include <stdint.h>

struct table {
  float *values; /* [rows][columns] */
  int64_t rows;
  int columns;
};

/* Reads `size` bytes of text into a new table of indices->width + 1 columns, which hold what `indices` requires of
 * them. A first line with a cell that is not a number is a header and is skipped; so are empty lines. It takes no more
 * memory than the table, which is refused early where that would be more than the machine has. `path` is for messages.
 */
bool rt_csv_read(struct table *table, const struct indices *indices, const char *path, const char *text, size_t size,
                 struct problem *problem);

void rt_table_free(struct table *table);

#endif
