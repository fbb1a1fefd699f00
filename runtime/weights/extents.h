/* Extents: where in files the parameters of a streamed layer are, and the blocks that these files are read in. */
#ifndef RUNTIME_WEIGHTS_EXTENTS_H
#define RUNTIME_WEIGHTS_EXTENTS_H

#include "runtime/weights/weights.h"

/* A block begins at a multiple of PAGE and ends near one of BLOCK; bytes of one at most. */
enum { EXTENT_PAGE = 4096, EXTENT_BLOCK = 1 << 22, EXTENT_MOST = EXTENT_BLOCK + 2 * EXTENT_PAGE };

/* A parameter's bytes in one of the files. */
struct extent {
  int file, tensor;
  size_t at, bytes;
};

/* The extents of a layer, in the order of files and of their bytes; and parameters that are none: an initializer makes
 * them, or they are not in a file as the program has them, or a rank has pieces of them. Where ranks divide tensors,
 * all are others, by their number in rt_rank_program. */
struct extents {
  struct extent *items;
  int count;
  int *others;
  int n_others;
};

/* An open file. */
struct extent_file {
  int file;
  size_t size;
};

/* Finds the extents of the parameters whose offsets are in [first, first + bytes). What is in none of the files is one
 * of the others. False with a problem: no memory. */
bool rt_extents_find(struct extents *extents, const struct accel_program *program, const struct weights_file *weights,
                     const struct extent_file *files, int n_files, size_t first, size_t bytes, struct problem *problem);
void rt_extents_free(struct extents *extents);

/* A byte of one of the extents. */
struct extent_place {
  int extent;
  size_t done;
};

/* Bytes [first, first + bytes) of a file, which have those from one place up to another, of whole elements. */
struct block {
  int file;
  size_t first, bytes;
  struct extent_place from, to;
};

/* The block that begins at *place, which becomes the place after it. False: that is the end. */
bool rt_block_next(const struct extents *extents, const struct weights_file *weights, const struct extent_file *files,
                   struct extent_place *place, struct block *block);

/* What a block has of parameters, as rt_weights_convert makes it of its bytes; a parameter with the offset `first` is
 * at `values`. */
void rt_block_convert(const struct block *block, const struct extents *extents, const struct accel_program *program,
                      const struct weights_file *weights, const uint8_t *bytes, size_t first, char *values);

#endif
