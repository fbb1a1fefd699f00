/* Update: which threads run the optimizer's update. */
#ifndef ACCEL_PLAN_KERNELS_UPDATE_H
#define ACCEL_PLAN_KERNELS_UPDATE_H

#include "gen/program/program.h"

/* Chooses who does an update that is one sweep: all threads, or one where dividing it among threads would cost more
 * than running it. After the figures. */
void choose_update(struct program *program);

#endif
