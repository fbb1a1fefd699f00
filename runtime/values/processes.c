#include "runtime/values/processes.h"

#include "include/accel/process.h"
#include "runtime/process/world.h"
#include "runtime/values/agreement.h"

#include <string.h>

/* The program that this process runs; NULL: one of a user's own. */
static const struct accel_program *runs;

void rt_process_runs(const struct accel_program *program) {
  runs = program;
}

static const char *device_of(void) {
  return runs != NULL && runs->device_bytes > 0 ? "cuda" : "cpu";
}

/* As AcceleratorState has it: ranks that divide weights or states are those of FSDP, whatever they compute on. */
static const char *type_of(const struct world *world) {
  if (world->ranks == 1) return "NO";
  if (runs != NULL && runs->mesh[ACCEL_DP_SHARD] > 1) return "FSDP";
  return strcmp(device_of(), "cuda") == 0 ? "MULTI_GPU" : "MULTI_CPU";
}

const struct accel_process *accel_process(void) {
  static struct accel_process process;
  const struct world *world = rt_world();
  process = (struct accel_process){.index = world->rank,
                                   .count = world->ranks,
                                   .local_index = world->local_rank,
                                   .local_count = world->local_ranks,
                                   .is_main = world->rank == 0,
                                   .is_local_main = world->local_rank == 0,
                                   .is_last = world->rank == world->ranks - 1,
                                   .distributed_type = type_of(world),
                                   .device = device_of()};
  return &process;
}

void accel_processes_start(int timeout) {
  rt_world_join();
  rt_world_wait_at_most(timeout);
}

void accel_processes_end(void) {
  rt_meet(OPERATION_END, "");
  rt_world_leave();
}

void accel_wait_for_everyone(void) {
  rt_meet(OPERATION_WAIT, "");
}

static bool is_alone(void) {
  return rt_world()->ranks == 1;
}

bool accel_on_main_process(void) {
  return accel_on_process(0);
}

bool accel_on_local_main_process(void) {
  return accel_on_local_process(0);
}

bool accel_on_last_process(void) {
  return accel_on_process(rt_world()->ranks - 1);
}

bool accel_on_process(int index) {
  return is_alone() || rt_world()->rank == index;
}

bool accel_on_local_process(int local_index) {
  return is_alone() || rt_world()->local_rank == local_index;
}

bool accel_enter_after(bool first) {
  if (!first) accel_wait_for_everyone();
  return true;
}

bool accel_leave_before(bool first) {
  if (first) accel_wait_for_everyone();
  return false;
}
