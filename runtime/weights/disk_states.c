#include "runtime/weights/disk_states.h"

#include "runtime/files/scratch.h"
#include "runtime/files/transfers.h"
#include "runtime/process/fail.h"

static const char cure[] = "checkpoints are whole: with space on a disk that works, '--resume auto' continues";

static struct {
  const struct accel_disk_states *states;
  struct scratch scratch;
  struct transfer_file file;
  struct transfers *transfers;
} disk;

static bool open_states(const struct accel_program *program, struct problem *problem) {
  const char *folder = program->disk.folder;
  disk.states = &program->disk;
  if (!rt_scratch_open(&disk.scratch, folder, (size_t)program->disk.count * program->disk.bytes, problem)) return false;
  disk.file = (struct transfer_file){disk.scratch.file, disk.scratch.direct, folder, cure};
  disk.transfers = rt_transfers_open(TRANSFERS_AS_IS_BEST, problem);
  return disk.transfers != NULL;
}

static size_t offset_of(int state) {
  return (size_t)(state - disk.states->first) * disk.states->bytes;
}

static char *array_of(int state) {
  return disk.scratch.bytes + offset_of(state);
}

static void close_states(void) {
  rt_transfers_close(disk.transfers);
  disk.transfers = NULL;
  rt_scratch_close(&disk.scratch);
}

const struct accel_disk accel_disk_by_file = {open_states, array_of, close_states, &disk.scratch};

void accel_start_load(int state, size_t first, void *values, size_t bytes) {
  rt_transfers_read(disk.transfers, &disk.file, offset_of(state) + first, values, bytes);
}

void accel_start_store(int state, size_t first, const void *values, size_t bytes) {
  rt_transfers_write(disk.transfers, &disk.file, offset_of(state) + first, values, bytes);
}

void accel_wait_disk(const void *memory, size_t bytes) {
  struct problem problem;
  if (!rt_transfers_wait(disk.transfers, memory, bytes, &problem)) rt_fail(&problem, 1);
}
