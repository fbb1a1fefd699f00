/* Program: what the plan makes of a job and a graph, ready to be written down.
 *
 * A program is a list of functions (one for each region, forward and backward), the memory that they use, and the
 * figures that follow from both. Passes fill it in the order of gen/plan/plan.c. */
#ifndef ACCEL_PROGRAM_PROGRAM_H
#define ACCEL_PROGRAM_PROGRAM_H

#include "gen/ir/graph.h"
#include "gen/program/exchange.h"
#include "gen/program/step_end.h"
#include "gen/spec/job.h"

/* What is made of a job: it trains; measures what was trained, over the evaluation split; writes text with it. */
enum program_kind { PROGRAM_TRAIN, PROGRAM_EVALUATE, PROGRAM_GENERATE, PROGRAM_KINDS };

/* "train", "evaluate", "generate"; and the reverse, false where no kind has the name. */
const char *program_kind_name(enum program_kind kind);
bool program_kind_find(const char *name, enum program_kind *kind);

struct target;
struct tuned;
struct tuning;
struct alias;

/* ---- Memory ---- */

enum storage_kind {
  STORAGE_INPUT,    /* an input of the function: the caller's memory */
  STORAGE_RESULT,   /* a result of the function: the caller's memory */
  STORAGE_WEIGHT,   /* a parameter */
  STORAGE_GRADIENT, /* a parameter's gradient */
  STORAGE_SAVED,    /* kept from forward to backward */
  STORAGE_SCRATCH   /* dead when the function returns */
};

/* A piece of memory: `count` elements in a row, `copies` times (the iterations of a repeated call).
 *
 * A frame is what a callee saves, once for each iteration of its call: saved, too, where the backward function comes
 * back to it; scratch where the same function does, after it has run a forward function again, or nobody. */
struct storage {
  enum storage_kind kind;
  const char *name;          /* a C identifier, unique among its function's storages of the kind */
  const struct value *value; /* that it was laid out for, as densely as that is; NULL: it is no one value's */
  enum dtype dtype;
  int64_t count;
  int copies;
  struct function *function;  /* whose it is */
  int index;                  /* INPUT, RESULT: which; WEIGHT, GRADIENT: the parameter */
  int first, last;            /* SCRATCH: the first and the last step that touch it */
  int slot;                   /* SCRATCH: storages of one slot share memory */
  struct storage *shared;     /* taken over by an output in place: the storage that it became part of */
  const struct node *carrier; /* of a row of carried values: the repeated call, and which of its inputs */
  int carried_input;
  struct function *frame;    /* of a frame: the callee whose saved values are here */
  const struct node *call;   /* and its call */
  const struct alias *alias; /* SAVED: it is in memory of gradients; NULL: in what its function saves */
};

/* A saved storage in memory of gradients that the backward writes later. */
struct alias {
  struct storage *storage;
  const char *name; /* unique among all aliases */
  int64_t at;       /* bytes from the start of the gradients */
};

/* Where a value is: elements of a storage under strides. */
struct view {
  struct storage *storage; /* NULL: nowhere yet */
  int64_t offset;          /* in elements */
  int64_t strides[MAX_RANK];
};

struct storage_list {
  struct storage **items;
  int count, capacity;
};

/* A repeated call whose first iterations are peeled off into a call of their own. */
struct peeled_loop {
  int node;  /* of the graph, by its id */
  int count; /* iterations */
};
struct peeled_loops {
  struct peeled_loop *items;
  int count, capacity;
};

/* Memory that a function's scratch uses for storages, or callees' scratch, that are never alive together. */
struct slot {
  int64_t bytes;
  struct storage_list storages;
  struct function **callees;
  int n_callees, callees_capacity;
};

/* ---- Code ---- */

struct kernel_operand {
  const char *name;
  struct shape shape;
  enum dtype dtype;
  int64_t strides[MAX_RANK];
  int64_t extent; /* elements from the first to the last one touched */
  bool dense, accumulate;
  int64_t loop_strides[MAX_RANK]; /* of a fused kernel: along each of its loops */
};

/* Ways to compute the same, of which one is taken: gen/program/choose.h. */
struct choice {
  const char *subject; /* what it is for, in full: a kernel's kind, attributes, operands with their strides */
  const char *what;    /* is chosen: "KV block size" */
  const char *const *variants;
  int n_variants, taken;
  const struct tuned *measured; /* NULL: nothing was, and the first variant is taken */
};

/* A kernel: one C function for all steps that need exactly it. */
struct kernel {
  const char *name;
  const char *subject;     /* all that its text depends on, but for the variant that it is written in */
  const char *variant;     /* of its kind's variants; "": there is one */
  bool packs;              /* input 1 is a weight that a library may keep packed; gen/plan/kernels/packs.h */
  int64_t weights;         /* that it keeps packed; 0: none */
  const struct node *node; /* of the first step that needed it */
  struct kernel_operand *outputs, *inputs;
  int n_loops; /* of a fused kernel: its loop nest, outermost first */
  int64_t loops[MAX_RANK];
};

/* A matmul that the device's library computes: a kernel, or one of those that a kernel or the optimizer is made of. */
struct library_gemm {
  const char *name;            /* of the program's matmuls it alone has it: "linear_cross_entropy_8x16_dx" */
  const char *subject;         /* of the choice of its algorithm: all that this depends on */
  const struct kernel *kernel; /* whose it is; NULL: the optimizer's */
  const char *part;            /* which of them, as the template has it: "dx" */
  const char *algorithm;       /* gen/plan/kernels/algorithms.h */
  double flops, bytes;         /* of one execution; its operands, each once */
};

/* One statement of a function: a kernel over operands in memory, or a call of another function. */
struct step {
  struct node *node;
  struct kernel *kernel;   /* NULL for a call */
  struct function *callee; /* NULL for a kernel */
  struct view *outputs, *inputs;
  bool *accumulate; /* by output: add to what stands there */
  int *used;        /* by iteration: the unit whose parameters it takes; NULL: none */
  int *begins;      /* by iteration: the unit whose gather begins before it; -1: none */
  int *arrives;     /* by iteration: the unit whose gather is complete before it; -1: none is awaited */
  int *reduced;     /* by iteration: buckets of gradients that have arrived before it; NULL: any */
  int *complete;    /* by iteration: gradient buckets that are complete after it, and last, before the first one; NULL:
                       no more than before */
  bool deferred;    /* of a backward function: it runs later than the others (gen/plan/graph/defer.h) */
  int stage;        /* of a function that stages of a pipeline divide: whose it is */
  uint32_t stages;  /* those that run it, a bit each */
};

struct function {
  struct region *region;
  struct function *forward, *backward; /* each other's; NULL where there is none */
  struct function *deferred;           /* of a backward function: its deferred statements; NULL: it has none */
  const char *name;                    /* "block_forward" */
  struct step *steps;
  int n_steps, steps_capacity;
  struct storage_list storages; /* all that it owns */
  struct slot *slots;
  int n_slots, slots_capacity;
  int first_stage, n_stages;           /* of a pipeline: whose layers it runs; 0: it runs none */
  bool staged;                         /* several, which have different steps of it */
  bool *uses_weights, *uses_gradients; /* by scope: the function takes a pointer to them */
  bool *uses_bits16_weights;           /* by scope: to the copies of 16 bits */
  bool *uses_inputs;                   /* by input: the function takes it */
  bool *reads_results;                 /* by result: of a deferred function, which gives none */
  int64_t saved_bytes, scratch_bytes;  /* 0: it takes no such pointer */
  bool *writes_weights;                /* by scope: it assigns to some of them */
  bool *uses_rows;                     /* by scope: it takes a pointer to their rows in the optimizer's table */
  bool updates;                        /* some of any scope */
  bool random;                         /* draws random numbers, itself or in a callee */
  bool aliased; /* of a forward function: it and its backward take a pointer to what is in memory of gradients */
};

/* ---- Parameters ---- */

/* A name of the parameter tree. Leaves are parameters; a name whose children are the numbers 0, 1, … with equal
 * contents is an array. */
struct weight_node;

/* Children of one node that are structures alike, numbers for names: elements of one array. */
struct weight_array {
  struct weight_node **elements;
  int count;
  int slots; /* as many elements have room, in turn; 0: all */
};

struct weight_node {
  const char *name;
  const char *path; /* absolute */
  struct weight_node *parent;
  struct weight_node **children;
  int n_children, capacity;
  const struct parameter *parameter; /* of a leaf */
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
  const char *path; /* absolute: the name in a checkpoint */
  const struct parameter *parameter;
  int64_t offset;   /* bytes from the start of the weights */
  int64_t gradient; /* bytes from the start of the gradients; -1: it is frozen, or updated in the backward */
  bool zero;        /* its gradient must be zero before the backward */
  bool fresh;       /* a file of weights need not have it */
  bool tied;        /* several calls of the model name it */
  bool in_backward; /* updated as soon as the backward has its gradient */
};

/* Layers that are alike: of each the next `rows` of its weights, from the first layer's on. */
struct layers {
  int first, rows;
  int from, count; /* the first layer's number; how many there are */
  int64_t stride;  /* bytes from one layer's weights to the next one's */
  int before;      /* letters of their names before the number */
};

/* Weights in a row, by elements, that the optimizer treats alike: several parameters, or one that its rule takes as a
 * whole. */
struct flat_range {
  const struct weight *weight; /* its first parameter */
  int64_t first, end;
  int64_t gradient;   /* the first element of its gradient; -1: none is stored */
  bool frozen;        /* it is in the table, and is never updated */
  int64_t state[2];   /* where it begins in the arrays of its states, if they do not mirror the weights */
  int stage;          /* of a pipeline: the rank that updates it; of what several use, each has a range */
  int fsdp_unit;      /* of program->ranks.fsdp_units; -1: of none */
  int64_t shard_size; /* divided among ranks: what each has of it but the last one, which has the rest */
  struct optimizer_numbers numbers;
  int64_t matrices, rows, columns; /* of a parameter on its own: its last two dimensions, and all before them; 0 where
                                      it has fewer than two */
};

/* A unit of fully sharded data parallelism: the parameters of a layer, an element of an array of which a rank holds a
 * few elements at a time. Ranks gather its weights and reduce its gradients together. */
struct fsdp_unit {
  const char *path; /* absolute */
  int first, end;   /* its flat ranges */
};

/* A list of flat ranges in the order of the weights. */
struct flat_range_list {
  struct flat_range *items;
  int count, capacity;
};

/* ---- State ---- */

/* What a parameter, or none, has of a state's array. */
struct state_slice {
  const struct weight *weight; /* NULL: it belongs to no parameter */
  int64_t first;               /* element of the array */
  struct shape shape;
};

/* An array of the arena that outlives a step. Without slices it mirrors the weights: as many elements, and each
 * parameter's at the same offsets. */
struct state {
  const char *file;   /* of a checkpoint, without its ending: "model", "optimizer" */
  const char *name;   /* as PyTorch calls it: "exp_avg"; "": the parameters themselves */
  const char *member; /* of the arena */
  enum dtype dtype;
  int64_t count; /* elements */
  int64_t whole; /* of all ranks' arrays together, where each has a part; 0: each has all */
  bool on_host;  /* of a program whose device has a memory of its own, which reads and writes this one over the bus */
  struct state_slice *slices;
  int n_slices;
};

/* ---- Figures ---- */

/* Memory of a process by what it is for. */
struct memory_bytes {
  int64_t weights, cache, gradients, optimizer, averages, checkpoint, activations, scratch, batch, total;
  int64_t host; /* of the optimizer's states and of weights, what is on the host and in none of the above */
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

/* Columns of a row that a model takes as an index: each a whole number within 0 and below `below`, or `none`. A label
 * is the column after the features. */
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

/* Filled by gen/plan/memory/layout.h; asked where a program runs: the functions of the entries. */
struct program_entry {
  struct function *forward, *backward; /* backward NULL when nothing is trained */
  struct function *deferred;           /* the backward's deferred statements; NULL: it has none */
  bool loss_in_backward;               /* it gives the loss too: gen/plan/graph/fused_loss_backward.h */
  /* In training the entry as it is evaluated, NULL where that is as it is trained; in generation the entry over one
   * position, NULL where it is not cut into positions. The graph's passes know its region, all others its function. */
  struct region *second_region;
  struct function *second;
};

/* Filled by gen/plan/graph/evaluation.h: what an evaluation gives in addition to its loss. */
struct program_evaluation {
  struct value *predicted; /* the class of each label, as predicted: a result of the evaluation; NULL: not asked for */
  struct value *labels;    /* the evaluation's input that they are compared with */
  int64_t classes;
  struct value *count; /* what its loss is a mean over, a result of it; NULL: every sample counts alike */
};

/* Filled by gen/plan/graph/decode.h: how a text generator runs the model. */
struct program_decode {
  const char *recomputed; /* why each token runs all positions again; NULL: it does not */
  bool partial;           /* the entry needs the number of valid positions */
  bool endless;           /* what it keeps of a text is of one size, however long the text is */
};

/* Filled by passes that see what becomes an index: what files of samples must keep. */
struct program_data {
  int64_t vocabulary, classes; /* tokens and labels must be below them; 0: unknown */
  struct {
    struct index_columns *items;
    int count, capacity;
  } indices;         /* of rows, in their order; a label that is a class is not among them */
  int64_t no_target; /* the target or label that the losses leave out; 0: none but a class */
  int64_t positions; /* what positions in a window must be below; 0: nothing is looked up by them */
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
  int64_t bytes;                 /* of all parameters, in the order of which weights tell their offsets */
  struct weight_node **bindings; /* by forward region id and scope: what it was first called with */
  int bindings_stride;
};

/* Filled by gen/plan/groups.h and where ranks divide; asked by the optimizer's update. */
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
  } fsdp_units;        /* that a rank holds a few of at a time */
  int first_fsdp_unit; /* that the model uses */
  struct {
    struct collective *items;
    int count, capacity;
  } collectives;             /* of a step, in order: gradients first, by buckets */
  int n_buckets;             /* of them: those of gradients */
  bool sends_always;         /* every micro-batch sends gradients; else a step's last one alone */
  int64_t partial_gradients; /* elements of gradients of which ranks that divide tensors have a part of the sum each */
  struct program_placed {    /* where ranks divide tensors */
    int split, values;       /* values of the graph of which ranks along tp have parts; all but parameters */
    const char **whole;      /* lines: which products and tables each of them has whole, and why */
    int n_whole;
  } placed;
  int64_t wire;              /* numbers of 16 bits: room for what is on its way to other ranks as such */
  struct event_list *events; /* of a step's last micro-batch, in order: gen/plan/ranks/sequence.h; NULL: not known */
  struct tree tree;
  struct compression compression;
  struct pipeline pipeline;
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
  int64_t sums; /* numbers of float32 that a device's kernels keep before they are added up */
};

/* Filled by gen/plan/kernels/algorithms.h and packs.h: what a device's library does for the kernels. */
struct program_library {
  struct {
    struct library_gemm *items;
    int count, capacity;
  } gemms;           /* none where the library has one algorithm for each */
  int64_t packed;    /* bytes of weights that matmuls keep packed */
  int64_t workspace; /* bytes that it needs to work in */
};

/* Filled by gen/program/choose.h: which variants are taken, and what was measured of them. */
struct program_choices {
  const struct tuning *tuning; /* NULL: nothing was measured */
  struct choice *items;
  int count, capacity;
};

/* Filled by gen/plan/report, for people and for programs that plan. */
struct program_figures {
  int n_layers;                 /* of the model's longest loop over functions */
  int64_t n_frozen;             /* elements of parameters that are not trained */
  int64_t n_parameters, n_tied; /* elements; names that are used more than once */
  int n_split;                  /* parameters of which ranks have parts, or in place of which they have others */
  int n_dealt;                  /* of these: in place of which others have others */
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
  struct graph *graph;
  enum dtype bits16; /* the type of the weights' copies of 16 bits; DTYPE_FLOAT32: there are none */
  struct {
    struct adapter *items;
    int count, capacity;
  } adapters;
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
  } layers; /* that tables tell of by the rows of the first one */
  struct program_ranks ranks;
  struct program_aliases aliases;
  struct program_kernels kernels;
  struct program_library library;
  struct program_choices choices;
  struct program_figures figures;
};

#endif
