/* Images of another size, by a triangle filter as wide as a pixel of the smaller image: each number is a mean of those
 * that it covers, first along rows and then along columns, rounded to 8 bits each time. These are the numbers of
 * Pillow's Image.resize(size, BILINEAR, box), but where Pillow (from 13 on) goes along columns first: there some differ
 * by 1. */
#ifndef ACCEL_DATASET_RESAMPLE_H
#define ACCEL_DATASET_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct image {
  uint8_t *pixels; /* [height][width][channels] */
  int height, width, channels;
};

/* The part of an image that is taken, in its pixels. */
struct box {
  float left, top, right, bottom;
};

/* Writes to->pixels from a part of another image with as many channels. False without memory. */
bool resample(const struct image *from, struct box box, const struct image *to);

#endif
