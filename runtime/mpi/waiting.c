#include "runtime/mpi/waiting.h"

#include "runtime/collectives.h"
#include "runtime/process/problem.h"
#include "runtime/process/world.h"
#include "runtime/report/stopwatch.h"

#include <sched.h>

static double timeout = 600; /* until a program says another */

void rt_world_wait_at_most(int seconds) {
  timeout = seconds;
}

void rt_mpi_check(int code, const char *what) {
  char text[MPI_MAX_ERROR_STRING] = "";
  struct problem problem;
  int length;
  if (code == MPI_SUCCESS) return;
  MPI_Error_string(code, text, &length);
  rt_problem(&problem, "MPI: %s: %s", what, text);
  rt_fail(&problem, 1);
}

static void fail_late(const char *what) {
  struct problem problem;
  rt_problem(&problem, "%s: another rank did not come within %.0f s", what, timeout);
  rt_help(&problem, "look at what the other ranks and their machines are doing; devices.timeout is how long is waited");
  rt_fail(&problem, 1);
}

/* One rank tells: others wait a little longer, in which the first ends them. */
static double patience(void) {
  int rank = rt_world()->rank;
  return timeout + (rank < 4 ? 0.5 * rank : 2);
}

/* The processor is given away between looks, as ranks may be more than there are processors. */
void rt_wait_until(bool (*look)(void *at), void *at, const char *what) {
  enum { LOOKS = 256 };
  double start = 0;
  for (;;) {
    for (int i = 0; i < LOOKS; i++) {
      if (look(at)) return;
      accel_advance_collectives(); /* others may wait for this rank's part before they come */
      sched_yield();
    }
    if (start == 0) start = rt_now();
    if (rt_now() - start > patience()) fail_late(what);
  }
}

/* ---- For MPI ---- */

struct call {
  MPI_Request *request;
  const char *what;
};

static bool has_ended(void *at) {
  const struct call *call = at;
  int done = 0;
  rt_mpi_check(MPI_Test(call->request, &done, MPI_STATUS_IGNORE), call->what);
  return done != 0;
}

void rt_mpi_wait(MPI_Request *request, const char *what) {
  rt_wait_until(has_ended, &(struct call){request, what}, what);
}
