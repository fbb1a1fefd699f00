/* Tensors of which each rank wrote its part, in the order of the ranks along dp_shard, of those along ep and pp:
 *
 *   STEM-00001-of-00004.safetensors …   the parts of a rank: "NAME[FIRST:END]", the elements of NAME from FIRST up to
 * END STEM.safetensors.parts.json         {"ranks": 4, "tensors": {NAME: {"dtype": "F32", "shape": [2, 3]}, …}}
 */
#ifndef RUNTIME_WEIGHTS_PARTS_H
#define RUNTIME_WEIGHTS_PARTS_H

#include "include/accel/trainer.h"
#include "runtime/files/manifest.h"
#include "runtime/weights/safetensors.h"

/* How the index's name continues after that of the whole file. */
extern const char rt_parts_ending[];

/* How many ranks write parts, those along dp_shard of each rank along ep and pp, and which of them this one is. */
int rt_parts_writers(const struct accel_program *program);
int rt_parts_writer(const struct accel_program *program);

/* Writes what this rank has of the divided states of `file`, whose arrays are `own`, into `folder`; the first one the
 * index, too. Adds what it wrote to the manifest. */
bool rt_parts_write(const char *folder, const struct accel_program *program, const char *file, char *const *own,
                    struct manifest *manifest, struct problem *problem);

/* Tells the first rank of what this one wrote into `folder`, or of the problem that it met. */
void rt_parts_report(const char *folder, const struct accel_program *program, const struct manifest *manifest,
                     const struct problem *problem);

/* Waits for what all other ranks report, and adds it to the manifest. False with the first problem among these, or with
 * one of its own when a rank takes longer than the program's timeout. */
bool rt_parts_await(const char *folder, const struct accel_program *program, struct manifest *manifest,
                    struct problem *problem);

/* Whole tensors, in memory of their own. */
struct joined {
  struct stored_tensor *tensors;
  int count, files;
  void *memory;
  size_t size;
  void *index; /* the JSON that holds the names */
};

/* Reads the index at `path` alone: tensors without their bytes. */
bool rt_parts_open(struct joined *joined, const char *path, const char *cure, struct problem *problem);

/* Fills tensors of rt_tensors_of_rank from the files of all ranks in the folder of the index. */
bool rt_parts_fill(const struct joined *index, const char *path, const struct tensor_list *list,
                   struct problem *problem);

/* Reads the index at `path` and the files of all ranks in its folder. Nothing in them is believed: each tensor must be
 * there once, from its first element to its last. */
bool rt_parts_join(struct joined *joined, const char *path, const char *cure, struct problem *problem);

void rt_parts_free(struct joined *joined);

#endif
