#include "runtime/data/data_file.h"

#include "runtime/data/foreign.h"
#include "runtime/data/token_file.h"
#include "runtime/files/checksum.h"
#include "runtime/files/zip.h"

#include <stdio.h>

#include <inttypes.h>

bool rt_format_is_rows(enum accel_format format) {
  return format == ACCEL_CSV || format == ACCEL_NPY || format == ACCEL_NPZ;
}

int64_t rt_data_file_count(const struct data_file *file) {
  if (rt_format_is_rows(file->format)) return file->rows.count;
  return file->padded ? file->tokens.documents : file->tokens.count;
}

/* The inputs that have no file of their own. */
static bool open_table(struct data_file *file, const char *const *arrays, const struct accel_program *program,
                       struct problem *problem) {
  struct indices indices;
  const char *text = (const char *)file->mapping.bytes;
  bool good = rt_indices_of(&indices, program, arrays, problem) &&
              rt_csv_read(&file->table, &indices, file->path, text, file->mapping.size, problem);
  if (good) {
    rt_unmap(&file->mapping); /* the text is not needed any more */
    rt_rows_add_table(&file->rows, &file->table, &indices, file->path);
  }
  rt_indices_free(&indices);
  return good;
}

/* The bytes of a row's numbers of an input. */
static int64_t bytes_of_field(const struct field *field) {
  return field->stride * rt_npy_width(field->type);
}

/* The bytes of the arrays that a row has. */
static int64_t bytes_of_row(const struct rows *rows) {
  int64_t bytes = 0;
  for (int i = 0; i < rows->n_inputs; i++) bytes += bytes_of_field(&rows->fields[i]);
  return bytes;
}

/* Lets go of rows first … first + count - 1 of the arrays. */
static void forget_rows(const struct data_file *file, int64_t first, int64_t count) {
  const struct rows *rows = &file->rows;
  for (int i = 0; i < rows->n_inputs; i++) {
    if (file->format == ACCEL_CSV && file->arrays[i].bytes == NULL) continue; /* it is in the table */
    int64_t bytes = bytes_of_field(&rows->fields[i]);
    rt_map_forget(rows->fields[i].elements + first * bytes, (size_t)(count * bytes));
  }
}

/* Looks at every row once, and lets go of what was looked at. */
static bool check_arrays(const struct data_file *file, const struct indices *indices, struct problem *problem) {
  enum { BYTES_AT_ONCE = 16 << 20 };
  const struct rows *rows = &file->rows;
  int64_t at_once = BYTES_AT_ONCE / (bytes_of_row(rows) + 1) + 1;
  for (int64_t first = 0; first < rows->count && indices->count > 0; first += at_once) {
    int64_t count = rows->count - first < at_once ? rows->count - first : at_once;
    if (!rt_rows_check(rows, first, count, indices, problem)) return false;
    if (rows->count > at_once) forget_rows(file, first, count);
  }
  return true;
}

static bool add_array(struct data_file *file, int input, const char *path, const uint8_t *bytes, size_t size,
                      struct problem *problem) {
  struct npy array;
  return rt_npy_find(&array, path, bytes, size, problem) &&
         rt_rows_add_array(&file->rows, input, &array, path, problem);
}

/* An input in a .npz, where an array's entry is its name with .npy. */
static bool add_entry(struct data_file *file, const struct zip *zip, int input, struct problem *problem) {
  const struct accel_input *of = &file->rows.inputs[input];
  const char *array = of->column != NULL ? of->column : of->name;
  char name[260];
  int length = snprintf(name, sizeof name, "%.250s.npy", array);
  const struct zip_entry *entry = rt_zip_find(zip, name, (size_t)length);
  if (entry != NULL) return add_array(file, input, file->path, entry->bytes, entry->size, problem);
  rt_problem(problem, "%s: no array is named '%s'", file->path, array);
  return rt_help(problem, "give data.inputs.%s.column the name of one that numpy.savez has written", of->name);
}

/* Inputs of arrays: their own files, or the one of the rows. */
static bool add_inputs(struct data_file *file, const struct zip *zip, const char *const *paths, const char *cure,
                       struct problem *problem) {
  for (int i = 0; i < file->rows.n_inputs; i++) {
    const char *path = paths != NULL ? paths[i] : NULL;
    const struct mapping *own = &file->arrays[i], *rows = &file->mapping;
    if (path != NULL) {
      if (!rt_map(&file->arrays[i], path, cure, problem) || !add_array(file, i, path, own->bytes, own->size, problem))
        return false;
    } else if (file->format == ACCEL_NPY && !add_array(file, i, file->path, rows->bytes, rows->size, problem)) {
      return false;
    } else if (file->format == ACCEL_NPZ && !add_entry(file, zip, i, problem)) {
      return false;
    }
  }
  return true;
}

/* Reads the directory of an archive of arrays. */
static bool open_archive(struct data_file *file, struct zip *zip, struct problem *problem) {
  if (rt_zip_read(zip, file->path, file->mapping.bytes, file->mapping.size, problem)) return true;
  return rt_help(problem,
                 "write it as numpy.savez does; of one that is compressed, `accel-gen data %.150s -o NAME.npz`",
                 file->path);
}

static bool open_arrays(struct data_file *file, const char *const *paths, const char *cure, struct problem *problem) {
  struct zip zip = {0};
  bool good = file->format != ACCEL_NPZ || open_archive(file, &zip, problem);
  good = good && add_inputs(file, &zip, paths, cure, problem);
  rt_zip_free(&zip);
  return good;
}

static bool open_rows(struct data_file *file, const char *const *arrays, const struct accel_program *program,
                      const char *cure, struct problem *problem) {
  file->rows = rt_rows_begin(program);
  if (file->format == ACCEL_CSV && !open_table(file, arrays, program, problem)) return false;
  if (!open_arrays(file, arrays, cure, problem)) return false;
  struct indices indices;
  bool good = rt_indices_of(&indices, program, NULL, problem) && check_arrays(file, &indices, problem);
  rt_indices_free(&indices);
  return good;
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

bool rt_data_file_open(struct data_file *file, const char *path, const char *const *arrays, enum accel_format format,
                       const struct accel_program *program, const char *cure, struct problem *problem) {
  *file = (struct data_file){.path = path, .format = format, .padded = program->packing == ACCEL_PADDED};
  const struct mapping *mapping = &file->mapping;
  if (!rt_map(&file->mapping, path, cure, problem)) return false;
  file->bytes = mapping->size;
  if (!rt_foreign_check(path, format, mapping->bytes, mapping->size, problem)) return false;
  if (rt_format_is_rows(format)) return open_rows(file, arrays, program, cure, problem);
  return rt_tokens_find(&file->tokens, format, path, mapping->bytes, mapping->size, problem) &&
         check_tokens(file, program->vocabulary, problem) && check_marks(file, program, problem) &&
         (program->packing == ACCEL_NOT_PACKED || check_documents(file, problem));
}

/* What was read for it does not count as this process's memory. */
static uint64_t sum_of_mapping(const struct mapping *mapping, int pieces) {
  uint64_t sum = rt_checksum_sampled(mapping->bytes, mapping->size, pieces);
  if (mapping->size > 0) rt_map_forget(mapping->bytes, mapping->size);
  return sum;
}

/* Of three sums at least, the last of which is that of an array with a file of its own. */
uint64_t rt_data_file_sum(const struct data_file *file, int pieces) {
  size_t width = 0;
  for (int i = 0; i < file->rows.n_inputs; i++) width += (size_t)file->rows.inputs[i].width;
  size_t numbers = (size_t)file->table.rows * width * sizeof *file->table.cells;
  uint64_t sums[3 + MOST_INPUTS] = {
      rt_checksum_sampled(file->table.cells, file->table.cells != NULL ? numbers : 0, pieces),
      sum_of_mapping(&file->mapping, pieces)};
  int count = 2;
  for (int i = 0; i < MOST_INPUTS; i++)
    if (file->arrays[i].size > 0) sums[count++] = sum_of_mapping(&file->arrays[i], pieces);
  if (count == 2) sums[count++] = rt_checksum_sampled(NULL, 0, pieces);
  return rt_checksum(sums, (size_t)count * sizeof *sums);
}

void rt_data_file_close(struct data_file *file) {
  rt_unmap(&file->mapping);
  for (int i = 0; i < MOST_INPUTS; i++) rt_unmap(&file->arrays[i]);
  rt_table_free(&file->table);
}
