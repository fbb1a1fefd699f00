#include "runtime/files/manifest.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char format[] = "accel-gen checkpoint";
enum { VERSION = 2 };
/* What closes the text: a sum of all before, so that no byte of it can change unseen. */
static const char tail_head[] = ",\n  \"manifest\": \"", tail_end[] = "\"\n}\n";
enum { DIGITS = 16, TAIL = sizeof tail_head - 1 + DIGITS + sizeof tail_end - 1 };

bool rt_manifest_add(struct manifest *manifest, const char *name, struct file_sum sum, struct problem *problem) {
  if (manifest->count == manifest->capacity) {
    int capacity = manifest->capacity == 0 ? 16 : 2 * manifest->capacity;
    struct manifest_file *files = realloc(manifest->files, (size_t)capacity * sizeof *files);
    if (files == NULL) return rt_problem(problem, "no memory for the list of files");
    manifest->files = files;
    manifest->capacity = capacity;
  }
  struct manifest_file *file = &manifest->files[manifest->count++];
  file->sum = sum;
  snprintf(file->name, sizeof file->name, "%s", name);
  return true;
}

const struct manifest_file *rt_manifest_find(const struct manifest *manifest, const char *name) {
  for (int i = 0; i < manifest->count; i++)
    if (strcmp(manifest->files[i].name, name) == 0) return &manifest->files[i];
  return NULL;
}

static void write_digits(char *out, const uint64_t *sums, int count) {
  for (int i = 0; i < count; i++) snprintf(out + i * DIGITS, DIGITS + 1, "%016" PRIx64, sums[i]);
}

static json_t *entry_of(const struct file_sum *sum) {
  char digits[DIGITS + 1], marks[RT_MOST_MARKS * DIGITS + 1] = "";
  write_digits(digits, &sum->xxh64, 1);
  write_digits(marks, sum->marks.sums, sum->marks.count);
  return json_pack("{s:I, s:s, s:s}", "size", (json_int_t)sum->size, "xxh64", digits, "marks", marks);
}

/* From the last brace on. */
static char *with_tail(char *text) {
  size_t length = text != NULL ? strlen(text) - strlen("\n}") : 0;
  char *whole = text != NULL ? malloc(length + TAIL + 1) : NULL;
  if (whole != NULL)
    snprintf(whole, length + TAIL + 1, "%.*s%s%016" PRIx64 "%s", (int)length, text, tail_head,
             rt_checksum(text, length), tail_end);
  free(text);
  return whole;
}

static char *manifest_text(const struct manifest *manifest, const char *generator, const char *job) {
  json_t *files = json_object();
  json_t *root = json_pack("{s:s, s:i, s:I, s:s, s:s, s:o}", "format", format, "version", VERSION, "step",
                           (json_int_t)manifest->step, "generator", generator, "job", job, "files", files);
  for (int i = 0; i < manifest->count && root != NULL; i++)
    json_object_set_new(files, manifest->files[i].name, entry_of(&manifest->files[i].sum));
  char *text = root != NULL ? json_dumps(root, JSON_INDENT(2)) : NULL;
  json_decref(root);
  return with_tail(text);
}

bool rt_manifest_write(const struct manifest *manifest, const char *folder, const char *name, enum placing placing,
                       const char *generator, const char *job, struct problem *problem) {
  char path[4096];
  if (!rt_join(path, sizeof path, folder, name, problem)) return false;
  char *text = manifest_text(manifest, generator, job);
  bool written = text != NULL ? rt_write_file(path, placing, text, strlen(text), NULL, problem)
                              : rt_problem(problem, "%s: no memory to write it", path);
  free(text);
  return written;
}

static bool is_plain_name(const char *name) {
  size_t length = strlen(name);
  return length > 0 && length < sizeof(((struct manifest_file *)0)->name) && strchr(name, '/') == NULL &&
         strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* The sums that `text` is made of; their number, -1 when it is something else. */
static int read_digits(const char *text, uint64_t *sums, int most) {
  size_t length = text != NULL ? strlen(text) : 1;
  if (length % DIGITS != 0 || length / DIGITS > (size_t)most || strspn(text, "0123456789abcdef") != length) return -1;
  for (size_t i = 0; i < length / DIGITS; i++) {
    char digits[DIGITS + 1];
    snprintf(digits, sizeof digits, "%.*s", DIGITS, text + i * DIGITS);
    sums[i] = strtoull(digits, NULL, 16);
  }
  return (int)(length / DIGITS);
}

static bool read_sum(const json_t *entry, struct file_sum *sum) {
  const json_t *size = json_object_get(entry, "size");
  if (!json_is_integer(size) || json_integer_value(size) < 0) return false;
  *sum = (struct file_sum){.size = (uint64_t)json_integer_value(size)};
  sum->marks.count = read_digits(json_string_value(json_object_get(entry, "marks")), sum->marks.sums, RT_MOST_MARKS);
  return sum->marks.count >= 0 && read_digits(json_string_value(json_object_get(entry, "xxh64")), &sum->xxh64, 1) == 1;
}

static bool read_files(struct manifest *manifest, const char *path, json_t *files, struct problem *problem) {
  const char *name;
  json_t *entry;
  json_object_foreach(files, name, entry) {
    struct file_sum sum;
    if (!is_plain_name(name) || !read_sum(entry, &sum))
      return rt_problem(problem, "%s: the entry '%.100s' is not a file's size and sum", path, name);
    if (!rt_manifest_add(manifest, name, sum, problem)) return false;
  }
  return true;
}

static bool read_root(struct manifest *manifest, const char *path, const json_t *root, struct problem *problem) {
  const char *said = json_string_value(json_object_get(root, "format"));
  const json_t *step = json_object_get(root, "step"), *version = json_object_get(root, "version");
  if (said == NULL || strcmp(said, format) != 0)
    return rt_problem(problem, "%s: not the manifest of a checkpoint", path);
  if (json_integer_value(version) != VERSION)
    return rt_problem(problem, "%s: version %" JSON_INTEGER_FORMAT " of the format; %d is read", path,
                      json_integer_value(version), VERSION);
  if (!json_is_integer(step) || json_integer_value(step) < 0)
    return rt_problem(problem, "%s: 'step' is not a number of steps", path);
  manifest->step = json_integer_value(step);
  return read_files(manifest, path, json_object_get(root, "files"), problem);
}

/* Whether the text ends as with_tail leaves it. */
static bool has_right_tail(const char *bytes, size_t size) {
  char tail[TAIL + 1];
  if (size < TAIL) return false;
  snprintf(tail, sizeof tail, "%s%016" PRIx64 "%s", tail_head, rt_checksum(bytes, size - TAIL), tail_end);
  return memcmp(bytes + size - TAIL, tail, TAIL) == 0;
}

bool rt_manifest_read(struct manifest *manifest, const char *path, const char *bytes, size_t size,
                      struct problem *problem) {
  json_error_t error;
  *manifest = (struct manifest){0};
  json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
  bool read = false;
  if (root == NULL)
    rt_problem(problem, "%s: byte %d: not JSON: %s", path, error.position, size > 0 ? error.text : "the file is empty");
  else if (!has_right_tail(bytes, size))
    rt_problem(problem, "%s: its bytes have changed, among bytes 0 to %zu", path, size - 1);
  else
    read = read_root(manifest, path, root, problem);
  json_decref(root);
  if (!read) rt_manifest_free(manifest);
  return read;
}

void rt_manifest_free(struct manifest *manifest) {
  free(manifest->files);
  *manifest = (struct manifest){0};
}
