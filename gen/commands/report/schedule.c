/* The schedule of a pipeline, and the memory of its ranks, of a plan's page. */
#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/report/plan_page.h"
#include "gen/plan/ranks/stage_bytes.h"
#include "gen/plan/report/occupancy.h"
#include "gen/plan/report/stage_times.h"

enum { ROW = 24, LEAST_PART = 15, MOST_PART = 34, WIDTH = 1120, MOST_LABELLED = 160, MOST_ACTIONS = 20000 };

/* ---- Memory ---- */

struct part {
  enum occupied kind;
  int64_t bytes;
};

/* The parts of a rank's memory, from the left; `most`: that of the rank that has most. */
static struct jinja_value stage_value(struct arena *arena, const struct part *parts, int count, int64_t most) {
  struct jinja_value row = jinja_map(arena), cells = jinja_list(arena), boxes = jinja_list(arena);
  int64_t at = 0;
  for (int i = 0; i < count; i++) {
    struct jinja_value box = jinja_map(arena);
    const double left = 100.0 * (double)at / (double)most, width = 100.0 * (double)parts[i].bytes / (double)most;
    jinja_push(arena, cells, jinja_string(arena, bytes_text(arena, parts[i].bytes)));
    jinja_set(arena, box, "kind", jinja_int(parts[i].kind));
    jinja_set(arena, box, "path",
              jinja_string(arena, arena_printf(arena, "M%.4g 0h%.4gv1h-%.4gz", left, width, width)));
    if (parts[i].bytes > 0) jinja_push(arena, boxes, box);
    at += parts[i].bytes;
  }
  jinja_set(arena, row, "cells", cells);
  jinja_set(arena, row, "boxes", boxes);
  jinja_set(arena, row, "bytes", jinja_string(arena, bytes_text(arena, at)));
  return row;
}

enum { PARTS = 5 };

/* Averages come last, which few jobs have. */
static void set_parts(const struct program *program, int rank, struct part parts[PARTS]) {
  const struct stage_bytes bytes = stage_bytes(program, rank);
  parts[0] = (struct part){OCCUPIED_WEIGHTS, bytes.weights};
  parts[1] = (struct part){OCCUPIED_GRADIENTS, bytes.gradients};
  parts[2] = (struct part){OCCUPIED_OPTIMIZER, bytes.optimizer};
  parts[3] = (struct part){OCCUPIED_ACTIVATIONS, bytes.activations};
  parts[4] = (struct part){OCCUPIED_AVERAGES, bytes.averages};
}

static int64_t most_of_a_rank(const struct program *program) {
  struct part parts[PARTS];
  int64_t most = 1;
  for (int k = 0; k < program->ranks.pipeline.ranks; k++) {
    int64_t bytes = 0;
    set_parts(program, k, parts);
    for (int i = 0; i < PARTS; i++) bytes += parts[i].bytes;
    if (bytes > most) most = bytes;
  }
  return most;
}

static struct jinja_value stages_of(struct arena *arena, const struct program *program) {
  struct jinja_value stages = jinja_map(arena), rows = jinja_list(arena), heads = jinja_list(arena);
  struct part parts[PARTS];
  const int64_t most = most_of_a_rank(program);
  const int count = program->figures.bytes.averages > 0 ? PARTS : PARTS - 1;
  for (int k = 0; k < program->ranks.pipeline.ranks; k++) {
    set_parts(program, k, parts);
    jinja_push(arena, rows, stage_value(arena, parts, count, most));
  }
  for (int i = 0; i < count; i++) {
    struct jinja_value head = jinja_map(arena);
    jinja_set(arena, head, "kind", jinja_int(parts[i].kind));
    jinja_set(arena, head, "name", jinja_string(arena, occupied_names[parts[i].kind]));
    jinja_push(arena, heads, head);
  }
  jinja_set(arena, stages, "heads", heads);
  jinja_set(arena, stages, "rows", rows);
  return stages;
}

/* ---- The picture ---- */

struct drawing {
  const struct stage_times *times;
  const struct schedule *schedule;
  double part; /* how wide a part of a step is */
  bool labelled;
};

/* Those of a rank's later stages are darker, as far as the numbers on them can be read. */
static int shade_of(const struct drawing *drawing, const struct timed_action *action) {
  const int64_t chunk = action->work.stage / drawing->schedule->ranks;
  return chunk < 2 ? 2 + (int)chunk : 4;
}

static void add_label(struct text *out, const struct drawing *drawing, const struct timed_action *action) {
  text_printf(out, "<text x=\"%.6g\" y=\"%d\">%lld</text>", drawing->part * (double)(action->start + action->end) / 2,
              (int)action->rank * ROW + ROW / 2, (long long)action->work.micro_batch);
}

static void add_action(struct text *out, const struct drawing *drawing, const struct timed_action *action) {
  const double left = drawing->part * (double)action->start,
               width = drawing->part * (double)(action->end - action->start);
  text_printf(out, "<path class=\"a%d q%d\" d=\"M%.6g %dh%.6gv%dh-%.6gz\">", action->kind, shade_of(drawing, action),
              left, (int)action->rank * ROW + 1, width, ROW - 2, width);
  text_printf(out, "<title>%s of micro-batch %lld, stage %lld</title></path>", action_names[action->kind],
              (long long)action->work.micro_batch, (long long)action->work.stage);
  if (drawing->labelled) add_label(out, drawing, action);
  text_puts(out, "\n");
}

static const char *paths_of(struct arena *arena, const struct drawing *drawing) {
  struct text out = text_in(arena);
  for (int64_t i = 0; i < drawing->times->count; i++) add_action(&out, drawing, &drawing->times->actions[i]);
  return text_string(&out);
}

/* {"parts": N, "ranks": [[[kind, stage, micro-batch, start, end], ...], ...]} */
static const char *data_of(struct arena *arena, const struct stage_times *times) {
  struct text out = text_in(arena);
  text_printf(&out, "{\"parts\":%lld,\"ranks\":[", (long long)times->parts);
  for (int64_t i = 0; i < times->count; i++) {
    const struct timed_action *action = &times->actions[i];
    const bool begins = i == 0 || action->rank != times->actions[i - 1].rank;
    text_puts(&out, !begins ? ",\n" : i == 0 ? "[\n" : "],\n[\n");
    text_printf(&out, "[\"%s\",%lld,%lld,%lld,%lld]", action_names[action->kind], (long long)action->work.stage,
                (long long)action->work.micro_batch, (long long)action->start, (long long)action->end);
  }
  text_puts(&out, "]]}");
  return text_string(&out);
}

static const char *idle_text(struct arena *arena, const struct stage_times *times) {
  int64_t busy = 0;
  const double all = (double)(times->parts * times->ranks);
  for (int64_t i = 0; i < times->count; i++) busy += times->actions[i].end - times->actions[i].start;
  return arena_printf(arena, "%.1f", 100 * (all - (double)busy) / all);
}

static void set_picture(struct arena *arena, struct jinja_value value, const struct schedule *schedule) {
  const struct stage_times times = stage_times_of(arena, schedule);
  double part = (double)WIDTH / (double)times.parts;
  if (part < LEAST_PART) part = LEAST_PART;
  if (part > MOST_PART) part = MOST_PART;
  const struct drawing drawing = {&times, schedule, part, times.parts <= MOST_LABELLED};
  const char *width = arena_printf(arena, "%.6g", part * (double)times.parts);
  jinja_set(arena, value, "parts", jinja_int(times.parts));
  jinja_set(arena, value, "labelled", jinja_bool(drawing.labelled));
  jinja_set(arena, value, "idle", jinja_string(arena, idle_text(arena, &times)));
  jinja_set(arena, value, "width", jinja_string(arena, width));
  jinja_set(arena, value, "height", jinja_int(schedule->ranks * ROW));
  jinja_set(arena, value, "paths", jinja_string(arena, paths_of(arena, &drawing)));
  jinja_set(arena, value, "data", jinja_string(arena, data_of(arena, &times)));
}

static struct jinja_value schedule_value(struct arena *arena, const struct schedule *schedule) {
  struct jinja_value value = jinja_map(arena);
  const int64_t kinds = schedule->defers ? ACTIONS : ACTIONS - 1;
  const int64_t actions = schedule->ranks * schedule->chunks * schedule->micro_batches * kinds;
  jinja_set(arena, value, "ranks", jinja_int(schedule->ranks));
  jinja_set(arena, value, "chunks", jinja_int(schedule->chunks));
  jinja_set(arena, value, "micro_batches", jinja_int(schedule->micro_batches));
  jinja_set(arena, value, "defers", jinja_bool(schedule->defers));
  jinja_set(arena, value, "actions", jinja_int(actions));
  jinja_set(arena, value, "drawn", jinja_bool(actions <= MOST_ACTIONS));
  if (actions <= MOST_ACTIONS) set_picture(arena, value, schedule);
  return value;
}

void page_add_schedule(struct arena *arena, struct jinja_value page, struct program *program) {
  const bool staged = program->ranks.pipeline.stages > 0 && program->kind == PROGRAM_TRAIN;
  jinja_set(arena, page, "stages", staged ? stages_of(arena, program) : jinja_none());
  jinja_set(arena, page, "schedule", staged ? schedule_value(arena, &program->ranks.pipeline.schedule) : jinja_none());
}
