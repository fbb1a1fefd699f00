/* Signals that ask a run to end: where they are taken, and that none is missed. */
#include "runtime/process/signals.h"
#include "tests/runtime/cmocka_all.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

static bool soon(int number) {
  for (int i = 0; i < 10000 && rt_signals_came() != number; i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  return rt_signals_came() == number;
}

static bool is_blocked(int number) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, NULL, &now);
  return sigismember(&now, number) == 1;
}

/* No thread that computes runs a handler. */
static void test_threads(void **state) {
  int blocked = 0;
  (void)state;
#pragma omp parallel num_threads(3) reduction(+ : blocked)
  blocked += is_blocked(SIGTERM) + is_blocked(SIGUSR1) + is_blocked(SIGHUP) + is_blocked(SIGINT);
  assert_int_equal(blocked, 3 * 4);
}

static void test_sent(void **state) {
  (void)state;
  assert_int_equal(rt_signals_came(), 0);
  kill(getpid(), SIGTERM); /* to the process */
  assert_true(soon(SIGTERM));
  raise(SIGUSR1); /* to this thread */
  assert_int_equal(rt_signals_came(), SIGUSR1);
  assert_string_equal(rt_signal_name(SIGUSR1), "SIGUSR1");
  kill(getpid(), SIGHUP);
  assert_true(soon(SIGHUP));
}

/* A run that nohup started does not end with its terminal. */
static void test_ignored(void **state) {
  struct sigaction now;
  (void)state;
  signal(SIGHUP, SIG_IGN);
  rt_signals_watch();
  sigaction(SIGHUP, NULL, &now);
  assert_true(now.sa_handler == SIG_IGN);
}

/* SIGINT is what a user types: the first is noted, the second ends the process though it never looks. */
static void test_second_interrupt(void **state) {
  (void)state;
  kill(getpid(), SIGINT);
  assert_true(soon(SIGINT));
  struct sigaction now;
  sigaction(SIGINT, NULL, &now);
  assert_true(now.sa_handler == SIG_DFL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads), cmocka_unit_test(test_sent),
                                     cmocka_unit_test(test_second_interrupt), cmocka_unit_test(test_ignored)};
  rt_signals_watch();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
