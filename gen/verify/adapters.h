/* Adapters: which modules of a job have one, by the keys of PEFT's LoraConfig (Hu et al., arXiv:2106.09685). */
#ifndef ACCEL_VERIFY_ADAPTERS_H
#define ACCEL_VERIFY_ADAPTERS_H

#include "gen/spec/job.h"

/* Whether the job has an adapter for a module; a module is "h.0.attn". */
bool reading_adapts(const struct job *job, const char *module);

/* What an adapter's product is multiplied by. */
double reading_adapter_scale(const struct job *job);

/* Whether a parameter is trained: of a job with adapters these and the modules to save alone, and none that freeze
 * names. */
bool reading_trains(const struct job *job, const char *parameter);

#endif
