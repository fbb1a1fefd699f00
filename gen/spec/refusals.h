/* Keys of a job that do not go together. */
#ifndef ACCEL_SPEC_REFUSALS_H
#define ACCEL_SPEC_REFUSALS_H

#include "gen/base/diag.h"
#include "gen/spec/node.h"

/* A key, or a value of it, that something else refuses. `why` ends the message, `remedy` is what to use instead. */
struct refusal {
  const char *key, *value; /* a value that is refused; "!none": all but none; NULL: all */
  const char *why, *remedy;
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Reports those of the first `count` that a resolved job has, at the key where it is given and else at `cause`.
 * `conflict` says what the keys do not go with, `otherwise` what that could be in their favour. */
void check_refusals(const struct spec_node *job, const struct refusal *list, size_t count, const char *conflict,
                    const struct spec_node *cause, const char *otherwise, struct diagnostics *diags);

#endif
