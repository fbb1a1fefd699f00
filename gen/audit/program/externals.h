/* Functions that a program calls and does not define: what is known of each. */
#ifndef ACCEL_AUDIT_PROGRAM_EXTERNALS_H
#define ACCEL_AUDIT_PROGRAM_EXTERNALS_H

#include <stdbool.h>

/* What a function reaches. The first ones may occur on the step path. */
enum effect {
  EFFECT_ARITHMETIC, /* its arguments alone */
  EFFECT_MEMORY,     /* what its arguments point to */
  EFFECT_LIBRARY,    /* a matrix library's kernel */
  EFFECT_COLLECTIVE, /* an exchange among ranks */
  EFFECT_BATCH,      /* the runtime's, made for a step: no allocation, no system call */
  EFFECT_RUNTIME,    /* the runtime's, made for the time before, between and after steps */
  EFFECT_ALLOCATION,
  EFFECT_FILE,
  EFFECT_NETWORK,
  EFFECT_ENVIRONMENT,
  EFFECT_CLOCK,
  EFFECT_PROCESS, /* processes, threads, signals, jumps, loading of code */
  EFFECT_UNKNOWN
};

/* What the function of this name reaches; EFFECT_UNKNOWN when the table does not have it. */
enum effect external_effect(const char *name);

/* Whether the table has this name itself, not through a pattern with a star. */
bool external_is_listed(const char *name);

/* Whether it is one of the runtime's, whatever it reaches there. */
bool external_is_runtime(const char *name);

/* Whether the function's result is uniform: the same on every rank that calls it with the same arguments. */
bool external_is_uniform(const char *name);

/* Whether such a call may occur on the step path. */
bool effect_is_of_steps(enum effect effect);

/* "memory", "a file" */
const char *effect_word(enum effect effect);

/* Whether the lanes of a warp of a GPU meet in a call of it: of CUDA's functions that end with _sync. */
bool external_meets_lanes(const char *name);

#endif
