#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#include "gen/pictures/formats.h"

struct reading {
  struct jpeg_error_mgr errors; /* the first member: the library's pointer to it is one to all of it */
  struct jpeg_progress_mgr progress;
  jmp_buf back;
  const char *path;
  struct problem *problem;
};

static void fail(j_common_ptr info) {
  struct reading *of = (struct reading *)info->err;
  char what[JMSG_LENGTH_MAX];
  info->err->format_message(info, what);
  rt_problem(of->problem, "%s: no JPEG that can be read: %s", of->path, what);
  rt_help(of->problem, "the file was cut or changed: copy it or write it again");
  longjmp(of->back, 1);
}

/* The library continues with gray where data is missing or is none; that is no image to train on. */
static void hear(j_common_ptr info, int level) {
  static const int fatal[] = {JWRN_JPEG_EOF, JWRN_HIT_MARKER, JWRN_HUFF_BAD_CODE, JWRN_MUST_RESYNC};
  for (size_t i = 0; level < 0 && i < sizeof fatal / sizeof *fatal; i++)
    if (info->err->msg_code == fatal[i]) fail(info);
}

static void say_nothing(j_common_ptr info) {
  (void)info;
}

/* A file of a few bytes can have any number of scans, each of which takes as long as an image. */
static void check_scans(j_common_ptr info) {
  enum { MOST_SCANS = 500 };
  if (((j_decompress_ptr)info)->input_scan_number > MOST_SCANS) ERREXIT(info, JERR_BAD_PROGRESSION);
}

static int orientation_of(const struct jpeg_decompress_struct *info) {
  enum { BEFORE = 6 };
  for (jpeg_saved_marker_ptr marker = info->marker_list; marker != NULL; marker = marker->next)
    if (marker->data_length > BEFORE && memcmp(marker->data, "Exif\0\0", BEFORE) == 0)
      return picture_orientation(marker->data + BEFORE, marker->data_length - BEFORE);
  return 1;
}

/* Reads the header, and says what the pixels are. False with a problem. */
static bool read_header(struct reading *of, struct jpeg_decompress_struct *info, const uint8_t *bytes, size_t size,
                        struct picture *picture) {
  enum { MARKER_MOST = 0xffff };
  jpeg_mem_src(info, bytes, size);
  jpeg_save_markers(info, JPEG_APP0 + 1, MARKER_MOST);
  jpeg_read_header(info, TRUE);
  if (info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK) {
    rt_problem(of->problem, "%s: the colours are CMYK's, of a printer", of->path);
    return rt_help(of->problem, "convert it: mogrify -colorspace sRGB FILE");
  }
  picture->orientation = orientation_of(info);
  info->out_color_space = info->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
  picture->channels = info->jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
  picture->width = (int)info->image_width;
  picture->height = (int)info->image_height;
  return picture_make(of->path, picture, of->problem);
}

/* Here errors of the library come back. */
static bool read_image(struct reading *of, struct jpeg_decompress_struct *info, const uint8_t *bytes, size_t size,
                       struct picture *picture) {
  if (setjmp(of->back) != 0) return false;
  jpeg_create_decompress(info);
  info->progress = &of->progress;
  if (!read_header(of, info, bytes, size, picture)) return false;
  jpeg_start_decompress(info);
  size_t row = (size_t)picture->width * (size_t)picture->channels;
  while (info->output_scanline < info->output_height) {
    JSAMPROW at = picture->pixels + info->output_scanline * row;
    jpeg_read_scanlines(info, &at, 1);
  }
  jpeg_finish_decompress(info);
  return true;
}

bool jpeg_read_picture(const char *path, const uint8_t *bytes, size_t size, struct picture *picture,
                       struct problem *problem) {
  struct reading of = {.path = path, .problem = problem, .progress.progress_monitor = check_scans};
  struct jpeg_decompress_struct info = {.err = jpeg_std_error(&of.errors)};
  of.errors.error_exit = fail;
  of.errors.emit_message = hear;
  of.errors.output_message = say_nothing;
  bool good = read_image(&of, &info, bytes, size, picture);
  jpeg_destroy_decompress(&info);
  return good;
}
