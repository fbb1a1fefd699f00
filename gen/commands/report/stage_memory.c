/* The memory of the ranks of a pipeline over a step, as pictures. */
#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/report/memory.h"
#include "gen/plan/report/stage_occupancy.h"
#include "gen/report/data.h"

enum { MOST_DRAWN = 16, MOST_ACTIONS = 20000 };

/* A square of 1000 by 1000 for each rank: of all parts, and of the bytes of the rank that has most. */
static const char *paths_of(struct arena *arena, const struct stage_occupancy *of, int64_t parts, int64_t most) {
  struct text out = text_in(arena);
  for (int i = 0; i < of->occupants.count; i++) {
    const struct occupant *occupant = &of->occupants.items[i];
    const double left = 1000.0 * (double)occupant->first / (double)parts,
                 right = 1000.0 * (double)occupant->last / (double)parts;
    const double bottom = 1000 - 1000.0 * (double)occupant->at / (double)most,
                 height = 1000.0 * (double)occupant->bytes / (double)most;
    text_printf(&out, "<path class=\"fill m%d\" d=\"M%.6g %.6gV%.6gH%.6gV%.6gz\"><title>%s, %s</title></path>\n",
                occupant->kind, left, bottom, bottom - height, right, bottom, occupant->name,
                bytes_text(arena, occupant->bytes));
  }
  return text_string(&out);
}

static bool is_throughout(const struct occupant *occupant, int64_t parts) {
  return occupant->first == 0 && occupant->last == parts;
}

/* The most bytes at one time of what comes and goes; they begin to be the most where one begins. */
static int64_t most_in_use(const struct stage_occupancy *of, int64_t parts) {
  int64_t most = 0;
  for (int i = 0; i < of->occupants.count; i++) {
    const struct occupant *begins = &of->occupants.items[i];
    int64_t bytes = 0;
    for (int k = 0; k < of->occupants.count; k++) {
      const struct occupant *other = &of->occupants.items[k];
      const bool there = other->first <= begins->first && begins->first < other->last;
      if (there && !is_throughout(other, parts)) bytes += other->bytes;
    }
    if (bytes > most) most = bytes;
  }
  return most;
}

static int64_t bytes_throughout(const struct stage_occupancy *of, int64_t parts) {
  int64_t bytes = 0;
  for (int i = 0; i < of->occupants.count; i++)
    if (is_throughout(&of->occupants.items[i], parts)) bytes += of->occupants.items[i].bytes;
  return bytes;
}

static struct jinja_value rank_value(struct arena *arena, const struct stage_occupancy *of, int64_t parts,
                                     int64_t most) {
  struct jinja_value value = jinja_map(arena);
  jinja_set(arena, value, "bytes", jinja_string(arena, bytes_text(arena, of->total)));
  jinja_set(arena, value, "whole", jinja_string(arena, bytes_text(arena, bytes_throughout(of, parts))));
  jinja_set(arena, value, "most", jinja_string(arena, bytes_text(arena, most_in_use(of, parts))));
  jinja_set(arena, value, "paths", jinja_string(arena, paths_of(arena, of, parts, most)));
  return value;
}

static struct jinja_value kinds_of(struct arena *arena, const struct stage_occupancy *all, int ranks) {
  struct jinja_value list = jinja_list(arena);
  for (int kind = 0; kind < OCCUPIED_KINDS; kind++) {
    bool any = false;
    for (int k = 0; k < ranks; k++)
      for (int i = 0; i < all[k].occupants.count; i++) any |= all[k].occupants.items[i].kind == (enum occupied)kind;
    struct jinja_value value = jinja_map(arena);
    jinja_set(arena, value, "kind", jinja_int(kind));
    jinja_set(arena, value, "name", jinja_string(arena, occupied_names[kind]));
    if (any) jinja_push(arena, list, value);
  }
  return list;
}

/* {"parts": N, "ranks": [{"bytes": N, "occupants": [[name, kind, at, bytes, first, last], ...]}, ...]} */
static const char *data_of(struct arena *arena, const struct stage_occupancy *all, int ranks, int64_t parts) {
  struct text out = text_in(arena);
  text_printf(&out, "{\"parts\":%lld,\"ranks\":[", (long long)parts);
  for (int k = 0; k < ranks; k++) {
    text_printf(&out, "%s{\"bytes\":%lld,\"occupants\":[", k > 0 ? ",\n" : "", (long long)all[k].total);
    for (int i = 0; i < all[k].occupants.count; i++) {
      const struct occupant *occupant = &all[k].occupants.items[i];
      text_puts(&out, i > 0 ? ",\n[" : "\n[");
      data_text(&out, occupant->name);
      text_printf(&out, ",\"%s\",%lld,%lld,%lld,%lld]", occupied_names[occupant->kind], (long long)occupant->at,
                  (long long)occupant->bytes, (long long)occupant->first, (long long)occupant->last);
    }
    text_puts(&out, "]}");
  }
  text_puts(&out, "]}");
  return text_string(&out);
}

static void set_pictures(struct arena *arena, struct jinja_value value, struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  const struct stage_times times = stage_times_of(arena, &pipeline->schedule);
  const struct stage_occupancy *all = stage_occupancies_of(program, &times);
  struct jinja_value ranks = jinja_list(arena), rows = jinja_list(arena);
  int64_t most = 1;
  for (int k = 0; k < pipeline->ranks; k++)
    if (all[k].total > most) most = all[k].total;
  for (int k = 0; k < pipeline->ranks; k++) {
    struct jinja_value rank = rank_value(arena, &all[k], times.parts, most);
    if (k < MOST_DRAWN) jinja_push(arena, ranks, rank);
    jinja_push(arena, rows, rank);
  }
  jinja_set(arena, value, "bytes", jinja_string(arena, bytes_text(arena, most)));
  jinja_set(arena, value, "parts", jinja_int(times.parts));
  jinja_set(arena, value, "kinds", kinds_of(arena, all, pipeline->ranks));
  jinja_set(arena, value, "ranks", ranks);
  jinja_set(arena, value, "rows", rows);
  jinja_set(arena, value, "left_out", jinja_int(pipeline->ranks > MOST_DRAWN ? pipeline->ranks - MOST_DRAWN : 0));
  jinja_set(arena, value, "data", jinja_string(arena, data_of(arena, all, pipeline->ranks, times.parts)));
}

struct jinja_value memory_of_stages(struct arena *arena, struct program *program) {
  const struct schedule *schedule = &program->ranks.pipeline.schedule;
  struct jinja_value value = jinja_map(arena);
  const int64_t kinds = schedule->defers ? ACTIONS : ACTIONS - 1;
  const bool drawn = schedule->ranks * schedule->chunks * schedule->micro_batches * kinds <= MOST_ACTIONS;
  jinja_set(arena, value, "staged", jinja_bool(true));
  jinja_set(arena, value, "drawn", jinja_bool(drawn));
  if (drawn) set_pictures(arena, value, program);
  return value;
}
