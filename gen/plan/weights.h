/* Weights: all parameters of a model as one tree of C structures, and the order in which gradients are written. */
#ifndef ACCEL_PLAN_WEIGHTS_H
#define ACCEL_PLAN_WEIGHTS_H

#include "gen/plan/program.h"

/* Fills root, structs and weights of the program from the calls of the entry. False with an error when functions are
 * called with scopes whose parameters differ in a way that one C structure cannot say. */
bool plan_weights(struct program *program, struct diagnostics *diags);

/* Decides which parameters are updated within the backward, so that their gradients are not stored, and which gradients
 * are written and which are added: in the order of the backward run, the first contribution to
 * a parameter writes, unless the same code adds elsewhere; then all add and weight.zero asks for zeros before. With
 * several micro-batches all add. Sets the accumulate flags of the graph's gradients. */
void plan_gradients(struct program *program);

/* Fills program->trained and where the gradient of each weight lies, after plan_gradients. False with an error when the
 * layers of a loop are frozen in different parts. */
bool plan_trained(struct program *program, struct diagnostics *diags);

/* Whether the function of a region takes a pointer to the parameters below scope `formal`. */
bool region_uses_scope(const struct program *program, const struct region *region, int formal);

/* The structure to which the pointer for scope `formal` of a region points. */
const struct weight_struct *region_scope_type(const struct program *program, const struct region *region, int formal);

/* How a parameter or a scope is reached from that pointer: members with array indices. `path` is below the scope;
 * `next` is the path in the following iteration of a loop (NULL or equal: none), whose differing index becomes
 * first + step * iteration. Returns the number of parts; 0 for the pointer itself. */
struct access_part {
  const char *member;
  bool indexed;
  int64_t first, step;
};
int weight_access(const struct program *program, const struct region *region, int formal, const char *path,
                  const char *next, struct access_part parts[8]);

#endif
