/* Files that are no data of a job as they are, by how they begin: compressed ones, Parquet and Arrow. Knows
 * nothing of files, so that it can be fuzzed. */
#ifndef RUNTIME_DATA_FOREIGN_H
#define RUNTIME_DATA_FOREIGN_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

#include <stddef.h>

enum foreign {
  NOT_FOREIGN,
  FOREIGN_GZIP,
  FOREIGN_ZSTD,
  FOREIGN_PARQUET,
  FOREIGN_ARROW,        /* the format of a file */
  FOREIGN_ARROW_STREAM, /* that of a stream, which Hugging Face's datasets writes */
};

enum foreign rt_foreign_as(const void *bytes, size_t size);

/* Of Parquet and Arrow: what the file is, and the command that writes it as JSON Lines or, `as_table`, as CSV. Returns
 * false. */
bool rt_foreign_refuse(enum foreign kind, const char *path, bool as_table, struct problem *problem);

/* Whether the bytes of a file may be of this format of a job. False with a problem. */
bool rt_foreign_check(const char *path, enum accel_format format, const void *bytes, size_t size,
                      struct problem *problem);

#endif
