/* What kernels of a program are written with. For C++ that nvcc or hipcc compiles. */
#ifndef ACCEL_GPU_KERNELS_H
#define ACCEL_GPU_KERNELS_H

#include <accel/gpu/launch.h>

#include "../repeat.h"
#include "attend.h"
#include "attend_by_rows.h"
#include "attend_in_ring.h"
#include "batch_norm.h"
#include "convolve.h"
#include "cross_entropy.h"
#include "embedding.h"
#include "exchange.h"
#include "functions.h"
#include "group.h"
#include "lstm.h"
#include "norms.h"
#include "order.h"
#include "pack.h"
#include "pool.h"
#include "rotary.h"
#include "scan.h"
#include "tiles.h"

#endif
