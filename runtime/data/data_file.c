#include "runtime/data/data_file.h"

#include "runtime/data/token_file.h"
#include "runtime/files/checksum.h"

#include <inttypes.h>

bool rt_format_is_rows(enum accel_format format) {
  return format == ACCEL_CSV || format == ACCEL_NPY;
}

int64_t rt_data_file_count(const struct data_file *file) {
  if (rt_format_is_rows(file->format)) return file->rows.count;
  return file->padded ? file->tokens.documents : file->tokens.count;
}

static bool open_table(struct data_file *file, const struct indices *indices, struct problem *problem) {
  if (!rt_csv_read(&file->table, indices, file->path, (const char *)file->mapping.bytes, file->mapping.size, problem))
    return false;
  rt_unmap(&file->mapping); /* the text is not needed any more */
  file->rows = rt_rows_of_table(&file->table);
  return true;
}

/* Looks at every row once, and lets go of what was looked at. */
static bool check_arrays(const struct data_file *file, const char *labels_path, const struct indices *indices,
                         struct problem *problem) {
  enum { BYTES_AT_ONCE = 16 << 20 };
  const struct rows *rows = &file->rows;
  int64_t row_bytes = rows->stride * rt_npy_width(rows->type), at_once = BYTES_AT_ONCE / (row_bytes + 1) + 1;
  for (int64_t first = 0; first < rows->count && indices->count > 0; first += at_once) {
    int64_t count = rows->count - first < at_once ? rows->count - first : at_once;
    if (!rt_rows_check(rows, first, count, indices, file->path, labels_path, problem)) return false;
    if (rows->count > at_once) rt_map_forget(rows->features + first * row_bytes, (size_t)(count * row_bytes));
  }
  return true;
}

static bool open_arrays(struct data_file *file, const char *labels_path, const struct accel_program *program,
                        const char *cure, struct problem *problem) {
  struct npy features, labels;
  return rt_npy_find(&features, file->path, file->mapping.bytes, file->mapping.size, problem) &&
         rt_map(&file->labels, labels_path, cure, problem) &&
         rt_npy_find(&labels, labels_path, file->labels.bytes, file->labels.size, problem) &&
         rt_rows_of_arrays(&file->rows, &features, file->path, &labels, labels_path, program->features, problem);
}

/* Looks at every token once, and lets go of what was looked at. */
static bool check_tokens(const struct data_file *file, int64_t vocabulary, struct problem *problem) {
  enum { AT_ONCE = 16 << 20 };
  const struct tokens *tokens = &file->tokens;
  if (file->format == ACCEL_TOKENS &&
      !rt_token_file_verify(file->path, file->mapping.bytes, file->mapping.size, rt_map_forget, problem))
    return false;
  if (rt_tokens_need_no_check(tokens, vocabulary)) return true;
  for (int64_t first = 0; first < tokens->count; first += AT_ONCE) {
    int64_t count = tokens->count - first < AT_ONCE ? tokens->count - first : AT_ONCE;
    if (!rt_tokens_check(tokens, first, count, file->path, vocabulary, problem)) return false;
    if (tokens->count > AT_ONCE) rt_map_forget(tokens->bytes + first * tokens->width, (size_t)(count * tokens->width));
  }
  return true;
}

static bool check_documents(const struct data_file *file, struct problem *problem) {
  if (file->tokens.documents > 0) return true;
  rt_problem(problem, "%s: the file does not say where documents begin", file->path);
  return rt_help(problem, "write it with accel-gen data, from a file for each document; or leave data.packing out");
}

/* A file that says which tokens are trained on is for a loss that leaves the others out, however few a batch has. */
static bool check_marks(const struct data_file *file, const struct accel_program *program, struct problem *problem) {
  if (!file->tokens.marked) return true;
  if (program->masking.probability > 0) {
    rt_problem(problem, "%s: the file says which tokens are trained on, and so does data.masking", file->path);
    return rt_help(problem, "leave data.masking out, or write the file with --train-on all");
  }
  if (program->counts_targets && program->no_target != 0) return true;
  rt_problem(problem, "%s: only %" PRId64 " of %" PRId64 " tokens are trained on, and the loss of this job counts all",
             file->path, file->tokens.trained, file->tokens.count);
  return rt_help(problem, "set accumulation.normalize: tokens in the job, or write the file with --train-on all");
}

bool rt_data_file_open(struct data_file *file, const char *path, const char *labels, enum accel_format format,
                       const struct accel_program *program, const char *cure, struct problem *problem) {
  *file = (struct data_file){.path = path, .format = format, .padded = program->packing == ACCEL_PADDED};
  const struct mapping *mapping = &file->mapping;
  if (!rt_map(&file->mapping, path, cure, problem)) return false;
  file->bytes = mapping->size;
  if (!rt_format_is_rows(format))
    return rt_tokens_find(&file->tokens, format, path, mapping->bytes, mapping->size, problem) &&
           check_tokens(file, program->vocabulary, problem) && check_marks(file, program, problem) &&
           (program->packing == ACCEL_NOT_PACKED || check_documents(file, problem));
  struct indices indices;
  bool good = rt_indices_of(&indices, program, problem);
  if (good && format == ACCEL_CSV) good = open_table(file, &indices, problem);
  if (good && format == ACCEL_NPY)
    good = open_arrays(file, labels, program, cure, problem) && check_arrays(file, labels, &indices, problem);
  rt_indices_free(&indices);
  return good;
}

/* What was read for it does not count as this process's memory. */
static uint64_t sum_of_mapping(const struct mapping *mapping, int pieces) {
  uint64_t sum = rt_checksum_sampled(mapping->bytes, mapping->size, pieces);
  if (mapping->size > 0) rt_map_forget(mapping->bytes, mapping->size);
  return sum;
}

uint64_t rt_data_file_sum(const struct data_file *file, int pieces) {
  size_t numbers = (size_t)file->table.rows * (size_t)file->table.columns * sizeof *file->table.values;
  const uint64_t sums[] = {rt_checksum_sampled(file->table.values, file->table.values != NULL ? numbers : 0, pieces),
                           sum_of_mapping(&file->mapping, pieces), sum_of_mapping(&file->labels, pieces)};
  return rt_checksum(sums, sizeof sums);
}

void rt_data_file_close(struct data_file *file) {
  rt_unmap(&file->mapping);
  rt_unmap(&file->labels);
  rt_table_free(&file->table);
}
