#include "gen/commands/data/images.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/data/image_source.h"
#include "gen/commands/data/skipped.h"
#include "gen/dataset/npy_header.h"
#include "gen/tokenizer/bytes.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"

enum { LARGEST_SIDE = 4096 };

struct work {
  const struct imaging *what;
  struct frame frame;
  bool same_size; /* all images have the size of the first, which is the frame's */
  struct image_source source;
  uint8_t *pixels;     /* [IMAGE_BATCH][bytes of an image] */
  size_t image;        /* its bytes */
  struct bytes labels; /* int32, of the images that are written */
  int64_t written;
  struct writer out;
};

bool images_size(const char *text, struct frame *frame) {
  char *end;
  long height = strtol(text, &end, 10), width = *end == 'x' ? strtol(end + 1, &end, 10) : height;
  if (*end != '\0' || height < 1 || width < 1 || height > LARGEST_SIDE || width > LARGEST_SIDE) return false;
  frame->height = (int)height;
  frame->width = (int)width;
  return true;
}

/* Decodes an image, turned and in its channels. */
static bool read_picture(const struct work *work, const struct image_item *item, struct picture *picture,
                         struct problem *problem) {
  struct mapping file = {0};
  const uint8_t *bytes = item->bytes;
  if (bytes == NULL && !rt_map(&file, item->name, "give a file that can be read", problem)) return false;
  bool good = bytes != NULL ? picture_decode(item->name, bytes, item->size, picture, problem)
                            : picture_decode(item->name, file.bytes, file.size, picture, problem);
  rt_unmap(&file);
  if (!good || frame_turn(&work->frame, picture)) return good;
  free(picture->pixels);
  return rt_problem(problem, "%s: no memory for its pixels", item->name);
}

/* Writes one image into the batch. */
static bool read_image(const struct work *work, const struct image_item *item, uint8_t *out, struct problem *problem) {
  struct picture picture = {0};
  if (!read_picture(work, item, &picture, problem)) return false;
  bool fits = !work->same_size || (picture.height == work->frame.height && picture.width == work->frame.width);
  if (!fits) {
    rt_problem(problem, "%s: %d x %d pixels, and the first image has %d x %d (height x width)", item->name,
               picture.height, picture.width, work->frame.height, work->frame.width);
    rt_help(problem, "--size HxW makes all images of one size");
  }
  bool good =
      fits && (frame_fit(&work->frame, &picture, out) || rt_problem(problem, "%s: no memory for it", item->name));
  free(picture.pixels);
  return good;
}

/* Counts an image that cannot be used. False with its problem where none may be skipped. */
static bool pass_over(const struct work *work, const struct image_item *item, struct problem *problem) {
  struct skipped *skipped = work->what->skipped;
  if (skipped != NULL && skipped->count++ == 0) skipped->first = item->problem;
  if (skipped == NULL) *problem = item->problem;
  return skipped != NULL;
}

static bool no_image(const struct work *work, struct problem *problem) {
  const struct skipped *skipped = work->what->skipped;
  if (skipped == NULL || skipped->count == 0) return rt_problem(problem, "%s: it has no image", work->what->paths[0]);
  return rt_problem(problem, "%s: no image can be read; the first problem: %.600s", work->what->paths[0],
                    skipped->first.what);
}

/* Without --size, the size is that of the first image that can be read. */
static bool find_size(struct work *work, struct problem *problem) {
  struct picture picture = {0};
  struct image_source *source = &work->source;
  if (work->frame.height > 0) return true;
  for (bool found = false; !found;) {
    if (!image_source_next(source, 1, problem)) return false;
    if (source->count == 0) return no_image(work, problem);
    struct image_item *item = &source->items[0];
    found = !item->failed && read_picture(work, item, &picture, &item->problem);
    if (!found && !pass_over(work, item, problem)) return false;
  }
  work->same_size = true;
  work->frame.height = picture.height;
  work->frame.width = picture.width;
  free(picture.pixels);
  if (work->what->skipped != NULL) *work->what->skipped = (struct skipped){0}; /* they are counted when all are read */
  return image_source_rewind(source, problem);
}

/* Adds the images of a batch that could be read. */
static bool add_batch(struct work *work, struct problem *problem) {
  for (int i = 0; i < work->source.count; i++) {
    struct image_item *item = &work->source.items[i];
    if (item->failed && !pass_over(work, item, problem)) return false;
    if (item->failed) continue;
    if (!rt_writer_add(&work->out, work->pixels + (size_t)i * work->image, work->image, problem)) return false;
    bytes_add(&work->labels, (const char *)&item->label, sizeof item->label);
    work->written++;
  }
  return !work->labels.failed || rt_problem(problem, "no memory for the labels");
}

static bool add_images(struct work *work, struct problem *problem) {
  struct image_source *source = &work->source;
  struct progress bar = rt_progress_begin(work->what->quiet ? NULL : stderr, "reads images", 0, source->all);
  bool good = true;
  while ((good = good && image_source_next(source, IMAGE_BATCH, problem)) && source->count > 0) {
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < source->count; i++) {
      struct image_item *item = &source->items[i];
      item->failed = item->failed || !read_image(work, item, work->pixels + (size_t)i * work->image, &item->problem);
    }
    good = add_batch(work, problem);
    rt_progress_tell(&bar, source->done);
  }
  rt_terminal_clear();
  return good;
}

/* The array of labels and the names of classes. */
static bool write_labels(struct work *work, struct problem *problem) {
  struct writer labels;
  char header[NPY_HEADER];
  npy_header(header, "<i4", (const int64_t[]){work->written}, 1);
  return image_source_sort(&work->source, (int32_t *)(void *)work->labels.text, work->written, problem) &&
         labels_write(&work->source.labels, work->what->names, "single_label_classification", problem) &&
         rt_writer_open(&labels, work->what->labels, BY_RENAME, problem) &&
         rt_writer_add(&labels, header, sizeof header, problem) &&
         rt_writer_add(&labels, work->labels.text, work->labels.size, problem) && rt_writer_commit(&labels, problem);
}

/* The header again, now that the number of images is known. */
static bool end_images(struct work *work, struct problem *problem) {
  char header[NPY_HEADER];
  const int64_t shape[] = {work->written, work->frame.channels, work->frame.height, work->frame.width};
  npy_header(header, "|u1", shape, 4);
  if (work->written == 0) return no_image(work, problem);
  return (pwrite(work->out.file, header, sizeof header, 0) == (ssize_t)sizeof header ||
          rt_problem(problem, "%s: the header cannot be written", work->out.partial)) &&
         write_labels(work, problem);
}

static bool write_images(struct work *work, struct problem *problem) {
  char header[NPY_HEADER] = {0};
  if (!rt_writer_open(&work->out, work->what->output, BY_RENAME, problem) ||
      !rt_writer_add(&work->out, header, sizeof header, problem))
    return false;
  bool good = add_images(work, problem);
  good = watch_check(&work->source.watch, problem) && good; /* what looks bad may be what was changed */
  if (good && end_images(work, problem)) return rt_writer_commit(&work->out, problem);
  struct problem ignored;
  rt_writer_give_up(&work->out, "", &ignored);
  return false;
}

static bool write_all(struct work *work, struct problem *problem) {
  if (!image_source_open(&work->source, work->what, problem) || !find_size(work, problem)) return false;
  work->image = (size_t)work->frame.channels * (size_t)work->frame.height * (size_t)work->frame.width;
  work->pixels = malloc(IMAGE_BATCH * work->image);
  bool good = work->pixels != NULL ? write_images(work, problem) : rt_problem(problem, "no memory for the images");
  free(work->pixels);
  return good;
}

bool images_write(const struct imaging *imaging, struct problem *problem) {
  struct work *work = arena_alloc(imaging->arena, sizeof *work);
  *work = (struct work){.what = imaging, .frame = imaging->frame};
  bool good = write_all(work, problem);
  if (good && !imaging->quiet)
    rt_print(stdout, "%s: %" PRId64 " images [%d][%d][%d]; %" PRId64 " classes in %s\n", imaging->output, work->written,
             work->frame.channels, work->frame.height, work->frame.width, labels_count(&work->source.labels),
             imaging->names);
  if (good) skipped_report(imaging->skipped);
  image_source_close(&work->source);
  bytes_free(&work->labels);
  return good;
}
