/* A network between machines, as people describe it. */
#ifndef ACCEL_PLAN_RANKS_NETWORK_H
#define ACCEL_PLAN_RANKS_NETWORK_H

/* Between any two machines; a machine has one link, which its ranks share. */
struct network {
  double latency;   /* seconds from a send to its receipt */
  double bandwidth; /* bytes a second, each way */
  double step;      /* seconds of a step with no exchange, on one rank; 0: unknown */
};

#endif
