/* Endings of names. */
#ifndef RUNTIME_BASE_ENDING_H
#define RUNTIME_BASE_ENDING_H

#include <stdbool.h>

/* Whether something stands before `ending` at the end of a name. */
bool rt_has_ending(const char *name, const char *ending);

#endif
