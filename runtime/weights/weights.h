/* A program's parameters: fresh, from a file, to a file. */
#ifndef RUNTIME_WEIGHTS_WEIGHTS_H
#define RUNTIME_WEIGHTS_WEIGHTS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/weights/sources.h"

/* Fills every parameter by its initialiser. */
void rt_weights_init(const struct accel_program *program, void *weights);

/* Weights that were found right, as program->start allows for what is missing or extra in their files. */
struct weights_file {
  struct sources sources;
  const struct named_tensor **matched; /* by parameter; NULL: its initialiser makes it */
};

/* Opens what rt_weights_load reads, or rt_weights_load_trained. What was opened is the caller's to close. */
bool rt_weights_open(struct weights_file *file, const struct accel_program *program, const char *path,
                     struct problem *problem);
bool rt_weights_open_trained(struct weights_file *file, const struct accel_program *program, const char *path,
                             struct problem *problem);
/* Opens the files at `path` and finds the tensors of the parameters there, whatever is missing, extra or unlike. */
bool rt_weights_match(struct weights_file *file, const struct accel_program *program, const char *path,
                      struct problem *problem);
void rt_weights_close(struct weights_file *file);

/* Whether a tensor is codes, or scales of codes, that a file has as floats. */
bool rt_is_quantized_here(const struct accel_program *program, const struct weights_file *file, int tensor);

/* Fills one parameter of an open file; with codes that are made here their scales, and nothing for these. */
void rt_weights_make(const struct accel_program *program, const struct weights_file *file, int tensor, void *weights);

/* Fills every parameter of an open file but those that are streamed (streamed.h). */
void rt_weights_fill(const struct accel_program *program, const struct weights_file *file, void *weights);

/* `count` stored values of a type as the parameter has them: 16 bits become floats, others stay as they are. */
void rt_weights_convert(float *out, const char *dtype, const uint8_t *from, int64_t count);

/* Reads `count` elements of a parameter from element `first` on; all of one that its initialiser makes. */
void rt_weights_read(const struct accel_program *program, const struct weights_file *file, int tensor, int64_t first,
                     int64_t count, float *values);

/* Fills every parameter from a safetensors file, an index of several, or a folder of either, as program->start renames
 * its tensors and allows for what is missing or extra there. Nothing is written to `weights` before all of the file is
 * found right. */
bool rt_weights_load(const struct accel_program *program, const char *path, void *weights, struct problem *problem);

/* The same of a file that this program wrote, which has every parameter by its own name and nothing else: what the job
 * says of the file to start from does not hold there. `path` is for messages. */
bool rt_weights_load_own(const struct accel_program *program, const struct shards *shards, const char *path,
                         void *weights, struct problem *problem);

/* The same of a trained model for a program that reads it alone: from `path`, where that is NULL from the project
 * folder's model.safetensors, and where no run has left one there from the file that the job starts from. */
bool rt_weights_load_trained(const struct accel_program *program, const char *path, void *weights,
                             struct problem *problem);

/* The names that the parameters have in a file to start from, as rt_weights_open finds them; what it lacks has its own
 * name, an adapter the one of the weight's module there, and what a rule takes from another file NULL. NULL for `path`:
 * all have their own. They are the caller's
 * to free with rt_weights_names_free. NULL with a problem. */
char **rt_weights_names(const struct accel_program *program, const char *path, struct problem *problem);
void rt_weights_names_free(const struct accel_program *program, char **names);

/* Whether `output` is the file that `weights` names (NULL: none), or one that a folder of this name would be read as,
 * or one of the other files that `start` names. */
bool rt_is_of_weights(const struct accel_start_file *start, const char *output, const char *weights);

#endif
