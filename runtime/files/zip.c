/* Nothing in the file is believed: every offset and size is checked against the file before it is followed. */
#include "runtime/files/zip.h"

#include <stdlib.h>
#include <string.h>

enum { LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, END_64 = 0x06064b50, LOCATOR_64 = 0x07064b50 };
enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, END_BYTES = 22, END_64_BYTES = 56, LOCATOR_64_BYTES = 20 };
enum { MOST_COMMENT = 65535, EXTRA_64 = 1, IS_ENCRYPTED = 1 };

struct file {
  const uint8_t *bytes;
  size_t size;
};

/* A number of `width` bytes. What it is read from was checked to be there. */
static uint64_t number_at(const uint8_t *at, int width) {
  uint64_t value = 0;
  for (int i = width - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

static bool has(const struct file *file, uint64_t at, uint64_t bytes) {
  return at <= file->size && bytes <= file->size - at;
}

static bool is_at(const struct file *file, uint64_t at, uint64_t bytes, uint32_t mark) {
  return has(file, at, bytes) && number_at(file->bytes + at, 4) == mark;
}

bool rt_zip_is(const uint8_t *bytes, size_t size) {
  const struct file file = {bytes, size};
  return is_at(&file, 0, 4, LOCAL) || is_at(&file, 0, 4, END);
}

/* Where the directory is, and how many entries it has. */
static bool find_directory(const struct file *file, uint64_t *at, uint64_t *count) {
  if (file->size < END_BYTES) return false;
  size_t end = file->size - END_BYTES, least = end > MOST_COMMENT ? end - MOST_COMMENT : 0;
  while (end > least && number_at(file->bytes + end, 4) != END) end--;
  if (number_at(file->bytes + end, 4) != END) return false;
  *count = number_at(file->bytes + end + 10, 2);
  *at = number_at(file->bytes + end + 16, 4);
  if (end < LOCATOR_64_BYTES || !is_at(file, end - LOCATOR_64_BYTES, LOCATOR_64_BYTES, LOCATOR_64)) return true;
  const uint64_t wide = number_at(file->bytes + end - LOCATOR_64_BYTES + 8, 8);
  if (!is_at(file, wide, END_64_BYTES, END_64)) return false;
  *count = number_at(file->bytes + wide + 32, 8);
  *at = number_at(file->bytes + wide + 48, 8);
  return true;
}

/* The numbers of an entry that do not fit into its 32 bits, in their order. */
static bool widen(const uint8_t *extra, size_t size, uint64_t *const *numbers, int count) {
  while (size >= 4) {
    const size_t kind = number_at(extra, 2), length = number_at(extra + 2, 2);
    if (length > size - 4) return false;
    for (size_t at = 4, i = 0; kind == EXTRA_64 && i < (size_t)count; i++) {
      if (*numbers[i] != UINT32_MAX) continue;
      if (at + 8 > length + 4) return false;
      *numbers[i] = number_at(extra + at, 8);
      at += 8;
    }
    extra += length + 4;
    size -= length + 4;
  }
  return true;
}

/* Reads the entry at *at of the directory, and moves *at to the next one. */
static bool read_entry(const struct file *file, uint64_t *at, struct zip_entry *entry, bool *is_plain) {
  if (!is_at(file, *at, CENTRAL_BYTES, CENTRAL)) return false;
  const uint8_t *header = file->bytes + *at;
  const size_t length = number_at(header + 28, 2), extra = number_at(header + 30, 2);
  const size_t comment = number_at(header + 32, 2);
  uint64_t packed = number_at(header + 20, 4), size = number_at(header + 24, 4), local = number_at(header + 42, 4);
  uint64_t *const numbers[] = {&size, &packed, &local};
  if (!has(file, *at + CENTRAL_BYTES, length + extra + comment)) return false;
  if (!widen(header + CENTRAL_BYTES + length, extra, numbers, 3)) return false;
  *at += CENTRAL_BYTES + length + extra + comment;
  *is_plain = (number_at(header + 8, 2) & IS_ENCRYPTED) == 0 && number_at(header + 10, 2) == 0 && packed == size;
  if (!is_at(file, local, LOCAL_BYTES, LOCAL)) return false;
  const uint64_t begin =
      local + LOCAL_BYTES + number_at(file->bytes + local + 26, 2) + number_at(file->bytes + local + 28, 2);
  if (!has(file, begin, *is_plain ? size : packed)) return false;
  *entry = (struct zip_entry){header + CENTRAL_BYTES, file->bytes + begin, length, (size_t)size};
  return true;
}

static int by_name(const void *a, const void *b) {
  const struct zip_entry *p = a, *q = b;
  const int order = memcmp(p->name, q->name, p->length < q->length ? p->length : q->length);
  return order != 0 ? order : (p->length > q->length) - (p->length < q->length);
}

/* Readers differ in which of two files of one name they take. */
static bool check_names(struct zip *zip, const char *path, struct problem *problem) {
  for (int i = 1; i < zip->count; i++) {
    const struct zip_entry *entry = &zip->entries[i];
    if (by_name(entry - 1, entry) != 0) continue;
    rt_problem(problem, "%s: two of its files are called '%.*s'", path, entry->length < 200 ? (int)entry->length : 200,
               (const char *)entry->name);
    rt_zip_free(zip);
    return false;
  }
  return true;
}

bool rt_zip_read(struct zip *zip, const char *path, const uint8_t *bytes, size_t size, struct problem *problem) {
  const struct file file = {bytes, size};
  uint64_t at, count;
  *zip = (struct zip){0};
  if (!find_directory(&file, &at, &count) || count > size / CENTRAL_BYTES)
    return rt_problem(problem, "%s: the archive has no directory at its end", path);
  zip->entries = calloc((size_t)count + 1, sizeof *zip->entries);
  if (zip->entries == NULL) return rt_problem(problem, "%s: no memory for the list of its files", path);
  for (; (uint64_t)zip->count < count; zip->count++) {
    struct zip_entry *entry = &zip->entries[zip->count];
    bool is_plain = true;
    const bool read = read_entry(&file, &at, entry, &is_plain);
    if (read && is_plain) continue;
    if (read)
      rt_problem(problem, "%s: its file '%.*s' is compressed or encrypted", path,
                 entry->length < 200 ? (int)entry->length : 200, (const char *)entry->name);
    else
      rt_problem(problem, "%s: entry %d of the archive's directory is damaged", path, zip->count);
    rt_zip_free(zip);
    return false;
  }
  qsort(zip->entries, (size_t)zip->count, sizeof *zip->entries, by_name);
  return check_names(zip, path, problem);
}

const struct zip_entry *rt_zip_find(const struct zip *zip, const void *name, size_t length) {
  const struct zip_entry wanted = {.name = name, .length = length};
  return bsearch(&wanted, zip->entries, (size_t)zip->count, sizeof *zip->entries, by_name);
}

void rt_zip_free(struct zip *zip) {
  free(zip->entries);
  *zip = (struct zip){0};
}
