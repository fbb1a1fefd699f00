/* Comet: the archive of an offline experiment, which `comet upload` reads: messages.json, a message a line, and
 * experiment.json, stored in a zip (PKWARE's APPNOTE). Held against comet_ml 3.58.
 *
 * The archive opens at any time. messages.json comes first, with room to grow, and then one page has all that changes:
 * experiment.json, the directory, and the end of the archive. New lines are written behind the counted ones, and then
 * the page, which counts them too, in one piece. Where there is no room left, the page is first written farther away.
 */
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"
#include "runtime/tracking/crc.h"
#include "runtime/tracking/journal.h"
#include "runtime/tracking/json.h"
#include "runtime/tracking/series.h"
#include "runtime/tracking/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum {
  PAGE = 4096,
  LOCAL = 0x04034b50,
  CENTRAL = 0x02014b50,
  END = 0x06054b50,
  END_BYTES = 22,
  LATER = 8,
  JANUARY = 33
};

static const char messages_name[] = "messages.json", experiment_name[] = "experiment.json";
static const char before_step[] = "{\"type\": \"metric_msg\", \"payload\": {\"metric\": {\"step\": ";
enum {
  DATA = 30 + sizeof messages_name - 1,
  DIRECTORY = 46 + sizeof messages_name - 1 + 46 + sizeof experiment_name - 1,
  MOST_DATA = 1 << 30
};

struct comet {
  char path[4096];
  int file; /* -1: it is not open */
  bool is_open;
  int64_t size, page; /* of messages.json; where the page is */
  uint32_t crc;
  struct bytes waiting;
  struct bytes about; /* of experiment.json, what does not change */
  int64_t began, stopped;
  bool failed;
};

static bool failed(const struct comet *comet, struct problem *problem) {
  rt_problem(problem, "%s: cannot be written: %s", comet->path, strerror(errno));
  return rt_help(problem, "check the free space, the quota and the rights of the folder, or choose another with "
                          "--project-dir");
}

static int64_t milliseconds(double seconds) {
  return (int64_t)(1000 * seconds);
}

/* ---- The archive ---- */

struct entry {
  const char *name;
  uint32_t at, size, crc;
  uint16_t flags;
};

/* What both headers of an entry have: its sums, and the lengths of its name and of nothing more. */
static void add_entry(struct bytes *to, const struct entry *entry) {
  rt_bytes_u16(to, 20); /* the version of the format */
  rt_bytes_u16(to, entry->flags);
  rt_bytes_u16(to, 0); /* stored */
  rt_bytes_u16(to, 0);
  rt_bytes_u16(to, JANUARY);
  rt_bytes_u32(to, entry->crc);
  rt_bytes_u32(to, entry->size);
  rt_bytes_u32(to, entry->size);
  rt_bytes_u16(to, (uint16_t)strlen(entry->name));
  rt_bytes_u16(to, 0);
}

static void add_local(struct bytes *to, const struct entry *entry) {
  rt_bytes_u32(to, LOCAL);
  add_entry(to, entry);
  rt_bytes_add(to, entry->name, strlen(entry->name));
}

static void add_central(struct bytes *to, const struct entry *entry) {
  rt_bytes_u32(to, CENTRAL);
  rt_bytes_u16(to, 20);
  add_entry(to, entry);
  rt_bytes_add(to, "\0\0\0\0\0\0\0\0\0", 10); /* no comment, the first disk, no attributes */
  rt_bytes_u32(to, entry->at);
  rt_bytes_add(to, entry->name, strlen(entry->name));
}

static void add_experiment(struct bytes *to, const struct comet *comet) {
  rt_bytes_add(to, comet->about.data, comet->about.count);
  rt_bytes_print(to, "\"start_time\": %" PRId64 ", \"stop_time\": %" PRId64 ", \"customer_error_reported\": %s, ",
                 comet->began, comet->stopped, comet->failed ? "true" : "false");
  rt_bytes_print(to, "\"customer_error_message\": %s}\n", comet->failed ? "\"an error ended the run\"" : "null");
}

/* All that follows messages.json. */
static void add_page(struct bytes *to, const struct comet *comet) {
  const size_t begin = to->count;
  struct bytes text = {0};
  add_experiment(&text, comet);
  const struct entry experiment = {.name = experiment_name,
                                   .at = (uint32_t)comet->page,
                                   .size = (uint32_t)text.count,
                                   .crc = rt_crc(CRC_OF_ZLIB, 0, text.data, text.count)};
  const struct entry messages = {
      .name = messages_name, .size = (uint32_t)comet->size, .crc = comet->crc, .flags = LATER};
  add_local(to, &experiment);
  rt_bytes_add(to, text.data, text.count);
  to->failed |= text.failed;
  rt_bytes_free(&text);
  const size_t directory = to->count;
  add_central(to, &messages);
  add_central(to, &experiment);
  const size_t end = to->count;
  rt_bytes_u32(to, END);
  rt_bytes_u32(to, 0);
  rt_bytes_u16(to, 2);
  rt_bytes_u16(to, 2);
  rt_bytes_u32(to, (uint32_t)(end - directory));
  rt_bytes_u32(to, (uint32_t)(comet->page + (int64_t)(directory - begin)));
  rt_bytes_u16(to, 0);
}

static int64_t page_after(int64_t bytes) {
  return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool write_at(const struct comet *comet, const void *data, size_t count, int64_t at) {
  for (size_t done = 0; done < count;) {
    const ssize_t written = pwrite(comet->file, (const uint8_t *)data + done, count - done, at + (int64_t)done);
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) done += (size_t)written;
  }
  return true;
}

/* Writes the page, after which nothing follows. */
static bool write_page(const struct comet *comet, struct problem *problem) {
  struct bytes page = {0};
  add_page(&page, comet);
  if (page.failed) return rt_bytes_free(&page), rt_problem(problem, "%s: no memory for what is written", comet->path);
  const int64_t end = comet->page + (int64_t)page.count;
  bool good = write_at(comet, page.data, page.count, comet->page) && ftruncate(comet->file, end) == 0;
  rt_bytes_free(&page);
  return good || failed(comet, problem);
}

/* Moves the page there, where nothing is yet; where that fails, the archive ends as before. */
static bool move_page(struct comet *comet, int64_t to, struct problem *problem) {
  const int64_t from = comet->page, end = lseek(comet->file, 0, SEEK_END);
  comet->page = to;
  if (write_page(comet, problem)) return true;
  comet->page = from;
  const bool cut = ftruncate(comet->file, end) == 0;
  (void)cut; /* nothing more can be done, and the problem is reported */
  return false;
}

/* ---- The beginning of a run ---- */

static void describe(struct comet *comet, const struct tracked *tracked) {
  struct bytes *about = &comet->about;
  rt_bytes_print(about, "{\"offline_id\": \"%s\", \"project_name\": ", tracked->id);
  rt_json_text(about, tracked->project);
  rt_bytes_print(about, ", \"workspace\": null, \"resume_strategy\": \"create\", \"tags\": [");
  for (int i = 0; tracked->program->tracking.tags[i] != NULL && about->count < PAGE / 2; i++) {
    rt_bytes_print(about, i > 0 ? ", " : "");
    rt_json_text(about, tracked->program->tracking.tags[i]);
  }
  rt_bytes_print(about, "], ");
}

struct into {
  struct bytes *lines;
  int64_t time;
};

static void add_param(void *to, const char *name, const char *value) {
  const struct into *into = to;
  rt_bytes_print(into->lines, "{\"type\": \"parameter_msg\", \"payload\": {\"param\": {\"paramName\": ");
  rt_json_text(into->lines, name);
  rt_bytes_print(into->lines, ", \"paramValue\": ");
  rt_json_value(into->lines, value);
  rt_bytes_print(into->lines, ", \"step\": null, \"source\": \"manual\"}, \"local_timestamp\": %" PRId64 "}}\n",
                 into->time);
}

/* The archive as it begins, whole. */
static bool begin(struct comet *comet, const struct tracked *tracked, struct problem *problem) {
  struct bytes file = {0}, lines = {0};
  struct into into = {&lines, comet->began};
  rt_bytes_print(&lines, "{\"type\": \"log_other\", \"payload\": {\"key\": \"Name\", \"value\": ");
  rt_json_text(&lines, tracked->run_name);
  rt_bytes_print(&lines, "}}\n");
  rt_each_key(tracked, add_param, &into);
  comet->size = (int64_t)lines.count;
  comet->crc = rt_crc(CRC_OF_ZLIB, 0, lines.data, lines.count);
  comet->page = page_after(DATA + comet->size);
  add_local(&file, &(struct entry){.name = messages_name, .flags = LATER});
  rt_bytes_add(&file, lines.data, lines.count);
  file.failed |= lines.failed;
  rt_bytes_free(&lines);
  static const uint8_t zeros[PAGE];
  rt_bytes_add(&file, zeros, (size_t)comet->page - file.count);
  add_page(&file, comet);
  return rt_replace_file(comet->path, &file, problem);
}

/* ---- A run that resumes ---- */

/* Finds the page by the archive's end, and what messages.json has. False: it is damaged. */
static bool read_page(struct comet *comet, const uint8_t *bytes, size_t size) {
  if (size < DATA + END_BYTES || rt_bytes_number(bytes, 4) != LOCAL) return false;
  const uint8_t *end = bytes + size - END_BYTES;
  const uint64_t directory = rt_bytes_number(end + 16, 4);
  if (rt_bytes_number(end, 4) != END || directory > size - DIRECTORY ||
      rt_bytes_number(bytes + directory, 4) != CENTRAL)
    return false;
  const uint64_t count = rt_bytes_number(bytes + directory + 20, 4),
                 page = rt_bytes_number(bytes + directory + DIRECTORY - sizeof experiment_name + 1 - 4, 4);
  if (count > page || DATA + count > page || page > directory) return false;
  comet->size = (int64_t)count;
  comet->crc = (uint32_t)rt_bytes_number(bytes + directory + 16, 4);
  comet->page = (int64_t)page;
  return rt_crc(CRC_OF_ZLIB, 0, bytes + DATA, count) == comet->crc;
}

/* Reads the file, and leaves out what is after the step. */
static bool resume(struct comet *comet, int64_t keep, struct problem *problem) {
  static const char cure[] = "remove it, or choose another --project-dir";
  struct mapping mapping;
  if (!rt_map_file(&mapping, comet->file, comet->path, cure, problem)) return false;
  const bool good = read_page(comet, mapping.bytes, mapping.size);
  if (good) {
    comet->size = rt_cut_lines(mapping.bytes + DATA, (size_t)comet->size, before_step, keep);
    comet->crc = rt_crc(CRC_OF_ZLIB, 0, mapping.bytes + DATA, (size_t)comet->size);
  }
  rt_unmap(&mapping);
  if (good) return write_page(comet, problem);
  rt_problem(problem, "%s: is damaged: it is no archive of a run", comet->path);
  return rt_help(problem, "move it to another folder, where nothing of it is lost; the run then begins it anew");
}

static bool open_file(void *state, const struct tracked *tracked, struct problem *problem) {
  struct comet *comet = state;
  char folder[4096], name[64];
  snprintf(name, sizeof name, "%s.zip", tracked->id);
  comet->began = milliseconds(tracked->began);
  comet->stopped = milliseconds(tracked->now);
  describe(comet, tracked);
  if (!rt_join(folder, sizeof folder, tracked->folder, "comet", problem) || !rt_make_folders(folder, problem) ||
      !rt_join(comet->path, sizeof comet->path, folder, name, problem))
    return false;
  if (access(comet->path, F_OK) != 0 && !begin(comet, tracked, problem)) return false;
  comet->file = open(comet->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  comet->is_open = comet->file >= 0;
  if (!comet->is_open) return failed(comet, problem);
  return resume(comet, tracked->keep < 0 ? INT64_MAX : tracked->keep, problem);
}

/* ---- Lines ---- */

/* What is not finite is a text, as JSON has no number for it. */
static void add_scalars(void *state, int64_t step, double now, const struct scalars *scalars) {
  struct comet *comet = state;
  for (int i = 0; i < scalars->count; i++) {
    const struct scalar *scalar = &scalars->items[i];
    const char *quote = isfinite(scalar->value) ? "" : "\"";
    rt_bytes_print(&comet->waiting, "%s%" PRId64 ", \"epoch\": null, \"metricName\": ", before_step, step);
    rt_json_text(&comet->waiting, scalar->name);
    rt_bytes_print(&comet->waiting, ", \"metricValue\": %s", quote);
    rt_json_number(&comet->waiting, scalar);
    rt_bytes_print(&comet->waiting, "%s}, \"local_timestamp\": %" PRId64 "}}\n", quote, milliseconds(now));
  }
  comet->stopped = milliseconds(now);
}

static bool flush(void *state, struct problem *problem) {
  struct comet *comet = state;
  struct bytes *waiting = &comet->waiting;
  const int64_t end = DATA + comet->size + (int64_t)waiting->count;
  if (waiting->failed || comet->about.failed) {
    waiting->failed = false;
    return rt_problem(problem, "%s: no memory for what is written", comet->path);
  }
  if (waiting->count == 0) return true;
  if (end > MOST_DATA) return rt_problem(problem, "%s: cannot be written: it has a GiB of messages", comet->path);
  if (end > comet->page && !move_page(comet, page_after(end + end / 2), problem)) return false;
  if (!write_at(comet, waiting->data, waiting->count, DATA + comet->size)) return failed(comet, problem);
  const int64_t size = comet->size;
  const uint32_t crc = comet->crc;
  comet->size += (int64_t)waiting->count;
  comet->crc = rt_crc(CRC_OF_ZLIB, crc, waiting->data, waiting->count);
  if (write_page(comet, problem)) {
    waiting->count = 0;
    return true;
  }
  comet->size = size;
  comet->crc = crc;
  return false;
}

/* The page moves to the end of the lines, where the archive is as short as it can be. */
static bool finish(struct comet *comet, struct problem *problem) {
  const int64_t end = page_after(DATA + comet->size);
  return end + PAGE <= comet->page ? move_page(comet, end, problem) : write_page(comet, problem);
}

static bool close_file(void *state, double now, enum run_end end, struct problem *problem) {
  struct comet *comet = state;
  bool good = true;
  if (comet->is_open) {
    comet->stopped = milliseconds(now);
    comet->failed = end == RUN_FAILED;
    good = flush(state, problem) && finish(comet, problem);
    close(comet->file);
  }
  rt_bytes_free(&comet->waiting);
  rt_bytes_free(&comet->about);
  return good;
}

const struct accel_sink accel_sink_comet_ml = {.name = "comet_ml",
                                               .bytes = sizeof(struct comet),
                                               .open = open_file,
                                               .scalars = add_scalars,
                                               .flush = flush,
                                               .close = close_file};
