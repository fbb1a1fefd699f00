/* Paths: what their text alone says. */
#ifndef ACCEL_BASE_PATH_H
#define ACCEL_BASE_PATH_H

#include <stdbool.h>

#include "gen/base/arena.h"

/* The name of a file in its folder: "gpt2.c" of "models/gpt2.c", a part of `path`. */
const char *name_in_folder(const char *path);

/* The folder of a file, as the file is named: "." for a bare name. */
const char *folder_of(struct arena *arena, const char *path);

/* Whether a name ends in `ending` and has something before it. */
bool has_ending(const char *name, const char *ending);

/* A name without its ending, in `arena`; NULL where it has not this one. */
const char *without_ending(struct arena *arena, const char *name, const char *ending);

#endif
