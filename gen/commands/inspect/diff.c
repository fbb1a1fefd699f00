/* accel-gen diff A B: jobs, programs or manifests, in any mixture. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/inspect/diff_input.h"
#include "gen/commands/report/diff_page.h"

/* The input of a job, a program or a manifest, which is recognized by its name and its content. */
static bool read_diff_input(const struct options *options, const char *file, struct diff_input *input,
                            struct inputs *inputs, struct diagnostics *diags) {
  size_t length;
  const char *text = read_bytes(options->arena, file, &length);
  input->name = file;
  inputs_add(inputs, "one of the two that are compared", file);
  if (text == NULL) {
    diag_error(diags, (struct location){.file = file}, "cannot read it: %s", strerror(errno));
    return false;
  }
  if (has_ending(file, ".c")) return diff_input_from_program(options, file, text, length, input, inputs, diags);
  json_t *root = json_loadb(text, length, 0, NULL);
  bool manifest = json_object_get(root, "format") != NULL && json_object_get(root, "generator") != NULL;
  json_decref(root);
  return manifest ? diff_input_from_manifest(options, file, input, inputs, diags)
                  : diff_input_from_job(options, file, input, inputs, diags);
}

/* False after a message on standard error. */
static bool put_comparison(const struct options *options, const struct comparison *comparison,
                           const struct inputs *inputs) {
  struct text out = text_in(options->arena);
  const char *output = options->output != NULL ? options->output : "-";
  if (options->html != NULL) return diff_page_write(options, comparison, inputs) == STATUS_OK;
  if (options->json) {
    comparison_json(comparison, &out);
    return write_file(inputs, output, out.bytes, out.length);
  }
  comparison_text(comparison, options->verbose, &out);
  return write_lines(inputs, output, text_string(&out));
}

int command_diff(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  struct diff_input a = {0}, b = {0};
  struct inputs inputs = inputs_in(options->arena);
  bool good = read_diff_input(options, options->argument, &a, &inputs, &diags);
  good = read_diff_input(options, options->second, &b, &inputs, &diags) && good;
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  if (!good) return STATUS_BAD_JOB;
  struct comparison comparison = compare(options->arena, &a, &b);
  if (!put_comparison(options, &comparison, &inputs)) return STATUS_BAD_JOB;
  return comparison_is_empty(&comparison) ? STATUS_OK : STATUS_CANNOT;
}
