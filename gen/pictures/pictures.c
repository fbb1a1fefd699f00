#include "gen/pictures/pictures.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gen/pictures/formats.h"

bool picture_make(const char *path, struct picture *picture, struct problem *problem) {
  int64_t pixels = (int64_t)picture->width * picture->height;
  if (pixels < 1 || pixels > PICTURE_MOST) {
    rt_problem(problem, "%s: an image of %d x %d pixels; at most %d pixels are read", path, picture->width,
               picture->height, PICTURE_MOST);
    return rt_help(problem, "make it smaller");
  }
  picture->pixels = malloc((size_t)(pixels * picture->channels));
  return picture->pixels != NULL || rt_problem(problem, "%s: no memory for its pixels", path);
}

/* A number of 2 or 4 bytes in the byte order of the file. */
static uint32_t number_at(const uint8_t *at, int bytes, bool is_little) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; i++) value = value << 8 | at[is_little ? bytes - 1 - i : i];
  return value;
}

int picture_orientation(const uint8_t *exif, size_t size) {
  enum { ENTRY_BYTES = 12, ORIENTATION = 0x0112, SHORT = 3 };
  bool is_little = size >= 8 && memcmp(exif, "II*\0", 4) == 0;
  if (size < 8 || (!is_little && memcmp(exif, "MM\0*", 4) != 0)) return 1;
  size_t list = number_at(exif + 4, 4, is_little);
  if (list > size - 2) return 1;
  uint32_t count = number_at(exif + list, 2, is_little);
  for (size_t at = list + 2; count-- > 0 && at + ENTRY_BYTES <= size; at += ENTRY_BYTES) {
    if (number_at(exif + at, 2, is_little) != ORIENTATION || number_at(exif + at + 2, 2, is_little) != SHORT) continue;
    uint32_t found = number_at(exif + at + 8, 2, is_little);
    return found >= 1 && found <= 8 ? (int)found : 1;
  }
  return 1;
}

bool picture_decode(const char *path, const uint8_t *bytes, size_t size, struct picture *picture,
                    struct problem *problem) {
  *picture = (struct picture){.orientation = 1};
  bool good = false;
  if (size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0) {
    good = png_read_picture(path, bytes, size, picture, problem);
  } else if (size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0) {
    good = jpeg_read_picture(path, bytes, size, picture, problem);
  } else {
    rt_problem(problem, "%s: byte 0: neither PNG nor JPEG", path);
    rt_help(problem, "convert it: mogrify -format png FILE, or Pillow's Image.open(FILE).save('NAME.png')");
  }
  if (good) return true;
  free(picture->pixels);
  picture->pixels = NULL;
  return false;
}
