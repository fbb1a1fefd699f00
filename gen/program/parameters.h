/* The parameters of a program, as structures of C and as ranges that the optimizer sweeps; what outlives a step. */
#ifndef ACCEL_PROGRAM_PARAMETERS_H
#define ACCEL_PROGRAM_PARAMETERS_H

#include "gen/ir/graph.h"
#include "gen/spec/job.h"

/* ---- Parameters ---- */

/* A name of the parameter tree. Leaves are parameters; a name whose children are the numbers 0, 1, … with equal
 * contents is an array. */
struct weight_node;

/* Children of one node that are structures alike, numbers for names: elements of one array. */
struct weight_array {
  struct weight_node **elements;
  int count;
  int slots;    /* elements that are in memory at a time, reused in turn; 0: all */
  int resident; /* with slots: so many first elements have memory of their own */
};

struct weight_node {
  const char *name;
  const char *path; /* absolute */
  struct weight_node *parent;
  struct weight_node **children;
  int n_children, capacity;
  const struct parameter *parameter; /* of a leaf */
  int weight;                        /* of a leaf: which of the tree's items it is */
  bool bound;                        /* some function takes a pointer to it */
  const struct region *binder;       /* the first such function's region */
  const char *member;                /* its name in the structure that holds it; of an element: its array's */
  struct weight_array *array;        /* whose element it is; NULL: no array's */
  struct weight_struct *type;        /* of a node that is a structure */
};

/* A C structure of parameters. */
struct weight_member {
  const char *name;
  struct weight_node *node; /* a leaf, a structure or the first of an array, in the first use of the structure */
  int64_t offset, bytes;
};
struct weight_struct {
  const char *name;
  struct weight_member *members;
  int n_members, capacity;
  int64_t bytes;
};

/* One parameter of the whole model. */
struct weight {
  const char *path;  /* absolute: the name in a checkpoint */
  const char *place; /* that in the tree: the same, or below resident_scope (weights.h) */
  const struct parameter *parameter;
  int64_t offset;   /* bytes from the start of the weights */
  int64_t gradient; /* bytes from the start of the gradients; -1: it is frozen, or updated in the backward */
  bool zero;        /* its gradient must be zero before the backward */
  bool unreached;   /* it has a gradient, to which the backward adds nothing */
  bool fresh;       /* a file of weights need not have it */
  bool tied;        /* several calls of the model name it */
  bool in_backward; /* updated as soon as the backward has its gradient */
};

/* Layers that are alike: `rows` weights of each, from weight `first` of the first one on. Layers of several kinds may
 * alternate, such as those of convolutions and of attention: each kind is an entry, and those of a round follow one
 * another. */
struct layers {
  int first, rows;
  int from, count; /* the first layer's number; how many there are */
  int64_t stride;  /* bytes from one layer's weights to the next one's */
  int before;      /* letters of their names before the number */
  int round;       /* weights from one layer to the next: its own and those of the kinds that alternate with it */
  bool with_next;  /* whether the next entry is of the same round */
};

/* Weights in a row, by elements, that the optimizer treats alike: several parameters, or one that its rule takes as a
 * whole. */
struct flat_range {
  const struct weight *weight; /* its first parameter */
  int64_t first, end;
  int64_t gradient;   /* the first element of its gradient; -1: none is stored */
  bool frozen;        /* it is in the table, and is never updated */
  int64_t state[2];   /* where it begins in the arrays of its states, if they do not mirror the weights; divided among
                         ranks: among a rank's own, and in the arrays of states of which some have 8 bits */
  bool coded;         /* its states have 8 bits, in blocks from its first element on */
  int stage;          /* of a pipeline: the rank that updates it; of what several use, each has a range */
  bool shared, again; /* several stages have the weight; an earlier one does */
  int fsdp_unit;      /* of program->ranks.fsdp_units; -1: of none */
  int64_t shard_size; /* divided among ranks: what each has of it but the last one, which has the rest */
  struct optimizer_numbers numbers;
  int64_t matrices, rows, columns; /* of a parameter on its own: its last two dimensions, and all before them; 0 where
                                      it has fewer than two */
};

/* A unit of fully sharded data parallelism: the parameters of a layer, or of several that run again together, elements
 * of an array of which a rank holds a few at a time. Ranks gather its weights and reduce its gradients together. */
struct fsdp_unit {
  const char *const *paths; /* of its layers, absolute */
  int layers;
  int first, end; /* its flat ranges */
  int64_t offset; /* of a layer that comes from elsewhere: where it would begin after all weights in memory */
  bool on_disk;   /* it comes from the files of the weights; else from the host */
};

/* A list of flat ranges in the order of the weights. */
struct flat_range_list {
  struct flat_range *items;
  int count, capacity;
  int *first_of; /* of each weight, by its position: one more than the position of its first range; NULL: not kept */
};

/* ---- State ---- */

/* What a parameter, or none, has of a state's array. */
struct state_slice {
  const struct weight *weight; /* NULL: it belongs to no parameter */
  int64_t first;               /* element of the array */
  struct shape shape;
};

/* Which flat ranges an array of states has, that ranks divide: those with codes, and of these a number a block; those
 * without. */
enum state_ranges { RANGES_ALL, RANGES_CODED, RANGES_BLOCKS, RANGES_OTHERS };

/* An array of the arena that outlives a step. Without slices it mirrors the weights: as many elements, and each
 * parameter's at the same offsets. */
struct state {
  const char *file;      /* of a checkpoint, without its ending: "model", "optimizer" */
  const char *name;      /* as PyTorch calls it: "exp_avg"; "": the parameters themselves */
  const char *member;    /* of the arena */
  const char *scales_of; /* the name of the state of whose codes these are the scales; NULL: of none */
  enum dtype dtype;
  int64_t count; /* elements */
  int64_t whole; /* of all ranks' arrays together, as the weights lie, where each has a part; 0: each has all */
  enum state_ranges ranges;
  bool on_host; /* of a program whose device has a memory of its own, which reads and writes this one over the bus */
  bool on_disk; /* in a file (program->disk) */
  struct state_slice *slices;
  int n_slices;
  int *slice_of; /* of each weight, by its position: one more than that of its slice; NULL: slices are of no weights */
};

#endif
