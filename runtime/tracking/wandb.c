/* Weights & Biases: the folder of an offline run, which `wandb sync` uploads. Its file is a log of LevelDB
 * (doc/log_format.md there) with the CRC-32 of zlib in place of CRC-32C, a header of 7 bytes before it, and messages of
 * wandb_internal.proto as entries. Held against wandb 0.28 and 0.31. */
#include "runtime/base/proto.h"
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"
#include "runtime/tracking/crc.h"
#include "runtime/tracking/journal.h"
#include "runtime/tracking/json.h"
#include "runtime/tracking/series.h"
#include "runtime/tracking/sink.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { BLOCK = 32768, HEAD = 7, MOST_RECORD = 1 << 30 };
enum part { PART_FULL = 1, PART_FIRST, PART_MIDDLE, PART_LAST };
enum field { FIELD_HISTORY = 2, FIELD_SUMMARY = 3, FIELD_RUN = 17, FIELD_EXIT = 18, FIELD_HEADER = 21 };

struct wandb {
  struct journal journal;
  struct bytes items; /* of the next row: what hooks logged since the last one */
  struct bytes updates;
  int64_t number; /* of the last record */
  double began;
};

static const uint8_t file_head[HEAD] = {':', 'W', '&', 'B', 0xe1, 0xbe, 0};

/* ---- Records ---- */

/* Adds a part of a record that fits into the block. */
static void add_part(struct bytes *to, enum part part, const uint8_t *data, size_t count) {
  const uint8_t type = (uint8_t)part;
  rt_bytes_u32(to, rt_crc(CRC_OF_ZLIB, rt_crc(CRC_OF_ZLIB, 0, &type, 1), data, count));
  rt_bytes_u16(to, (uint16_t)count);
  rt_bytes_add(to, &type, 1);
  rt_bytes_add(to, data, count);
}

/* Adds a record, in parts where it crosses blocks, as one entry; the message is freed. */
static void add_record(struct wandb *wandb, enum field field, struct bytes *message) {
  struct bytes record = {0}, entry = {0};
  size_t at = (size_t)wandb->journal.whole + wandb->journal.waiting.count, done = 0;
  rt_proto_int(&record, 1, (uint64_t)++wandb->number);
  rt_proto_message(&record, (int)field, message);
  for (bool first = true; first || done < record.count; first = false) {
    size_t left = BLOCK - at % BLOCK;
    if (left < HEAD) {
      rt_bytes_add(&entry, "\0\0\0\0\0\0", left);
      at += left;
      left = BLOCK;
    }
    const size_t rest = record.count - done, count = rest < left - HEAD ? rest : left - HEAD;
    const bool last = count == rest;
    add_part(&entry,
             first  ? (last ? PART_FULL : PART_FIRST)
             : last ? PART_LAST
                    : PART_MIDDLE,
             record.data + done, count);
    at += HEAD + count;
    done += count;
  }
  entry.failed |= record.failed;
  rt_bytes_free(&record);
  rt_journal_add(&wandb->journal, &entry);
}

/* ---- Where the file ends when a run resumes ---- */

enum found { FOUND_RECORD, FOUND_END, FOUND_DAMAGE };

/* Adds what the record at *at holds to `to`, and moves *at past it. The end is also one that is not whole. */
static enum found read_record(const uint8_t *bytes, size_t size, size_t *at, struct bytes *to) {
  for (bool first = true;; first = false) {
    const size_t left = BLOCK - *at % BLOCK;
    if (left < HEAD) *at += left;
    if (*at > size || size - *at < HEAD) return FOUND_END;
    const uint8_t *head = bytes + *at, type = head[6];
    const size_t count = rt_bytes_number(head + 4, 2);
    if (first != (type == PART_FULL || type == PART_FIRST) || type > PART_LAST)
      return rt_is_last(bytes, size, *at + HEAD) ? FOUND_END : FOUND_DAMAGE;
    if (count > size - *at - HEAD) return FOUND_END;
    const uint32_t crc = rt_crc(CRC_OF_ZLIB, rt_crc(CRC_OF_ZLIB, 0, &type, 1), head + HEAD, count);
    *at += HEAD + count;
    if (rt_bytes_number(head, 4) != crc) return rt_is_last(bytes, size, *at) ? FOUND_END : FOUND_DAMAGE;
    rt_bytes_add(to, head + HEAD, count);
    if (to->failed || to->count > MOST_RECORD) return FOUND_DAMAGE;
    if (type == PART_FULL || type == PART_LAST) return FOUND_RECORD;
  }
}

/* The step of a row of the history. */
static int64_t step_of(const uint8_t *row, size_t size) {
  struct proto_field field, number;
  size_t at = 0;
  while (rt_proto_next(row, size, &at, &field)) {
    size_t inner = 0;
    if (field.field == 2 && field.bytes != NULL && rt_proto_next(field.bytes, field.count, &inner, &number))
      return (int64_t)number.number;
  }
  return 0;
}

static bool is_after(const struct bytes *record, int64_t keep) {
  struct proto_field field;
  size_t at = 0;
  bool after = false;
  while (rt_proto_next(record->data, record->count, &at, &field)) {
    after |= field.field == FIELD_EXIT;
    after |= field.field == FIELD_HISTORY && field.bytes != NULL && step_of(field.bytes, field.count) > keep;
  }
  return after;
}

/* The bytes of the records that stay; *count is increased by their number. False: damage follows them. */
static bool walk(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole, int64_t *count) {
  enum found found = FOUND_RECORD;
  size_t at = HEAD;
  *whole = 0;
  if (size < HEAD || memcmp(bytes, file_head, HEAD) != 0) return false;
  for (*whole = HEAD; found == FOUND_RECORD;) {
    struct bytes record = {0};
    found = read_record(bytes, size, &at, &record);
    if (found == FOUND_RECORD && is_after(&record, keep)) found = FOUND_END;
    if (found == FOUND_RECORD) *whole = (int64_t)at;
    *count += found == FOUND_RECORD;
    rt_bytes_free(&record);
  }
  return found == FOUND_END;
}

static bool cut(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole) {
  int64_t count = 0;
  return walk(bytes, size, keep, whole, &count);
}

/* ---- The beginning of a run ---- */

static void add_config(void *to, const char *name, const char *value) {
  struct bytes item = {0}, json = {0};
  rt_json_value(&json, value);
  rt_proto_text(&item, 1, name);
  rt_proto_bytes(&item, 16, json.data, json.count);
  item.failed |= json.failed;
  rt_bytes_free(&json);
  rt_proto_message(to, 1, &item);
}

static void begin(struct wandb *wandb, const struct tracked *tracked) {
  struct bytes head = {0}, version = {0}, header = {0}, run = {0}, config = {0}, start = {0};
  char id[16];
  snprintf(id, sizeof id, "%.8s", tracked->id);
  rt_bytes_add(&head, file_head, HEAD);
  rt_journal_add(&wandb->journal, &head);
  rt_proto_text(&version, 1, tracked->program->generator);
  rt_proto_text(&version, 2, "0.40.0"); /* the oldest program that reads it */
  rt_proto_message(&header, 1, &version);
  add_record(wandb, FIELD_HEADER, &header);
  rt_proto_text(&run, 1, id);
  rt_proto_text(&run, 3, tracked->project);
  rt_each_key(tracked, add_config, &config);
  rt_proto_message(&run, 4, &config);
  rt_proto_text(&run, 8, tracked->run_name);
  for (int i = 0; tracked->program->tracking.tags[i] != NULL; i++)
    rt_proto_text(&run, 10, tracked->program->tracking.tags[i]);
  rt_proto_int(&start, 1, (uint64_t)tracked->began);
  rt_proto_message(&run, 17, &start);
  add_record(wandb, FIELD_RUN, &run);
}

static bool path_of(char *path, size_t size, const struct tracked *tracked, struct problem *problem) {
  char all[4096], folder[4096], files[4096], name[64], date[32];
  const time_t began = (time_t)tracked->began;
  struct tm calendar;
  gmtime_r(&began, &calendar);
  strftime(date, sizeof date, "%Y%m%d_%H%M%S", &calendar);
  snprintf(name, sizeof name, "offline-run-%s-%.8s", date, tracked->id);
  if (!rt_join(all, sizeof all, tracked->folder, "wandb", problem) ||
      !rt_join(folder, sizeof folder, all, name, problem) || !rt_join(files, sizeof files, folder, "files", problem) ||
      !rt_make_folders(files, problem))
    return false;
  snprintf(name, sizeof name, "run-%.8s.wandb", tracked->id);
  return rt_join(path, size, folder, name, problem);
}

static bool count_records(struct wandb *wandb, struct problem *problem) {
  struct mapping mapping;
  int64_t whole;
  if (!rt_map_file(&mapping, wandb->journal.file, wandb->journal.path, "remove it", problem)) return false;
  wandb->number = 0;
  walk(mapping.bytes, mapping.size, INT64_MAX, &whole, &wandb->number);
  rt_unmap(&mapping);
  return true;
}

/* Whether a file is there that has something; its first records are never written in part. */
static bool is_begun(const char *path) {
  struct stat status;
  return lstat(path, &status) == 0 && !(S_ISREG(status.st_mode) && status.st_size == 0);
}

/* The file begins whole, as none without its first records opens. */
static bool open_file(void *state, const struct tracked *tracked, struct problem *problem) {
  struct wandb *wandb = state;
  char path[4096];
  wandb->began = tracked->began;
  if (!path_of(path, sizeof path, tracked, problem)) return false;
  if (!is_begun(path)) {
    begin(wandb, tracked);
    if (!rt_replace_file(path, &wandb->journal.waiting, problem)) return false;
  }
  return rt_journal_open(&wandb->journal, path, tracked->keep < 0 ? INT64_MAX : tracked->keep, cut, problem) &&
         count_records(wandb, problem);
}

/* ---- Rows ---- */

/* Adds a value of the next row, which is freed, to the row and to the summary of the newest values. */
static void add_item(struct wandb *wandb, const char *name, struct bytes *json) {
  struct bytes item = {0}, update = {0};
  rt_proto_text(&item, 2, name);
  rt_proto_bytes(&item, 16, json->data, json->count);
  item.failed |= json->failed;
  rt_bytes_free(json);
  rt_bytes_add(&update, item.data, item.count);
  rt_proto_message(&wandb->items, 1, &item);
  rt_proto_message(&wandb->updates, 1, &update);
}

static void add_scalars(void *state, int64_t step, double now, const struct scalars *scalars) {
  struct wandb *wandb = state;
  const struct scalar own[] = {
      {"_step", "%.0f", (double)step}, {"_timestamp", "%.6f", now}, {"_runtime", "%.3f", now - wandb->began}};
  struct bytes at = {0};
  for (int i = 0; i < scalars->count + 3; i++) {
    const struct scalar *scalar = i < scalars->count ? &scalars->items[i] : &own[i - scalars->count];
    struct bytes json = {0};
    rt_json_number(&json, scalar);
    add_item(wandb, scalar->name, &json);
  }
  rt_proto_int(&at, 1, (uint64_t)step);
  rt_proto_message(&wandb->items, 2, &at);
  add_record(wandb, FIELD_HISTORY, &wandb->items);
  add_record(wandb, FIELD_SUMMARY, &wandb->updates);
}

static void add_text(void *state, int64_t step, double now, const char *name, const char *text) {
  struct bytes json = {0};
  (void)step;
  (void)now;
  rt_json_text(&json, text);
  add_item(state, name, &json);
}

static void add_numbers(struct bytes *to, const char *before, const double *numbers, size_t count) {
  rt_bytes_print(to, "%s", before);
  for (size_t i = 0; i < count; i++) rt_bytes_print(to, "%s%.9g", i > 0 ? "," : "", numbers[i]);
}

static void add_histogram(void *state, int64_t step, double now, const char *name, const struct histogram *histogram) {
  struct bytes json = {0};
  (void)step;
  (void)now;
  add_numbers(&json, "{\"_type\":\"histogram\",\"values\":[", histogram->counts, histogram->count);
  rt_bytes_print(&json, "],\"bins\":[%.9g,", histogram->least);
  add_numbers(&json, "", histogram->limits, histogram->count);
  rt_bytes_print(&json, "]}");
  add_item(state, name, &json);
}

static bool flush(void *state, struct problem *problem) {
  return rt_journal_flush(&((struct wandb *)state)->journal, problem);
}

static bool close_file(void *state, double now, enum run_end end, struct problem *problem) {
  struct wandb *wandb = state;
  struct bytes exit = {0};
  rt_proto_int(&exit, 1, end == RUN_FINISHED ? 0 : 1);
  rt_proto_int(&exit, 2, (uint64_t)(now > wandb->began ? now - wandb->began : 0));
  add_record(wandb, FIELD_EXIT, &exit);
  rt_bytes_free(&wandb->items);
  rt_bytes_free(&wandb->updates);
  return rt_journal_close(&wandb->journal, problem);
}

const struct accel_sink accel_sink_wandb = {.name = "wandb",
                                            .bytes = sizeof(struct wandb),
                                            .open = open_file,
                                            .cut = cut,
                                            .scalars = add_scalars,
                                            .histogram = add_histogram,
                                            .text = add_text,
                                            .flush = flush,
                                            .close = close_file};
