/* Exchange: what ranks do together in a step, and the order in which what they have adds up. */
#ifndef ACCEL_PROGRAM_EXCHANGE_H
#define ACCEL_PROGRAM_EXCHANGE_H

#include "gen/program/mesh.h"
#include "gen/program/pipeline_schedule.h"
#include "gen/spec/job.h"

struct function;
struct node;
struct step;
struct storage;
struct weight;

/* What ranks do together in a step, all of them in the same order. */
enum collective_kind {
  COLLECTIVE_ALL_REDUCE,
  COLLECTIVE_REDUCE_SCATTER,
  COLLECTIVE_ALL_GATHER,
  COLLECTIVE_ALL_TO_ALL,
  COLLECTIVE_TREE_ALL_REDUCE, /* in the order of a tree */
  COLLECTIVE_TREE_REDUCE_SCATTER,
  COLLECTIVE_SEND /* of one rank to another */
};
struct collective {
  enum collective_kind kind;
  enum axis axis;           /* among the ranks along it */
  const char *what;         /* for people: "gradients of transformer.h.3.mlp.c_proj.weight and 11 more" */
  int64_t first, count;     /* of gradients: elements from the start of all; else how many numbers */
  int64_t length;           /* of a bucket in a tree's order, where count is what a rank gives; 0: it is count */
  int64_t width;            /* bytes of an element on its way */
  int64_t times;            /* in a step */
  int64_t from, until;      /* steps that have it, counted from 0; until 0: all from there on */
  int64_t every;            /* steps from one to the next; 0: each has it */
  const struct step *after; /* of gradients: the statement of the backward that completes them */
  int iteration;            /* of that statement */
  const char *overlaps;     /* what runs from when it begins until it is awaited; NULL: it is awaited directly */
  bool direct;              /* each rank sends to each other one, and adds up what arrives */
  bool by_data;             /* data decides how many elements it is: `count` at most */
  struct axes then;         /* of gradients: along which the sum then continues */
  bool chained;             /* it begins when the one before it has ended */
};

struct collective_list {
  struct collective *items;
  int count, capacity;
};

/* The order in which gradients of a step's micro-batches add up, whoever has them: gen/plan/ranks/tree.h. */
struct tree {
  int64_t leaves;    /* micro-batches of all ranks, a power of two; 0: any order will do */
  int levels;        /* within a rank: two to their power are its micro-batches */
  int64_t gradients; /* elements */
  int64_t buffer;    /* elements of partial sums, or of what other ranks send */
  bool by_buckets;   /* gradients are sent to other ranks as the backward completes them, not after it */
  int64_t losses;    /* numbers of eight bytes: sums of losses that a device stores until they are added; 0: none */
};

/* A matrix of gradients that is sent as two factors, [rows][rank] and [columns][rank]: gen/plan/ranks/compress.h. */
struct factored {
  const char *what;
  const struct weight *weight; /* NULL: a square of several */
  int stage;            /* of a pipeline's ranks, the one that has it; each of several has it in a row of its own */
  int64_t first, count; /* of the gradients; a square may have more elements than it has of these */
  int64_t rows, columns, rank;
  int64_t at, left, right; /* elements: its offset among all such matrices, its factors' offsets */
};

/* Neighbours that are sent together. */
struct sent_range {
  const char *what;                     /* the first of them */
  int stage, more;                      /* more: how many come after it */
  int64_t first, count;                 /* gradients; of matrices, elements of all such matrices */
  int64_t left, n_left, right, n_right; /* their factors */
};

struct sent_range_list {
  struct sent_range *items;
  int count, capacity;
};

/* A value that one stage of a pipeline gives to the next one, in the backward to the one before: its own, or one that
 * it passes on. */
struct crossing {
  const struct function *function; /* in whose memory it is, on both ranks at the same offset */
  const struct storage *storage;
  int64_t first, count;    /* its elements there */
  int from, to;            /* stages */
  const struct view *into; /* where the receiver has it; NULL: where it is on the sender */
  const char *outgoing;    /* the arena's member from which it is sent, a copy; NULL: it is sent from where it is */
};

struct crossing_list {
  struct crossing *items;
  int count, capacity;
};

/* Names of parameters. */
struct parameter_names {
  const char **items;
  int count, capacity;
};

/* Weights in a row that a stage of a pipeline has: elements of all weights, and where their gradients begin among all
 * gradients; -1: they are frozen. */
struct stage_range {
  const struct weight *weight; /* the first of them */
  int stage;
  int64_t first, end, gradient;
};

struct stage_range_list {
  struct stage_range *items;
  int count, capacity;
};

/* Bytes of a member of the arena that no stage of a rank uses. */
struct unused_range {
  int rank;
  const char *member;
  int64_t first, bytes;
};

struct unused_range_list {
  struct unused_range *items;
  int count, capacity;
};

/* Ranks that divide the layers: gen/plan/graph/stages.h, gen/plan/ranks/pipeline.h. */
struct pipeline {
  int stages;                     /* 0: there are none; as many on each rank */
  int split;                      /* of an encoder and a decoder, the decoder's first; 0: there is one loop of layers */
  int ranks;                      /* along parallelism.pp: stage s is of rank s % ranks */
  struct node **layers;           /* by stage: the forward's call of its layers */
  struct node **second_layers;    /* and that of the program's second entry; NULL: there is none */
  struct parameter_names *own;    /* by rank: the parameters that its stages use */
  struct stage_range_list ranges; /* rank by rank; what several use is in those of each */
  struct crossing_list crossings; /* forwards and backwards */
  struct unused_range_list unused;     /* rank by rank; none: a device maps all of the arena */
  struct collective_list *collectives; /* by rank: those of a step in which it takes part */
  int busiest;                         /* the rank whose collectives give most bytes */
  struct schedule schedule;            /* in which order ranks run their stages */
  int64_t *slots;                /* by stage: the micro-batches whose samples and activations it stores at a time */
  int64_t max_slots;             /* of any stage; 1 in a program that does not train */
  int *first_units, *last_units; /* by stage: the unit of FSDP with which its forward and its backward begin; -1: it
                                    uses none; NULL: there are none */
};

/* Gradients that are sent as factors, or that user code exchanges, which has buckets alone. */
struct compression {
  struct factored *items;
  int count, capacity;
  int64_t elements, left, right; /* of all matrices, of all factors of each side; of user code's state */
  int64_t gradients;
  struct sent_range_list whole, factors; /* of each stage: what is sent as it is, and matrices of which factors are */
};

#endif
