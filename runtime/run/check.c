/* What a step cannot stop for is looked at between steps. */
#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/process/fail.h"

void accel_check(int status, const char *what) {
  struct problem problem;
  if (status == 0) return;
  rt_problem(&problem, "%s (status %d); stopped, nothing of these steps is written", what, status);
  rt_help(&problem, "most likely the machine is out of memory");
  rt_fail(&problem, 1);
}
