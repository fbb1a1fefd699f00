/* Help on names: what other trainers' names are here, for a person at a terminal. */
#ifndef ACCEL_SPEC_HELP_NAMES_H
#define ACCEL_SPEC_HELP_NAMES_H

#include <jansson.h>

#include "gen/base/text.h"

/* Adds what a name of another trainer, or a value of the job, is. Returns the one key of the job to which it leads, for
 * more help: NULL where there is none, or there are several. */
const char *help_add_names(struct text *out, const json_t *root, const char *topic);

/* Adds the names without a class, and all classes, with a sentence each. */
void help_add_all_names(struct text *out, const json_t *root);

#endif
