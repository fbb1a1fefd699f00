/* Texts and numbers of JSON. */
#ifndef RUNTIME_TRACKING_JSON_H
#define RUNTIME_TRACKING_JSON_H

#include "runtime/report/scalars.h"
#include "runtime/tracking/bytes.h"

/* Adds a text in quotes. */
void rt_json_text(struct bytes *to, const char *text);

/* Adds a number; what is not finite as NaN, Infinity and -Infinity, as Python writes and reads them. */
void rt_json_number(struct bytes *to, const struct scalar *scalar);

/* Adds a value of a key of the job: true, false, a number, or else a text. */
void rt_json_value(struct bytes *to, const char *text);

#endif
