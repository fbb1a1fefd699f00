#include "runtime/report/intervals.h"

#include "runtime/files/files.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The table ---- */

struct row {
  const struct accel_measured *part; /* NULL: none of them */
  int64_t calls;
  double seconds;
};

static int by_seconds(const void *a, const void *b) {
  double x = ((const struct row *)a)->seconds, y = ((const struct row *)b)->seconds;
  return (x < y) - (x > y);
}

void rt_print_rate(double work, double seconds) {
  if (work > 0 && seconds > 0)
    printf("%10.1f", work / seconds / 1e9);
  else
    printf("%10s", "");
}

static void print_row(const struct accel_profile *profile, const struct row *row, int64_t steps, double whole) {
  double calls = row->part != NULL ? (double)row->calls : 0;
  printf("%10.1f%10.3f%7.1f", (double)row->calls / (double)steps, 1e3 * row->seconds / (double)steps,
         whole > 0 ? 100 * row->seconds / whole : 0);
  if (profile->with_flops) {
    rt_print_rate(calls > 0 ? row->part->flops * calls : 0, row->seconds);
    rt_print_rate(calls > 0 ? row->part->bytes * calls : 0, row->seconds);
  }
  printf("   %s\n", row->part != NULL ? row->part->name : "between parts");
}

void rt_intervals_print(const struct accel_program *program) {
  const struct accel_profile *profile = &program->profile;
  const struct intervals *intervals = rt_intervals();
  struct row *rows = calloc((size_t)profile->n_parts + 1, sizeof *rows);
  int64_t steps = 0;
  double whole = 0;
  for (int i = 0; rows != NULL && i < profile->n_parts; i++) rows[i].part = &profile->parts[i];
  for (size_t i = 0; rows != NULL && i < intervals->count; i++) {
    const struct interval *interval = &intervals->items[i];
    if (interval->part == PART_STEP) {
      steps++;
      whole += interval->seconds;
      continue;
    }
    struct row *row = &rows[interval->part == PART_REST ? profile->n_parts : interval->part];
    row->calls++;
    row->seconds += interval->seconds;
  }
  if (steps > 0) {
    qsort(rows, (size_t)profile->n_parts + 1, sizeof *rows, by_seconds);
    printf("profile of %" PRId64 " steps, %.3f ms each\n     calls        ms      %%%s   part\n", steps,
           1e3 * whole / (double)steps, profile->with_flops ? "   GFLOP/s      GB/s" : "");
    for (int i = 0; i <= profile->n_parts; i++)
      if (rows[i].calls > 0) print_row(profile, &rows[i], steps, whole);
  }
  if (intervals->lost) rt_warn("there was no memory for all of the profile");
  free(rows);
}

/* ---- The trace ---- */

static void print_event(FILE *out, const struct accel_program *program, const struct interval *interval) {
  const struct accel_measured *part = interval->part >= 0 ? &program->profile.parts[interval->part] : NULL;
  if (interval->part == PART_STEP)
    fprintf(out, ",\n{\"name\": \"step %" PRId64 "\"", interval->step + 1);
  else
    fprintf(out, ",\n{\"name\": \"%s\"", part != NULL ? part->name : "between parts");
  fprintf(out, ", \"cat\": \"%s\", \"ph\": \"X\", \"pid\": %d, \"tid\": 0, \"ts\": %.3f, \"dur\": %.3f",
          interval->part == PART_STEP ? "step" : "part", rt_world()->rank, 1e6 * interval->start,
          1e6 * interval->seconds);
  if (program->profile.with_flops && part != NULL)
    fprintf(out, ", \"args\": {\"flop\": %.0f, \"bytes\": %.0f}", part->flops, part->bytes);
  fputs("}", out);
}

bool rt_intervals_write(const struct accel_program *program, struct problem *problem) {
  const char *folder = program->profile.trace_folder;
  const struct intervals *intervals = rt_intervals();
  char path[4096], name[64];
  if (folder == NULL || intervals->capacity == 0) return true;
  snprintf(name, sizeof name, "profile_%d.json", rt_world()->rank);
  if (!rt_make_folders(folder, problem) || !rt_join(path, sizeof path, folder, name, problem)) return false;
  char *text = NULL;
  size_t length = 0;
  FILE *out = open_memstream(&text, &length);
  if (out == NULL) return rt_problem(problem, "no memory for the profile's trace");
  fprintf(out,
          "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d,"
          " \"args\": {\"name\": \"rank %d\"}}",
          rt_world()->rank, rt_world()->rank);
  for (size_t i = 0; i < intervals->count; i++) print_event(out, program, &intervals->items[i]);
  fputs("\n]}\n", out);
  bool good = fclose(out) == 0 || rt_problem(problem, "no memory for the profile's trace");
  good = good && rt_write_file(path, BY_RENAME, text, length, NULL, problem);
  free(text);
  return good;
}
