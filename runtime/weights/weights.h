/* A program's parameters: fresh, from a file, to a file. */
#ifndef RUNTIME_WEIGHTS_WEIGHTS_H
#define RUNTIME_WEIGHTS_WEIGHTS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/weights/shards.h"

/* Fills every parameter by its initialiser. */
void rt_weights_init(const struct accel_program *program, void *weights);

/* Fills every parameter from a safetensors file, an index of several, or a folder of either, as program->start allows
 * for what is missing or extra there. Nothing is written to `weights` before all of the file is found right. */
bool rt_weights_load(const struct accel_program *program, const char *path, void *weights, struct problem *problem);

/* The same of a file that this program wrote, which has every parameter by its own name and nothing else: what the job
 * says of the file to start from does not hold there. `path` is for messages. */
bool rt_weights_load_own(const struct accel_program *program, const struct shards *shards, const char *path,
                         void *weights, struct problem *problem);

/* The same of a trained model for a program that reads it alone: from `path`, where that is NULL from the project
 * folder's model.safetensors, and where no run has left one there from the file that the job starts from. */
bool rt_weights_load_trained(const struct accel_program *program, const char *path, void *weights,
                             struct problem *problem);

/* Whether `output` is the file that `weights` names, or one that a folder of this name would be read as. */
bool rt_is_of_weights(const char *output, const char *weights);

#endif
