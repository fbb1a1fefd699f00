/* accel-gen import: a job from configurations of other trainers. */
#include <stdio.h>
#include <string.h>

#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/inputs.h"
#include "gen/commands/import/report.h"
#include "gen/spec/override.h"
#include "gen/spec/schema.h"
#include "runtime/base/terminal.h"

/* What --set says comes after what the files say. */
static bool override_all(const struct options *options, struct import *import, struct diagnostics *diags) {
  for (int i = 0; i < options->n_overrides; i++) {
    const struct spec_node *with = override_apply(import->arena, import->job, &options->overrides[i], diags);
    import->job = spec_copy_map(import->arena, with, 0);
  }
  return diags->errors == 0;
}

static bool read_all(const struct options *options, struct import *import, struct diagnostics *diags) {
  for (int i = 0; i < options->n_arguments; i++) import_add(import, options->arguments[i], options->format, diags);
  return diags->errors == 0 && override_all(options, import, diags);
}

static bool write_job(const struct options *options, struct import *import) {
  struct inputs inputs = inputs_in(import->arena);
  for (int i = 0; i < import->count; i++) inputs_add(&inputs, "a file that is imported", import->items[i].path);
  const char *job = import_job(import);
  return write_file(&inputs, options->output, job, strlen(job));
}

static int import_all(const struct options *options, const json_t *schema, struct diagnostics *diags) {
  struct import import = import_in(options->arena, schema);
  if (!read_all(options, &import, diags)) return STATUS_BAD_JOB;
  if (!import_check(&import, diags)) return STATUS_BAD_JOB;
  const bool bad = import_count(&import, IMPORT_REFUSED) + import_count(&import, IMPORT_UNKNOWN) > 0;
  FILE *to = options->output != NULL && strcmp(options->output, "-") == 0 ? stderr : stdout;
  if (options->json)
    fputs(import_json(&import), to);
  else
    rt_print_text(to, import_table(&import));
  fflush(to);
  if (bad && options->strict) {
    rt_print(stderr, "accel-gen import: nothing is written, as --strict says\n");
    return STATUS_CANNOT;
  }
  if (options->output != NULL && !write_job(options, &import)) return STATUS_CANNOT;
  return bad ? STATUS_CANNOT : STATUS_OK;
}

int command_import(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  json_t *schema = schema_of_job();
  const int status = import_all(options, schema, &diags);
  json_decref(schema);
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  return status;
}
