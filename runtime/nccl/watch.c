#include "runtime/base/problem.h"
#include "runtime/nccl/groups.h"
#include "runtime/process/fail.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static bool is_over = true;
static ncclComm_t watched[MOST_WATCHED];
static int n_watched;

static void give_up(ncclResult_t error) {
  struct problem problem;
  for (int i = 0; i < n_watched; i++) ncclCommAbort(watched[i]);
  rt_problem(&problem, "NCCL: %s", ncclGetErrorString(error));
  rt_help(&problem, "another rank, or the network between them, has failed; NCCL_DEBUG=WARN makes NCCL say more");
  rt_fail(&problem, 1);
}

static void look(void) {
  for (int i = 0; i < n_watched; i++) {
    ncclResult_t error = ncclSuccess;
    ncclResult_t status = ncclCommGetAsyncError(watched[i], &error);
    if (status != ncclSuccess) error = status;
    if (error != ncclSuccess && error != ncclInProgress) give_up(error);
  }
}

static void *watch(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  while (!is_over) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    if (until.tv_nsec >= 1000000000) {
      until.tv_sec++;
      until.tv_nsec -= 1000000000;
    }
    if (pthread_cond_timedwait(&ended, &lock, &until) == ETIMEDOUT && !is_over) look();
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}

void rt_nccl_watch(ncclComm_t comm) {
  struct problem problem;
  pthread_mutex_lock(&lock);
  const bool is_first = is_over;
  is_over = false;
  watched[n_watched++] = comm;
  pthread_mutex_unlock(&lock);
  if (!is_first || pthread_create(&thread, NULL, watch, NULL) == 0) return;
  rt_problem(&problem, "no thread to watch NCCL");
  rt_fail(&problem, 1);
}

void rt_nccl_watch_end(void) {
  pthread_mutex_lock(&lock);
  bool was_over = is_over;
  is_over = true;
  n_watched = 0;
  pthread_cond_signal(&ended);
  pthread_mutex_unlock(&lock);
  if (!was_over) pthread_join(thread, NULL);
}
