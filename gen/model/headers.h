/* Headers: the files that a model finds under <...> without anything installed: accel/model.h with its parts, and those
 * of the standard library that the reader can evaluate. They are small, so reading them takes no time. */
#ifndef ACCEL_MODEL_HEADERS_H
#define ACCEL_MODEL_HEADERS_H

#include "gen/c/parse.h"

enum { HEADER_COUNT = 7 };

/* All of them, into headers[]. */
void model_headers(struct arena *arena, struct header headers[HEADER_COUNT]);

#endif
