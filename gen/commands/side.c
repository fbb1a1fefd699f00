#include "gen/commands/side.h"

#include <string.h>
#include <unistd.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/commands/files.h"
#include "gen/commands/hot.h"
#include "gen/commands/recorded.h"
#include "gen/commands/travel.h"
#include "gen/model/model.h"
#include "gen/plan/report/report.h"
#include "gen/provenance/program_words.h"
#include "gen/spec/keys.h"

static void set_lines(struct arena *arena, const char *text, size_t length, struct side *side) {
  side->lines = lines_of(arena, text, length);
}

/* ---- Jobs ---- */

bool side_of_job(const struct options *options, const char *file, struct side *side, struct inputs *inputs,
                 struct diagnostics *diags) {
  struct arena *arena = options->arena;
  struct options own = *options;
  own.argument = file;
  struct travel travel = {.options = &own, .arena = arena, .diags = *diags};
  program_kind_find(options->program, &travel.kind);
  const char *text;
  int status = travel_to_text(&travel, NULL, &text), count;
  *diags = travel.diags;
  if (status != STATUS_OK) return false;
  inputs_add_travel(inputs, &travel);
  const struct job_key *keys = job_keys(arena, travel.job, &count);
  for (int i = 0; i < count; i++) add_pair(arena, &side->keys, keys[i].name, keys[i].value);
  side->model = model_digest(travel.model);
  side->figures = figures_of(arena, report_json(travel.program, NULL));
  side->summary = summary_of(arena, report_text(travel.program));
  set_lines(arena, text, strlen(text), side);
  return find_hot(options, arena_printf(arena, "%s.c", file), text, side, diags);
}

/* ---- Manifests ---- */

static void set_manifest(struct arena *arena, const struct manifest *manifest, struct side *side) {
  for (int i = 0; i < manifest->n_keys; i++)
    add_pair(arena, &side->keys, manifest->keys[i].key, manifest->keys[i].value);
  side->model = manifest->job.model;
  side->figures = figures_of(arena, manifest->plan);
  side->summary = summary_of(arena, manifest->plan_text);
}

bool side_of_manifest(const struct options *options, const char *file, struct side *side, struct inputs *inputs,
                      struct diagnostics *diags) {
  struct arena *arena = options->arena;
  const struct manifest *manifest = manifest_read(arena, file, diags);
  if (manifest == NULL) return false;
  set_manifest(arena, manifest, side);
  const char *program = arena_printf(arena, "%s/%s", folder_of(arena, file), manifest->output.name);
  inputs_add(inputs, "the program of a manifest", program);
  size_t length = 0;
  const char *text = read_bytes(arena, program, &length);
  if (text == NULL || strcmp(digest_of(arena, text, length), manifest->output.sha256) != 0) return true;
  set_lines(arena, text, length, side);
  side->program = program;
  return find_hot(options, program, text, side, diags);
}

/* ---- Programs ---- */

bool side_of_program(const struct options *options, const char *file, const char *text, size_t length,
                     struct side *side, struct inputs *inputs, struct diagnostics *diags) {
  struct arena *arena = options->arena;
  const char *path = manifest_path(arena, file);
  inputs_add(inputs, "the manifest of a program", path);
  struct diagnostics unread = diagnostics_in(arena);
  const struct manifest *manifest = access(path, R_OK) == 0 ? manifest_read(arena, path, &unread) : NULL;
  set_lines(arena, text, length, side);
  side->program = file;
  if (manifest != NULL && strcmp(digest_of(arena, text, length), manifest->output.sha256) == 0) {
    set_manifest(arena, manifest, side);
  } else {
    side->keys = keys_in_program(arena, text, &side->model);
    side->summary = summary_in_program(arena, text);
  }
  return find_hot(options, file, text, side, diags);
}
