/* Says who it is among the processes, and does what some of them do: a line each on standard error, as a logger writes
 * them; and who came first in a block, in the order in which they came, to the file of the first argument. */
#include "include/accel/accel.h"

#include <stdio.h>
#include <stdlib.h>

static void say(const char *what) {
  struct accel_logger logger = accel_get_logger("who", ACCEL_LEVEL_INFO);
  accel_write(&logger, ACCEL_LEVEL_INFO, ACCEL_EVERY_PROCESS, "%s", what);
}

static void come(const char *path, const char *what) {
  FILE *file = fopen(path, "a");
  if (file == NULL) abort();
  fprintf(file, "%s %d\n", what, accel_process()->index == 0);
  fclose(file);
}

int main(int argc, char **argv) {
  (void)argc;
  accel_processes_start(20);
  const struct accel_process *process = accel_process();
  struct accel_logger logger = accel_get_logger("who", ACCEL_LEVEL_INFO);
  accel_write(&logger, ACCEL_LEVEL_INFO, ACCEL_IN_ORDER, "%d %d %d %d %d %d %s %s", process->index, process->count,
              process->local_index, process->is_main, process->is_local_main, process->is_last,
              process->distributed_type, process->device);
  if (accel_on_main_process()) say("main");
  if (accel_on_local_main_process()) say("local main");
  if (accel_on_last_process()) say("last");
  if (accel_on_process(1)) say("process 1");
  if (accel_on_local_process(1)) say("local process 1");
  ACCEL_MAIN_PROCESS_FIRST {
    come(argv[1], "first");
  }
  accel_wait_for_everyone();
  ACCEL_LOCAL_MAIN_PROCESS_FIRST {
    come(argv[1], "local first");
  }
  accel_write(&logger, ACCEL_LEVEL_WARNING, ACCEL_MAIN_PROCESS_ONLY, "of %s", "main");
  accel_write(&logger, ACCEL_LEVEL_DEBUG, ACCEL_EVERY_PROCESS, "below the level");
  accel_write(&logger, ACCEL_LEVEL_ERROR, ACCEL_EVERY_PROCESS, "of all");
  accel_write(&logger, ACCEL_LEVEL_CRITICAL, ACCEL_IN_ORDER, "in order");
  for (int i = 0; i < 3; i++) ACCEL_WARNING_ONCE(&logger, "once");
  accel_processes_end();
  return 0;
}
