/* Epilogues: products take up what follows them, as far as the device's library can do it before it writes them. */
#ifndef ACCEL_PLAN_GRAPH_EPILOGUES_H
#define ACCEL_PLAN_GRAPH_EPILOGUES_H

#include "gen/ir/graph.h"

/* In all regions of a differentiated graph: a bias, gelu with tanh and relu behind a product, their slopes behind a
 * product of the backward, and the sum that is a bias's gradient beside the product that is its weight's. `epilogues`
 * are those of the library, as bits of enum epilogue; what needs another stays. Values keep their meaning: what only
 * the slope of relu used becomes a mask of bits. */
void take_epilogues(struct graph *graph, unsigned epilogues);

#endif
