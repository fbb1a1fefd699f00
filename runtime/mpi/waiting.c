#include "runtime/mpi/waiting.h"

#include "runtime/collectives.h"
#include "runtime/process/problem.h"
#include "runtime/process/world.h"
#include "runtime/report/stopwatch.h"

#include <sched.h>
#include <stdnoreturn.h>

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

/* ---- One rank tells that another is late: who first says that it will. Of two that say so at once, the lower. ---- */

enum { TELLS_OF_LATE = 1 }; /* the tag of an empty message; nothing else goes from rank to rank in MPI_COMM_WORLD */

static const double under_way = 0.5; /* seconds that such a message may take */

/* The lowest rank of those whose messages are here; -1: none is. */
static int who_tells(void) {
  int first = -1, here = 1;
  while (here) {
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, TELLS_OF_LATE, MPI_COMM_WORLD, &here, &status) != MPI_SUCCESS || !here) break;
    MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, TELLS_OF_LATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (first < 0 || status.MPI_SOURCE < first) first = status.MPI_SOURCE;
  }
  return first;
}

/* Says so to the others; the one that is late never takes the message, so nobody waits for that. */
static void claim(void) {
  for (int rank = 0; rank < rt_world()->ranks; rank++) {
    MPI_Request request;
    if (rank == rt_world()->rank) continue;
    if (MPI_Isend(NULL, 0, MPI_BYTE, rank, TELLS_OF_LATE, MPI_COMM_WORLD, &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

static bool is_ours_to_tell(void) {
  if (who_tells() >= 0) return false;
  claim();
  for (double start = rt_now(); rt_now() - start < under_way; sched_yield()) {
    int other = who_tells();
    if (other >= 0 && other < rt_world()->rank) return false;
  }
  return true;
}

static noreturn void fail_late(const char *what) {
  struct problem problem;
  if (!is_ours_to_tell()) rt_world_await_end(1);
  rt_problem(&problem, "%s: another rank did not come within %.0f s", what, timeout);
  rt_help(&problem, "look at what the other ranks and their machines are doing; devices.timeout is how long is waited");
  rt_fail(&problem, 1);
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
    if (rt_now() - start > timeout) fail_late(what);
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
