#include "gen/program/state.h"

#include "gen/program/storage.h"

int64_t state_bytes(const struct state *state) {
  return arena_aligned(state->count * dtype_size(state->dtype));
}

int64_t state_copy_bytes(const struct program *program) {
  int64_t bytes = 0;
  const struct job *job = program->job;
  if (!job->checkpoint.background || !job_saves(job)) return 0;
  if (job->parallelism.offload.optimizer == OFFLOAD_NVME) return 0; /* a save takes states from the disk as they are */
  for (int i = 0; i < program->states.count; i++)
    if (program->states.items[i].whole == 0 || job->checkpoint.by_rank) bytes += state_bytes(&program->states.items[i]);
  return bytes;
}

const struct state_slice *state_slice_of(const struct program *program, const struct state *state,
                                         const struct weight *weight) {
  const int at = state->slice_of != NULL ? state->slice_of[weight - program->weights->items] : 0;
  return at > 0 ? &state->slices[at - 1] : NULL;
}

int64_t disk_slot_bytes(const struct program *program) {
  return program->disk.n_states * program->disk.bucket * dtype_size(DTYPE_FLOAT32);
}
