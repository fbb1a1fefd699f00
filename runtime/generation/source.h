/* What a text is written from, and what its model's folder says of such texts. */
#ifndef RUNTIME_GENERATION_SOURCE_H
#define RUNTIME_GENERATION_SOURCE_H

#include "include/accel/program.h"
#include "runtime/generation/rules.h"

/* The array of a .npy file with the extents of the program's source, with or without the first one, of the one row: as
 * many float32, which the caller frees. False with a problem for another file. */
bool rt_source_read(const struct accel_program *program, const char *path, float **elements, int64_t *count,
                    struct problem *problem);

/* The rules of the generation_config.json next to the weights at `weights`, a file or a folder; without the file, none.
 * False with a problem. */
bool rt_source_rules(struct generation_rules *rules, const struct accel_program *program, const char *weights,
                     struct problem *problem);

#endif
