/* Which run this is: tracking.json of the project folder, so that a run that is resumed continues its files. */
#ifndef RUNTIME_TRACKING_IDENTITY_H
#define RUNTIME_TRACKING_IDENTITY_H

#include "runtime/tracking/sink.h"

/* Fills id, previous_id and began: of the file where the run resumes and has one, else new ones. */
bool rt_identity_find(struct tracked *tracked, struct problem *problem);

/* Reads the content of the file. False: it has no id or no time of the beginning. */
bool rt_identity_read(const char *bytes, size_t size, char id[33], double *began);

/* Writes the file, once nothing is left of the run before that only its id leads to. */
bool rt_identity_write(const struct tracked *tracked, struct problem *problem);

#endif
