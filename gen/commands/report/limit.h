/* How fast a run's matrix products are, and what its machine could do at most. */
#ifndef ACCEL_COMMANDS_REPORT_LIMIT_H
#define ACCEL_COMMANDS_REPORT_LIMIT_H

#include "gen/commands/report/run.h"

struct run_limit {
  double flops;       /* of a rank's matrix products, a second; 0: unknown */
  const char *source; /* whose number it is, human-readable */
};

/* What the run's job states (devices.peak_flops, devices.hardware); else the fastest product that its own profile has
 * measured, with profile.with_flops. */
struct run_limit report_limit(struct arena *arena, const struct report_run *run);

/* FLOP of a rank's matrix products in a step; 0: unknown. */
double report_products(const struct report_run *run);

/* Adds the series "limit_share" to the metrics of a run of which both are known: the throughput as a share of the
 * limit, in percent. */
void report_add_share(struct arena *arena, struct report_run *run);

#endif
