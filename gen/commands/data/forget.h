/* What is read of a mapped file is let go of, so that the memory of a run does not grow with the file. */
#ifndef ACCEL_COMMANDS_DATA_FORGET_H
#define ACCEL_COMMANDS_DATA_FORGET_H

#include "runtime/files/mapping.h"

/* Lets go of bytes `forgotten` to `done` of the file where they are many. Returns how far it is let go of. */
size_t forget_read(const struct mapping *mapping, size_t forgotten, size_t done);

#endif
