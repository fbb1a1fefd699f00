/* Commands: what each word after `accel-gen` does. Each returns an exit status (gen/commands/cli/options.h) and prints
 * its own messages to standard error. */
#ifndef ACCEL_COMMANDS_CLI_COMMANDS_H
#define ACCEL_COMMANDS_CLI_COMMANDS_H

#include "gen/commands/cli/options.h"

/* accel-gen JOB -o FILE: writes the program. */
int command_generate(const struct options *options);

/* accel-gen plan JOB: what the program will need. */
int command_plan(const struct options *options);

/* accel-gen tune JOB: measures the kernels of the job's trainer on this machine, into a table that plans read. */
int command_tune(const struct options *options);

/* accel-gen check JOB: whether plan takes the job; with --resolved, the job with every default filled in, also of a
 * program or a checkpoint. */
int command_check(const struct options *options);

/* accel-gen build JOB -o PROGRAM: generates and compiles. */
int command_build(const struct options *options);

/* accel-gen audit PROGRAM.c: claims about an emitted program, with evidence. Status 1 when one does not hold. */
int command_audit(const struct options *options);

/* accel-gen verify PROGRAM.c --job JOB: whether a trainer computes what its job says. Status 1 where it does not, 2
 * where that cannot be told. */
int command_verify(const struct options *options);

/* accel-gen explain PROGRAM.c:LINE, or --key KEY PROGRAM.c: from a line to where it comes from, or back. */
int command_explain(const struct options *options);

/* accel-gen diff A B: in the job, the plan and the step path's code. Status 1 where they differ. */
int command_diff(const struct options *options);

/* accel-gen render TEMPLATE [VALUES]: a template of one's own. */
int command_render(const struct options *options);

/* accel-gen report RUN... -o FILE: runs as one page of HTML. */
int command_report(const struct options *options);

/* accel-gen model check FILE: what a model is made of, without a job. */
int command_model(const struct options *options);

/* accel-gen data FILE... -o FILE: token files. */
int command_data(const struct options *options);

/* accel-gen checkpoint list, show, verify, diff or merge. */
int command_checkpoint(const struct options *options);

/* accel-gen watch RUN: a run as it goes. */
int command_watch(const struct options *options);

/* accel-gen export FOLDER -o FILE: a model as a file of another program. */
int command_export(const struct options *options);

/* accel-gen launch JOB PROGRAM. */
int command_launch(const struct options *options);

/* accel-gen import FILE...: a job from configurations of other trainers. Status 1 where a key is refused or not known.
 */
int command_import(const struct options *options);

/* accel-gen estimate FOLDER, FILE.json or JOB: the memory that a model takes to load and to train. */
int command_estimate(const struct options *options);

/* accel-gen init: a job from the name of a model, a model in C, or a folder of Hugging Face. */
int command_init(const struct options *options);

/* accel-gen config, and config update FILE: the defaults of a machine, which jobs extend. */
int command_config(const struct options *options);

/* accel-gen test: a small job on the available machines. Status 1 where a check fails. */
int command_test(const struct options *options);

/* accel-gen env: what the machine has. */
int command_env(const struct options *options);

/* accel-gen help [TOPIC]: a command, a group or a key of the job. */
int command_help(const struct options *options);

/* accel-gen version */
int command_version(const struct options *options);

#endif
