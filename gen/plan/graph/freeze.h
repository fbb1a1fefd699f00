/* Freeze: parameters that are not trained get no gradient, and what depends on no others has no backward.
 *
 * A region is shared by all its calls, some of which may name frozen parameters where others do not: each set of frozen
 * parameters gets a region of its own, and a loop over layers becomes a loop for each run of layers that are alike. */
#ifndef ACCEL_PLAN_GRAPH_FREEZE_H
#define ACCEL_PLAN_GRAPH_FREEZE_H

#include "gen/base/diag.h"
#include "gen/program/program.h"

/* Before differentiation. False with an error at the job's line when a pattern is none, matches no parameter, or
 * nothing is left to train. */
bool freeze(struct program *program, struct diagnostics *diags);

/* Before differentiation and after prune, of a program that trains: false with an error, at the job's line if that
 * names what is trained, when the loss depends on no parameter that the job leaves to train. */
bool check_trained(const struct program *program, struct diagnostics *diags);

/* Whether the job freezes the parameter of this name: by a pattern, or as no part of what model.lora trains. */
bool is_frozen(const struct job *job, const char *name);

#endif
