/* Threads of the runtime's own: signals that are sent to the process do not reach them, and their faults are handled.
 */
#include "cmocka_all.h"

#include "runtime/files/mapping.h"
#include "runtime/process/thread.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char path[] = "/tmp/accel-thread-XXXXXX";

static void *read_first(void *argument) {
  const struct mapping *file = argument;
  (void)*(const volatile uint8_t *)file->bytes;
  return NULL;
}

static void *say_blocked(void *argument) {
  sigset_t set;
  pthread_sigmask(SIG_SETMASK, NULL, &set);
  *(bool *)argument = sigismember(&set, SIGTERM) && sigismember(&set, SIGINT) && sigismember(&set, SIGUSR1);
  return NULL;
}

static void leaves_signals_to_others(void **state) {
  (void)state;
  pthread_t thread;
  sigset_t set;
  bool blocked = false;
  assert_int_equal(rt_thread_start(&thread, 1 << 18, say_blocked, &blocked), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_true(blocked);
  assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &set), 0);
  assert_false(sigismember(&set, SIGTERM));
}

/* The status is that of the handler's message, not of a signal. */
static void says_that_a_file_became_shorter(void **state) {
  (void)state;
  int status;
  const pid_t child = fork();
  if (child == 0) {
    struct problem problem;
    struct mapping file;
    pthread_t thread;
    rt_guard_mappings();
    if (!rt_map(&file, path, "", &problem) || truncate(path, 0) != 0) _exit(2);
    if (rt_thread_start(&thread, 0, read_first, &file) == 0) pthread_join(thread, NULL);
    _exit(3);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 1);
}

int main(void) {
  const int file = mkstemp(path);
  if (file < 0 || write(file, "12345678", 8) != 8) return 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leaves_signals_to_others),
      cmocka_unit_test(says_that_a_file_became_shorter),
  };
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  unlink(path);
  return failed;
}
