#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "gen/pictures/formats.h"

/* The file as libpng reads it. */
struct reading {
  const char *path;
  const uint8_t *bytes;
  size_t size, at;
  struct problem *problem;
};

static void read_bytes(png_structp png, png_bytep out, size_t count) {
  struct reading *of = png_get_io_ptr(png);
  if (count > of->size - of->at) png_error(png, "the file is cut");
  memcpy(out, of->bytes + of->at, count);
  of->at += count;
}

static void fail(png_structp png, png_const_charp what) {
  struct reading *of = png_get_error_ptr(png);
  rt_problem(of->problem, "%s: byte %zu: no PNG that can be read: %s", of->path, of->at, what);
  rt_help(of->problem, "the file was cut or changed: copy it or write it again");
  longjmp(png_jmpbuf(png), 1);
}

static void pass_over(png_structp png, png_const_charp what) {
  (void)png;
  (void)what;
}

/* Sets what becomes of the pixels. False with a problem. */
static bool transform(const struct reading *of, png_structp png, png_infop info, struct picture *picture) {
  int bits = png_get_bit_depth(png, info), type = png_get_color_type(png, info);
  picture->width = (int)png_get_image_width(png, info);
  picture->height = (int)png_get_image_height(png, info);
  picture->channels = (type & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
  if (bits == 16 && picture->channels == 1) {
    rt_problem(of->problem, "%s: gray of 16 bits, whose range is not known", of->path);
    return rt_help(of->problem, "scale it to 8 bits, or save the numbers as an array of NumPy");
  }
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (type == PNG_COLOR_TYPE_GRAY && bits < 8) png_set_expand_gray_1_2_4_to_8(png);
  if (bits == 16) png_set_strip_16(png);
  png_set_strip_alpha(png); /* also that of a palette */
  return true;
}

static int orientation_of(png_structp png, png_infop info) {
  png_uint_32 size = 0;
  png_bytep exif = NULL;
  return png_get_eXIf_1(png, info, &size, &exif) != 0 ? picture_orientation(exif, size) : 1;
}

/* Here errors of the library come back. `rows` is the caller's, so that it can be freed. */
static bool read_image(struct reading *of, png_structp png, png_infop info, struct picture *picture, png_bytep **rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, of, read_bytes);
  png_set_user_limits(png, PICTURE_MOST, PICTURE_MOST);
  png_read_info(png, info);
  if (!transform(of, png, info, picture)) return false;
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (!picture_make(of->path, picture, of->problem)) return false;
  size_t row = (size_t)picture->width * (size_t)picture->channels;
  if (png_get_rowbytes(png, info) != row) png_error(png, "its rows have another size than its header says");
  *rows = malloc((size_t)picture->height * sizeof **rows);
  if (*rows == NULL) png_error(png, "no memory");
  for (int y = 0; y < picture->height; y++) (*rows)[y] = picture->pixels + (size_t)y * row;
  png_read_image(png, *rows);
  png_read_end(png, info);
  picture->orientation = orientation_of(png, info);
  return true;
}

bool png_read_picture(const char *path, const uint8_t *bytes, size_t size, struct picture *picture,
                      struct problem *problem) {
  struct reading of = {.path = path, .bytes = bytes, .size = size, .problem = problem};
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &of, fail, pass_over);
  png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
  png_bytep *rows = NULL;
  bool good =
      info != NULL ? read_image(&of, png, info, picture, &rows) : rt_problem(problem, "%s: no memory to read it", path);
  free(rows);
  png_destroy_read_struct(&png, &info, NULL);
  return good;
}
