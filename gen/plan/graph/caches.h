/* Caches: what a text generator keeps of earlier positions, apart from the weights of the layers that it belongs to. */
#ifndef ACCEL_PLAN_GRAPH_CACHES_H
#define ACCEL_PLAN_GRAPH_CACHES_H

#include "gen/program/program.h"

/* The scope of all caches: the one of layer "h.3" is "cache.h.3". */
extern const char cache_scope[];

/* Gives regions that have caches scopes of their own for them, below cache_scope in the model, so that a layer's
 * weights may leave memory and its caches stay. After plan_decoding. */
void separate_caches(struct program *program);

#endif
