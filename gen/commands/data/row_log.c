#include "gen/commands/data/row_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER = 2 * sizeof(uint32_t), CHUNK = 16 << 20 };

static bool name_of(char name[4096], const char *output, struct problem *problem) {
  int length = snprintf(name, 4096, "%s.rows", output);
  return (length > 0 && length < 4096) || rt_problem(problem, "the name of the output is too long");
}

bool row_log_begin(struct row_log *log, const char *output, struct problem *problem) {
  char name[4096];
  *log = (struct row_log){0};
  log->is_open = name_of(name, output, problem) && rt_writer_open(&log->writer, name, BY_RENAME, problem);
  return log->is_open;
}

bool row_log_resume(struct row_log *log, const char *output, int64_t rows, uint64_t size, struct problem *problem) {
  char name[4096];
  *log = (struct row_log){.rows = rows, .size = size};
  log->is_open = name_of(name, output, problem) && rt_writer_resume(&log->writer, name, (size_t)size, problem);
  return log->is_open;
}

/* Bytes of a row: its header, 4 for each token and each target, and a segment each, up to a multiple of 4. */
static uint64_t bytes_of(uint32_t n_ids, uint32_t n_targets) {
  return HEADER + 4 * ((uint64_t)n_ids + n_targets) + ((uint64_t)n_ids + 3) / 4 * 4;
}

void row_log_add(struct row_log *log, const struct row *row) {
  static const char nothing[4];
  const uint32_t header[] = {row->n_ids, row->n_targets};
  bytes_add(&log->added, (const char *)header, sizeof header);
  bytes_add(&log->added, (const char *)row->ids, row->n_ids * sizeof *row->ids);
  bytes_add(&log->added, (const char *)row->targets, row->n_targets * sizeof *row->targets);
  bytes_add(&log->added, (const char *)row->segments, row->n_ids);
  bytes_add(&log->added, nothing, (4 - row->n_ids % 4) % 4);
  log->rows++;
}

bool row_log_write(struct row_log *log, struct problem *problem) {
  if (log->added.failed) return rt_problem(problem, "no memory for the tokens of the rows");
  log->is_open = rt_writer_add(&log->writer, log->added.text, log->added.size, problem);
  log->size += log->added.size;
  log->added.size = 0;
  return log->is_open;
}

static bool find_rows(struct row_log *log, uint32_t length, struct problem *problem) {
  uint64_t at = 0;
  int64_t row = 0;
  uint32_t header[2];
  for (; row < log->rows && at + HEADER <= log->file.size; row++) {
    log->starts[row] = at;
    memcpy(header, log->file.bytes + at, HEADER);
    if (header[0] > length) break;
    at += bytes_of(header[0], header[1]);
  }
  if (row == log->rows && at == log->file.size) return true;
  rt_problem(problem, "%s: it does not have the rows that were written", log->writer.partial);
  return rt_help(problem, "remove it, and begin again");
}

bool row_log_read(struct row_log *log, uint32_t length, struct problem *problem) {
  log->starts = malloc(((size_t)log->rows + 1) * sizeof *log->starts);
  if (log->starts == NULL) return rt_problem(problem, "no memory for the rows");
  return rt_map(&log->file, log->writer.partial, "begin again", problem) && find_rows(log, length, problem);
}

struct row row_log_at(const struct row_log *log, int64_t row) {
  const uint64_t start = log->starts[row], before = row > 0 ? log->starts[row - 1] : start;
  const uint8_t *at = log->file.bytes + start;
  struct row found;
  memcpy(&found.n_ids, at, sizeof found.n_ids);
  memcpy(&found.n_targets, at + sizeof found.n_ids, sizeof found.n_targets);
  found.ids = (const uint32_t *)(const void *)(at + HEADER);
  found.targets = (const int32_t *)(const void *)(found.ids + found.n_ids);
  found.segments = (const uint8_t *)(found.targets + found.n_targets);
  if (start / CHUNK > before / CHUNK) rt_map_forget(log->file.bytes + before / CHUNK * CHUNK, CHUNK);
  return found;
}

void row_log_end(struct row_log *log, bool keeps) {
  struct problem ignored;
  rt_unmap(&log->file);
  if (log->is_open && keeps) close(log->writer.file);
  if (log->is_open && !keeps) rt_writer_give_up(&log->writer, "", &ignored);
  bytes_free(&log->added);
  free(log->starts);
  *log = (struct row_log){0};
}
