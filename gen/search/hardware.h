/* Hardware: what the search of a mesh takes a job's devices and their links to be. */
#ifndef ACCEL_SEARCH_HARDWARE_H
#define ACCEL_SEARCH_HARDWARE_H

#include "gen/base/diag.h"
#include "gen/spec/job.h"

/* A link: a message of n bytes takes latency + n / bandwidth (Hockney 1994). */
struct link {
  double latency;   /* seconds */
  double bandwidth; /* bytes a second, each way */
};

struct hardware {
  double peak;             /* FLOP/s of matmuls in the job's precision, as published */
  double efficiency;       /* the part of it that large matmuls reach */
  double memory_bandwidth; /* bytes a second */
  struct link within;      /* of a rank, to another one of its machine */
  struct link between;     /* of a machine, to another machine; its ranks share it */
  int64_t per_node, ranks;
  int64_t memory;   /* bytes that a rank may take */
  const char *name; /* of a known product; NULL: the job's own figures */
};

/* FLOP/s of matmuls that are published of a known product, by its name for devices.hardware; 0: it is not known. */
double product_peak(const char *name, bool bits16, bool tf32);

/* The hardware of a job: each figure from its key, else from the known product that devices.hardware names. False with
 * errors in `diags` that name the keys where a figure that the job's ranks need is not known. */
bool hardware_of(const struct job *job, struct hardware *hardware, struct diagnostics *diags);

/* Of a group of ranks whose numbers differ by `stride`: the link of each to the next one in a ring. Where the group is
 * on several machines, the rings of a machine's other groups share its link. */
struct link link_along(const struct hardware *hardware, int64_t ranks, int64_t stride);

#endif
