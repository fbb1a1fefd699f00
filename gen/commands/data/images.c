#include "gen/commands/data/images.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/data/labels.h"
#include "gen/commands/data/progress.h"
#include "gen/commands/data/skipped.h"
#include "gen/commands/data/watch.h"
#include "gen/dataset/image_folder.h"
#include "gen/dataset/npy_header.h"
#include "gen/tokenizer/bytes.h"
#include "runtime/files/files.h"
#include "runtime/files/mapping.h"

enum { BATCH = 64, LARGEST_SIDE = 4096 };

/* An image on its way. */
struct item {
  const struct labelled_file *file;
  bool good;
  struct problem problem; /* where it is not */
};

struct work {
  const struct imaging *what;
  struct frame frame;
  bool same_size; /* all images have the size of the first, which is the frame's */
  struct labels labels;
  struct image_folder folder;
  struct watch watch; /* of its files */
  struct item items[BATCH];
  uint8_t *pixels; /* [BATCH][bytes of an image] */
  size_t image;    /* its bytes */
  int32_t *label;  /* of the images that are written */
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

/* Reads an image, turned and in its channels. */
static bool read_picture(const struct work *work, const char *path, struct picture *picture, struct problem *problem) {
  struct mapping file;
  if (!rt_map(&file, path, "give a file that can be read", problem)) return false;
  bool good = picture_decode(path, file.bytes, file.size, picture, problem);
  rt_unmap(&file);
  if (!good || frame_turn(&work->frame, picture)) return good;
  free(picture->pixels);
  return rt_problem(problem, "%s: no memory for its pixels", path);
}

/* Writes one image into the batch. */
static bool read_image(const struct work *work, const char *path, uint8_t *out, struct problem *problem) {
  struct picture picture = {0};
  if (!read_picture(work, path, &picture, problem)) return false;
  bool fits = !work->same_size || (picture.height == work->frame.height && picture.width == work->frame.width);
  if (!fits) {
    rt_problem(problem, "%s: %d x %d pixels, and the first image has %d x %d (height x width)", path, picture.height,
               picture.width, work->frame.height, work->frame.width);
    rt_help(problem, "--size HxW makes all images of one size");
  }
  bool good = fits && (frame_fit(&work->frame, &picture, out) || rt_problem(problem, "%s: no memory for it", path));
  free(picture.pixels);
  return good;
}

/* Without --size, the size is that of the first image that can be read. */
static bool find_size(struct work *work, struct problem *problem) {
  struct picture picture = {0};
  bool found = work->frame.height > 0;
  for (int i = 0; !found && i < work->folder.files.count; i++) {
    found = read_picture(work, work->folder.files.items[i].path, &picture, problem);
    if (!found && work->what->skipped == NULL) return false;
    if (!found) continue;
    work->same_size = true;
    work->frame.height = picture.height;
    work->frame.width = picture.width;
    free(picture.pixels);
  }
  return found;
}

/* Adds the images of a batch that could be read. */
static bool add_batch(struct work *work, int count, struct problem *problem) {
  for (int i = 0; i < count; i++) {
    struct item *item = &work->items[i];
    struct skipped *skipped = work->what->skipped;
    if (!item->good && skipped == NULL) {
      *problem = item->problem;
      return false;
    }
    if (!item->good && skipped->count++ == 0) skipped->first = item->problem;
    if (!item->good) continue;
    if (!rt_writer_add(&work->out, work->pixels + (size_t)i * work->image, work->image, problem)) return false;
    work->label[work->written++] = item->file->label;
  }
  return true;
}

static bool add_images(struct work *work, struct problem *problem) {
  const int files = work->folder.files.count;
  struct progress bar = progress_begin(0, (uint64_t)files);
  bool good = true;
  for (int first = 0; good && first < files; first += BATCH) {
    int count = files - first < BATCH ? files - first : BATCH;
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < count; i++) {
      struct item *item = &work->items[i];
      item->file = &work->folder.files.items[first + i];
      item->good = read_image(work, item->file->path, work->pixels + (size_t)i * work->image, &item->problem);
    }
    good = add_batch(work, count, problem);
    progress_tell(&bar, (uint64_t)(first + count));
  }
  progress_end(&bar);
  return good;
}

/* The array of labels and the names of classes. */
static bool write_labels(const struct work *work, struct problem *problem) {
  struct writer labels;
  char header[NPY_HEADER];
  npy_header(header, "<i4", (const int64_t[]){work->written}, 1);
  return rt_writer_open(&labels, work->what->labels, BY_RENAME, problem) &&
         rt_writer_add(&labels, header, sizeof header, problem) &&
         rt_writer_add(&labels, work->label, (size_t)work->written * sizeof *work->label, problem) &&
         rt_writer_commit(&labels, problem) &&
         labels_write(&work->labels, work->what->names, "single_label_classification", problem);
}

/* The header again, now that the number of images is known. */
static bool end_images(struct work *work, struct problem *problem) {
  char header[NPY_HEADER];
  const int64_t shape[] = {work->written, work->frame.channels, work->frame.height, work->frame.width};
  npy_header(header, "|u1", shape, 4);
  if (work->written == 0) {
    rt_problem(problem, "%s: no image can be read; the first problem: %.600s", work->what->folder,
               work->what->skipped->first.what);
    return false;
  }
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
  good = watch_check(&work->watch, problem) && good; /* what looks bad may be what was changed */
  if (good && end_images(work, problem)) return rt_writer_commit(&work->out, problem);
  struct problem ignored;
  rt_writer_give_up(&work->out, "", &ignored);
  return false;
}

/* Numbers the classes of the folder as they are sorted, or takes the numbers of the given ones. */
static bool find_images(struct work *work, struct problem *problem) {
  const struct imaging *what = work->what;
  struct class_names known = {0};
  const char *name;
  struct json_t *number;
  size_t at;
  if (!labels_begin(&work->labels, what->given, problem)) return false;
  json_object_foreach(work->labels.numbers, name, number) ARENA_PUSH(what->arena, known, name);
  (void)number;
  if (!image_folder_read(&work->folder, what->arena, what->folder, what->given != NULL ? &known : NULL, problem))
    return false;
  for (int i = 0; i < work->folder.classes.count; i++) {
    name = work->folder.classes.items[i];
    if (!is_utf8(name, strlen(name), &at))
      return rt_problem(problem, "%s/%s: the name of the class is not UTF-8", what->folder, name);
    if (labels_number_of(&work->labels, name, problem) != i) return false;
  }
  return true;
}

static bool watch_images(struct work *work, struct problem *problem) {
  const int count = work->folder.files.count;
  const char **paths = arena_alloc(work->what->arena, ((size_t)count + 1) * sizeof *paths);
  for (int i = 0; i < count; i++) paths[i] = work->folder.files.items[i].path;
  return watch_begin(&work->watch, paths, count, problem);
}

static bool write_all(struct work *work, struct problem *problem) {
  if (!find_images(work, problem) || !watch_images(work, problem) || !find_size(work, problem)) return false;
  work->image = (size_t)work->frame.channels * (size_t)work->frame.height * (size_t)work->frame.width;
  work->pixels = malloc(BATCH * work->image);
  work->label = malloc((size_t)work->folder.files.count * sizeof *work->label);
  bool good = work->pixels != NULL && work->label != NULL ? write_images(work, problem)
                                                          : rt_problem(problem, "no memory for the images");
  free(work->pixels);
  free(work->label);
  return good;
}

bool images_write(const struct imaging *imaging, struct problem *problem) {
  struct work *work = arena_alloc(imaging->arena, sizeof *work);
  *work = (struct work){.what = imaging, .frame = imaging->frame};
  bool good = write_all(work, problem);
  labels_end(&work->labels);
  watch_end(&work->watch);
  if (!good) return false;
  printf("%s: %" PRId64 " images [%d][%d][%d]; %d classes in %s\n", imaging->output, work->written,
         work->frame.channels, work->frame.height, work->frame.width, work->folder.classes.count, imaging->names);
  skipped_report(imaging->skipped);
  return true;
}
