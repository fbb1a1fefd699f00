/* The functions of a program: the memory that they use, the steps that they run, and the kernels that these call. */
#ifndef ACCEL_PROGRAM_FUNCTION_H
#define ACCEL_PROGRAM_FUNCTION_H

#include "gen/ir/graph.h"

struct function;
struct tuned;
struct alias;

/* ---- Memory ---- */

enum storage_kind {
  STORAGE_INPUT,    /* an input of the function: the caller's memory */
  STORAGE_RESULT,   /* a result of the function: the caller's memory */
  STORAGE_WEIGHT,   /* a parameter */
  STORAGE_GRADIENT, /* a parameter's gradient */
  STORAGE_SAVED,    /* saved from forward to backward */
  STORAGE_SCRATCH   /* dead when the function returns */
};

/* A buffer: `count` elements in a row, `copies` times (the iterations of a repeated call).
 *
 * A frame is what a callee saves, once for each iteration of its call: saved, too, where the backward function reads
 * it; scratch where the same function does, after it has run a forward function again, or where none does. */
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

/* Variants of a computation, of which one is selected: gen/program/choose.h. */
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
  bool packs;              /* input 1 is a weight that a library may store packed; gen/plan/kernels/packs.h */
  int64_t weights;         /* that it stores packed; 0: none */
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
  bool *accumulate; /* by output: add to what is there */
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

#endif
