/* Division: what a rank computes, stores and exchanges of one layer, and of what is around the layers, where ranks
 * divide it. It is planned, not estimated: the job's graph goes through all passes with these axes and no others. */
#ifndef ACCEL_SEARCH_DIVISION_H
#define ACCEL_SEARCH_DIVISION_H

#include "gen/plan/solve.h"

/* How a layer is divided. */
struct cut {
  int64_t tp, cp, sp, ep;
  bool splits_sequence; /* megatron.sequence_parallelism */
  enum checkpointing checkpointing;
};

/* Parts of a micro-batch's work. */
enum part { PART_FORWARD, PART_BACKWARD, PART_FIRST, PART_LAST, PART_DEFERRED, PARTS };

/* A kernel, for one sample. */
struct kernel_work {
  /* Of a layer's forward and backward; before and after all layers, in both directions; and again, of a layer's
   * backward, what zero_bubble defers (gen/plan/graph/defer.h). */
  double runs[PARTS];
  double flops; /* of matrix products */
  double bytes; /* that grow with samples */
  double fixed; /* that do not: weights, and gradients of them */
};

/* What ranks along an axis exchange, for one sample. */
struct exchange {
  enum collective_kind kind;
  enum axis axis;
  double bytes;      /* of all values, once */
  int64_t per_layer; /* times in a layer, forward and backward */
  int64_t around;    /* times around the layers */
};

struct division {
  struct cut cut;
  int64_t layers;                       /* iterations of the model's longest loop; 0: it has none */
  int64_t parameters;                   /* tensors */
  int64_t layer, first, last, all;      /* elements of parameters on a rank: of a layer, before, after, all together */
  double weights, gradients, optimizer; /* bytes of an element */
  double saved, saved_around;           /* bytes of activations of a sample: of a layer, of the rest */
  double deferred, deferred_around;     /* bytes that deferred kernels read of the backward, in addition */
  double scratch, batch;                /* bytes of a sample: while functions run; samples and results */
  double crossing;                      /* bytes of a sample that a layer gives to the next one */
  double matmul_flops;                  /* of a sample, all layers, on one rank */
  struct {
    struct kernel_work *items;
    int count, capacity;
  } kernels;
  struct {
    struct exchange *items;
    int count, capacity;
  } exchanges;
};

/* Plans the job with this cut. NULL with *why, in `arena`, where it cannot be divided so. */
const struct division *divide_job(struct arena *arena, const struct planner *planner, const struct job *job,
                                  struct cut cut, const char **why);

#endif
