/* An image as a sample: turned as the camera was held, in the channels and the size that are wanted. The numbers are
 * those of Pillow's exif_transpose, convert, resize and ImageOps.fit with BILINEAR. */
#ifndef ACCEL_DATASET_FRAME_H
#define ACCEL_DATASET_FRAME_H

#include "gen/pictures/pictures.h"

struct frame {
  int channels;      /* 1: gray; 3: red, green, blue */
  int height, width; /* 0: as the image is */
  bool stretches;    /* to another ratio of the sides; else what is too much at two sides is cut off */
};

/* Turns an image, and changes its channels to those of the frame. False without memory. */
bool frame_turn(const struct frame *frame, struct picture *picture);

/* Resizes such an image into out[channels][height][width]. False without memory. */
bool frame_fit(const struct frame *frame, const struct picture *picture, uint8_t *out);

#endif
