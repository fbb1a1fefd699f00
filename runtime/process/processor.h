/* The processor that a program runs on. */
#ifndef RUNTIME_PROCESS_PROCESSOR_H
#define RUNTIME_PROCESS_PROCESSOR_H

#include "runtime/base/problem.h"

#include <stdint.h>

/* Whether this machine's processor has all of `needs`, bits of include/accel/processor.h; else `problem` names what is
 * missing. What cannot be queried here counts as there. */
bool rt_processor_has(uint32_t needs, struct problem *problem);

#endif
