/* TensorBoard: a file of events, each a message Event (tensorboard/compat/proto/event.proto) in a record of TFRecord:
 * its length, the masked CRC-32C of that, the message, its masked CRC-32C. Field numbers are those of summary.proto,
 * tensor.proto and plugins/hparams/plugin_data.proto. Held against TensorBoard 2.21. */
#include "runtime/base/proto.h"
#include "runtime/files/files.h"
#include "runtime/tracking/crc.h"
#include "runtime/tracking/journal.h"
#include "runtime/tracking/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEAD = 12, TAIL = 4 }; /* bytes around a record's message */

struct board {
  struct journal journal;
};

static uint32_t masked(const void *bytes, size_t count) {
  const uint32_t crc = rt_crc(CRC_OF_CASTAGNOLI, 0, bytes, count);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

/* Adds the event, which is freed, as a record. */
static void add_record(struct board *board, struct bytes *event) {
  struct bytes record = {.failed = event->failed};
  rt_bytes_u64(&record, event->count);
  if (!record.failed) rt_bytes_u32(&record, masked(record.data, 8));
  rt_bytes_add(&record, event->data, event->count);
  rt_bytes_u32(&record, masked(event->data, event->count));
  rt_bytes_free(event);
  rt_journal_add(&board->journal, &record);
}

/* An event with a summary of these values, which are freed. */
static void add_summary(struct board *board, int64_t step, double now, struct bytes *values) {
  struct bytes event = {0};
  rt_proto_double(&event, 1, now);
  rt_proto_int(&event, 2, (uint64_t)step);
  rt_proto_message(&event, 5, values);
  add_record(board, &event);
}

/* The metadata by which a plugin knows its values. */
static void add_plugin(struct bytes *value, const char *name, const void *content, size_t count) {
  struct bytes plugin = {0}, metadata = {0};
  rt_proto_text(&plugin, 1, name);
  rt_proto_bytes(&plugin, 2, content, count);
  rt_proto_message(&metadata, 1, &plugin);
  rt_proto_message(value, 9, &metadata);
}

/* ---- Where the file ends when a run resumes ---- */

/* Whether the event is one of a step above `keep`, or the end of the session. */
static bool is_after(const uint8_t *event, size_t size, int64_t keep) {
  static const char end[] = "_hparams_/session_end_info";
  struct proto_field field;
  size_t at = 0;
  int64_t step = 0;
  bool ends = false;
  while (rt_proto_next(event, size, &at, &field)) {
    if (field.field == 2) step = (int64_t)field.number;
    for (size_t i = 0; field.bytes != NULL && i + sizeof end - 1 <= field.count && i < 64; i++)
      ends |= memcmp(field.bytes + i, end, sizeof end - 1) == 0;
  }
  return ends || step > keep;
}

static bool cut(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole) {
  for (*whole = 0; size - (size_t)*whole >= HEAD + TAIL;) {
    const size_t at = (size_t)*whole;
    const uint8_t *head = bytes + at, *event = head + HEAD;
    const uint64_t count = rt_bytes_number(head, 8);
    if (rt_bytes_number(head + 8, 4) != masked(head, 8)) return rt_is_last(bytes, size, at + HEAD);
    if (count > size - at - HEAD - TAIL) return true; /* a killed process left it */
    const size_t end = at + HEAD + count + TAIL;
    if (rt_bytes_number(event + count, 4) != masked(event, count)) return rt_is_last(bytes, size, end);
    if (is_after(event, count, keep)) return true;
    *whole = (int64_t)end;
  }
  return true;
}

/* ---- The beginning and the end of a session ---- */

/* A value of JSON's type, as google.protobuf.Value has it. */
static void add_hparam(void *to, const char *name, const char *text) {
  struct bytes entry = {0}, value = {0};
  char *end;
  const double number = strtod(text, &end);
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
    rt_proto_int(&value, 4, text[0] == 't');
  else if (*text != '\0' && *end == '\0')
    rt_proto_double(&value, 2, number);
  else
    rt_proto_text(&value, 3, text);
  rt_proto_text(&entry, 1, name);
  rt_proto_message(&entry, 2, &value);
  rt_proto_message(to, 1, &entry);
}

/* A message of the plugin hparams, which is freed: of its data, field `which`. */
static void add_session(struct board *board, const char *tag, int which, struct bytes *message, double now) {
  struct bytes data = {0}, value = {0}, summary = {0}, tensor = {0}, shape = {0};
  rt_proto_int(&data, 1, 0); /* the version of the plugin's data */
  rt_proto_message(&data, which, message);
  rt_proto_text(&value, 1, tag);
  add_plugin(&value, "hparams", data.data, data.count);
  rt_proto_int(&tensor, 1, 1); /* DT_FLOAT */
  rt_proto_message(&tensor, 2, &shape);
  rt_proto_float(&tensor, 5, 0);
  rt_proto_message(&value, 8, &tensor);
  value.failed |= data.failed;
  rt_bytes_free(&data);
  rt_proto_message(&summary, 1, &value);
  add_summary(board, 0, now, &summary);
}

static void begin(struct board *board, const struct tracked *tracked) {
  struct bytes version = {0}, start = {0};
  rt_proto_double(&version, 1, tracked->now);
  rt_proto_text(&version, 3, "brain.Event:2");
  add_record(board, &version);
  rt_each_key(tracked, add_hparam, &start);
  rt_proto_text(&start, 4, tracked->run_name); /* the group of sessions */
  rt_proto_double(&start, 5, tracked->began);
  add_session(board, "_hparams_/session_start_info", 3, &start, tracked->now);
}

static bool path_of(char *path, size_t size, const struct tracked *tracked, const char *id, struct problem *problem) {
  char all[4096], folder[4096], name[64];
  snprintf(name, sizeof name, "events.out.tfevents.%.10s.accel-gen", id);
  return rt_join(all, sizeof all, tracked->folder, "tensorboard", problem) &&
         rt_join(folder, sizeof folder, all, tracked->run_name, problem) && rt_make_folders(folder, problem) &&
         rt_join(path, size, folder, name, problem);
}

/* The file of a run that this one replaces would be shown as a part of this one. */
static bool remove_previous(const struct tracked *tracked, struct problem *problem) {
  char path[4096];
  if (!path_of(path, sizeof path, tracked, tracked->previous_id, problem)) return false;
  return unlink(path) == 0 || errno == ENOENT ||
         rt_problem(problem, "%s: cannot be removed: %s", path, strerror(errno));
}

static bool open_file(void *state, const struct tracked *tracked, struct problem *problem) {
  struct board *board = state;
  char path[4096];
  if (!path_of(path, sizeof path, tracked, tracked->id, problem) ||
      !rt_journal_open(&board->journal, path, tracked->keep, cut, problem))
    return false;
  if (board->journal.whole == 0) begin(board, tracked);
  return true;
}

/* ---- Events ---- */

static void add_scalars(void *state, int64_t step, double now, const struct scalars *scalars) {
  struct bytes summary = {0};
  for (int i = 0; i < scalars->count; i++) {
    struct bytes value = {0};
    rt_proto_text(&value, 1, scalars->items[i].name);
    rt_proto_float(&value, 2, (float)scalars->items[i].value);
    rt_proto_message(&summary, 1, &value);
  }
  add_summary(state, step, now, &summary);
}

static void add_histogram(void *state, int64_t step, double now, const char *name, const struct histogram *histogram) {
  struct bytes histo = {0}, value = {0}, summary = {0};
  rt_proto_double(&histo, 1, histogram->least);
  rt_proto_double(&histo, 2, histogram->most);
  rt_proto_double(&histo, 3, histogram->total);
  rt_proto_double(&histo, 4, histogram->sum);
  rt_proto_double(&histo, 5, histogram->sum_of_squares);
  rt_proto_doubles(&histo, 6, histogram->limits, histogram->count);
  rt_proto_doubles(&histo, 7, histogram->counts, histogram->count);
  rt_proto_text(&value, 1, name);
  rt_proto_message(&value, 5, &histo);
  rt_proto_message(&summary, 1, &value);
  add_summary(state, step, now, &summary);
}

static void add_text(void *state, int64_t step, double now, const char *name, const char *text) {
  struct bytes dim = {0}, shape = {0}, tensor = {0}, value = {0}, summary = {0};
  rt_proto_int(&dim, 1, 1);
  rt_proto_message(&shape, 2, &dim);
  rt_proto_int(&tensor, 1, 7); /* DT_STRING */
  rt_proto_message(&tensor, 2, &shape);
  rt_proto_text(&tensor, 8, text);
  rt_proto_text(&value, 1, name);
  add_plugin(&value, "text", "", 0);
  rt_proto_message(&value, 8, &tensor);
  rt_proto_message(&summary, 1, &value);
  add_summary(state, step, now, &summary);
}

static void add_picture(void *state, int64_t step, double now, const char *name, const struct picture *picture) {
  struct bytes image = {0}, value = {0}, summary = {0};
  rt_proto_int(&image, 1, (uint64_t)picture->height);
  rt_proto_int(&image, 2, (uint64_t)picture->width);
  rt_proto_int(&image, 3, (uint64_t)picture->channels); /* grey, RGB and RGBA have their number of channels */
  rt_proto_bytes(&image, 4, picture->png, picture->png_bytes);
  rt_proto_text(&value, 1, name);
  rt_proto_message(&value, 4, &image);
  rt_proto_message(&summary, 1, &value);
  add_summary(state, step, now, &summary);
}

static bool flush(void *state, struct problem *problem) {
  return rt_journal_flush(&((struct board *)state)->journal, problem);
}

static bool close_file(void *state, double now, enum run_end end, struct problem *problem) {
  struct board *board = state;
  struct bytes message = {0};
  rt_proto_int(&message, 1, end == RUN_FINISHED ? 1 : 2); /* STATUS_SUCCESS, STATUS_FAILURE */
  rt_proto_double(&message, 2, now);
  add_session(board, "_hparams_/session_end_info", 4, &message, now);
  return rt_journal_close(&board->journal, problem);
}

const struct accel_sink accel_sink_tensorboard = {.name = "tensorboard",
                                                  .bytes = sizeof(struct board),
                                                  .remove = remove_previous,
                                                  .open = open_file,
                                                  .cut = cut,
                                                  .scalars = add_scalars,
                                                  .histogram = add_histogram,
                                                  .text = add_text,
                                                  .picture = add_picture,
                                                  .flush = flush,
                                                  .close = close_file};
