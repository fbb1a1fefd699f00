/* Emit: a program becomes text, through templates. Plain values go in; no template decides what the plan could decide.
 */
#ifndef ACCEL_EMIT_EMIT_H
#define ACCEL_EMIT_EMIT_H

#include "gen/emit/origin.h"
#include "gen/emit/stablehlo/program.h"
#include "gen/emit/templates.h"
#include "gen/program/program.h"

struct emit_options {
  struct templates *templates;
  const char *version;   /* of the generator */
  const char *job_file;  /* the name of the job's file, which is all of the job; NULL: it is not */
  const char *plan_text; /* the plan's figures, human-readable */
  const char *summary;   /* in one line */
  const char *model;     /* the digest of the model's C */
  const char *classes;   /* of transformers that it is one of, "A B"; NULL: it names none */
  const char *config;    /* the config.json that the run leaves; NULL: that of checkpoint.folder_of, or none */
  const char *no_config; /* why there is none for a model that names classes; NULL: there is, or it names none */
  const struct step_modules *modules; /* emit_modules's, which emit_program writes where the target has them */
};

/* Text number `index` of the program, of program->target->texts.count; NULL with an error in `diags`, which an
 * operation is that the device has no kernel for. `origins` is filled with who wrote each of its lines; NULL: it is not
 * requested.
 */
const char *emit_program(struct program *program, int index, const struct emit_options *options,
                         struct origins *origins, struct diagnostics *diags);

/* Fills `made` with the modules of a program whose target has them; options->modules is not read. False with an error
 * in `diags`, and then `made` is empty.
 */
bool emit_modules(struct program *program, const struct emit_options *options, struct step_modules *made,
                  struct diagnostics *diags);

#endif
