#include "runtime/process/thread.h"

#include <signal.h>

/* All but those that a fault raises in the thread itself: the system ends a process that blocks one of these. */
static sigset_t of_others(void) {
  static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
  sigset_t set;
  sigfillset(&set);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&set, faults[i]);
  return set;
}

int rt_thread_start(pthread_t *thread, size_t stack, void *(*work)(void *argument), void *argument) {
  const sigset_t blocked = of_others();
  sigset_t before;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack > 0) pthread_attr_setstacksize(&attributes, stack);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  const int error = pthread_create(thread, &attributes, work, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return error;
}
