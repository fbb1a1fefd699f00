/* The runtime that every emitted program links: what a user's own code may include. docs/runtime.md says which of
 * Accelerate's names is which of these. */
#ifndef ACCEL_H
#define ACCEL_H

#include "logger.h"
#include "operations.h"
#include "process.h"
#include "value.h"
#include "version.h"

#endif
