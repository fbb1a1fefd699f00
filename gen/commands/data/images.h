/* Images: a folder of them by classes or shards of WebDataset, as an array of NumPy and their labels. */
#ifndef ACCEL_COMMANDS_DATA_IMAGES_H
#define ACCEL_COMMANDS_DATA_IMAGES_H

#include "gen/base/arena.h"
#include "gen/dataset/frame.h"
#include "gen/tokenizer/documents.h"

struct imaging {
  struct arena *arena;
  const char **paths; /* one folder, or shards */
  int count;
  bool is_folder;
  const char *label; /* of a sample of a shard: ".cls", the number in that file, ".txt" or another ending, the text in
                      * it, or a field of .json; NULL: ".cls" */
  const char *given; /* the list of classes (labels.h); NULL: those that occur, sorted */
  struct frame frame;
  struct skipped *skipped; /* counts images that cannot be read; NULL: such an image is a problem */
  const char *output;      /* NAME.npy: the images, uint8 [images][channels][height][width] */
  const char *labels;      /* NAME.labels.npy: the numbers of their classes, int32 [images] */
  const char *names;       /* NAME.json: the names of the classes */
  bool quiet;              /* shows no progress, and prints nothing of what was written */
};

/* Writes the three files, and prints how much is in them. One batch of images is in memory. False with a problem, and
 * nothing is written then. */
bool images_write(const struct imaging *imaging, struct problem *problem);

/* Reads "32x48" or "32", height and width, into *frame. */
bool images_size(const char *text, struct frame *frame);

#endif
