/* Archives of arrays (.npz) that are compressed, as ones that are not, which a trainer maps. */
#ifndef ACCEL_COMMANDS_DATA_NPZ_UNPACK_H
#define ACCEL_COMMANDS_DATA_NPZ_UNPACK_H

#include <stdbool.h>

#include "runtime/base/problem.h"

/* Writes the arrays of the archive at `path` into a new one at `output`, and prints how many they are. False with a
 * problem, and no file. */
bool npz_unpack(const char *path, const char *output, struct problem *problem);

#endif
