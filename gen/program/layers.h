/* Layers: the rows of a program's tables of parameters, which cover those of all layers that are alike. */
#ifndef ACCEL_PROGRAM_LAYERS_H
#define ACCEL_PROGRAM_LAYERS_H

#include "gen/program/program.h"

/* The row of a parameter in those tables; -1: it is that of a layer after the first one. */
int layers_row(const struct program *program, int weight);

/* The layers of which a parameter is the first one's; NULL: of none. */
const struct layers *layers_of(const struct program *program, int weight);

/* Its name: "h.%d.attn.weight" where it covers several layers. */
const char *layers_name(const struct program *program, int weight);

/* Elements from a state's slice of such a parameter to that of the next layer; 0: it covers one. */
int64_t layers_slice_stride(const struct program *program, const struct state *state, const struct state_slice *slice);

#endif
