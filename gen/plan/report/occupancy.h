/* Occupancy: which bytes of the arena hold what over a step of a trainer. Time is counted in statements, through all
 * calls and iterations: those of the forward from 1 on, those of the backward after them, then the end of the step. */
#ifndef ACCEL_PLAN_REPORT_OCCUPANCY_H
#define ACCEL_PLAN_REPORT_OCCUPANCY_H

#include "gen/program/program.h"

/* The arena by purpose, in the order of addresses. */
enum occupied {
  OCCUPIED_WEIGHTS,
  OCCUPIED_GRADIENTS,
  OCCUPIED_OPTIMIZER,
  OCCUPIED_AVERAGES,
  OCCUPIED_BATCH,
  OCCUPIED_ACTIVATIONS,
  OCCUPIED_SCRATCH,
  OCCUPIED_CHECKPOINT,
  OCCUPIED_KINDS
};

/* "weights" */
extern const char *const occupied_names[OCCUPIED_KINDS];

struct occupant {
  const char *name;   /* "block_saved[3]"; "" of scratch */
  enum occupied kind; /* what it is: activations may be in the region of gradients */
  int64_t at, bytes;
  int64_t first, last; /* statements, both included */
};

struct occupancy {
  struct {
    struct occupant *items;
    int count, capacity;
  } occupants;
  struct {
    int64_t at, bytes;
  } regions[OCCUPIED_KINDS];
  int64_t total;             /* bytes of the arena */
  int64_t forward, backward; /* statements; the end of the step is one more */
};

/* NULL of what has no such picture: other programs than trainers, and those whose ranks are stages of a pipeline. */
struct occupancy *occupancy_of(struct program *program);

#endif
