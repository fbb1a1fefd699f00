/* Indices: which columns of the data's rows a model takes as an index into something, and below what they must be, so
 * that a trainer can refuse other data before it trains. */
#ifndef ACCEL_PLAN_GRAPH_INDICES_H
#define ACCEL_PLAN_GRAPH_INDICES_H

#include "gen/program/program.h"

/* Follows every index of the graph, as the model was read, back to the data: through views, concatenations and calls,
 * which move elements and change none. Sets program->data.indices and, of labels, ->no_target; and ->looked_up, of
 * inputs where no number may stand for "none". False with an error where an argument of a call is known to be no index
 * that the called function can take. */
bool find_indices(struct program *program, struct diagnostics *diags);

#endif
