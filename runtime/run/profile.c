#include "include/accel/profile.h"

#include "runtime/report/intervals.h"
#include "runtime/run/run.h"

void accel_begin_profile_step(struct accel_run *run, int64_t at) {
  rt_intervals_begin(&run->program->profile, at, at - run->first_step);
}
