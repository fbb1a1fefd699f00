/* Adapters: what follows from a job's low-rank adapters (gen/plan/graph/adapt.h). */
#ifndef ACCEL_PROGRAM_ADAPTERS_H
#define ACCEL_PROGRAM_ADAPTERS_H

#include "gen/spec/job.h"

/* How the names of A end. */
extern const char adapter_a_ending[];

/* Whether the parameter of this name is an adapter's, or one that model.lora.modules_to_save trains as a whole. */
bool is_adapter(const char *name);

/* s. */
double adapter_scale(const struct job *job);

bool is_saved_module(const struct job *job, const char *name);

/* Whether a module is one of those that a target names: the whole path of a module, or its last names, or a pattern
 * that is compared with the whole, as PEFT's target_modules. */
bool names_module(const char *target, const char *module);

#endif
