#include "runtime/checkpoint/prints.h"

#include "runtime/files/checksum.h"
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { ALL_PIECES = 1024, LEAST_PIECES = 4 }; /* of all files together; of one */

static int pieces_of(const struct data *data) {
  size_t files = 1;
  for (int i = 0; i < ACCEL_SPLITS; i++) files += data->source[i].paths.count;
  size_t pieces = ALL_PIECES / files;
  return pieces < LEAST_PIECES ? LEAST_PIECES : pieces > RT_MOST_PIECES ? RT_MOST_PIECES : (int)pieces;
}

static void write_sum(char text[17], const struct data_file *file, int pieces) {
  snprintf(text, 17, "%016" PRIx64, rt_data_file_sum(file, pieces));
}

json_t *rt_prints_of(const struct data *data) {
  int pieces = pieces_of(data);
  json_t *list = json_array();
  for (int i = 0; list != NULL && i < ACCEL_SPLITS; i++)
    for (size_t k = 0; k < data->source[i].paths.count; k++) {
      const struct data_file *file = &data->source[i].files[k];
      char sum[17];
      write_sum(sum, file, pieces);
      /* A path need not be UTF-8, which JSON is: then the file has no print. */
      json_t *print = json_pack("{s:s, s:I, s:i, s:s}", "path", file->path, "bytes", (json_int_t)file->bytes, "pieces",
                                pieces, "sum", sum);
      if (print != NULL) json_array_append_new(list, print);
    }
  return list;
}

static bool has_bytes(const json_t *print, const struct data_file *file) {
  return json_integer_value(json_object_get(print, "bytes")) == (json_int_t)file->bytes;
}

static bool has_content(const json_t *print, const struct data_file *file) {
  json_int_t pieces = json_integer_value(json_object_get(print, "pieces"));
  const char *was = json_string_value(json_object_get(print, "sum"));
  char is[17];
  if (was == NULL || pieces < LEAST_PIECES || pieces > RT_MOST_PIECES || !has_bytes(print, file)) return false;
  write_sum(is, file, (int)pieces);
  return strcmp(was, is) == 0;
}

static const json_t *print_of_path(const json_t *list, const char *path) {
  size_t i;
  const json_t *print;
  json_array_foreach(list, i, print) {
    const char *was = json_string_value(json_object_get(print, "path"));
    if (was != NULL && strcmp(was, path) == 0) return print;
  }
  return NULL;
}

/* A file may have moved, or be named from another folder. */
static bool has_moved(const json_t *list, const struct data_file *file) {
  size_t i;
  const json_t *print;
  json_array_foreach(list, i, print) if (has_content(print, file)) return true;
  return false;
}

static void compare(const json_t *list, const struct data_file *file, char *changed, size_t size) {
  const json_t *print = print_of_path(list, file->path);
  char text[400] = "not read before";
  if (print != NULL ? has_content(print, file) : has_moved(list, file)) return;
  if (print != NULL && has_bytes(print, file))
    snprintf(text, sizeof text, "other content");
  else if (print != NULL)
    snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT " -> %zu bytes",
             json_integer_value(json_object_get(print, "bytes")), file->bytes);
  size_t at = strlen(changed);
  int length = snprintf(changed + at, size - at, "%s%s: %s", at > 0 ? ", " : "", file->path, text);
  if (length < 0 || (size_t)length >= size - at) changed[at] = '\0'; /* the text stays whole when it is full */
}

void rt_prints_compare(const char *folder, const struct data *data, char *changed, size_t size) {
  char path[4096];
  struct mapping mapping;
  struct problem ignored; /* the file was read before */
  if (!rt_join(path, sizeof path, folder, "sampler.json", &ignored) || !rt_map(&mapping, path, "", &ignored)) return;
  json_t *root = json_loadb((const char *)mapping.bytes, mapping.size, 0, NULL);
  const json_t *list = json_object_get(root, "data");
  rt_unmap(&mapping);
  for (int i = 0; json_is_array(list) && i < ACCEL_SPLITS; i++)
    for (size_t k = 0; k < data->source[i].paths.count; k++) compare(list, &data->source[i].files[k], changed, size);
  json_decref(root);
}
