/* One file of data, opened and checked: tokens, or rows. */
#ifndef RUNTIME_DATA_DATA_FILE_H
#define RUNTIME_DATA_DATA_FILE_H

#include "include/accel/trainer.h"
#include "runtime/data/rows.h"
#include "runtime/data/tokens.h"
#include "runtime/files/mapping.h"

struct data_file {
  const char *path; /* the caller's */
  enum accel_format format;
  struct mapping mapping;
  struct mapping arrays[MOST_INPUTS]; /* of rows: of the inputs that have a file of their own */
  size_t bytes;                       /* of the file */
  struct tokens tokens;
  bool padded;        /* a document is a sample */
  struct table table; /* what `rows` are of, when they come from text */
  struct rows rows;
};

/* Whether a format is of rows, not of tokens. */
bool rt_format_is_rows(enum accel_format format);

/* Opens the file at `path`, with those of the inputs that have one of their own at `arrays`, by input (NULL: there are
 * none), and checks what `program` requires of them. The paths are the caller's. `cure` is the help of an error. */
bool rt_data_file_open(struct data_file *file, const char *path, const char *const *arrays, enum accel_format format,
                       const struct accel_program *program, const char *cure, struct problem *problem);

/* Its tokens, or rows, or documents where each is a sample. */
int64_t rt_data_file_count(const struct data_file *file);

/* A sum over what it holds, of `pieces` of large files (checksum.h): of a table its numbers, else the bytes; with those
 * of the arrays that have a file of their own. */
uint64_t rt_data_file_sum(const struct data_file *file, int pieces);

void rt_data_file_close(struct data_file *file);

#endif
