/* PJRT's C API, as openxla/xla has it in xla/pjrt/c/pjrt_c_api.h (version 0.81, Apache-2.0), unchanged. Each structure
 * carries its size, so that a plugin of another minor version serves, too. */
#ifndef RUNTIME_XLA_PJRT_H
#define RUNTIME_XLA_PJRT_H

#pragma GCC system_header
#include "runtime/xla/pjrt_c_api.h"

#endif
