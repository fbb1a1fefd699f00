/* Completion: when the backward is done with each weight, so that what follows from its gradient can begin while the
 * backward continues: a sum over ranks, an update.
 *
 * Time is counted in points: the ends of the statements of functions that run once in a step, and of each iteration of
 * those that are loops. */
#ifndef ACCEL_PLAN_MEMORY_COMPLETION_H
#define ACCEL_PLAN_MEMORY_COMPLETION_H

#include "gen/program/program.h"

struct completion_point {
  struct step *step;
  int iteration;
};

/* Of weights the number of points up to one, that one included; 0: none. */
struct completion {
  struct program *program;
  struct {
    struct completion_point *items;
    int count, capacity;
  } points;
  int *first; /* by weight: up to the first one that writes its gradient */
  int *ready; /* up to the last one that adds to its gradient, or reads that */
  int *freed; /* up to the last one that may read the weight itself */
};

/* After the layout, of a program with a backward: fills *completion from the program's arena. */
void find_completion(struct program *program, struct completion *completion);

/* Fills the steps' `complete`, of which item i counts once so many points as ready[i] are over; ready ascends. */
void mark_completion(const struct completion *completion, const int *ready, int count);

#endif
