/* What ranks divide: states of which each rank has its part, of rows along dp_shard or of tensors, made whole to be
 * saved and parted when loaded. */
#ifndef RUNTIME_CHECKPOINT_SHARDED_STATES_H
#define RUNTIME_CHECKPOINT_SHARDED_STATES_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

/* Which states: all, or those alone that a run leaves: the parameters and what mirrors them. */
enum state_set { STATES_ALL, STATES_LEFT };

/* Memory for the whole of divided states, on the one rank that reads and writes, and for other states what they
 * have: arrays[i] of own[i]. Zeros. False with a problem where there is none. */
bool rt_sharded_open(const struct accel_program *program, char *const *own, char **arrays, enum state_set states,
                     struct problem *problem);
void rt_sharded_close(const struct accel_program *program, char **arrays);

/* Whether ranks have parts of a state. */
bool rt_is_sharded(const struct accel_program *program, int state);

/* Whether ranks have parts of what a run leaves: of the parameters, or of what mirrors them. */
bool rt_leaves_sharded(const struct accel_program *program);

/* Collects what the ranks have of these into the arrays of that rank; all ranks call it. */
void rt_sharded_collect(const struct accel_program *program, char *const *own, char *const *arrays,
                        enum state_set states);

/* Collects what the ranks have of state `which`, own[which], into `whole` of that rank (NULL on the others). */
void rt_sharded_collect_state(const struct accel_program *program, int which, char *const *own, char *whole);

/* Gives each rank what is its of state `which`, from the array of that rank; all ranks call it. */
void rt_sharded_scatter(const struct accel_program *program, int which, char *own, const char *whole);

#endif
