/* Version: the one that is installed, and ranges of versions that a job asks for. */
#ifndef ACCEL_BASE_VERSION_H
#define ACCEL_BASE_VERSION_H

#include <stdbool.h>

#include "gen/base/arena.h"
#include "include/accel/version.h"

/* Whether a version, numbers with dots, satisfies a range: conditions with commas, such as ">=0.2,<0.3", of which all
 * must be met. A condition is >=, >, <=, <, ==, != or ~= and a version, as in PEP 440 for versions of numbers alone:
 * missing numbers are 0, ~=1.2.3 is >=1.2.3 and ==1.2.*, and == and != may end with .*. Blanks around a condition and
 * its version do not matter. Where a text is no range, *wrong says why, in the arena, and the result is false; else it
 * is NULL. */
bool version_is_in(struct arena *arena, const char *version, const char *range, const char **wrong);

#endif
