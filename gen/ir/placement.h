/* Placement: how a tensor is placed on the ranks along one axis of the mesh, as in GSPMD (Xu et al., arXiv:2105.04663,
 * section 3) and in PyTorch's DTensor. */
#ifndef ACCEL_IR_PLACEMENT_H
#define ACCEL_IR_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/ir/tensor.h"

enum placement_form {
  PLACED_WHOLE,   /* replicated: each rank has all of it */
  PLACED_SPLIT,   /* each rank has a part of a dimension */
  PLACED_PARTIAL, /* each rank has a tensor of the whole's shape, and their sum is the whole */
  PLACED_MEAN,    /* each rank has a number, and their mean is the whole */
  PLACED_SORTED,  /* each rank has rows of its own part alone, in an order of its own */
  PLACED_EXPERT   /* of tensors that differ in a number of their names each rank has some */
};

/* SPLIT: dimension `dim` is `blocks` equal blocks in a row, and a rank has its part of each block, in the order of the
 * ranks. With one block that is a contiguous range, and where ranks do not divide the dimension evenly the last one's
 * part is padded to the length of the others'. Three blocks are queries, keys and values side by side, of which a rank
 * has some heads each. `balanced`: a rank has two parts of half that length, of twice as many chunks as there are ranks
 * the one of its number and the one as far from the end.
 *
 * SORTED: what is made of a rank's rows by sorting them, so that it is no part of what all rows give. Where `dim` is a
 * dimension, the rows are along it, as many on each rank, and are those of tables that are split along dimension 0 in
 * `blocks` blocks; where it is -1, each rank has a tensor of the whole's shape that is of its own rows. `order` is the
 * number of the value by which they are sorted.
 *
 * EXPERT: `dim` is which part of the tensor's name between dots the number is, counted from the end, and `blocks` how
 * many of the tensors, in the order of the numbers, each rank has: instead of number n, rank r has n + r * blocks. */
struct placement {
  enum placement_form form;
  int dim;
  int64_t blocks;
  bool balanced;
  int order;
  int64_t padding; /* of a parameter: indices of the last rank's part that are beyond the whole */
};

/* A split along a dimension in so many blocks. */
static inline struct placement placement_split(int dim, int64_t blocks) {
  return (struct placement){.form = PLACED_SPLIT, .dim = dim, .blocks = blocks};
}

/* The same along another dimension. */
static inline struct placement placement_along(struct placement placement, int dim) {
  placement.dim = dim;
  return placement;
}

/* Whether a rank has fewer elements than the whole tensor. */
static inline bool placement_splits(struct placement placement) {
  return placement.form == PLACED_SPLIT || (placement.form == PLACED_SORTED && placement.dim >= 0);
}

static inline bool placement_equal(struct placement a, struct placement b) {
  bool by_rows = a.form == PLACED_SPLIT || a.form == PLACED_SORTED;
  return a.form == b.form &&
         (!by_rows || (a.dim == b.dim && a.blocks == b.blocks && a.balanced == b.balanced && a.order == b.order));
}

/* Whether `ranks` ranks can have equal parts of a tensor of this shape; what is not divided always can. */
static inline bool placement_fits(struct placement placement, struct shape shape, int64_t ranks) {
  if (!placement_splits(placement)) return true;
  return placement.dim < shape.rank &&
         shape.dim[placement.dim] % (placement.blocks * ranks * (placement.balanced ? 2 : 1)) == 0;
}

/* Whether ranks can have parts of equal length if that of the last one is padded: all have something of the whole. */
static inline bool placement_pads(struct placement placement, struct shape shape, int64_t ranks) {
  if (placement.form != PLACED_SPLIT || placement.blocks != 1 || placement.balanced || placement.dim >= shape.rank)
    return false;
  int64_t extent = shape.dim[placement.dim];
  return extent > (ranks - 1) * ((extent + ranks - 1) / ranks);
}

/* The shape of a rank's part. */
static inline struct shape placement_part(struct placement placement, struct shape shape, int64_t ranks) {
  if (placement_splits(placement)) shape.dim[placement.dim] = (shape.dim[placement.dim] + ranks - 1) / ranks;
  return shape;
}

#endif
