/* What a process says of errors: on standard error, after its rank where a run has several. Of the runtime only the
 * functions of include/accel, and what ranks do together, end the process over one. */
#ifndef RUNTIME_PROCESS_FAIL_H
#define RUNTIME_PROCESS_FAIL_H

#include "runtime/base/problem.h"

#include <stddef.h>
#include <stdnoreturn.h>

enum { SPEAKER = 24 }; /* bytes that rt_speaker needs */

/* Writes what a message of this process begins with: "rank 3: ", or nothing where a run has one process. */
void rt_speaker(char *text, size_t size);

/* Prints the problem and ends all processes of the run; this one with `status`. */
noreturn void rt_fail(const struct problem *problem, int status);

/* Has rt_fail call `last(with)` after its message, where it is this thread that fails; NULL: nothing any more. */
void rt_fail_after(void (*last)(void *with), void *with);

/* Prints a warning. */
void rt_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
