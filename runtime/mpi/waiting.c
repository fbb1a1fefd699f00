#include "runtime/mpi/waiting.h"

#include "include/accel/collectives.h"
#include "runtime/base/clock.h"
#include "runtime/base/problem.h"
#include "runtime/process/fail.h"
#include "runtime/process/world.h"

#include <sched.h>
#include <stdio.h>
#include <stdnoreturn.h>
#include <string.h>

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

/* ---- One rank reports that another is late: who first says that it will. Of two that say so at once, the lower. ----
 */

enum { IS_LATE = 1 }; /* the tag of what ranks then send; nothing else goes from rank to rank in MPI_COMM_WORLD */
static const double under_way = 0.5; /* seconds that it may take */

/* What a rank waits for, sent to all others. */
struct claim {
  int rank;     /* -1: nobody's */
  bool reports; /* it had heard of nobody else that reports */
  char what[56];
};

/* The own one, and of those of other ranks that are here the lowest that reports, and one that waits for something
 * else.
 */
struct claims {
  struct claim own, lowest, elsewhere;
};

static void look_for_claims(struct claims *claims) {
  for (;;) {
    struct claim other;
    MPI_Status status;
    int here = 0;
    if (MPI_Iprobe(MPI_ANY_SOURCE, IS_LATE, MPI_COMM_WORLD, &here, &status) != MPI_SUCCESS || !here) return;
    MPI_Recv(&other, sizeof other, MPI_BYTE, status.MPI_SOURCE, IS_LATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (other.reports && (claims->lowest.rank < 0 || other.rank < claims->lowest.rank)) claims->lowest = other;
    if (strcmp(other.what, claims->own.what) != 0) claims->elsewhere = other;
  }
}

/* The one that is late never takes it, so nobody waits for that; `own` stays where it is. */
static void send_claim(const struct claim *own) {
  for (int rank = 0; rank < rt_world()->ranks; rank++) {
    MPI_Request request;
    if (rank == own->rank) continue;
    if (MPI_Isend(own, sizeof *own, MPI_BYTE, rank, IS_LATE, MPI_COMM_WORLD, &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

static bool is_ours_to_report(struct claims *claims) {
  look_for_claims(claims);
  claims->own.reports = claims->lowest.rank < 0;
  send_claim(&claims->own);
  for (double start = rt_now(); rt_now() - start < under_way; sched_yield()) look_for_claims(claims);
  return claims->own.reports && (claims->lowest.rank < 0 || claims->lowest.rank > claims->own.rank);
}

static noreturn void fail_late(const char *what) {
  static struct claims claims = {.lowest.rank = -1, .elsewhere.rank = -1};
  struct problem problem;
  claims.own.rank = rt_world()->rank;
  snprintf(claims.own.what, sizeof claims.own.what, "%s", what);
  if (!is_ours_to_report(&claims)) rt_world_await_end(1);
  rt_problem(&problem, "%s: another rank did not come within %.0f s", what, timeout);
  rt_help(
      &problem,
      "look at what the other ranks and their machines are doing; devices.timeout is the number of seconds to wait");
  if (claims.elsewhere.rank >= 0)
    rt_help(&problem, "rank %d waits elsewhere: %s", claims.elsewhere.rank, claims.elsewhere.what);
  rt_fail(&problem, 1);
}

/* A message of this rank that is larger than MPI sends at once moves only while the rank is in a function of MPI, and
 * what it waits for in a shared segment may need that message to arrive. */
static void move_messages(void) {
  MPI_Status status;
  int here = 0;
  (void)MPI_Iprobe(MPI_ANY_SOURCE, IS_LATE, MPI_COMM_WORLD, &here, &status);
}

/* The processor is given away between looks, as ranks may be more than there are processors. */
void rt_wait_until(bool (*look)(void *at), void *at, const char *what) {
  enum { LOOKS = 256 };
  double start = 0;
  for (;;) {
    for (int i = 0; i < LOOKS; i++) {
      if (look(at)) return;
      accel_advance_collectives(); /* others may wait for this rank's part before they come */
      move_messages();
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
