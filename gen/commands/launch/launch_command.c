/* The commands of mpirun and srun. */
#include "gen/commands/launch/launch.h"

#include <stdlib.h>
#include <string.h>

static void add_program(struct words *command, const struct launch *launch) {
  bool is_path = strchr(launch->program, '/') != NULL;
  words_add(command, is_path ? launch->program : arena_printf(command->arena, "./%s", launch->program));
  for (char **flag = launch->flags; *flag != NULL; flag++) words_add(command, *flag);
}

/* Of mpirun's environment, before it. */
static void add_variable(struct words *command, const char *text) {
  if (command->count == 0) words_add(command, "env");
  words_add(command, text);
}

static void add_setting(struct words *command, const char *name, int64_t value) {
  add_variable(command, arena_printf(command->arena, "OMPI_MCA_%s=%lld", name, (long long)value));
}

/* Open MPI notices after hours that a machine does not answer, so that mpirun and what runs there would outlive the
 * ranks. Here within three quarters of devices.timeout: a quarter of it silence, then three questions. */
static void add_keepalive(struct words *command, int64_t timeout) {
  enum { QUESTIONS = 3 };
  add_setting(command, "oob_tcp_keepalive_time", timeout >= 4 ? timeout / 4 : 1);
  add_setting(command, "oob_tcp_keepalive_intvl", timeout >= 6 ? timeout / 6 : 1);
  add_setting(command, "oob_tcp_keepalive_probes", QUESTIONS);
}

/* hwloc would load drivers of OpenCL into mpirun, and what they bring takes signals that mpirun is to pass on, as LLVM
 * does SIGUSR1. Who names the component has decided; and a topology from elsewhere, for which hwloc loads none, counts
 * while no component is named. */
static void add_components(struct words *command) {
  const char *given = environment("HWLOC_COMPONENTS", NULL);
  bool elsewhere = environment("HWLOC_XMLFILE", NULL) != NULL || environment("HWLOC_SYNTHETIC", NULL) != NULL;
  if (given == NULL && elsewhere) return;
  if (given == NULL)
    add_variable(command, "HWLOC_COMPONENTS=-opencl");
  else if (strstr(given, "opencl") == NULL)
    add_variable(command, arena_printf(command->arena, "HWLOC_COMPONENTS=%s,-opencl", given));
}

struct words launch_by_mpirun(struct arena *arena, const struct launch *launch, const struct launched *ranks,
                              const char *hosts) {
  struct words command = words_in(arena);
  add_components(&command);
  if (ranks->nodes > 1) add_keepalive(&command, ranks->timeout);
  words_add(&command, "mpirun");
  words_add(&command, "--bind-to");
  words_add(&command, "none");
  words_add(&command, "-n");
  words_add(&command, arena_printf(arena, "%lld", (long long)ranks->count));
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

struct words launch_by_srun(struct arena *arena, const struct launch *launch, const struct launched *ranks) {
  struct words command = words_in(arena);
  const char *each = getenv("SLURM_CPUS_PER_TASK"); /* srun does not take it from the job by itself */
  words_add(&command, "srun");
  words_add(&command, arena_printf(arena, "--nodes=%lld", (long long)ranks->nodes));
  words_add(&command, arena_printf(arena, "--ntasks-per-node=%lld", (long long)(ranks->count / ranks->nodes)));
  words_add(&command, "--kill-on-bad-exit=1");
  if (getenv("SLURM_MPI_TYPE") == NULL && offers_pmix(arena)) words_add(&command, "--mpi=pmix");
  if (each != NULL) words_add(&command, arena_printf(arena, "--cpus-per-task=%s", each));
  add_program(&command, launch);
  return command;
}
