/* Tables of numbers from comma-separated text (RFC 4180; tabs separate the cells of a file whose name ends in .tsv).
 * Knows nothing of files, so that it can be fuzzed. */
#ifndef RUNTIME_DATA_CSV_H
#define RUNTIME_DATA_CSV_H

#include "runtime/base/problem.h"
#include "runtime/data/indices.h"

#include <stddef.h>
#include <stdint.h>

/* The numbers of a row, input after input: 32 bits each, of a float32 or an int32 as the input's dtype says. */
struct table {
  uint32_t *cells; /* [rows][indices->width] */
  int64_t rows;
};

/* Reads `size` bytes of text into a new table, whose numbers are what `indices` asks for.
 *
 * Inputs without a column's name have the columns of the text from the left: it has as many as these have numbers, and
 * its first line is a header, which is skipped, where a cell of it is not a number. Where inputs name their columns,
 * the first line is a header with these names; other columns may hold anything.
 *
 * Empty lines are skipped. It takes no more memory than the table, which is refused early where that would be more than
 * the machine has. `path` is for messages. */
bool rt_csv_read(struct table *table, const struct indices *indices, const char *path, const char *text, size_t size,
                 struct problem *problem);

void rt_table_free(struct table *table);

#endif
