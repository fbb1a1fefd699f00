/* The formats of pictures.h, one by one. */
#ifndef ACCEL_PICTURES_FORMATS_H
#define ACCEL_PICTURES_FORMATS_H

#include "gen/pictures/pictures.h"

/* As picture_decode, of one format. After false the pixels may be there all the same. */
bool png_read_picture(const char *path, const uint8_t *bytes, size_t size, struct picture *picture,
                      struct problem *problem);
bool jpeg_read_picture(const char *path, const uint8_t *bytes, size_t size, struct picture *picture,
                       struct problem *problem);

/* Memory for the pixels of an image of height, width and channels that are set. False with a problem. */
bool picture_make(const char *path, struct picture *picture, struct problem *problem);

/* The orientation of `size` bytes of EXIF, which begin with the byte order; 1 where they do not say it. */
int picture_orientation(const uint8_t *exif, size_t size);

#endif
