/* Report: what an import made of each key, as text and as JSON. */
#ifndef ACCEL_COMMANDS_IMPORT_REPORT_H
#define ACCEL_COMMANDS_IMPORT_REPORT_H

#include "gen/import/import.h"

/* A table for each file, a row a key, in 80 columns where names are not longer; then how many keys became what, and
 * which keys the job lacks. */
const char *import_table(struct import *import);

/* The same as one JSON object. */
const char *import_json(struct import *import);

/* The job as YAML, under a comment that says which files it is from and which keys it lacks. */
const char *import_job(struct import *import);

#endif
