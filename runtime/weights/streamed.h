/* Streamed weights: parameters of program->reads. They are in no array of the arena, and
 * are read from their file each time that a layer needs them (include/accel/reads.h). */
#ifndef RUNTIME_WEIGHTS_STREAMED_H
#define RUNTIME_WEIGHTS_STREAMED_H

#include "runtime/weights/weights.h"

/* Whether a program has any. Layers that it trains are in a file of its own (disk_states.h). */
static inline bool rt_streams(const struct accel_program *program) {
  return program->disk.layers_folder == NULL && program->n_reads > program->n_from_host + 1; /* the last row is none */
}

/* Whether a parameter is one. */
static inline bool rt_is_streamed(const struct accel_program *program, const struct accel_tensor *tensor) {
  return rt_streams(program) && tensor->offset >= program->reads[program->n_from_host].first;
}

/* What reads layers. A program without any links none of it. */
struct accel_layer_reader {
  /* Starts the thread that reads. The file is its own from then on, as it was opened unmapped; end gives it back.
   * weights: what the rows of program->reads are relative to. */
  bool (*begin)(const struct accel_program *program, const struct weights_file *file, void *weights,
                struct problem *problem);
  /* Begins to read a layer, as accel_start_read. */
  void (*start)(size_t first, void *values, size_t bytes);
  /* Waits until all that was begun is there, and leaves the work to the thread that reads. False with a problem where a
   * file could not be read. */
  bool (*wait)(struct problem *problem);
  /* A parameter of a layer, which is read to where it comes to unless it was the last one that was. Not while a layer
   * is on its way, or in use. Ends the process where a file could not be read. */
  const void *(*hold)(int tensor);
  /* Ends the thread and closes the file; does nothing where none was started. */
  void (*end)(void);
};

/* Where a parameter is, as accel_layer_reader.hold where it is streamed. */
static inline const void *rt_parameter_at(const struct accel_program *program, const void *weights, int tensor) {
  if (rt_is_streamed(program, &program->tensors[tensor])) return program->reader->hold(tensor);
  return (const char *)weights + program->tensors[tensor].offset;
}

#endif
