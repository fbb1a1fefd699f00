/* Stage occupancy: what a rank of a pipeline has in its memory over a step of a trainer. Time is in the parts of
 * stage_times_of. Bytes are those that the rank uses: what others use of the arena that all have is left out, so that
 * `at` is no address. */
#ifndef ACCEL_PLAN_REPORT_STAGE_OCCUPANCY_H
#define ACCEL_PLAN_REPORT_STAGE_OCCUPANCY_H

#include "gen/plan/report/occupancy.h"
#include "gen/plan/report/stage_times.h"

/* What a rank has throughout; then the activations of each micro-batch in each of its stages, from the start of its
 * forward to the end of the last action that reads them. */
struct stage_occupancy {
  struct {
    struct occupant *items; /* first: the part before which it is there; last: the part after which it is not */
    int count, capacity;
  } occupants;
  int64_t total; /* bytes of the rank */
};

/* Of each rank along pp, from 0; NULL where a program is no trainer whose ranks are stages of a pipeline. */
struct stage_occupancy *stage_occupancies_of(struct program *program, const struct stage_times *times);

#endif
