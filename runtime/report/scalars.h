/* The figures of a line as a list of named numbers, which is what every tracker writes. */
#ifndef RUNTIME_REPORT_SCALARS_H
#define RUNTIME_REPORT_SCALARS_H

#include "runtime/report/log.h"

struct scalar {
  const char *name;   /* of the figures */
  const char *format; /* of printf, for one double, with the digits that the number is worth */
  double value;       /* which may be not finite */
};

struct scalars {
  struct scalar *items;
  int count, capacity;
};

/* Fills the list, whose memory is kept from call to call, in the order of metrics.jsonl. False without memory. */
bool rt_scalars_of(struct scalars *scalars, const struct figures *figures);

void rt_scalars_free(struct scalars *scalars);

#endif
