/* A folder with a folder of images for each class, as torchvision's ImageFolder reads it: classes are in the order of
 * their names, and so are the images of each, those of a folder within a class after those next to it. */
#ifndef ACCEL_DATASET_IMAGE_FOLDER_H
#define ACCEL_DATASET_IMAGE_FOLDER_H

#include "gen/base/arena.h"
#include "runtime/base/problem.h"

struct class_names {
  const char **items;
  int count, capacity;
};

struct labelled_file {
  const char *path;
  int label; /* the number of its class */
};

struct image_folder {
  struct class_names classes;
  struct {
    struct labelled_file *items;
    int count, capacity;
  } files;
};

/* Lists the files below `root` whose names end as those of images do; other files are passed over. `known`: the classes
 * in their order, of which a folder need not be there; NULL: those of the folders. All of it is the arena's. False with
 * a problem: no class, a class without an image, a folder that is no known class, a folder that cannot be read. */
bool image_folder_read(struct image_folder *folder, struct arena *arena, const char *root,
                       const struct class_names *known, struct problem *problem);

#endif
