/* Quantities as people read them. */
#ifndef ACCEL_BASE_QUANTITY_H
#define ACCEL_BASE_QUANTITY_H

#include <stdint.h>

#include "gen/base/arena.h"

/* Of 834304: "834,304". Owned by the arena, as all here. */
const char *count_text(struct arena *arena, int64_t number);

/* Floating-point operations by powers of a thousand, three digits: "9.35 MFLOP". */
const char *flops_text(struct arena *arena, double flops);

/* By powers of 1024, from KiB on: "18.4 MiB". */
const char *bytes_text(struct arena *arena, int64_t bytes);

#endif
