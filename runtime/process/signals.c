#include "runtime/process/signals.h"

#include "runtime/base/problem.h"
#include "runtime/process/fail.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t came;

static void note(int number) {
  came = number;
}

static sigset_t watched(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGINT);
  return set;
}

static void *listen(void *unused) {
  for (;;) pause();
  return unused;
}

/* A thread that does nothing else takes the signals; the one that steps, and those that it starts, leave them to it.
 * oneDNN's GEMMs (jit_avx512_common_gemm_f32, up to version 3.11) have the stack pointer point into memory of malloc
 * while they run, and a handler on such a stack writes over what is below. */
static int start_listening(void) {
  enum { STACK_BYTES = 256 << 10 };
  pthread_attr_t attributes;
  pthread_t thread;
  const sigset_t set = watched();
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  int error = pthread_create(&thread, &attributes, listen, NULL);
  pthread_attr_destroy(&attributes);
  return error != 0 ? error : pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* By nohup, which means that the run outlives its terminal. */
static bool is_ignored(int number) {
  struct sigaction now;
  return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void rt_signals_watch(void) {
  struct problem problem;
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  if (!is_ignored(SIGHUP)) sigaction(SIGHUP, &action, NULL);
  action.sa_flags |= SA_RESETHAND;
  sigaction(SIGINT, &action, NULL);
  int error = start_listening();
  if (error == 0) return;
  rt_problem(&problem, "no thread to wait for signals: %s", strerror(error));
  rt_help(&problem, "set checkpoint.on_signal: end in the job");
  rt_fail(&problem, 1);
}

/* What was sent to this thread alone, as by raise(), waits to be taken. */
int rt_signals_came(void) {
  const sigset_t set = watched();
  int own = sigtimedwait(&set, NULL, &(struct timespec){0, 0});
  if (own == SIGINT) signal(SIGINT, SIG_DFL);
  if (own > 0) note(own);
  return came;
}

const char *rt_signal_name(int number) {
  switch (number) {
  case SIGTERM:
    return "SIGTERM";
  case SIGUSR1:
    return "SIGUSR1";
  case SIGHUP:
    return "SIGHUP";
  case SIGINT:
    return "SIGINT";
  default:
    return NULL;
  }
}

int rt_signal_status(int number) {
  return 128 + number;
}
