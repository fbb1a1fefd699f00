#include "runtime/weights/disk_states.h"

#include "runtime/files/scratch.h"
#include "runtime/files/transfers.h"
#include "runtime/process/fail.h"

#include <stdint.h>
#include <stdlib.h>

static const char cure[] = "checkpoints are whole: with space on a disk that works, '--resume auto' continues";

/* What transfers past the system's cache are multiples of; the most bytes of one, so that several are on their way. */
enum { PAGE = 4096, PIECE = 4 << 20 };

static struct {
  const struct accel_program *program;
  const struct accel_disk_states *states;
  struct scratch scratch, layers;
  struct transfer_file file, layers_file;
  size_t *begins; /* where each layer of program->reads is in its file */
  struct transfers *transfers;
} disk;

static bool open_scratch(struct scratch *scratch, struct transfer_file *file, const char *folder, size_t size,
                         struct problem *problem) {
  if (!rt_scratch_open(scratch, folder, size, problem)) return false;
  *file = (struct transfer_file){scratch->file, scratch->direct, folder, cure};
  return true;
}

/* A layer begins as far from a page as where it comes to, so that all but its ends pass by the system's cache. */
static bool open_layers(const struct accel_program *program, struct problem *problem) {
  size_t end = 0;
  disk.begins = calloc((size_t)program->n_reads + 1, sizeof *disk.begins);
  if (disk.begins == NULL) return rt_problem(problem, "no memory for the list of layers");
  for (int i = 0; i < program->n_reads; i++) {
    disk.begins[i] = end + (program->states[0].offset + program->reads[i].at) % PAGE;
    end = (disk.begins[i] + program->reads[i].bytes + PAGE - 1) / PAGE * PAGE;
  }
  return open_scratch(&disk.layers, &disk.layers_file, program->disk.layers_folder, end, problem);
}

static bool open_states(const struct accel_program *program, struct problem *problem) {
  const size_t size = (size_t)program->disk.count * program->disk.bytes;
  disk.program = program;
  disk.states = &program->disk;
  if (!open_scratch(&disk.scratch, &disk.file, program->disk.folder, size, problem)) return false;
  if (program->disk.layers_folder != NULL && !open_layers(program, problem)) return false;
  disk.transfers = rt_transfers_open(TRANSFERS_AS_IS_BEST, problem);
  return disk.transfers != NULL;
}

static size_t offset_of(int state) {
  return (size_t)(state - disk.states->first) * disk.states->bytes;
}

static char *array_of(int state) {
  return disk.scratch.bytes + offset_of(state);
}

static int layer_of(size_t offset) {
  int layer = 0;
  while (offset - disk.program->reads[layer].first >= disk.program->reads[layer].bytes) layer++;
  return layer;
}

static char *parameter_of(size_t offset) {
  const int layer = layer_of(offset);
  return disk.layers.bytes + disk.begins[layer] + (offset - disk.program->reads[layer].first);
}

static void close_states(void) {
  rt_transfers_close(disk.transfers);
  disk.transfers = NULL;
  rt_scratch_close(&disk.scratch);
  if (disk.states->layers_folder != NULL) rt_scratch_close(&disk.layers);
  free(disk.begins);
}

const struct accel_disk accel_disk_by_file = {open_states,  array_of,      parameter_of,
                                              close_states, &disk.scratch, &disk.layers};

void accel_start_load(int state, size_t first, void *values, size_t bytes) {
  rt_transfers_read(disk.transfers, &disk.file, offset_of(state) + first, values, bytes);
}

void accel_start_store(int state, size_t first, const void *values, size_t bytes) {
  rt_transfers_write(disk.transfers, &disk.file, offset_of(state) + first, values, bytes);
}

/* What is left of pages at the ends goes by the system's cache, all else in pieces. */
static size_t piece_of(size_t first, size_t bytes) {
  const size_t before = (PAGE - first % PAGE) % PAGE, most = before > 0 ? before : PIECE;
  if (bytes < most) return bytes < PAGE ? bytes : bytes / PAGE * PAGE;
  return most;
}

static void move_layer(size_t first, char *values, size_t bytes, bool writes) {
  const size_t begin = bytes > 0 ? disk.begins[layer_of(first)] : 0;
  for (size_t at = 0, size; at < bytes; at += size) {
    size = piece_of(begin + at, bytes - at);
    if (writes)
      rt_transfers_write(disk.transfers, &disk.layers_file, begin + at, values + at, size);
    else
      rt_transfers_read(disk.transfers, &disk.layers_file, begin + at, values + at, size);
  }
}

void accel_start_load_layer(size_t first, void *values, size_t bytes) {
  move_layer(first, values, bytes, false);
}

void accel_start_store_layer(size_t first, const void *values, size_t bytes) {
  move_layer(first, (char *)(uintptr_t)values, bytes, true);
}

void accel_wait_disk(const void *memory, size_t bytes) {
  struct problem problem;
  if (!rt_transfers_wait(disk.transfers, memory, bytes, &problem)) rt_fail(&problem, 1);
}
