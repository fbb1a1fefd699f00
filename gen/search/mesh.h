/* Mesh: one way to run a job on its ranks, and what the model of cost says of it. */
#ifndef ACCEL_SEARCH_MESH_H
#define ACCEL_SEARCH_MESH_H

#include "gen/search/division.h"
#include "gen/search/hardware.h"

/* The order of micro-batches through stages. */
enum order { ORDER_NONE, ORDER_GPIPE, ORDER_1F1B, ORDER_INTERLEAVED, ORDER_ZERO_BUBBLE, ORDERS };

/* "gpipe", "1f1b", "interleaved", "zero_bubble"; "" of one stage. */
extern const char *const order_names[ORDERS];

/* Seconds of a micro-batch's parts. */
struct timing {
  double seconds[PARTS];
  double matmuls[PARTS]; /* of them: that FLOPs bound */
};

/* A kernel takes the longer of FLOPs over the speed of matmuls and bytes over memory's (the roofline model: Williams,
 * Waterman and Patterson 2009). */
struct timing timing_of(const struct division *division, const struct hardware *hardware, int64_t samples);

struct mesh {
  const struct division *division;
  const struct timing *timing;      /* of `batch` samples */
  int64_t replicas, shards, stages; /* dp_replicate, dp_shard, pp */
  int zero_stage;
  enum order order;
  int64_t chunks;       /* of layers on a stage, with ORDER_INTERLEAVED; else 1 */
  int64_t batch, steps; /* samples of a micro-batch; micro-batches of a step on a rank */
};

/* Where the time of a step goes. */
enum cause {
  CAUSE_MATMULS,
  CAUSE_MEMORY, /* kernels that memory's bandwidth bounds */
  CAUSE_UPDATE, /* the optimizer */
  CAUSE_BUBBLE, /* stages that wait for each other */
  CAUSE_DP,
  CAUSE_PP,
  CAUSE_CP,
  CAUSE_SP,
  CAUSE_TP,
  CAUSE_EP, /* exchange that a step waits for */
  CAUSES
};
extern const char *const cause_names[CAUSES];

struct estimate {
  double seconds;         /* of a step */
  double parts[CAUSES];   /* of it */
  double traffic[CAUSES]; /* bytes that a rank sends in a step, by axis; 0 for causes that are none */
  double bytes;           /* of the rank that takes the most */
  double mfu;             /* FLOPs of the model, nothing computed twice, over what the ranks could do at their peak */
};

/* What a mesh takes.
 *
 * With P(s) the elements of stage s, L layers, p stages, m micro-batches, T(s) a micro-batch's seconds on stage s:
 * - a step takes m max T + sum of the other T over v (Huang et al. 2019; v chunks: Narayanan et al. 2021, section 2.2);
 *   zero_bubble: the other T without twice the gradients of weights, which nobody waits for and which fill as much
 *   (ZB-H1: Qi et al. 2024);
 * - stage s stores activations of min(m, p - s) micro-batches with 1f1b, p - s + (p - 1) / v with v chunks (Korthikanti
 *   et al. 2022, section 4.2), all m with gpipe, min(m, p) with zero_bubble, with the gradients that are deferred;
 * - zero_stage divides the optimizer's states, gradients too, weights too by dp_shard; what is in no layer, and two
 *   layers, stay whole with 2 and 3 (gen/plan/ranks/fsdp_layers.h); a rank has its part of the sum besides, and of what
 *   each micro-batch adds to it with 2 and 3;
 * - in an all-reduce of n bytes among g ranks each sends 2 (g - 1) / g n in 2 log2 g rounds, in a reduce-scatter or an
 *   all-gather half of both, in an all-to-all (g - 1) / g n in g - 1 rounds (Thakur, Rabenseifner and Gropp 2005);
 * - without stages, gradients are sent while the backward of the last micro-batch runs, with zero_stage 2 and 3 of each
 * one, and 3 gathers weights while layers run; what takes longer is waited for. All other exchange is waited for. */
struct estimate estimate_mesh(const struct mesh *mesh, const struct job *job, const struct hardware *hardware,
                              double model_flops);

#endif
