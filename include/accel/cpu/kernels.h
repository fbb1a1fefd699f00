/* What kernels of a program are written with. */
#ifndef ACCEL_CPU_KERNELS_H
#define ACCEL_CPU_KERNELS_H

#include "attention.h"
#include "draws.h"
#include "functions.h"
#include "norms.h"
#include "tiles.h"

#endif
