/* The lines of CUDA C that device code says it was made of. */
#ifndef ACCEL_DEVICE_CODE_DEVICE_SOURCE_H
#define ACCEL_DEVICE_CODE_DEVICE_SOURCE_H

#include "gen/base/arena.h"
#include "gen/base/diag.h"
#include "gen/base/difference.h"

struct device_source {
  const char *name;
  struct lines lines; /* count -1: it is not there */
};

struct device_sources {
  struct arena *arena;
  const char *file; /* the device code: sources are found by their paths, or in its folder */
  struct device_source *items;
  int count, capacity;
};

enum explanation { LINE_EXPLAINS, LINE_DOES_NOT, LINE_IS_NOT_THERE };

/* Whether the line has a loop, a choice, or a function of numbers that a library makes of choices. */
enum explanation device_explains(struct device_sources *sources, struct location where);

#endif
