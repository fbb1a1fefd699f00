/* The report of skipped records. */
#ifndef ACCEL_COMMANDS_DATA_SKIPPED_H
#define ACCEL_COMMANDS_DATA_SKIPPED_H

#include "gen/tokenizer/documents.h"

/* Warns of them on standard error, where there are any. NULL: there are none. */
void skipped_report(const struct skipped *skipped);

#endif
