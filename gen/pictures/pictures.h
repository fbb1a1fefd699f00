/* Images of PNG and JPEG, decoded by libpng and libjpeg-turbo. A build without these libraries has
 * gen/without/pictures.c instead. */
#ifndef ACCEL_PICTURES_PICTURES_H
#define ACCEL_PICTURES_PICTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/problem.h"

/* The most pixels that an image may have: of a file that says more than it has, memory is 300 MB. */
enum { PICTURE_MOST = 100000000 };

struct picture {
  uint8_t *pixels; /* [height][width][channels] */
  int height, width;
  int channels;    /* 1: gray; 3: red, green, blue */
  int orientation; /* of the camera, by EXIF: 1 to 8; 1 where the file says nothing */
};

/* Decodes the `size` bytes of a file. Transparency is left out, palettes are looked up, and 16 bits of a colour become
 * the upper 8. False with a problem that names the file: another kind of file, gray of 16 bits, CMYK, a file that is
 * cut or damaged. The pixels are to be freed. */
bool picture_decode(const char *path, const uint8_t *bytes, size_t size, struct picture *picture,
                    struct problem *problem);

#endif
