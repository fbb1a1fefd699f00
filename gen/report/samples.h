/* The texts that a run logged, from a file of events as TensorBoard reads it (runtime/tracking/tensorboard.c). */
#ifndef ACCEL_REPORT_SAMPLES_H
#define ACCEL_REPORT_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/arena.h"

enum { MOST_SAMPLES = 12, MOST_TAGS = 16 };

struct sample {
  int64_t step;
  const char *text; /* its first 4 KiB */
};

/* The texts of a name, in the order of the file: all, or some of them about as far from each other, the last one among
 * them. */
struct sample_list {
  const char *tag;
  struct sample items[2 * MOST_SAMPLES];
  int count;
  int64_t stride, seen; /* every how manyth text of the name is kept, and how many there are */
};

struct samples {
  struct sample_list tags[MOST_TAGS];
  int count;
  bool damaged; /* what follows a record that is none was not read; nor were texts of more than MOST_TAGS names */
};

/* Reads a file. False, and why in errno, where it cannot be read. */
bool samples_read(struct arena *arena, const char *path, struct samples *samples);

#endif
