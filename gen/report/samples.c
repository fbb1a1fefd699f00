#include "gen/report/samples.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/proto.h"

enum { HEAD = 12, TAIL = 4, MOST_RECORD = 1 << 20, MOST_TEXT = 4096, MOST_TAG = 300 };

/* ---- The texts of a name ---- */

static struct sample_list *list_of(struct arena *arena, struct samples *samples, const char *tag, size_t length) {
  for (int i = 0; i < samples->count; i++)
    if (strlen(samples->tags[i].tag) == length && memcmp(samples->tags[i].tag, tag, length) == 0)
      return &samples->tags[i];
  if (samples->count == MOST_TAGS) return NULL;
  samples->tags[samples->count] = (struct sample_list){.tag = arena_copy(arena, tag, length), .stride = 1};
  return &samples->tags[samples->count++];
}

/* The last text is always kept. It gives its place to the next one unless it is due. */
static void add(struct arena *arena, struct sample_list *list, int64_t step, const char *text, size_t length) {
  const bool replaces = list->count > 0 && (list->seen - 1) % list->stride != 0;
  if (replaces) list->count--;
  if (list->count == 2 * MOST_SAMPLES) {
    list->count = MOST_SAMPLES;
    list->stride *= 2;
    for (int i = 1; i < MOST_SAMPLES; i++) list->items[i] = list->items[2 * i];
  }
  list->items[list->count++] = (struct sample){step, arena_copy(arena, text, length)};
  list->seen++;
}

/* ---- Messages: Event, Summary.Value, SummaryMetadata, TensorProto ---- */

static bool find(const struct proto_field *of, uint64_t number, struct proto_field *found) {
  size_t at = 0;
  bool any = false;
  *found = (struct proto_field){0};
  for (struct proto_field field; of->bytes != NULL && rt_proto_next(of->bytes, of->count, &at, &field);)
    if (field.field == number) {
      *found = field;
      any = true;
    }
  return any;
}

static bool is_of_texts(const struct proto_field *value) {
  struct proto_field metadata, plugin, name;
  return find(value, 9, &metadata) && find(&metadata, 1, &plugin) && find(&plugin, 1, &name) && name.bytes != NULL &&
         name.count == 4 && memcmp(name.bytes, "text", 4) == 0;
}

static void take_value(struct arena *arena, struct samples *samples, int64_t step, const struct proto_field *value) {
  struct proto_field tag, tensor, text;
  if (!is_of_texts(value) || !find(value, 1, &tag) || tag.bytes == NULL || tag.count == 0 || tag.count > MOST_TAG)
    return;
  if (!find(value, 8, &tensor) || !find(&tensor, 8, &text) || text.bytes == NULL) return;
  struct sample_list *list = list_of(arena, samples, (const char *)tag.bytes, tag.count);
  if (list == NULL)
    samples->damaged = true;
  else
    add(arena, list, step, (const char *)text.bytes, text.count < MOST_TEXT ? text.count : MOST_TEXT);
}

static void take_event(struct arena *arena, struct samples *samples, const uint8_t *bytes, size_t size) {
  const struct proto_field event = {.bytes = bytes, .count = size};
  struct proto_field step, summary, value;
  size_t at = 0;
  if (!find(&event, 5, &summary) || summary.bytes == NULL) return;
  const int64_t number = find(&event, 2, &step) ? (int64_t)step.number : 0;
  while (rt_proto_next(summary.bytes, summary.count, &at, &value))
    if (value.field == 1 && value.bytes != NULL) take_value(arena, samples, number, &value);
}

/* ---- Records ---- */

static bool read_all(int file, void *bytes, size_t count, int64_t from) {
  for (size_t done = 0; done < count;) {
    const ssize_t got = pread(file, (char *)bytes + done, count - done, from + (int64_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

/* A record at the end that is not whole is one that a killed run left. */
static void read_records(struct arena *arena, int file, int64_t size, struct samples *samples, uint8_t *bytes) {
  uint8_t head[HEAD];
  for (int64_t at = 0; size - at >= HEAD + TAIL;) {
    uint64_t count = 0;
    if (!read_all(file, head, HEAD, at)) return;
    for (int i = 7; i >= 0; i--) count = count << 8 | head[i];
    if (count > (uint64_t)(size - at - HEAD - TAIL)) {
      samples->damaged = count > MOST_RECORD;
      return;
    }
    if (count <= MOST_RECORD && read_all(file, bytes, (size_t)count, at + HEAD))
      take_event(arena, samples, bytes, (size_t)count);
    at += HEAD + (int64_t)count + TAIL;
  }
}

bool samples_read(struct arena *arena, const char *path, struct samples *samples) {
  struct stat status;
  *samples = (struct samples){0};
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  uint8_t *bytes = NULL;
  int reason = fstat(file, &status) != 0 ? errno : S_ISREG(status.st_mode) ? 0 : EINVAL;
  if (reason == 0 && (bytes = malloc(MOST_RECORD)) == NULL) reason = ENOMEM;
  if (reason == 0) read_records(arena, file, status.st_size, samples, bytes);
  free(bytes);
  close(file);
  errno = reason;
  return reason == 0;
}
