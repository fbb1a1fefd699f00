/* Engines: what starts a program on machines that it chooses by itself, from a file that describes the run. */
#ifndef ACCEL_COMMANDS_LAUNCH_ENGINE_H
#define ACCEL_COMMANDS_LAUNCH_ENGINE_H

#include "gen/commands/cli/options.h"
#include "gen/commands/launch/launch.h"

/* Writes the file of the engine options->write to options->output (NULL: standard output): a script of sbatch, a
 * manifest of Kubernetes, a request of SageMaker. `job` is the
 * job of the program, and `ranks` what is started. Gives the exit status;
 * STATUS_BAD_JOB, after a message, where a parameter of --with is missing, unknown, or none that the engine can read.
 */
int launch_write(const struct options *options, const struct launch *launch, const struct job *job,
                 const struct launched *ranks);

#endif
