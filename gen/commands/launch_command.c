/* The commands of mpirun and srun. */
#include "gen/commands/launch.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void add_program(struct words *command, const struct launch *launch) {
  bool is_path = strchr(launch->program, '/') != NULL;
  words_add(command, is_path ? launch->program : arena_printf(command->arena, "./%s", launch->program));
  for (char **flag = launch->flags; *flag != NULL; flag++) words_add(command, *flag);
}

static void add_setting(struct words *command, const char *name, int64_t value) {
  words_add(command, arena_printf(command->arena, "OMPI_MCA_%s=%lld", name, (long long)value));
}

/* Open MPI notices after hours that a machine does not answer, so that mpirun and what runs there would outlive the
 * ranks. Here within three quarters of devices.timeout: a quarter of it silence, then three questions. */
static void add_keepalive(struct words *command, int64_t timeout) {
  enum { QUESTIONS = 3 };
  words_add(command, "env");
  add_setting(command, "oob_tcp_keepalive_time", timeout >= 4 ? timeout / 4 : 1);
  add_setting(command, "oob_tcp_keepalive_intvl", timeout >= 6 ? timeout / 6 : 1);
  add_setting(command, "oob_tcp_keepalive_probes", QUESTIONS);
}

struct words launch_by_mpirun(struct arena *arena, const struct launch *launch, const struct job *job,
                              const char *hosts) {
  struct words command = words_in(arena);
  if (job->devices.nodes > 1) add_keepalive(&command, job->devices.timeout);
  words_add(&command, "mpirun");
  words_add(&command, "--bind-to");
  words_add(&command, "none");
  words_add(&command, "-n");
  words_add(&command, arena_printf(arena, "%lld", (long long)job->devices.ranks));
  if (hosts != NULL) {
    words_add(&command, "--host");
    words_add(&command, hosts);
  }
  add_program(&command, launch);
  return command;
}

/* Where Slurm has PMIx, which MPI starts by, it need not be what srun takes by itself. */
static bool offers_pmix(struct arena *arena) {
  struct words ask = words_in(arena);
  words_add(&ask, "sh");
  words_add(&ask, "-c");
  words_add(&ask, "srun --mpi=list 2>&1");
  const char *kinds = process_read(&ask);
  return kinds != NULL && strstr(kinds, "pmix") != NULL;
}

struct words launch_by_srun(struct arena *arena, const struct launch *launch, const struct job *job) {
  struct words command = words_in(arena);
  const char *each = getenv("SLURM_CPUS_PER_TASK"); /* srun does not take it from the job by itself */
  words_add(&command, "srun");
  words_add(&command, arena_printf(arena, "--nodes=%lld", (long long)job->devices.nodes));
  words_add(&command,
            arena_printf(arena, "--ntasks-per-node=%lld", (long long)(job->devices.ranks / job->devices.nodes)));
  words_add(&command, "--kill-on-bad-exit=1");
  if (getenv("SLURM_MPI_TYPE") == NULL && offers_pmix(arena)) words_add(&command, "--mpi=pmix");
  if (each != NULL) words_add(&command, arena_printf(arena, "--cpus-per-task=%s", each));
  add_program(&command, launch);
  return command;
}

/* ---- Running it ---- */

static volatile sig_atomic_t asked; /* the signal that came last; 0: none */

static void note(int signal) {
  asked = signal;
}

static void watch_signals(void) {
  struct sigaction action = {.sa_handler = note};
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
}

int launch_run(const struct words *command, bool saves, const struct watch *beside) {
  const struct timespec pause = {0, 100000000};
  int status = 0, got = 0; /* the signal that was passed on first; 0: none */
  bool told = false;       /* to save: once, as a launcher that is done dies of the signal, and its ranks were not to */
  pid_t child = fork();
  if (child == 0) {
    execvp(command->items[0], command->items);
    _exit(127);
  }
  if (child < 0) return 127;
  watch_signals();
  for (pid_t ended; (ended = waitpid(child, &status, WNOHANG)) != child;) {
    if (ended < 0) return 127;
    if (asked != 0 && !(saves && told)) {
      if (!told) got = asked;
      kill(child, saves ? SIGUSR1 : asked);
      told = true;
    }
    asked = 0;
    if (beside != NULL && !beside->look(beside->of)) kill(child, SIGTERM);
    nanosleep(&pause, NULL);
  }
  int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return got != 0 && ended == 128 + SIGUSR1 ? 128 + got : ended; /* as if it had gone to the ranks itself */
}
