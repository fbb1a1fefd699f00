/* Files in which the system describes the machine and the process: those of /proc, of /sys and /etc/os-release. */
#ifndef ACCEL_BASE_SYSTEM_FILE_H
#define ACCEL_BASE_SYSTEM_FILE_H

#include "gen/base/arena.h"

/* The text of a file without blanks at its end, in `arena`; NULL where it cannot be read. */
const char *system_file(struct arena *arena, const char *path);

/* What follows `name` and a colon or an equals sign in the first line of a text that begins so, without quotes, in
 * `arena`; NULL where there is none, or the text is NULL. */
const char *system_value(struct arena *arena, const char *text, const char *name);

/* What /proc/cpuinfo lists of a processor's instruction sets, each between blanks: " avx2 fma ", in `arena`; NULL where
 * it lists none. */
const char *system_processor_flags(struct arena *arena);

#endif
