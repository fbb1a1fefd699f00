/* Binding: from the resolved tree, whose types the schema has seen to, to the members of struct job. */
#ifndef ACCEL_SPEC_BIND_H
#define ACCEL_SPEC_BIND_H

#include "gen/spec/job.h"
#include "gen/spec/node.h"

/* The job that a resolved tree says. Its digest is not yet there. Errors for numbers that fit no member. */
struct job *job_bind(struct arena *arena, const char *file, const struct spec_node *tree, struct diagnostics *diags);

/* Fills the members that have the name and the type of their keys. */
void bind_members(struct job *job);

/* The value of a key. What a condition excludes (betas of sgd) is 0 or NULL, and so is a value of another type. */
int64_t spec_integer(const struct job *job, const char *key);
double spec_real(const struct job *job, const char *key);
const char *spec_string(const struct job *job, const char *key);

#endif
