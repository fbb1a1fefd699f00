#include "gen/dataset/frame.h"

#include <stdlib.h>
#include <string.h>

#include "gen/dataset/resample.h"

/* Where the pixel (y, x) of the turned image is in the one of the file. By EXIF's numbers: 2 mirrors left and right, 3
 * turns by 180 degrees, 4 mirrors top and bottom; 5 to 8 also exchange rows and columns. */
static size_t source_of(const struct picture *from, int y, int x) {
  int o = from->orientation;
  int row = o >= 5 ? x : y, column = o >= 5 ? y : x;
  if (o == 3 || o == 4 || o == 6 || o == 7) row = from->height - 1 - row;
  if (o == 2 || o == 3 || o == 7 || o == 8) column = from->width - 1 - column;
  return ((size_t)row * (size_t)from->width + (size_t)column) * (size_t)from->channels;
}

/* Pillow's luma: ITU-R 601-2 in 16 bits of fraction. */
static uint8_t gray_of(const uint8_t *rgb) {
  return (uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16);
}

bool frame_turn(const struct frame *frame, struct picture *picture) {
  const struct picture from = *picture;
  if (from.orientation == 1 && from.channels == frame->channels) return true;
  bool swaps = from.orientation >= 5;
  struct picture to = {.height = swaps ? from.width : from.height,
                       .width = swaps ? from.height : from.width,
                       .channels = frame->channels,
                       .orientation = 1};
  to.pixels = malloc((size_t)to.height * (size_t)to.width * (size_t)to.channels);
  if (to.pixels == NULL) return false;
  uint8_t *out = to.pixels;
  for (int y = 0; y < to.height; y++)
    for (int x = 0; x < to.width; x++, out += to.channels) {
      const uint8_t *pixel = from.pixels + source_of(&from, y, x);
      for (int c = 0; c < to.channels; c++)
        out[c] = to.channels == from.channels ? pixel[c] : from.channels == 1 ? pixel[0] : gray_of(pixel);
    }
  free(picture->pixels);
  *picture = to;
  return true;
}

/* The part of an image that has the ratio of the frame. */
static struct box box_of(const struct frame *frame, const struct picture *picture) {
  double width = picture->width, height = picture->height;
  if (!frame->stretches && frame->height > 0) {
    double ratio = (double)frame->width / frame->height;
    if (width / height >= ratio)
      width = ratio * height;
    else
      height = width / ratio;
  }
  double left = (picture->width - width) * 0.5, top = (picture->height - height) * 0.5;
  return (struct box){(float)left, (float)top, (float)(left + width), (float)(top + height)};
}

bool frame_fit(const struct frame *frame, const struct picture *picture, uint8_t *out) {
  int height = frame->height > 0 ? frame->height : picture->height;
  int width = frame->width > 0 ? frame->width : picture->width;
  const struct image from = {picture->pixels, picture->height, picture->width, picture->channels};
  uint8_t *resized = malloc((size_t)height * (size_t)width * (size_t)picture->channels);
  if (resized == NULL) return false;
  const struct image to = {resized, height, width, picture->channels};
  bool good = resample(&from, box_of(frame, picture), &to);
  size_t pixels = (size_t)height * (size_t)width, channels = (size_t)picture->channels;
  for (size_t c = 0; good && c < channels; c++)
    for (size_t i = 0; i < pixels; i++) out[c * pixels + i] = resized[i * channels + c];
  free(resized);
  return good;
}
