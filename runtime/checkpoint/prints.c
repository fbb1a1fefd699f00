#include "runtime/checkpoint/prints.h"

#include "runtime/files/checksum.h"
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ALL_PIECES = 1024, LEAST_PIECES = 4 }; /* of all files together; of one */

static int pieces_of(size_t files) {
  size_t pieces = ALL_PIECES / (files + 1);
  return pieces < LEAST_PIECES ? LEAST_PIECES : pieces > RT_MOST_PIECES ? RT_MOST_PIECES : (int)pieces;
}

static void write_sum(char text[17], const struct data_file *file, int pieces) {
  snprintf(text, 17, "%016" PRIx64, rt_data_file_sum(file, pieces));
}

json_t *rt_prints_of(const struct data *data) {
  size_t files = 0;
  for (int i = 0; i < ACCEL_SPLITS; i++) files += data->source[i].paths.count;
  const int pieces = pieces_of(files);
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

/* A list of the prints in a checkpoint, the caller's; NULL: it has none. */
static json_t *list_in(const char *folder, const char *name) {
  char path[4096];
  struct mapping mapping;
  struct problem ignored; /* the file was read before */
  if (!rt_join(path, sizeof path, folder, "sampler.json", &ignored) || !rt_map(&mapping, path, "", &ignored))
    return NULL;
  json_t *root = json_loadb((const char *)mapping.bytes, mapping.size, 0, NULL);
  json_t *list = json_incref(json_object_get(root, name));
  rt_unmap(&mapping);
  json_decref(root);
  return list;
}

void rt_prints_compare(const char *folder, const struct data *data, char *changed, size_t size) {
  json_t *list = list_in(folder, "data");
  for (int i = 0; json_is_array(list) && i < ACCEL_SPLITS; i++)
    for (size_t k = 0; k < data->source[i].paths.count; k++) compare(list, &data->source[i].files[k], changed, size);
  json_decref(list);
}

/* ---- The files that layers stream from ---- */

static bool add_shard(json_t *list, const struct shard *shard, int pieces, struct problem *problem) {
  struct stat status;
  uint64_t sum;
  char text[17];
  size_t bytes = shard->mapping.size;
  if (shard->file < 0) {
    sum = rt_checksum_sampled(shard->mapping.bytes, bytes, pieces);
  } else {
    if (fstat(shard->file, &status) != 0) return rt_problem(problem, "%s: %s", shard->path, strerror(errno));
    bytes = (size_t)status.st_size;
    if (!rt_checksum_sampled_file(shard->file, bytes, pieces, &sum))
      return rt_problem(problem, "%s: cannot be read: %s", shard->path, strerror(errno));
  }
  snprintf(text, sizeof text, "%016" PRIx64, sum);
  json_t *print = json_pack("{s:I, s:i, s:s}", "bytes", (json_int_t)bytes, "pieces", pieces, "sum", text);
  json_object_set_new(print, "path", json_string(shard->path)); /* none where it is not UTF-8 */
  return json_array_append_new(list, print) == 0 || rt_problem(problem, "no memory for the prints of the weights");
}

bool rt_prints_of_weights(const struct weights_file *file, json_t **list, struct problem *problem) {
  const struct sources *sources = &file->sources;
  size_t files = 0;
  for (int i = 0; i < sources->count; i++) files += (size_t)sources->items[i].count;
  *list = json_array();
  for (int i = 0; i < sources->count; i++)
    for (int k = 0; k < sources->items[i].count; k++)
      if (!add_shard(*list, &sources->items[i].items[k], pieces_of(files), problem)) return false;
  return true;
}

/* Which of the files is another one, in `text`. */
static bool is_changed(const json_t *was, const json_t *is, char *text, size_t size) {
  const char *path = json_string_value(json_object_get(is, "path"));
  const json_int_t from = json_integer_value(json_object_get(was, "bytes"));
  const json_int_t to = json_integer_value(json_object_get(is, "bytes"));
  if (path == NULL) path = "weights";
  if (from != to)
    snprintf(text, size, "%s: %" JSON_INTEGER_FORMAT " -> %" JSON_INTEGER_FORMAT " bytes", path, from, to);
  else
    snprintf(text, size, "%s: other content", path);
  return from != to || !json_equal(json_object_get(was, "sum"), json_object_get(is, "sum"));
}

bool rt_prints_check_weights(const char *folder, const json_t *list, struct problem *problem) {
  json_t *before = list_in(folder, "weights");
  char text[sizeof((struct shard *)0)->path + 100];
  bool changed = json_is_array(before) && json_array_size(before) != json_array_size(list);
  if (changed) snprintf(text, sizeof text, "weights: %zu -> %zu files", json_array_size(before), json_array_size(list));
  for (size_t i = 0; json_is_array(before) && !changed && i < json_array_size(list); i++)
    changed = is_changed(json_array_get(before, i), json_array_get(list, i), text, sizeof text);
  json_decref(before);
  if (!changed) return true;
  rt_problem(problem, "layers stream from other weights than when the run of %s began: %s", folder, text);
  return rt_help(problem, "put back the file as it was then, or begin a run with the new one in another --project-dir");
}
