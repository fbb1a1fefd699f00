/* Streamed weights: parameters of program->reads. They are in no array of the arena, and
 * are read from their file each time that a layer needs them (include/accel/reads.h). */
#ifndef RUNTIME_WEIGHTS_STREAMED_H
#define RUNTIME_WEIGHTS_STREAMED_H

#include "runtime/weights/weights.h"

/* Whether a parameter is one. */
bool rt_is_streamed(const struct accel_program *program, const struct accel_tensor *tensor);

/* Whether a program has any. */
bool rt_streams(const struct accel_program *program);

/* Starts the thread that reads. The file is its own from then on, as it was opened; rt_streamed_end gives it back. */
bool rt_streamed_begin(const struct accel_program *program, const struct weights_file *file, struct problem *problem);

/* Ends the thread and closes the file; does nothing where none was started. */
void rt_streamed_end(void);

#endif
