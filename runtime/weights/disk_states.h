/* States and trained layers that a program has on a disk while it trains (program->disk). A checkpoint is written from
 * the mapped files and read into them, as from and into the arena. */
#ifndef RUNTIME_WEIGHTS_DISK_STATES_H
#define RUNTIME_WEIGHTS_DISK_STATES_H

#include "include/accel/disk.h"
#include "runtime/base/problem.h"
#include "runtime/files/mapping.h"
#include "runtime/files/scratch.h"

/* Opened before states are filled. A program without states on a disk links none of what follows. */
struct accel_disk {
  bool (*open)(const struct accel_program *program, struct problem *problem);
  char *(*array)(int state);         /* where it is mapped */
  char *(*parameter)(size_t offset); /* the same of a parameter of a layer */
  void (*close)(void);
  const struct scratch *scratch, *layers; /* the files of states, and of layers */
};

/* Whether a state is there. */
static inline bool rt_is_on_disk(const struct accel_program *program, const struct accel_state *state) {
  const int index = (int)(state - program->states);
  return index >= program->disk.first && index < program->disk.first + program->disk.count;
}

/* Whether a parameter is. */
static inline bool rt_is_layer_on_disk(const struct accel_program *program, const struct accel_tensor *tensor) {
  return program->disk.layers_folder != NULL && tensor->offset >= program->reads[0].first;
}

/* What a parameter's offset is relative to, so that it is made where it is: in memory, or on the disk. */
static inline char *rt_weights_of(const struct accel_program *program, const struct accel_tensor *tensor,
                                  void *weights) {
  if (!rt_is_layer_on_disk(program, tensor)) return weights;
  return program->disk.disk->parameter(tensor->offset) - tensor->offset;
}

/* What was made of a parameter on the disk leaves the process's memory, with the pages that it shares with others; its
 * `size` bytes are at `made`. */
static inline void rt_weights_made(const struct accel_program *program, const struct accel_tensor *tensor,
                                   const char *made, size_t size) {
  enum { PAGE = 1 << 12 };
  const size_t before = (uintptr_t)made % PAGE;
  if (rt_is_layer_on_disk(program, tensor)) rt_map_forget((const uint8_t *)made - before, before + size + PAGE - 1);
}

#endif
