/* A checkpoint: a folder that holds all that a run continues from, in the layout of Accelerate.
 *
 *   model.safetensors        the parameters, or shards of them with an index
 *   optimizer.safetensors    the optimizer's states, by parameter; further files as the program's states name them;
 *                            either in parts of ranks (runtime/weights/parts.h)
 *   scheduler.json           the steps that the schedule has counted, the last rate
 *   sampler.json             the position of the next sample, and fingerprints of the data
 *                            and of the files that layers stream from
 *   custom_checkpoint_0.bin  what user code has registered, byte by byte
 *   ...                      files of user code, under names of its own
 *   random_states_0.json     the seed and the step: every random number follows from these
 *   job.json                 the job, key by key (keys.h)
 *   manifest.json            the files with their sizes and sums, written last
 *
 * It is written under another name, every file synced, and gets its own by one rename: a folder of its name is whole.
 */
#ifndef RUNTIME_CHECKPOINT_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"
#include "runtime/files/manifest.h"

#include <stdio.h>

/* An object of user code. */
struct saved_object {
  void *object;
  void *copy; /* from which it is written; its owner's is the saver's */
  size_t size;
};

/* A file that user code adds. */
struct saved_file {
  char name[256];
  void *copy; /* of its bytes */
  size_t size;
};

/* What a checkpoint says in addition to the arrays. */
struct checkpoint {
  int64_t step;         /* steps that are done */
  int64_t epoch, index; /* of the next sample to train on: the epoch and its position there */
  double lr;            /* of the last step */
  const struct saved_object *objects;
  int n_objects;
  const struct saved_file *files;
  int n_files;
  const struct json_t *data;    /* prints of the run's data (prints.h); NULL: none are stored */
  const struct json_t *weights; /* and of the files that layers stream from */
};

/* Makes the folder next to `folder` that a checkpoint is written in. */
bool rt_checkpoint_begin(const char *folder, struct problem *problem);

/* Finishes a checkpoint that was started and moves it to its final path; arrays[i] is where the program's states[i]
 * stands. What was there is replaced. After a failure nothing of it is left, and what was there is untouched. Where
 * ranks write their parts, arrays[i] of what they divide is this rank's, and it waits for the others. */
bool rt_checkpoint_write(const char *folder, const struct accel_program *program, char *const *arrays,
                         const struct checkpoint *what, struct problem *problem);

/* Writes what another rank than the first has of it, and reports to that one what came of it. */
void rt_checkpoint_write_part(const char *folder, const struct accel_program *program, char *const *arrays);

/* Reads the manifest of `folder` and compares every file that it names with its size and sum. `shown`: the terminal at
 * whose end it shows how far it is; NULL: none. */
bool rt_checkpoint_verify(const char *folder, struct manifest *manifest, FILE *shown, struct problem *problem);

/* Whether the run of `folder` can be continued by this program, by the job's keys (keys.h). */
bool rt_checkpoint_compare(const char *folder, const struct accel_program *program, char *changed, size_t size,
                           struct problem *problem);

/* Whether all that ranks divide in this program is in parts of ranks there. */
bool rt_checkpoint_is_in_parts(const char *folder, const struct accel_program *program);

/* Reads this rank's part of what ranks divide, to its arrays `own`, from a checkpoint that is in parts. */
bool rt_checkpoint_read_part(const char *folder, const struct accel_program *program, char *const *own,
                             struct problem *problem);

/* Reads a checkpoint that was verified. Nothing is written to the arrays before all of it was found right. A file whose
 * first state has no array is left out. */
bool rt_checkpoint_read(const char *folder, const struct accel_program *program, char *const *arrays,
                        struct checkpoint *what, struct problem *problem);

#endif
