/* Program: what the plan makes of a job and a graph, ready to be written down.
 *
 * A program is a list of functions (one for each region, forward and backward), the memory that they use, and the
 * figures that follow from both. Passes fill it in the order of gen/plan/plan.c. */
#ifndef ACCEL_PROGRAM_PROGRAM_H
#define ACCEL_PROGRAM_PROGRAM_H

#include "gen/ir/graph.h"
#include "gen/program/device_map.h"
#include "gen/program/exchange.h"
#include "gen/program/function.h"
#include "gen/program/mesh.h"
#include "gen/program/parameters.h"
#include "gen/program/step_end.h"
#include "gen/spec/job.h"

/* What is made of a job: it trains; measures what was trained, over the evaluation split; writes text with it. */
enum program_kind { PROGRAM_TRAIN, PROGRAM_EVALUATE, PROGRAM_GENERATE, PROGRAM_KINDS };

/* "train", "evaluate", "generate"; and the reverse, false where no kind has the name. */
const char *program_kind_name(enum program_kind kind);
bool program_kind_find(const char *name, enum program_kind *kind);

struct target;
struct tuning;

/* ---- Figures ---- */

/* Memory of a process by purpose. */
struct memory_bytes {
  int64_t weights, cache, gradients, optimizer, averages, checkpoint, activations, scratch, batch, total;
  int64_t host; /* of the optimizer's states and of weights, what is on the host and in none of the above */
  int64_t disk; /* of the optimizer's states and of trained layers, what is in a file and in none of the above */
};

/* What a measure of the job saves, and the operations that it adds to a step: the plan without it against the plan. */
struct saving {
  const char *measure;
  int64_t bytes;
  double flops;
};

/* A module with a low-rank adapter; in_out: its weight is [in][out], else [out][in]. */
struct adapter {
  const char *module;
  bool in_out;
};

/* A weight that the program holds in codes (gen/plan/graph/quantize.h); in_out: it is published as [in][out],
 * else [out][in]. */
struct quantized {
  const char *weight;
  bool in_out;
  int64_t out, in;
  struct initializer init; /* of the weight itself */
};

/* What a program asks of an int32 input of rows. */
struct input_demand {
  int64_t below, none; /* numbers are within 0 and below `below`, or `none`; 0: nothing is asked, there is none */
  bool is_target;      /* the loss leaves out what is `none` */
};

/* Numbers of float32 inputs that a model takes as an index: each a whole number within 0 and below `below`, or `none`.
 * They are counted input after input. */
struct index_columns {
  int64_t first, count, below;
  int64_t none; /* 0: there is none */
};

/* ---- What passes leave, in groups by who fills and who reads ---- */

/* Functions, callees before callers. */
struct function_list {
  struct function **items;
  int count, capacity;
};

/* Filled by gen/plan/memory/layout.h; read where a program runs: the functions of the entries. */
struct program_entry {
  struct function *forward, *backward; /* backward NULL when nothing is trained */
  struct function *deferred;           /* the backward's deferred statements; NULL: it has none */
  bool loss_in_backward;               /* it gives the loss too: gen/plan/graph/fused_loss_backward.h */
  /* In training the entry as it is evaluated, NULL where that is as it is trained; in generation the entry over one
   * position, NULL where it is not cut into positions. The graph's passes know its region, all others its function. */
  struct region *second_region;
  struct function *second;
};

/* As enum accel_prediction of programs (include/accel/program.h). */
enum prediction_kind { PREDICTS_CLASSES, PREDICTS_SCORES, PREDICTS_LABELS, PREDICTS_VALUES };

/* Filled by gen/plan/graph/evaluation.h: what an evaluation gives in addition to its loss. */
struct program_evaluation {
  struct value *predicted;   /* what is predicted for each label: a result of the evaluation; NULL: not requested */
  enum prediction_kind kind; /* what that is */
  struct value *labels;      /* the evaluation's input that they are compared with */
  int64_t classes;           /* of PREDICTS_LABELS the labels of a sample, of PREDICTS_VALUES 0 */
  struct value *count;       /* what its loss is a mean over, a result of it; NULL: every sample counts alike */
};

/* Filled by gen/plan/graph/decode.h: how a text generator runs the model. */
struct program_decode {
  const char *recomputed;     /* why each token runs all positions again; NULL: it does not */
  bool partial;               /* the entry needs the number of valid positions */
  bool endless;               /* what it caches of a text is of one size, however long the text is */
  const struct value *source; /* the entry's input that a text is written from; NULL: tokens are all it takes */
};

/* Filled by passes that see what becomes an index: the limits of samples of files. */
struct program_data {
  int64_t vocabulary;          /* tokens must be below it; 0: unknown */
  struct input_demand *inputs; /* by the job's inputs */
  struct {
    const char **items;
    int count, capacity;
  } looked_up; /* names of int32 inputs that something other than a loss takes as an index */
  struct {
    struct index_columns *items;
    int count, capacity;
  } indices;           /* in the order of their numbers */
  bool counts_targets; /* the loss is a mean over targets, those of `no_target` left out, also where a batch has none */
  int64_t no_target;   /* the target or label that the losses leave out; 0: none but a class */
  int64_t positions;   /* what positions in a window must be below; 0: nothing is looked up by them */
};

/* Filled by gen/plan/memory/weights.h: all parameters, or all whose gradient is stored, as one tree of structures. */
struct weight_tree {
  struct arena *arena;
  bool of_gradients; /* not all parameters are in it */
  struct weight_node *root;
  struct weight_struct **structs; /* members' types before the types that hold them */
  int n_structs, structs_capacity;
  struct weight *items; /* the parameters, in the order of the model's source */
  int count, capacity;
  int64_t bytes;                 /* of all parameters, in the order of which weights have their offsets */
  struct weight_node **bindings; /* by forward region id and scope: what it was first called with */
  int bindings_stride;
};

/* Filled by gen/plan/groups.h and where ranks divide; read by the optimizer's update. */
struct program_optimizer {
  struct flat_range_list parts;       /* swept element by element, one for each parameter */
  struct flat_range_list flat_ranges; /* the same, neighbours that are treated alike in one; none: all weights, alike */
  struct flat_range_list tensors;     /* each stepped as a whole */
  int64_t scratch;                    /* bytes that the update needs in addition */
  bool one_sweeps;                    /* the update of all weights in one sweep is one thread's */
};

/* Filled by gen/plan/ranks: what several ranks hold, and exchange in a step. */
struct program_ranks {
  int64_t own_elements; /* of what they divide: what one has at most; 0: they divide nothing */
  struct {
    struct fsdp_unit *items;
    int count, capacity;
  } fsdp_units;                       /* that a rank holds a few of at a time */
  int first_fsdp_unit;                /* that the model uses */
  struct collective_list collectives; /* of a step, in order: gradients first, by buckets; of a pipeline, of the rank
                                         that gives most bytes */
  int n_buckets;                      /* of them: those of gradients */
  bool sends_always;                  /* every micro-batch sends gradients, or updates by them; else a step's last */
  int64_t partial_gradients; /* elements of gradients of which ranks that divide tensors have a part of the sum each */
  struct program_placed {    /* where ranks divide tensors */
    int split, values;       /* values of the graph of which ranks along tp have parts; all but parameters */
    const char **whole;      /* lines: which matmuls and tables each of them has whole, and why */
    int n_whole;
  } placed;
  int64_t wire;              /* numbers of 16 bits: a buffer for what is sent to other ranks as such */
  struct event_list *events; /* of a step's last micro-batch, in order: gen/plan/ranks/sequence.h; NULL: not known */
  struct tree tree;
  struct compression compression;
  struct pipeline pipeline;
};

/* Neighbours among the weights in memory, or a layer that comes from the disk, that are updated at once: `count`
 * elements from element `weights` of the weights in memory on, with gradients from element `gradients` of theirs on.
 * Their states are in `buckets` buckets from number `first` on. */
struct disk_piece {
  int unit; /* of program->ranks.fsdp_units; -1: they are always in memory */
  int64_t weights, gradients, count;
  int64_t first, buckets;
  int ready; /* the points of the backward after which its turn has come (gen/plan/memory/completion.h) */
};

/* Filled by gen/plan/disk.h: states that are in a file, neighbours in the list, in buckets that take turns in memory.
 */
struct program_disk {
  int first_state, n_states;         /* n_states 0: all are in memory */
  int64_t elements, bucket, buckets; /* of each; of a bucket; how many buckets */
  int64_t slots;                     /* how many buckets the arena has memory of its own for */
  bool in_backward;                  /* each is updated when its gradients are complete, the last one first */
  struct disk_piece *pieces;         /* with layers on the disk, too: in the order of their buckets */
  int n_pieces;
  struct {
    int64_t slots, at;   /* more of them, in memory of gradients from byte `at` on; 0: none */
    int64_t turns, last; /* that use them, as well as the others; their memory is free before turn `last` is */
  } ahead;
};

/* Filled by gen/plan/memory/alias.h: what is in memory of gradients, in the order of addresses. */
struct program_aliases {
  struct alias *items;
  int count;
  struct peeled_loops *peeled; /* with which a plan may take less; NULL: none */
};

/* Filled by gen/plan/kernels/kernels.h: the C functions that steps call. */
struct program_kernels {
  struct kernel **items;
  int count, capacity;
  int64_t sums; /* numbers of float32 that a device's kernels store before they are added up */
};

/* Filled by gen/plan/kernels/algorithms.h and packs.h: what a device's library does for the kernels. */
struct program_library {
  struct {
    struct library_gemm *items;
    int count, capacity;
  } gemms;           /* none where the library has one algorithm for each */
  int64_t packed;    /* bytes of weights that matmuls store packed */
  int64_t workspace; /* bytes that it needs to work in */
};

/* Filled by gen/program/choose.h: which variants are taken, and what was measured of them. */
struct program_choices {
  const struct tuning *tuning; /* NULL: nothing was measured */
  struct choice *items;
  int count, capacity;
};

/* Filled by gen/plan/report, for the report and for searches. */
struct program_figures {
  int n_layers;                 /* of the model's longest loop over functions */
  int64_t n_frozen;             /* elements of parameters that are not trained */
  int64_t n_parameters, n_tied; /* elements; names that are used more than once */
  int n_split;                  /* parameters that are sharded, or of which each rank has another one (experts) */
  int n_expert_weights;         /* of these: experts */
  int64_t own_elements;         /* of parameters on one rank */
  double flops_per_step, matmul_flops_per_step;
  struct memory_bytes bytes;
  struct saving savings[2]; /* by measures of the job */
  int n_savings;
};

struct program {
  struct arena *arena;
  const struct job *job;
  enum program_kind kind;
  const struct target *target;
  struct program_mesh mesh;
  struct graph *graph;
  enum dtype bits16; /* the type of the weights' copies of 16 bits; DTYPE_FLOAT32: there are none */
  struct {
    struct adapter *items;
    int count, capacity;
  } adapters;
  struct {
    struct quantized *items;
    int count, capacity;
  } quantized;

  /* Modules whose matrices stay floats where others are quantized. */
  struct {
    const char **items;
    int count, capacity;
  } unquantized;
  struct {
    struct view *items; /* by value id */
    int count;
  } views;
  struct function_list functions;
  struct program_entry entry;
  struct step_end step_end;
  struct program_evaluation evaluation;
  struct program_decode decode;
  struct program_data data;
  struct weight_tree *weights;
  struct weight_tree *gradients; /* the weights' own tree where each parameter has a gradient that is stored */
  struct program_optimizer optimizer;
  struct {
    struct state *items;
    int count, capacity;
  } states; /* in the order of the arena: the weights first */
  struct {
    struct layers *items;
    int count, capacity;
  } layers; /* that tables describe by the rows of the first one */
  struct program_ranks ranks;
  struct program_disk disk;
  struct program_aliases aliases;
  struct program_kernels kernels;
  struct program_library library;
  struct program_choices choices;
  struct program_figures figures;
  struct device_map *map; /* which memory modules are in; NULL: all are in that of the device, and nobody asks */
  bool streams;           /* some are layers that come from elsewhere before each use */
};

#endif
