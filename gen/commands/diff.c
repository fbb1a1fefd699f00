/* accel-gen diff A B: jobs, programs or manifests, in any mixture. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/commands/commands.h"
#include "gen/commands/files.h"
#include "gen/commands/side.h"

/* The side of a job, a program or a manifest, which is told by its name and its content. */
static bool read_side(const struct options *options, const char *file, struct side *side, struct inputs *inputs,
                      struct diagnostics *diags) {
  size_t length;
  const char *text = read_bytes(options->arena, file, &length);
  side->name = file;
  inputs_add(inputs, "one of the two that are compared", file);
  if (text == NULL) {
    diag_error(diags, (struct location){.file = file}, "cannot read it: %s", strerror(errno));
    return false;
  }
  if (has_ending(file, ".c")) return side_of_program(options, file, text, length, side, inputs, diags);
  json_t *root = json_loadb(text, length, 0, NULL);
  bool manifest = json_object_get(root, "format") != NULL && json_object_get(root, "generator") != NULL;
  json_decref(root);
  return manifest ? side_of_manifest(options, file, side, inputs, diags)
                  : side_of_job(options, file, side, inputs, diags);
}

int command_diff(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  struct side a = {0}, b = {0};
  struct inputs inputs = inputs_in(options->arena);
  bool good = read_side(options, options->argument, &a, &inputs, &diags);
  good = read_side(options, options->second, &b, &inputs, &diags) && good;
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  if (!good) return STATUS_BAD_JOB;
  struct comparison comparison = compare(options->arena, &a, &b);
  struct text out = text_in(options->arena);
  if (options->json)
    comparison_json(&comparison, &out);
  else
    comparison_text(&comparison, options->verbose, &out);
  const char *output = options->output != NULL ? options->output : "-";
  if (!write_file(&inputs, output, out.bytes, out.length)) return STATUS_BAD_JOB;
  return comparison_is_empty(&comparison) ? STATUS_OK : STATUS_CANNOT;
}
