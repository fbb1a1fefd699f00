/* Flags of a program: "--name VALUE" or "--name=VALUE", or "--name" alone. A wrong one ends the process with status 2.
 */
#ifndef RUNTIME_PROCESS_FLAGS_H
#define RUNTIME_PROCESS_FLAGS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

#include <stdbool.h>
#include <stdint.h>

enum flag_kind { FLAG_TEXT, FLAG_COUNT, FLAG_SEED, FLAG_REAL, FLAG_SHARE, FLAG_SWITCH };

/* One flag; the member of `target` that its kind uses is set when it is given. */
struct flag {
  const char *name;  /* "--steps" */
  const char *value; /* "N": what its value is called in the help; "": a FLAG_SWITCH has none */
  const char *help;
  enum flag_kind kind;
  int64_t least; /* of a FLAG_COUNT */
  union {
    const char **text;
    int64_t *count;
    uint64_t *seed;
    double *real; /* finite, not negative; of a FLAG_SHARE at most 1 */
    bool *given;
  } target;
};

/* Sets the targets from argv. False with a problem for an unknown flag or a bad value. --help and --version are not
 * handled here: rt_flags_read does it. */
bool rt_flags_parse(const struct flag *flags, int count, int argc, char **argv, struct problem *problem);

/* Handles --help and --version (both end the process with 0), then the flags (a bad one ends it with 2). */
void rt_flags_read(const struct accel_program *program, const struct flag *flags, int count, int argc, char **argv);

#endif
