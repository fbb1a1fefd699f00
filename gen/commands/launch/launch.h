/* How the processes of a job's program are started. */
#ifndef ACCEL_COMMANDS_LAUNCH_LAUNCH_H
#define ACCEL_COMMANDS_LAUNCH_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/commands/cli/process.h"
#include "gen/spec/job.h"

enum starter { BY_MPIRUN, BY_SRUN, BY_ENV, STARTERS };

struct launch {
  enum starter by;
  const char *hosts; /* "a,b" for mpirun; NULL: this machine, or what mpirun knows */
  const char *job;   /* NULL: the program says by itself what is started */
  const char *program;
  bool print;
  char **flags; /* of the program, ending with NULL */
};

/* What is started, by the job or by the program itself. */
struct launched {
  int64_t count, nodes;      /* ranks, and the machines that have as many each */
  int64_t timeout;           /* seconds that a rank waits for others */
  bool saves_on_signal;      /* else a signal ends the ranks */
  bool meets_by_environment; /* the ranks read torchrun's variables by themselves; else MPI starts them */
};

/* What a program of accel-gen prints of itself with --version. It replaces the machines of `hosts` or of a job of
 * Slurm. False, after a message, where it prints nothing of the kind. */
bool launched_of_program(struct arena *arena, const struct launch *launch, struct launched *ranks);

/* The command that starts all `ranks` by mpirun. `hosts` is what --host gets, "a:4,b:4"; NULL: nothing. */
struct words launch_by_mpirun(struct arena *arena, const struct launch *launch, const struct launched *ranks,
                              const char *hosts);

/* The same for srun, within a job of Slurm. */
struct words launch_by_srun(struct arena *arena, const struct launch *launch, const struct launched *ranks);

struct watch {
  bool (*look)(void *of); /* false: the ranks are to end */
  void *of;
};

/* Runs a command of mpirun's to its end and gives its status; 127: it did not start, and a message says why. SIGTERM,
 * SIGUSR1, SIGHUP and SIGINT reach the ranks: where they save on a signal (`saves`) as SIGUSR1, as on others mpirun
 * would end them, and the status of ranks that saved is 128 and the number of the signal that came. Where mpirun passes
 * it on to nobody, the ranks of this machine get it from here. `watch` (NULL: none) is called ten times a second. */
int launch_run(const struct words *command, bool saves, const struct watch *watch);

/* Says on standard error what to do where mpirun ended with `status` because of what Open MPI requires: nothing where
 * that is not the reason. `hosts` is what --host got; NULL: nothing. */
void launch_explain(int status, const struct launched *ranks, const char *hosts);

/* Has the signals that ask to end handled, but for those that are ignored, as by nohup. `flags` are sigaction's. */
void launch_catch(void (*handler)(int), int flags);

/* Whether this process was started by the convention of torchrun: RANK, WORLD_SIZE and MASTER_ADDR are set. */
bool launch_is_convention(void);

/* On a machine of SageMaker where nothing else has set these variables: sets them from its list of machines,
 * SM_HOSTS and SM_CURRENT_HOST or /opt/ml/input/config/resourceconfig.json. A process is a machine. */
void launch_take_sagemaker(void);

/* Starts the ranks when processes were started by that convention: each runs this, and they meet at
 * MASTER_ADDR:MASTER_PORT. That of RANK 0 runs mpirun; on each other machine one runs mpirun's daemon. Gives the exit
 * status, the same in all of them. */
int launch_by_env(struct arena *arena, const struct launch *launch, const struct launched *ranks);

/* What mpirun calls instead of ssh: hands `words`, a machine and a command, to the process that waits there. */
int launch_agent(const char *socket, char **words);

#endif
