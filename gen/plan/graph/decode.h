/* Decode: a causal model over all positions of a sequence becomes one over the positions that are new, which keeps of
 * those before what it needs. */
#ifndef ACCEL_PLAN_GRAPH_DECODE_H
#define ACCEL_PLAN_GRAPH_DECODE_H

#include "gen/ir/builder.h"
#include "gen/program/program.h"

/* Replaces the entry, of tokens [1][positions], by two of its kind: the entry over a few positions, for what a text
 * begins with, and program->entry.second_region over one. Both have two further inputs, `at` [1], the position of their
 * first token, and `valid` [1], how many of them there are. Operations that treat positions alike (op_sequence.along)
 * stay what they are over fewer of them, what does not depend on the tokens is cut to the current positions, and what
 * looks back (op_sequence.incremental) gets caches; program->decode.endless says whether these suffice for a text of
 * any length. Where the logits depend on positions in another way nothing changes, and program->decode.recomputed says
 * in a sentence why. False after an error. */
bool plan_decoding(struct program *program, struct builder *builder, struct diagnostics *diags);

#endif
