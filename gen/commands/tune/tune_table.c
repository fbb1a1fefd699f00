#include <stdio.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/tune/tune.h"
#include "gen/plan/kernels/predict.h"
#include "gen/program/choose.h"
#include "runtime/base/terminal.h"

static bool made_alike(const struct tuning *a, const struct tuning *b) {
  return strcmp(a->compiler, b->compiler) == 0 && strcmp(a->flags, b->flags) == 0 &&
         strcmp(a->library, b->library) == 0;
}

struct tuning *tune_open(const struct options *options, const char *file, struct tuning *fresh) {
  struct diagnostics diags = diagnostics_in(options->arena);
  size_t length;
  if (read_bytes(options->arena, file, &length) == NULL) return fresh;
  struct tuning *there = tuning_read(options->arena, file, &fresh->machine, (struct location){0}, &diags);
  if (there != NULL && made_alike(there, fresh)) return there;
  rt_print(stderr, "accel-gen: %s was measured %s: a new table is started\n", file,
           there != NULL ? "with another compiler, other flags or another library" : "elsewhere or by another version");
  return fresh;
}

int tune_finish(const struct compilation *compilation, struct tuning *table, const char *file) {
  struct arena *arena = compilation->arena;
  const char *text = tuning_text(table);
  struct inputs inputs = inputs_in(arena);
  struct compilation untuned = *compilation; /* the table that was read is the one that is added to */
  untuned.tuning = NULL;
  inputs_add_compilation(&inputs, &untuned);
  if (!make_folders(arena, file) || !write_file(&inputs, file, text, strlen(text))) return STATUS_CANNOT;
  struct compilation again = *compilation;
  again.diags = diagnostics_in(arena);
  again.tuning = table;
  again.adjust = NULL;
  again.program = NULL;
  int status = compile_to_program(&again);
  if (again.diags.count > 0) diag_print(&again.diags, stderr, compilation->options->colour);
  if (status != STATUS_OK) return status;
  if (!compilation->options->quiet)
    rt_print(stdout, "%s%s%s: %d entries\n", choices_text(again.program), prediction_text(again.program), file,
             table->entries.count);
  return STATUS_OK;
}
