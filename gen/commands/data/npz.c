/* ZIP by PKWARE's APPNOTE.TXT with 64-bit sizes (4.5.3), which numpy.savez writes, too; .npy by numpy/lib/format.py,
 * version 1. */
#include "gen/commands/data/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "gen/dataset/npy_header.h"
#include "runtime/files/files.h"

enum { LOCAL_BYTES = 30, CENTRAL_BYTES = 46, EXTRA_LOCAL = 20, EXTRA_CENTRAL = 28, END_BYTES = 56 + 20 + 22 };
enum { NAME_MOST = 100, VERSION = 45, NEW_YEAR_1980 = 0x21 };

/* An array on its way into the archive. */
struct member {
  const struct npz_array *array;
  char name[NAME_MOST];
  char header[NPY_HEADER];
  uint64_t size, offset; /* of the .npy; of the member in the archive */
  uint32_t crc;
};

struct archive {
  struct writer writer;
  uint64_t at;
  uint8_t *row; /* the longest one */
};

static size_t row_bytes(const struct npz_array *array) {
  return array->width * (size_t)(array->columns > 0 ? array->columns : 1);
}

/* Continues `sum`, 0 at first. */
static uint32_t crc(uint32_t sum, const void *bytes, size_t size) {
  return (uint32_t)crc32_z(sum, bytes, size);
}

/* ---- A member ---- */

static void make_header(struct member *member) {
  const struct npz_array *array = member->array;
  const int64_t flat[] = {array->rows, array->columns};
  const int64_t grouped[] = {array->group > 0 ? array->rows / array->group : 0, array->group, array->columns};
  npy_header(member->header, array->dtype, array->group > 0 ? grouped : flat,
             array->group > 0 ? 3 : 1 + (array->columns > 0));
}

static void measure(struct archive *archive, const struct npz_array *array, struct member *member) {
  *member = (struct member){.array = array};
  snprintf(member->name, sizeof member->name, "%s.npy", array->name);
  make_header(member);
  member->size = sizeof member->header + (uint64_t)array->rows * row_bytes(array);
  uint32_t sum = crc(0, member->header, sizeof member->header);
  for (int64_t row = 0; row < array->rows; row++) {
    array->fill(array->context, row, archive->row);
    sum = crc(sum, archive->row, row_bytes(array));
  }
  member->crc = sum;
}

/* ---- The archive ---- */

static uint8_t *put(uint8_t *at, uint64_t value, int width) {
  for (int i = 0; i < width; i++) *at++ = (uint8_t)(value >> 8 * i);
  return at;
}

static bool add(struct archive *archive, const void *bytes, size_t size, struct problem *problem) {
  archive->at += size;
  return rt_writer_add(&archive->writer, bytes, size, problem);
}

/* What the local header and the directory both have of a member, up to the length of the name. */
static uint8_t *put_facts(uint8_t *at, const struct member *member) {
  at = put(at, VERSION, 2);
  at = put(at, 0, 2); /* flags */
  at = put(at, 0, 2); /* stored */
  at = put(at, 0, 2);
  at = put(at, NEW_YEAR_1980, 2); /* so that the same data gives the same bytes */
  at = put(at, member->crc, 4);
  at = put(at, UINT32_MAX, 4); /* both sizes are in the extra field */
  at = put(at, UINT32_MAX, 4);
  return put(at, strlen(member->name), 2);
}

static uint8_t *put_sizes(uint8_t *at, const struct member *member, int bytes) {
  at = put(at, 1, 2);
  at = put(at, (uint64_t)bytes - 4, 2);
  at = put(at, member->size, 8);
  return put(at, member->size, 8);
}

static bool write_member(struct archive *archive, struct member *member, struct problem *problem) {
  uint8_t header[LOCAL_BYTES + NAME_MOST + EXTRA_LOCAL], *at = put(header, 0x04034b50, 4);
  size_t length = strlen(member->name);
  member->offset = archive->at;
  at = put(put_facts(at, member), EXTRA_LOCAL, 2);
  memcpy(at, member->name, length);
  at = put_sizes(at + length, member, EXTRA_LOCAL);
  const struct npz_array *array = member->array;
  bool good = add(archive, header, (size_t)(at - header), problem) &&
              add(archive, member->header, sizeof member->header, problem);
  for (int64_t row = 0; good && row < array->rows; row++) {
    array->fill(array->context, row, archive->row);
    good = add(archive, archive->row, row_bytes(array), problem);
  }
  return good;
}

static bool write_entry(struct archive *archive, const struct member *member, struct problem *problem) {
  uint8_t entry[CENTRAL_BYTES + NAME_MOST + EXTRA_CENTRAL], *at = put(entry, 0x02014b50, 4);
  size_t length = strlen(member->name);
  at = put_facts(put(at, VERSION, 2), member);
  at = put(at, EXTRA_CENTRAL, 2);
  at = put(at, 0, 10); /* comment, disk, attributes */
  at = put(at, UINT32_MAX, 4);
  memcpy(at, member->name, length);
  at = put(put_sizes(at + length, member, EXTRA_CENTRAL), member->offset, 8);
  return add(archive, entry, (size_t)(at - entry), problem);
}

static bool write_end(struct archive *archive, uint64_t directory, int count, struct problem *problem) {
  uint8_t end[END_BYTES], *at = put(end, 0x06064b50, 4);
  at = put(put(put(at, 44, 8), VERSION, 2), VERSION, 2);
  at = put(at, 0, 8);
  at = put(put(at, (uint64_t)count, 8), (uint64_t)count, 8);
  at = put(put(at, archive->at - directory, 8), directory, 8);
  at = put(put(put(put(at, 0x07064b50, 4), 0, 4), archive->at, 8), 1, 4);
  at = put(put(put(at, 0x06054b50, 4), 0, 4), UINT32_MAX, 4);
  at = put(put(put(at, UINT32_MAX, 4), UINT32_MAX, 4), 0, 2);
  return add(archive, end, (size_t)(at - end), problem);
}

static bool write_all(struct archive *archive, struct member *members, int count, struct problem *problem) {
  rt_writer_stream(&archive->writer);
  for (int i = 0; i < count; i++)
    if (!write_member(archive, &members[i], problem)) return false;
  uint64_t directory = archive->at;
  for (int i = 0; i < count; i++)
    if (!write_entry(archive, &members[i], problem)) return false;
  return write_end(archive, directory, count, problem) && rt_writer_commit(&archive->writer, problem);
}

bool npz_write(const char *path, const struct npz_array *arrays, int count, struct problem *problem) {
  struct archive *archive = calloc(1, sizeof *archive);
  struct member *members = calloc((size_t)count, sizeof *members);
  size_t longest = 1;
  for (int i = 0; i < count; i++) longest = row_bytes(&arrays[i]) > longest ? row_bytes(&arrays[i]) : longest;
  if (archive != NULL) archive->row = calloc(1, longest);
  bool good = archive != NULL && members != NULL && archive->row != NULL;
  if (!good) rt_problem(problem, "%s: no memory to write it", path);
  for (int i = 0; good && i < count; i++) measure(archive, &arrays[i], &members[i]);
  good =
      good && rt_writer_open(&archive->writer, path, BY_RENAME, problem) && write_all(archive, members, count, problem);
  if (archive != NULL) free(archive->row);
  free(members);
  free(archive);
  return good;
}
