/* What kernels of a program are written with. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_KERNELS_H
#define ACCEL_GPU_KERNELS_H

#include <accel/gpu/launch.h>

#include "../repeat.h"
#include "attend.h"
#include "attend_by_rows.h"
#include "convolve.h"
#include "functions.h"
#include "group.h"
#include "pack.h"
#include "tiles.h"

#endif
