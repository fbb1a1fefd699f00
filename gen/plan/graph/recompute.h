/* Recompute: which functions of the model save nothing for the backward (activation checkpointing). */
#ifndef ACCEL_PLAN_GRAPH_RECOMPUTE_H
#define ACCEL_PLAN_GRAPH_RECOMPUTE_H

#include "gen/program/program.h"

/* Marks regions by the job's memory.activation_checkpointing; splits loops whose layers differ in it. False
 * with an error when a function that the job names, or any layer, is not there, or where gradients of weights come
 * later and need all that would be computed again. */
bool choose_recomputation(struct program *program, struct diagnostics *diags);

/* The largest number of layers in a loop of the model; 1 when nothing is repeated. Call it before loops are split. */
int count_layers(const struct graph *graph);

/* The functions of the model that have parameters, the entry excepted, in the order of their first calls: at most
 * `most`. Returns how many. */
int checkpointable_functions(const struct graph *graph, const char **names, int most);

/* Reports that none of them has the name that a job gives, with those that there are. */
void refuse_function(const struct program *program, const struct named *function, struct diagnostics *diags);

#endif
