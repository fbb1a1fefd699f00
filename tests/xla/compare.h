/* Modules of StableHLO run by XLA, next to what float64 says. */
#ifndef TESTS_XLA_COMPARE_H
#define TESTS_XLA_COMPARE_H

#include "gen/stablehlo/make.h"
#include "runtime/xla/xla.h"

/* The numbers of both sides, by the names of the module's operands. */
struct sides {
  void *context;
  const double *(*argument)(void *context, const char *name);
  /* What a result has to be; *scale may be set to what an error is small next to, where that is more than the largest
   * element. */
  const double *(*result)(void *context, const char *name, double *scale);
};

/* Runs the module; NULL, or in which result it is more than `tolerance` off. */
const char *compare_module(struct arena *arena, struct xla *xla, const struct hlo_module *module,
                           const struct sides *sides, double tolerance);

/* The plugin of tests; NULL: there is none, which is printed. */
struct xla *open_plugin(void);

#endif
