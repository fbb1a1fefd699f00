#include "gen/commands/report/memory.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/generate/compilation.h"
#include "gen/plan/report/occupancy.h"
#include "gen/report/data.h"
#include "runtime/base/terminal.h"

enum { MOST_NAMED = 600 };

/* ---- The picture: a square of 1000 by 1000, address 0 at its bottom ---- */

static double x_of(const struct occupancy *occupancy, int64_t statement) {
  return 1000.0 * (double)statement / (double)(occupancy->forward + occupancy->backward + 1);
}

static double height_of(const struct occupancy *occupancy, int64_t bytes) {
  return 1000.0 * (double)bytes / (double)occupancy->total;
}

static void add_box(struct text *out, const struct occupancy *occupancy, const struct occupant *occupant) {
  const double left = x_of(occupancy, occupant->first - 1), right = x_of(occupancy, occupant->last);
  const double top = 1000 - height_of(occupancy, occupant->at + occupant->bytes);
  text_printf(out, "M%.5g %.6gH%.5gV%.6gH%.5gz", left, top, right, 1000 - height_of(occupancy, occupant->at), left);
}

/* Those of a kind; those with names one by one, with the name for a pointer. */
static void add_kind(struct text *out, const struct occupancy *occupancy, enum occupied kind, bool named) {
  text_printf(out, "<g class=\"fill m%d\">", kind);
  if (!named) text_puts(out, "<path d=\"");
  for (int i = 0; i < occupancy->occupants.count; i++) {
    const struct occupant *occupant = &occupancy->occupants.items[i];
    if (occupant->kind != kind) continue;
    if (named) text_puts(out, "<path d=\"");
    add_box(out, occupancy, occupant);
    if (named)
      text_printf(out, "\"><title>%s, %s</title></path>", occupant->name, bytes_text(out->arena, occupant->bytes));
  }
  text_puts(out, named ? "</g>\n" : "\"/></g>\n");
}

static int count_of(const struct occupancy *occupancy, enum occupied kind) {
  int count = 0;
  for (int i = 0; i < occupancy->occupants.count; i++) count += occupancy->occupants.items[i].kind == kind;
  return count;
}

static const char *paths_of(struct arena *arena, const struct occupancy *occupancy) {
  struct text out = text_in(arena);
  for (int kind = 0; kind < OCCUPIED_KINDS; kind++) {
    const int count = count_of(occupancy, kind);
    if (count > 0) add_kind(&out, occupancy, kind, kind != OCCUPIED_SCRATCH && count <= MOST_NAMED);
  }
  return text_string(&out);
}

/* ---- Its values ---- */

/* The most bytes that occupants of a kind have at one statement; they begin to be the most where one begins. */
static int64_t peak_of(const struct occupancy *occupancy, enum occupied kind) {
  int64_t peak = 0;
  for (int i = 0; i < occupancy->occupants.count; i++) {
    const struct occupant *begins = &occupancy->occupants.items[i];
    int64_t bytes = 0;
    if (begins->kind != kind) continue;
    for (int k = 0; k < occupancy->occupants.count; k++) {
      const struct occupant *other = &occupancy->occupants.items[k];
      if (other->kind == kind && other->first <= begins->first && begins->first <= other->last) bytes += other->bytes;
    }
    if (bytes > peak) peak = bytes;
  }
  return peak;
}

static struct jinja_value regions_of(struct arena *arena, const struct occupancy *occupancy) {
  struct jinja_value list = jinja_list(arena);
  for (int kind = OCCUPIED_KINDS - 1; kind >= 0; kind--) {
    struct jinja_value value = jinja_map(arena);
    const int64_t bytes = occupancy->regions[kind].bytes, at = occupancy->regions[kind].at;
    if (bytes == 0) continue;
    jinja_set(arena, value, "kind", jinja_int(kind));
    jinja_set(arena, value, "name", jinja_string(arena, occupied_names[kind]));
    jinja_set(arena, value, "bytes", jinja_string(arena, bytes_text(arena, bytes)));
    jinja_set(arena, value, "used", jinja_string(arena, bytes_text(arena, peak_of(occupancy, kind))));
    jinja_set(arena, value, "part", jinja_string(arena, arena_printf(arena, "%.1f", height_of(occupancy, bytes) / 10)));
    jinja_set(arena, value, "middle",
              jinja_string(arena, arena_printf(arena, "%.3f", height_of(occupancy, at + bytes / 2) / 10)));
    jinja_set(arena, value, "line", jinja_string(arena, arena_printf(arena, "%.6g", 1000 - height_of(occupancy, at))));
    jinja_set(arena, value, "labelled", jinja_bool(height_of(occupancy, bytes) >= 40));
    jinja_push(arena, list, value);
  }
  return list;
}

static const char *data_of(struct arena *arena, const struct occupancy *occupancy) {
  struct text out = text_in(arena);
  text_printf(&out, "{\"bytes\":%lld,\"forward\":%lld,\"backward\":%lld,\"occupants\":[", (long long)occupancy->total,
              (long long)occupancy->forward, (long long)occupancy->backward);
  for (int i = 0; i < occupancy->occupants.count; i++) {
    const struct occupant *occupant = &occupancy->occupants.items[i];
    text_puts(&out, i > 0 ? ",\n[" : "\n[");
    data_text(&out, occupant->name);
    text_printf(&out, ",\"%s\",%lld,%lld,%lld,%lld]", occupied_names[occupant->kind], (long long)occupant->at,
                (long long)occupant->bytes, (long long)occupant->first, (long long)occupant->last);
  }
  text_puts(&out, "]}");
  return text_string(&out);
}

/* Names of the runs that the job is of. */
static const char *runs_with(struct arena *arena, const struct report_run *runs, int count, const char *digest) {
  struct text names = text_in(arena);
  for (int i = 0; i < count; i++)
    if (runs[i].digest != NULL && strcmp(runs[i].digest, digest) == 0)
      text_printf(&names, "%s%s", names.length > 0 ? ", " : "", runs[i].name);
  return text_string(&names);
}

struct jinja_value memory_value(struct arena *arena, const struct occupancy *occupancy) {
  struct jinja_value value = jinja_map(arena);
  jinja_set(arena, value, "staged", jinja_bool(false));
  jinja_set(arena, value, "bytes", jinja_string(arena, bytes_text(arena, occupancy->total)));
  jinja_set(arena, value, "regions", regions_of(arena, occupancy));
  jinja_set(arena, value, "paths", jinja_string(arena, paths_of(arena, occupancy)));
  jinja_set(arena, value, "forward",
            jinja_string(arena, arena_printf(arena, "%.3f", x_of(occupancy, occupancy->forward) / 10)));
  jinja_set(arena, value, "turn",
            jinja_string(arena, arena_printf(arena, "%.6g", x_of(occupancy, occupancy->forward))));
  jinja_set(arena, value, "n_forward", jinja_int(occupancy->forward));
  jinja_set(arena, value, "n_backward", jinja_int(occupancy->backward));
  jinja_set(arena, value, "data", jinja_string(arena, data_of(arena, occupancy)));
  return value;
}

bool memory_plan(const struct options *options, struct inputs *inputs, struct planned_memory *planned) {
  struct options own = *options;
  *planned = (struct planned_memory){.job = options->job};
  if (options->job == NULL) return true;
  own.argument = options->job;
  struct compilation compilation = {
      .options = &own, .arena = own.arena, .diags = diagnostics_in(own.arena), .kind = PROGRAM_TRAIN};
  const int status = compile_to_program(&compilation);
  if (compilation.diags.count > 0) diag_print(&compilation.diags, stderr, options->colour);
  if (status != STATUS_OK) return false;
  inputs_add_compilation(inputs, &compilation);
  planned->program = compilation.program;
  planned->occupancy = occupancy_of(compilation.program);
  planned->digest = compilation.job->digest;
  return true;
}

void page_add_memory(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count,
                     const struct planned_memory *planned) {
  jinja_set(arena, page, "memory", jinja_none());
  if (planned->program == NULL) return;
  struct jinja_value value =
      planned->occupancy != NULL ? memory_value(arena, planned->occupancy) : memory_of_stages(arena, planned->program);
  jinja_set(arena, value, "job", page_text(arena, planned->job));
  jinja_set(arena, value, "runs", page_text(arena, runs_with(arena, runs, count, planned->digest)));
  jinja_set(arena, page, "memory", value);
}
