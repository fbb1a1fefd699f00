#include "signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t came;

static void note(int number) {
  came = number;
}

void rt_signals_watch(void) {
  struct sigaction action = {.sa_handler = note, .sa_flags = SA_RESTART};
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  action.sa_flags |= SA_RESETHAND;
  sigaction(SIGINT, &action, NULL);
}

int rt_signals_came(void) {
  return came;
}

const char *rt_signal_name(int number) {
  switch (number) {
  case SIGTERM:
    return "SIGTERM";
  case SIGUSR1:
    return "SIGUSR1";
  case SIGINT:
    return "SIGINT";
  default:
    return NULL;
  }
}
