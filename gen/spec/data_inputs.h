/* Inputs: the tensors of rows that a job names, with the files that have their numbers. */
#ifndef ACCEL_SPEC_DATA_INPUTS_H
#define ACCEL_SPEC_DATA_INPUTS_H

#include "gen/base/diag.h"
#include "gen/spec/job.h"

/* Fills job->data.inputs, from data.inputs or from data.features and data.label. */
void data_inputs_bind(struct arena *arena, struct job *job);

/* The files of a part of a source that inputs have for themselves, by input: `labels` is its data.train.labels or the
 * like, NULL for none. NULL where none has any. */
const char **data_inputs_arrays(struct arena *arena, const struct job *job, bool is_eval, int part, const char *labels);

/* Errors for inputs that no program can have. */
void data_inputs_check(const struct spec_node *job, struct diagnostics *diags);

#endif
