#include "runtime/files/prefix_checksums.h"

enum { LEAST_SPACING = 256 };

struct prefix_checksums rt_prefix_checksums_start(void) {
  return (struct prefix_checksums){rt_checksum_start(), {.spacing = LEAST_SPACING}};
}

/* Every second mark is dropped, so that there is space again. */
static void thin(struct marks *marks) {
  marks->count /= 2;
  for (int i = 0; i < marks->count; i++) marks->sums[i] = marks->sums[2 * i + 1];
  marks->spacing *= 2;
}

void rt_prefix_checksums_add(struct prefix_checksums *checksums, const void *bytes, size_t size) {
  struct marks *marks = &checksums->marks;
  for (const char *at = bytes; size > 0;) {
    uint64_t until = marks->spacing - checksums->checksum.total % marks->spacing;
    size_t part = until < size ? (size_t)until : size;
    rt_checksum_add(&checksums->checksum, at, part);
    at += part;
    size -= part;
    if (part < until) return;
    if (marks->count == RT_MOST_MARKS) thin(marks);
    if (checksums->checksum.total % marks->spacing == 0)
      marks->sums[marks->count++] = rt_checksum_end(&checksums->checksum);
  }
}

void rt_prefix_checksums_locate(const struct marks *was, const void *bytes, size_t size, uint64_t *first,
                                uint64_t *end) {
  struct prefix_checksums now = rt_prefix_checksums_start();
  int i = 0;
  rt_prefix_checksums_add(&now, bytes, size);
  while (i < was->count && i < now.marks.count && was->sums[i] == now.marks.sums[i]) i++;
  *first = (uint64_t)i * now.marks.spacing;
  *end = *first + now.marks.spacing < size ? *first + now.marks.spacing : size;
}
