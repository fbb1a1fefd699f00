/* Where images come from, with their labels: a folder with a folder for each class, or shards of WebDataset. */
#ifndef ACCEL_COMMANDS_DATA_IMAGE_SOURCE_H
#define ACCEL_COMMANDS_DATA_IMAGE_SOURCE_H

#include "gen/commands/data/images.h"
#include "gen/commands/data/labels.h"
#include "gen/commands/data/watch.h"

enum { IMAGE_BATCH = 64 };

/* An image on its way. */
struct image_item {
  char *name;     /* of its file, for messages */
  uint8_t *bytes; /* NULL: the file of that name has them */
  size_t size;
  int32_t label;
  bool failed; /* it cannot be used, by `problem` */
  struct problem problem;
};

struct image_source {
  const struct imaging *what;
  struct labels labels; /* of the classes; numbers of images that are read may change when they are sorted */
  bool is_numbered;     /* labels are the numbers that files have, not those of names */
  struct watch watch;   /* of all files */
  uint64_t done, all;   /* bytes of files */
  struct image_item items[IMAGE_BATCH];
  int count;   /* of items */
  void *state; /* of a folder or of shards */
  const struct image_source_kind *kind;
};

/* Begins before the first image. False with a problem; to be closed also then. */
bool image_source_open(struct image_source *source, const struct imaging *what, struct problem *problem);

/* Puts the next images into source->items, `most` at most; source->count is 0 at the end. False with a problem where no
 * more can be read; that of one image is its item's. */
bool image_source_next(struct image_source *source, int most, struct problem *problem);

/* Begins again. False with a problem. */
bool image_source_rewind(struct image_source *source, struct problem *problem);

/* Gives classes their final numbers, once all images were read, and changes the `count` numbers at `numbers` to them.
 */
bool image_source_sort(struct image_source *source, int32_t *numbers, int64_t count, struct problem *problem);

void image_source_close(struct image_source *source);

/* ---- For the kinds ---- */

struct image_source_kind {
  bool (*open)(struct image_source *source, struct problem *problem);
  bool (*next)(struct image_source *source, int most, struct problem *problem);
  bool (*rewind)(struct image_source *source, struct problem *problem);
  bool (*sort)(struct image_source *source, int32_t *numbers, int64_t count, struct problem *problem);
  void (*close)(struct image_source *source);
};

extern const struct image_source_kind image_source_folder, image_source_shards;

#endif
