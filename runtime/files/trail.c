#include "runtime/files/trail.h"

enum { LEAST_SPACING = 256 };

struct trail rt_trail_start(void) {
  return (struct trail){rt_checksum_start(), {.spacing = LEAST_SPACING}};
}

/* Every second mark goes, so that there is room again. */
static void thin(struct marks *marks) {
  marks->count /= 2;
  for (int i = 0; i < marks->count; i++) marks->sums[i] = marks->sums[2 * i + 1];
  marks->spacing *= 2;
}

void rt_trail_add(struct trail *trail, const void *bytes, size_t size) {
  struct marks *marks = &trail->marks;
  for (const char *at = bytes; size > 0;) {
    uint64_t until = marks->spacing - trail->checksum.total % marks->spacing;
    size_t part = until < size ? (size_t)until : size;
    rt_checksum_add(&trail->checksum, at, part);
    at += part;
    size -= part;
    if (part < until) return;
    if (marks->count == RT_MOST_MARKS) thin(marks);
    if (trail->checksum.total % marks->spacing == 0) marks->sums[marks->count++] = rt_checksum_end(&trail->checksum);
  }
}

void rt_trail_locate(const struct marks *was, const void *bytes, size_t size, uint64_t *first, uint64_t *end) {
  struct trail now = rt_trail_start();
  int i = 0;
  rt_trail_add(&now, bytes, size);
  while (i < was->count && i < now.marks.count && was->sums[i] == now.marks.sums[i]) i++;
  *first = (uint64_t)i * now.marks.spacing;
  *end = *first + now.marks.spacing < size ? *first + now.marks.spacing : size;
}
