/* One file of data, opened and checked: tokens, or rows with labels. */
#ifndef RUNTIME_DATA_DATA_FILE_H
#define RUNTIME_DATA_DATA_FILE_H

#include "include/accel/trainer.h"
#include "runtime/data/rows.h"
#include "runtime/data/tokens.h"
#include "runtime/files/mapping.h"

struct data_file {
  const char *path; /* the caller's */
  enum accel_format format;
  struct mapping mapping, labels; /* labels: of arrays, which have a file of their own for them */
  size_t bytes;                   /* of the file */
  struct tokens tokens;
  bool padded;        /* a document is a sample */
  struct table table; /* what `rows` are of, when they come from text */
  struct rows rows;
};

/* Whether a format is of rows, not of tokens. */
bool rt_format_is_rows(enum accel_format format);

/* Opens the file at `path`, with its labels at `labels` (NULL: none), and checks what `program` requires of them.
 * `cure` is the help of an error. */
bool rt_data_file_open(struct data_file *file, const char *path, const char *labels, enum accel_format format,
                       const struct accel_program *program, const char *cure, struct problem *problem);

/* Its tokens, or rows, or documents where each is a sample. */
int64_t rt_data_file_count(const struct data_file *file);

/* A sum over what it holds, of `pieces` of large files (checksum.h): of a table its numbers, else the bytes, with those
 * of its labels. */
uint64_t rt_data_file_sum(const struct data_file *file, int pieces);

void rt_data_file_close(struct data_file *file);

#endif
