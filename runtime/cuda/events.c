#include "runtime/cuda/events.h"
#include "runtime/files/files.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"
#include "runtime/report/intervals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rt_events_add(struct device_events *events, struct device_event event) {
  if (events->count == events->capacity) {
    size_t capacity = events->capacity > 0 ? 2 * events->capacity : 4096;
    struct device_event *items = realloc(events->items, capacity * sizeof *items);
    if (items == NULL) {
      free(event.name);
      events->lost = true;
      return;
    }
    events->items = items;
    events->capacity = capacity;
  }
  events->items[events->count++] = event;
}

void rt_events_free(struct device_events *events) {
  for (size_t i = 0; i < events->count; i++) free(events->items[i].name);
  free(events->items);
  *events = (struct device_events){0};
}

/* ---- Names ---- */

/* Of the C++ runtime, with which every program that has kernels is linked (Itanium C++ ABI, 3.4). */
char *__cxa_demangle(const char *symbol, char *buffer, size_t *length, int *status);

/* Up to the arguments, without a result's type and the program's namespace: "void device::f<4>(int)" is "f<4>". */
char *rt_kernel_name(const char *symbol) {
  int status;
  char *whole = __cxa_demangle(symbol, NULL, NULL, &status);
  const char *text = whole != NULL ? whole : symbol;
  if (strncmp(text, "void ", 5) == 0) text += 5;
  if (strncmp(text, "device::", 8) == 0) text += 8;
  size_t length = strcspn(text, "(");
  char *name = strndup(text, length > 0 ? length : strlen(text));
  for (char *at = name; at != NULL && *at != '\0'; at++)
    if (*at == '"' || *at == '\\' || (unsigned char)*at < ' ') *at = '_'; /* so that a trace is JSON */
  free(whole);
  return name;
}

static const char *name_of(const struct device_event *event) {
  return event->part != NULL ? event->part->name : event->name != NULL ? event->name : "?";
}

/* ---- The table ---- */

struct row {
  const char *name;
  const struct accel_measured *part;
  int64_t interval, calls;
  uint64_t time;
};

static int by_name(const void *a, const void *b) {
  const struct row *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order != 0 ? order : (x->interval > y->interval) - (x->interval < y->interval);
}

static int by_time(const void *a, const void *b) {
  uint64_t x = ((const struct row *)a)->time, y = ((const struct row *)b)->time;
  return x != y ? (x < y ? 1 : -1) : by_name(a, b);
}

/* Neighbours of one name become one row, and what a part runs in one interval one call of it; gives how many rows are
 * left.
 */
static size_t joined(struct row *rows, size_t count) {
  size_t left = 0;
  for (size_t i = 0; i < count; i++) {
    if (left > 0 && strcmp(rows[left - 1].name, rows[i].name) == 0) {
      rows[left - 1].calls += rows[i].part == NULL || rows[i].interval != rows[left - 1].interval;
      rows[left - 1].time += rows[i].time;
      rows[left - 1].interval = rows[i].interval;
    } else {
      rows[left++] = rows[i];
    }
  }
  return left;
}

static void print_row(const struct row *row, double steps, double whole, bool with_flops) {
  double time = 1e-6 * (double)row->time, calls = (double)row->calls;
  printf("%10.1f%10.3f%7.1f", calls / steps, time / steps, whole > 0 ? 100 * time / whole : 0);
  if (with_flops) rt_print_rate(row->part != NULL ? row->part->flops * calls : 0, 1e-3 * time);
  if (with_flops) rt_print_rate(row->part != NULL ? row->part->bytes * calls : 0, 1e-3 * time);
  printf("   %s\n", row->name);
}

void rt_events_print(const struct device_events *events, bool with_flops) {
  struct row *rows = calloc(events->count + 1, sizeof *rows);
  size_t count = 0;
  double steps = 0, whole = 0;
  for (size_t i = 0; rows != NULL && i < events->count; i++) {
    const struct device_event *event = &events->items[i];
    if (!event->is_step)
      rows[count++] = (struct row){name_of(event), event->part, event->interval, 1, event->end - event->start};
    if (event->is_step) steps++, whole += 1e-6 * (double)(event->end - event->start);
  }
  if (steps > 0) {
    qsort(rows, count, sizeof *rows, by_name);
    count = joined(rows, count);
    qsort(rows, count, sizeof *rows, by_time);
    printf("profile of %.0f steps, %.3f ms each\n     calls        ms      %%%s   on the device\n", steps,
           whole / steps, with_flops ? "   GFLOP/s      GB/s" : "");
  }
  for (size_t i = 0; steps > 0 && i < count; i++) print_row(&rows[i], steps, whole, with_flops);
  if (events->lost || rows == NULL) rt_warn("there was no memory for all of the profile");
  free(rows);
}

/* ---- The trace ---- */

/* Steps stand in row 0, streams in rows of their own. */
static void print_event(FILE *out, const struct device_event *event, uint64_t first) {
  unsigned row = event->is_step ? 0 : event->stream + 1;
  double start = 1e-3 * (double)(event->start - first), length = 1e-3 * (double)(event->end - event->start);
  if (event->is_step)
    fprintf(out, ",\n{\"name\": \"step %" PRId64 "\", \"cat\": \"step\"", event->step + 1);
  else
    fprintf(out, ",\n{\"name\": \"%s\", \"cat\": \"%s\"", event->name != NULL ? event->name : "?",
            event->bytes > 0 ? "memory" : "kernel");
  fprintf(out, ", \"ph\": \"X\", \"pid\": %d, \"tid\": %u, \"ts\": %.3f, \"dur\": %.3f", rt_world()->rank, row, start,
          length);
  if (event->bytes > 0)
    fprintf(out, ", \"args\": {\"bytes\": %" PRIu64 "}", event->bytes);
  else if (event->part != NULL)
    fprintf(out, ", \"args\": {\"part\": \"%s\", \"flop\": %.0f, \"bytes\": %.0f}", event->part->name,
            event->part->flops, event->part->bytes);
  fputs("}", out);
}

static void print_all(FILE *out, const struct device_events *events) {
  int rank = rt_world()->rank;
  uint64_t first = events->count > 0 ? events->items[0].start : 0;
  for (size_t i = 0; i < events->count; i++)
    if (events->items[i].start < first) first = events->items[i].start;
  fprintf(out,
          "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d,"
          " \"args\": {\"name\": \"rank %d\"}},\n{\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": %d, \"tid\": 0,"
          " \"args\": {\"name\": \"steps\"}}",
          rank, rank, rank);
  for (size_t i = 0; i < events->count; i++) print_event(out, &events->items[i], first);
  fputs("\n]}\n", out);
}

bool rt_events_write(const struct device_events *events, const char *folder, struct problem *problem) {
  char path[4096], name[64];
  char *text = NULL;
  size_t length = 0;
  if (folder == NULL) return true;
  snprintf(name, sizeof name, "profile_%d.json", rt_world()->rank);
  if (!rt_make_folders(folder, problem) || !rt_join(path, sizeof path, folder, name, problem)) return false;
  FILE *out = open_memstream(&text, &length);
  if (out == NULL) return rt_problem(problem, "no memory for the profile's trace");
  print_all(out, events);
  bool good = fclose(out) == 0 || rt_problem(problem, "no memory for the profile's trace");
  good = good && rt_write_file(path, BY_RENAME, text, length, NULL, problem);
  free(text);
  return good;
}
