#include "gen/plan/report/traffic.h"

#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/plan/ranks/collectives.h"
#include "gen/plan/ranks/sequence.h"
#include "gen/program/target.h"

static long long ranks_of(const struct program *program, const struct collective *collective) {
  return (long long)ranks_along(program, collective->axis);
}

/* Collectives of a step along an axis, or along all (AXES). */
struct sum {
  int64_t bytes;
  int times;
};

static struct sum sum_along(const struct program *program, int axis) {
  struct sum sum = {0};
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *collective = &program->ranks.collectives.items[i];
    if (collective->until > 0 || (axis != AXES && (int)collective->axis != axis)) continue;
    sum.bytes += collective_bytes(collective);
    sum.times += (int)collective->times;
  }
  return sum;
}

static const char *how_often(const struct program *program) {
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *collective = &program->ranks.collectives.items[i];
    if (collective->until == 0 && collective->every > 0)
      return arena_printf(program->arena, "each %lld steps", (long long)collective->every);
  }
  return program->kind == PROGRAM_GENERATE ? "a token" : "a step";
}

/* The sums of each axis, where there are several, a few on a line. */
static void add_axes(struct text *text, const struct program *program, struct sum all) {
  enum { ON_A_LINE = 3 };
  int count = 0;
  for (int axis = 0; axis < AXES; axis++) {
    const struct sum sum = sum_along(program, axis);
    if (sum.times == 0 || sum.times == all.times) continue;
    if (count % ON_A_LINE == 0) text_puts(text, count > 0 ? ",\n          " : "          ");
    text_printf(text, "%s%s in %d over %s", count % ON_A_LINE > 0 ? ", " : "", bytes_text(text->arena, sum.bytes),
                sum.times, job_axis_names[axis]);
    count++;
  }
  if (count > 0) text_puts(text, "\n");
}

/* Of devices that one process runs a module on. */
static const char *devices_traffic(const struct program *program, int devices) {
  return arena_printf(program->arena, "traffic   %s of gradients a step, added up over %d devices by XLA\n",
                      bytes_text(program->arena, program->figures.bytes.gradients), devices);
}

const char *traffic_summary(const struct program *program) {
  struct text text = text_in(program->arena);
  const int devices = target_devices(program->job);
  const struct sum sum = sum_along(program, AXES);
  if (devices > 1) return devices_traffic(program, devices);
  if (sum.bytes == 0) return "traffic   none (1 rank)\n";
  text_printf(&text, "traffic   %s%s %s from each of %lld ranks, in %d collectives\n",
              program->ranks.pipeline.ranks > 0 ? "at most " : "", bytes_text(program->arena, sum.bytes),
              how_often(program), (long long)program->job->devices.ranks, sum.times);
  add_axes(&text, program, sum);
  return text_string(&text);
}

/* The statement of the backward after which it begins. */
static const char *beginning(const struct program *program, const struct collective *collective) {
  return collective->after != NULL ? step_label(program, collective->after, collective->iteration) : NULL;
}

/* One collective, human-readable. */
static const char *line_of(const struct program *program, const struct collective_list *list, int number) {
  struct text text = text_in(program->arena);
  const struct collective *c = &list->items[number];
  text_printf(&text, "%s %s%lld bytes over %s (%lld ranks): %s", collective_name(c->kind), c->by_data ? "at most " : "",
              (long long)(c->count * c->width), job_axis_names[c->axis], ranks_of(program, c), c->what);
  if (c->after != NULL) text_printf(&text, ", after %s", beginning(program, c));
  if (c->chained) text_printf(&text, ", after %d", number);
  if (c->overlaps != NULL) text_printf(&text, ", overlaps %s", c->overlaps);
  if (c->until > 0) text_printf(&text, ", in the first %lld steps", (long long)c->until);
  if (c->from > 0) text_printf(&text, ", from step %lld on", (long long)c->from + 1);
  if (c->every > 0) text_printf(&text, ", each %lld steps", (long long)c->every);
  if (c->times > 1) text_printf(&text, ", %lld times", (long long)c->times);
  return text_string(&text);
}

/* `period` lines, which follow again directly, so that `again` lines more are the same. */
struct repetition {
  int period, again;
};

/* That which leaves out most of the lines from `at` on. */
static struct repetition find_repetition(const char *const *lines, int count, int at) {
  enum { MOST = 16 };
  struct repetition best = {.period = 1};
  for (int period = 1; period <= MOST; period++) {
    int end = at + period;
    while (end < count && strcmp(lines[end], lines[end - period]) == 0) end++;
    int again = (end - at - period) / period * period;
    if (again > best.again && again > 1) best = (struct repetition){period, again};
  }
  return best;
}

/* The collectives of a layer are alike in all layers: those that come again are one line. */
static const char *list_text(const struct program *program, const struct collective_list *list) {
  const int count = list->count;
  struct text text = text_in(program->arena);
  const char **lines = arena_alloc(program->arena, ((size_t)count + 1) * sizeof *lines);
  for (int i = 0; i < count; i++) lines[i] = line_of(program, list, i);
  for (int i = 0; i < count;) {
    const struct repetition repetition = find_repetition(lines, count, i);
    const int end = i + repetition.period;
    for (int k = i; k < end; k++) text_printf(&text, "  %3d  %s\n", k + 1, lines[k]);
    if (repetition.again > 0 && repetition.period > 1)
      text_printf(&text, "       %d to %d again, to %d\n", i + 1, end, end + repetition.again);
    else if (repetition.again > 0)
      text_printf(&text, "       %d again, to %d\n", end, end + repetition.again);
    i = end + repetition.again;
  }
  return text_string(&text);
}

/* Of each rank along the axis of layers, but for those that have what one before them has. */
static const char *stages_traffic(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct text text = text_in(program->arena);
  const char **lists = arena_alloc(program->arena, (size_t)pipeline->ranks * sizeof *lists);
  for (int k = 0; k < pipeline->ranks; k++) {
    int same = 0;
    lists[k] = list_text(program, &pipeline->collectives[k]);
    while (strcmp(lists[same], lists[k]) != 0) same++;
    text_printf(&text, "  %s %d", pipeline->stages > pipeline->ranks ? "rank" : "stage", k);
    if (same < k)
      text_printf(&text, " as %d\n", same);
    else
      text_printf(&text, "\n%s", lists[k]);
  }
  return text_string(&text);
}

const char *traffic_text(const struct program *program) {
  if (program->ranks.pipeline.ranks > 0) return stages_traffic(program);
  return list_text(program, &program->ranks.collectives);
}

json_t *traffic_json(const struct program *program, const struct collective_list *collectives) {
  json_t *list = json_array();
  for (int i = 0; i < collectives->count; i++) {
    const struct collective *c = &collectives->items[i];
    json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:s*, s:s*, s:b}", "kind",
                                          collective_name(c->kind), "axis", job_axis_names[c->axis], "ranks",
                                          (json_int_t)ranks_of(program, c), "what", c->what, "bytes",
                                          (json_int_t)(c->count * c->width), "times", (json_int_t)c->times, "from",
                                          (json_int_t)c->from, "until", (json_int_t)c->until, "every",
                                          (json_int_t)(c->every > 0 ? c->every : 1), "after", beginning(program, c),
                                          "overlaps", c->overlaps, "chained", c->chained));
  }
  return list;
}
