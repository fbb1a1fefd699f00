/* How the processes of a job's program are started. */
#ifndef ACCEL_COMMANDS_LAUNCH_H
#define ACCEL_COMMANDS_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/commands/process.h"
#include "gen/spec/job.h"

enum starter { BY_MPIRUN, BY_SRUN, BY_ENV, STARTERS };

struct launch {
  enum starter by;
  const char *hosts; /* "a,b" for mpirun; NULL: this machine, or what mpirun knows */
  const char *job, *program;
  bool print;
  char **flags; /* of the program, ending with NULL */
};

/* The command that starts all ranks of `job` by mpirun. `hosts` is what --host gets, "a:4,b:4"; NULL: nothing. */
struct words launch_by_mpirun(struct arena *arena, const struct launch *launch, const struct job *job,
                              const char *hosts);

/* The same for srun, within a job of Slurm. */
struct words launch_by_srun(struct arena *arena, const struct launch *launch, const struct job *job);

/* Runs a command of mpirun's to its end and gives its status. A signal that asks to end reaches the ranks: SIGTERM,
 * after which mpirun would give them a second, as SIGUSR1 where they save on it. The status of ranks
 * that saved and ended on it is 128 and the number of the signal that came. `beside` is called ten times a second.
 */
struct watch {
  bool (*look)(void *of); /* false: the ranks are to end */
  void *of;
};
int launch_run(const struct words *command, bool saves, const struct watch *beside);

/* Whether this process was started by the convention of torchrun: RANK, WORLD_SIZE and MASTER_ADDR are set. */
bool launch_is_convention(void);

/* Starts the ranks when processes were started by that convention: each runs this, and they meet at
 * MASTER_ADDR:MASTER_PORT. That of RANK 0 runs mpirun; on each other machine one runs mpirun's daemon. Gives the exit
 * status, the same in all of them. */
int launch_by_env(struct arena *arena, const struct launch *launch, const struct job *job);

/* What mpirun calls in the place of ssh: hands `words`, a machine and a command, to the process that waits there. */
int launch_agent(const char *socket, char **words);

#endif
