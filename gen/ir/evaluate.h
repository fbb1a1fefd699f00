/* Evaluate: runs a graph in float64 by the operations' references. The oracle of the tests; slow and simple. */
#ifndef ACCEL_IR_EVALUATE_H
#define ACCEL_IR_EVALUATE_H

#include "gen/ir/graph.h"

/* The elements of the parameter with this full name, in row-major order; NULL when there is none. */
typedef const double *(*evaluate_parameter)(void *context, const char *name, const struct parameter *parameter);

/* An evaluator over a graph: parameters come from `parameter`, memory from `arena`. */
struct evaluator;
struct evaluator *evaluator_new(struct arena *arena, const struct graph *graph, evaluate_parameter parameter,
                                void *context);

/* One run of a region: what its values were. */
struct frame_data;

/* Runs a region without a caller, such as the graph's entry; its scopes are roots. inputs[i] are the elements of input
 * i, integers as doubles. Nodes that plan passes made (fused ones) are understood. */
struct frame_data *evaluate_region(struct evaluator *evaluator, const struct region *region,
                                   const double *const *inputs);

/* Runs the backward region of the region that `forward` is a run of, and collects parameter gradients. inputs NULL:
 * each is the forward region's input of the same name, as in the entry's backward region. */
struct frame_data *evaluate_backward(struct evaluator *evaluator, const struct region *backward,
                                     const struct frame_data *forward, const double *const *inputs);

/* The elements of a value in a run of its region (or of that region's backward region). */
const double *evaluated(const struct frame_data *frame, const struct value *value);

/* What all backward runs have added up for the parameter with this full name; NULL when nothing. */
const double *evaluated_gradient(const struct evaluator *evaluator, const char *name);

#endif
