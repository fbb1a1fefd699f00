/* Solve: numbers that a job leaves to the plan, found by planning; and whether a plan fits the device. */
#ifndef ACCEL_PLAN_SOLVE_H
#define ACCEL_PLAN_SOLVE_H

#include "gen/plan/trial.h"

/* Whether the job leaves a number open: data.batch_size, and with it memory.reserve of a program that does not train;
 * accumulation.num_steps or memory.activation_checkpointing. */
bool is_open(const struct job *job);

/* What the job leaves open, as overrides of its keys, in `arena`: at most 5, their number in *count. False with errors
 * in `diags` when nothing fits devices.memory, or samples do not divide. */
bool solve(struct arena *arena, const struct planner *planner, const struct job *job, struct diagnostics *diags,
           struct job_override *found, int *count);

/* Whether a program fits devices.memory; else an error that says what it takes, and what would work. */
bool check_memory(const struct planner *planner, const struct program *program, struct diagnostics *diags);

/* Fills program->figures.savings: for each measure of the job what it saves, and the FLOPs that it adds. */
void find_savings(const struct planner *planner, struct program *program);

#endif
