/* metrics.jsonl, an object a line. */
#include "runtime/files/files.h"
#include "runtime/tracking/journal.h"
#include "runtime/tracking/json.h"
#include "runtime/tracking/sink.h"

#include <inttypes.h>
#include <math.h>

void rt_jsonl_line(struct bytes *line, int64_t step, const struct scalars *scalars) {
  rt_bytes_print(line, "{\"step\": %" PRId64, step);
  for (int i = 0; i < scalars->count; i++) {
    char number[48] = "null"; /* JSON has no other word for it */
    const struct scalar *scalar = &scalars->items[i];
    if (isfinite(scalar->value)) snprintf(number, sizeof number, scalar->format, scalar->value);
    rt_bytes_print(line, ", ");
    rt_json_text(line, scalar->name);
    rt_bytes_print(line, ": %s", number);
  }
  rt_bytes_print(line, "}\n");
}

static bool cut(const uint8_t *bytes, size_t size, int64_t keep, int64_t *whole) {
  *whole = rt_cut_lines(bytes, size, "{\"step\": ", keep);
  return true;
}

static bool open_file(void *state, const struct tracked *tracked, struct problem *problem) {
  char path[4096];
  return rt_join(path, sizeof path, tracked->project_dir, "metrics.jsonl", problem) &&
         rt_journal_open(state, path, tracked->keep, cut, problem);
}

static void add_scalars(void *state, int64_t step, double now, const struct scalars *scalars) {
  struct bytes line = {0};
  (void)now;
  rt_jsonl_line(&line, step, scalars);
  rt_journal_add(state, &line);
}

static bool flush(void *state, struct problem *problem) {
  return rt_journal_flush(state, problem);
}

static bool close_file(void *state, double now, enum run_end end, struct problem *problem) {
  (void)now;
  (void)end;
  return rt_journal_close(state, problem);
}

const char *rt_jsonl_path(const void *state) {
  return ((const struct journal *)state)->path;
}

int rt_jsonl_file(const void *state) {
  return ((const struct journal *)state)->file;
}

const struct accel_sink rt_sink_jsonl = {.name = "jsonl",
                                         .bytes = sizeof(struct journal),
                                         .open = open_file,
                                         .cut = cut,
                                         .scalars = add_scalars,
                                         .flush = flush,
                                         .close = close_file};
