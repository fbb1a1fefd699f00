/* What kernels of a program are written with; those over bfloat16, where bf16.h is included before this. */
#ifndef ACCEL_CPU_KERNELS_H
#define ACCEL_CPU_KERNELS_H

#include "attention.h"
#include "attention_ring.h"
#include "attention_tiles.h"
#include "channels.h"
#include "draws.h"
#include "fp8.h"
#include "functions.h"
#include "norms.h"
#include "pool.h"
#include "scan.h"
#include "tiles.h"

#ifdef ACCEL_CPU_BF16_H
#include "attention_pairs.h"
#endif

#endif
