/* Operation: everything that the generator knows of one tensor operation. One file of gen/ops exports one
 * `const struct op_file op_file_NAME`; the build collects them into op_files. Nothing outside an op's own file may ask
 * which operation it has; it reads the fields below. */
#ifndef ACCEL_IR_OP_H
#define ACCEL_IR_OP_H

#include "gen/ir/graph.h"
#include "gen/ir/placement.h"

struct builder;
struct new_positions;
struct onnx;
struct stablehlo;

/* What a node is to the passes. */
enum op_class {
  OP_ELEMENTWISE, /* each element of the one result from the elements of the (broadcast) inputs at the same position;
                     its template is a scalar expression, so that chains fuse into one loop */
  OP_VIEW,        /* the result is the one input's memory under other strides; no kernel unless a copy is needed */
  OP_PARTS,       /* the inputs are parts of the result's memory, where their producers write; no kernel but copies */
  OP_KERNEL,      /* a kernel of its own */
  OP_CALL         /* another region */
};

/* What a library of matmuls can do with one before it writes it, in addition to the matmul. */
enum epilogue {
  EPILOGUE_NONE,
  EPILOGUE_BIAS, /* a vector is added to each row */
  EPILOGUE_GELU, /* the form with tanh */
  EPILOGUE_RELU,
  EPILOGUE_DGELU, /* the matmul times the slope of such, where the operand of that was saved */
  EPILOGUE_DRELU,
  EPILOGUE_SUM /* the second factor is added up over its rows, which is the gradient of a bias */
};
#define EPILOGUE_BIT(epilogue) (1u << (epilogue))

/* A number that many samples give together: how the numbers of several batches combine into that of one big batch. */
struct mean {
  enum {
    MEAN_NONE,   /* they cannot be combined */
    MEAN_SAME,   /* it is the same in every batch */
    MEAN_SUM,    /* they add up */
    MEAN_FIXED,  /* their mean */
    MEAN_COUNTED /* their mean weighted by `count` */
  } form;
  double most;  /* SUM: 1 / the factor that makes it a mean; COUNTED: the largest that `count` can be */
  double terms; /* SUM: how many numbers it adds up */
  struct value
      *count;   /* COUNTED: a scalar of the number's region; SUM, FIXED: the number, where it serves as a count */
  bool inverse; /* COUNTED: `count` is 1 / the count */
  /* COUNTED: what is counted, all of `of` that is not `without`; two of the same have the same count. */
  const struct value *of;
  int64_t without;
};

enum { MAX_OUTPUTS = 8, MAX_GEMMS = 8 };

/* One of the matmuls that a kernel is made of: [rows][depth] x [depth][columns]. */
struct op_gemm {
  const char *name; /* among them, as the template has it: "logits" */
  int64_t rows, depth, columns;
  enum dtype factors, result;
};

/* What a job may leave to a device's library or to the program's own kernels. */
enum library_part { LIBRARY_NONE, LIBRARY_ATTENTION, LIBRARY_CONVOLUTION };

/* What passes read of an operation, in groups by the reader. All members are optional but `name`, `class` and, where
 * the kind does not come from a rewrite (`fusion.plain`), `infer`. */

/* Read by gen/plan/memory: which strides operands may have. Strides are in elements. */
struct op_layout {
  /* OP_VIEW: the result's offset and strides from the input's; false when no strides describe the result. */
  bool (*view)(const struct node *node, const int64_t *in_strides, int64_t *offset, int64_t *out_strides);
  /* OP_VIEW: the input's strides that give the result these strides; false when there are none, or when the result
   * holds only a part of the input. */
  bool (*unview)(const struct node *node, const int64_t *out_strides, int64_t *in_strides);
  /* OP_KERNEL: whether operand `index` (an output if `output`) may have these strides. NULL: dense operands only. */
  bool (*accepts)(const struct node *node, bool output, int index, const int64_t *strides);
  /* OP_PARTS: the part of output 0 that input `index` is; false when no strides describe it. OP_KERNEL: the part that
   * input 0 is, as strides always describe it, when the rest is zero: added, it is a copy to that part alone. */
  bool (*part)(const struct node *node, int index, const int64_t *out_strides, int64_t *offset, int64_t *in_strides);
};

/* Read by gen/plan/memory: what the kernel does with the memory of its outputs. */
struct op_memory {
  /* Bits of the outputs that the kernel can add to the memory's content (gradient accumulation). */
  unsigned accumulates;
  /* Bits of the outputs that are workspace: what the kernel leaves there is not a value. */
  unsigned workspace;
  /* in_place[o] - 1 is the input whose memory output o may take over; 0: none. */
  int in_place[MAX_OUTPUTS];
  /* assigns[o] - 1 is the input, a parameter, whose new value is output o. It is written to the parameter after the
   * kernel has read the old value; 0: none. The node already exists for that alone. */
  int assigns[MAX_OUTPUTS];
  /* Whether the one output is made again from the one input where the backward uses it, instead of being saved. NULL:
   * it is not. */
  bool (*remade)(const struct node *node);
};

/* Read by the autocast pass: element types. */
enum op_float32 { FLOAT32_NOWHERE, FLOAT32_ON_CPU, FLOAT32_EVERYWHERE };

struct op_types {
  struct autocast autocast;
  enum op_float32 float32; /* where there is no kernel of 16 bits: operands are widened, and results narrowed */
  /* The node multiplies by codes: its type is that of input 0, the only operand that casts are for, and where autocast
   * has no say it is the job's own for such products, if it has one. */
  bool by_codes;
  /* OP_KERNEL: the template reads and writes floating-point operands as float32, whatever the model's type is. */
  bool wide;
  /* The result is the input converted to the element type `to`. */
  bool converts;
  enum dtype to;
};

/* Read by the plan's figures: floating-point operations of one execution. op_flops reads the first two: a formula, or a
 * count for each element of input 0; without either, one operation for each element of output 0. */
struct op_cost {
  double (*flops)(const struct node *node);
  double flops_each;
  /* The operations that are matmuls. NULL: all if autocast is BITS16, else none. */
  double (*matmul_flops)(const struct node *node);
};

/* Asked where a library (oneDNN, cuBLASLt, cuDNN) may compute the kernel or a part of it. */
struct op_library {
  /* Output 0 is the matmul of inputs 0 and 1 over their last two dimensions. */
  bool matmul;
  /* The matmuls that the template takes from a device's library: fills gemms[] (capacity MAX_GEMMS) and returns
   * their number. NULL: none, or the one that the kernel is, by `matmul` and `epilogues`. */
  int (*gemms)(const struct node *node, struct op_gemm *gemms);
  /* The kind is a matmul of inputs 0 and 1 with these epilogues, as bits; op_matmul_with finds it by them. */
  unsigned epilogues;
  /* Of a matmul: whether it is faster with input 1, a weight, in a layout of the library's own, made once for `times`
   * executions. NULL: never. */
  bool (*packs)(const struct node *node, const int64_t *const *strides, int64_t times);
  /* The part of a device's library (cuDNN) that has the kernel; its template opens it there if the library offers it
   * for these types and extents. Workspace outputs of such a kernel are for devices without the library: a library
   * works in memory of its own, and the device's own kernel needs none. */
  enum library_part part;
  bool (*offers)(const struct node *node);
  /* The library can add to the content of an output's memory. */
  bool accumulates;
  /* Bytes of workspace that the library may want; `deterministic`: its results are the same in every run. NULL: few. */
  int64_t (*workspace)(const struct node *node, bool deterministic);
};

/* Asked where values are indices: of rows, of classes, of positions. */
struct op_index {
  /* The number that every element of an input must stay below, as an index; 0: any. NULL: no input is an index. Data
   * must keep the limit in a floating-point input; a computed value is cut to it. */
  int64_t (*limit)(const struct node *node, int input);
  bool moves;   /* output 0 is made of elements of input 0, as a view is: what is asked of them is asked of those */
  bool ignores; /* an element equal to the attribute "ignore" counts for nothing in such an input */
  /* Of an integer output 0: its elements, except those equal to `none`, are within [*low, *high], which contains 0.
   * NULL: nothing is known. */
  void (*range)(const struct node *node, int64_t none, int64_t *low, int64_t *high);
};

/* Read by tests: float64 results that are independent of any template. */
struct op_reference {
  /* OP_ELEMENTWISE: one element, from the inputs' elements; `scalar` if it is a function of one number alone. */
  double (*scalar)(double x);
  double (*apply)(const struct node *node, const double *x);
  /* Any class: dense arrays (integers as doubles). */
  void (*evaluate)(const struct node *node, const double *const *inputs, double *const *outputs);
};

/* Read by the choice of kernels (gen/program/choose.h). */
struct op_choice {
  /* The variants of the kernel, which differ in speed and at most in rounding: fills variants[] (capacity MAX_VARIANTS)
   * with words for its template and returns their number. The first is selected if nothing was measured. strides: of
   * the outputs, then of the inputs; 0 along dimensions of one element. NULL: there is one variant, without a word. */
  int (*variants)(const struct node *node, const int64_t *const *strides, const char **variants);
  const char *what; /* is chosen, human-readable: "KV block size" */
  /* The variants, ending with NULL, in which no bit depends on the number of threads; NULL: all. */
  const char *const *deterministic;
};

/* Read by the passes that make one node of several (gen/plan/graph/rewrites.h). */
struct op_fusion {
  bool adds;                   /* OP_ELEMENTWISE: output 0 is the sum of inputs 0 and 1 */
  const struct op_kind *plain; /* of a kind with an addition before or after it: the kind without */
  /* The same as `node`, whose input 0 is the matmul a b, with no more than `rows` rows of that matmul in memory, each
   * `pitch` elements after the one before: a node that begins with node's outputs. The node's region is open in
   * `builder`. NULL: there is no such operation. */
  struct node *(*over_matmul)(struct builder *builder, const struct node *node, struct value *a, struct value *b,
                              int64_t rows, int64_t pitch);
  /* Of a loss that is fused with its gradient: its output 2, the inverse of the number of targets, which others may
   * need, computed without the rest. The node's region is open. */
  struct node *(*inverse_count)(struct builder *builder, const struct node *node);
};

/* Read by decoding (gen/plan/graph/decode.h) and by chunks: what depends on which position of a sequence. */
struct op_sequence {
  /* How the operation treats positions along an axis of output 0: element t there needs of input `input` element t
   * alone along the axis that this returns; or, with AXIS_WHOLE, all of an input that has no such axis; AXIS_MIXED:
   * elements at other positions, too. NULL: elementwise operations by broadcasting, all others mix. op_along reads
   * it. */
  int (*along)(const struct node *node, int axis, int input);
  const char *extents; /* the attribute that holds output 0's extents; NULL: none does */
  /* For incremental decoding: the operation mixes positions, but what it needs of earlier ones fits a cache. Builds it
   * over new positions, whose inputs are in `new`. Sets new->timeline and returns output 0; NULL without an error if
   * there is no such operation. The node's region is open. */
  struct value *(*incremental)(struct builder *builder, const struct node *node, struct new_positions *new);
};

/* Read by evaluation and by the mean over batches. */
struct op_evaluation {
  /* Of a scalar output 0: how it combines with those of other batches, from how the scalar inputs do (MEAN_NONE for all
   * others). NULL: MEAN_NONE. Views and conversions are as their input without it. */
  struct mean (*mean)(const struct node *node, const struct mean *inputs);
  /* Output 0 where the model is evaluated, instead of the node's; the node's own: it stays. NULL: all nodes of the kind
   * do. Its region is open. */
  struct value *(*substitute)(struct builder *builder, const struct node *node);
};

enum op_exchange_form {
  EXCHANGE_ALL_REDUCE,
  EXCHANGE_REDUCE_SCATTER, /* of parts of a tensor, one for each rank */
  EXCHANGE_ALL_GATHER,
  EXCHANGE_ALL_TO_ALL,
  EXCHANGE_SEND /* to the next rank, and from the one before */
};

/* Numbers that a kernel exchanges with other ranks while it runs. */
struct op_exchange {
  enum op_exchange_form form;
  const char *what;            /* for people: "statistics" */
  int64_t count;               /* of the whole */
  bool by_data;                /* data decides how many, of `count` at most; where collectives have fixed sizes: */
  enum op_exchange_form fixed; /* what they are then */
  int64_t most;                /* of the whole */
  enum dtype dtype;
  int axis; /* of the mesh, an enum axis; -1: all axes along which ranks have batches of their own */
};

/* Read by the plan for several ranks. */
struct op_ranks {
  /* The same operation where its statistics are over the batches of all ranks: it has the attribute "ranks",
   * how many they are, and more outputs after this one's. NULL: it has no statistics of a batch. */
  const struct op_kind *over_ranks;
  /* What the kernel exchanges with other ranks. NULL: nothing. */
  struct op_exchange (*exchanged)(const struct node *node);
  /* What it exchanges next, after `count` exchanges, of which that is the first; false: no more. NULL: no more. */
  bool (*exchanged_next)(const struct node *node, int count, struct op_exchange *exchange);
  /* The axis of the mesh along which the kernel asks which rank it runs on; -1: it does not. NULL: it does not. */
  int (*part_axis)(const struct node *node);
  /* How the operands are placed on `ranks` ranks when one of them is split. placements[] has one for each input and
   * then that of output 0; that of operand `seed` is set, to a split. Sets all others to what the operation then needs
   * of its inputs and gives as output. False: it needs that dimension whole. NULL: as sequence.along says of output 0.
   * op_place reads it. */
  bool (*place)(const struct node *node, int seed, int64_t ranks, struct placement *placements);
  /* The same where operand `seed`, an input, is PLACED_SORTED. NULL: as sequence.along says of output 0. */
  bool (*place_sorted)(const struct node *node, int seed, struct placement *placements);
  /* Why `place` refuses this node, of which ranks have positions of each sequence; NULL: as most do. */
  const char *(*needs)(const struct node *node);
  /* Outputs after output 0 are the same on all ranks where these have parts of output 0; false: of parts they would be
   * parts. */
  bool others_whole;
  /* 1 + the dimension of output 0 along which ranks can divide the operation where it mixes the positions of a sequence
   * that they have parts of (`place` has its rule); 0: there is none. Where `place` has a rule for parts of positions,
   * too, by which other operands are whole, ranks may gather these. */
  int divided_dim;
  /* Of an operation that mixes positions: builds what each rank along `axis` does instead over its own positions, which
   * in dimension `divided_dim` of its floating-point inputs are the first of 2 `ranks` chunks that is its own and the
   * one as far from the end, and returns output 0 over these. Other inputs are whole. It gathers what it needs of other
   * ranks, or, `ring`, passes it round them. The region is open. */
  struct value *(*over_positions)(struct builder *builder, const struct node *node, int64_t ranks, int64_t axis,
                                  bool ring);
  bool (*gathers)(const struct node *node, bool ring); /* whether over_positions has a form of this node */
  /* Rows of groups: input 0 is [rows][columns], sorted by group, input 1 where each group starts, [groups + 1], and
   * each input from this one on belongs to a group, in their order; output 0 has the rows of input 0. So ranks can
   * have some of the groups each. 0: the operation is of no groups. */
  int by_group;
  /* Divides by `ranks` what attributes other than sequence.extents say of a dimension that is split. */
  void (*shorten)(struct node *node, const struct placement *placements, int64_t ranks);
  /* A part may be padded (placement_pads) where `place` allows it: with zeros in parameters, and whatever follows of
   * them; gradients there are zeros. */
  bool pads;
  /* The split of an input, *input, along its dimension *dim, that ranks try for the sake of this operation: its work,
   * or a parameter of it, becomes a part on each. False: none. NULL: none. */
  bool (*tried)(const struct node *node, int *input, int *dim);
  /* Of an operation that needs to know which part of an input a rank has, where `place` gives an output 0 that is not
   * split: builds what each rank along `axis` does instead, over inputs that are parts of `whole` indices, and
   * returns the node that has its outputs. The region is open. NULL: the same operation serves on each rank. */
  struct node *(*over_parts)(struct builder *builder, const struct node *node, int64_t whole, int64_t ranks,
                             int64_t axis);
};

/* Read by the templates' arguments: what the kernel gets in addition to its operands. */
struct op_kernel {
  bool random; /* its position in the random stream, by step and call */
  /* The step updates a parameter. The optimizer's rule writes the function, one for all parameters: instead of the
   * parameter it gets the parameter's row in the optimizer's table, and with the gradient what the rule needs of the
   * step. */
  bool updates;
  /* 1 + the input for each element of which a device's kernel leaves a number in float32, which another kernel then
   * adds up; 0: none. */
  int noted_input;
};

/* Read by the export as ONNX (gen/onnx/onnx.h): the operator that gives output 0 of the inputs as they are, or what
 * writes the node as operators. NULL both: it cannot be exported. It is for inference: what training alone does is left
 * out. */
struct op_onnx {
  const char *operator;
  void (*write)(struct onnx *onnx);
};

/* Read by the export as StableHLO (gen/stablehlo/stablehlo.h): the operation of one or two inputs, broadcast, that
 * gives output 0, or what writes the node as operations. NULL both: it cannot be lowered. */
struct op_lower {
  const char *operation;
  void (*write)(struct stablehlo *hlo);
};

struct op_kind {
  const char *name; /* "layer_norm"; an identifier of C */
  enum op_class class;
  const char *template_name; /* below templates/devices/DEVICE or templates/kernels, without ".c.j2"; NULL: the name.
                                The template defines the macro of this name */

  /* Names of operands, as the kernel's parameters; ends with NULL. After the last name, operands are numbered. */
  const char *input_names[10], *output_names[MAX_OUTPUTS + 1];

  /* Sets n_outputs' shapes and dtypes from inputs and attributes: fills shapes[] and dtypes[] (capacity MAX_OUTPUTS),
   * returns the number of outputs; or 0 with *error set to a sentence (in `arena`) that names both operands with their
   * shapes. */
  int (*infer)(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
               const char **error);
  /* All outputs are like output 0, and there may be more than MAX_OUTPUTS: infer fills shapes[0] and dtypes[0] alone,
   * and what other members say of output 0 they say of all (op_described). They have numbers and no names. */
  bool alike;

  /* Gradient: d_outputs[i] is the gradient of output i, or NULL where none flows. Builds nodes and sets d_inputs[i],
   * of the input's shape, for each input with builder_wants_gradient; the others stay NULL. May use the node's own
   * inputs and outputs: what it uses is saved for backward. NULL: the operation has no gradient. */
  void (*gradient)(struct builder *builder, const struct node *node, struct value *const *d_outputs,
                   struct value **d_inputs);
  /* Builds output 0 of other operations, where the device has no kernel of the kind (target.kernels.lacks) or positions
   * are decoded one by one. The node's region is open. NULL: the kind has a kernel on all devices. */
  struct value *(*written_out)(struct builder *builder, const struct node *node);
  /* Whether a node is one of those that no device has a kernel of, and only decoding can leave it; NULL: none is. */
  bool (*lacks_kernel)(const struct node *node);
  /* OP_ELEMENTWISE: the kind of its gradient, if it has one of its own. */
  const struct op_kind *slope;
  /* Two contributions to one value's gradient, both made by this kind: their sum made smarter than by an addition, or
   * NULL. contributions: n values of equal shape. */
  struct value *(*sum)(struct builder *builder, struct value *const *contributions, int n);

  struct op_layout layout;
  struct op_memory memory;
  struct op_types types;
  struct op_cost cost;
  struct op_library library;
  struct op_index index;
  struct op_reference reference;
  struct op_choice choice;
  struct op_fusion fusion;
  struct op_sequence sequence;
  struct op_evaluation evaluation;
  struct op_ranks ranks;
  struct op_kernel kernel;
  struct op_onnx onnx;
  struct op_lower lower;
};

enum { AXIS_WHOLE = -1, AXIS_MIXED = -2, AXIS_SORTED = -3 };

enum { MAX_VARIANTS = 6 };
/* Where positions of a sequence are in a value: along `axis` (or AXIS_WHOLE, AXIS_MIXED), in order, and `before`
 * elements in front of that of the first position, each of which could be known as many positions earlier. */
struct timeline {
  int axis, before;
  int more;                  /* elements of each position beyond one */
  const struct value *order; /* not in the positions' order, but as this sorts them; NULL: in their order. With
                                AXIS_SORTED the value is numbers that say where elements of the current positions have
                                gone: `more` + 1 for each position, or where that is -1 others */
};

/* Positions of a sequence that follow on those which have been before. */
struct new_positions {
  struct value *const *inputs;      /* of the node, over the new positions alone */
  const struct timeline *timelines; /* of each input */
  struct value *at;                 /* [1] int32: which position the first of them is */
  struct value *valid;       /* [1] int32: how many of them there are, the others being none of the text: they may
                                have no effect, and nothing of them is saved; NULL: all */
  int64_t most, width;       /* positions of the whole sequence, new ones */
  const struct scope *scope; /* the scope of buffers that cache earlier positions */
  int number;                /* of such nodes in the region so far */
  struct timeline timeline;  /* of output 0: to be set */
  bool limited;              /* to be set where no more than `most` positions can follow on each other */
};

/* What kind->along says. */
int op_along(const struct node *node, int axis, int input);

/* What kind->ranks.place says; false, too, where a placement would give ranks unequal parts, and for kinds that draw
 * random numbers and do not say, or assign to parameters. */
bool op_place(const struct node *node, int seed, int64_t ranks, struct placement *placements);

/* The rule of kinds without one of their own, for those that have one of some splits only. */
bool op_place_along(const struct node *node, int seed, struct placement *placements);

/* Makes a node that of one rank: its attributes, by sequence.extents and ranks.shorten, and the shapes of outputs after
 * output 0. placements[]: of its operands, as op_place sets them; inputs and output 0 have the shapes of a rank's parts
 * already. A kind that has ranks.part_axis gets `axis`, that of the mesh, as an attribute. False: the kind's shape rule
 * gives output 0 another shape. */
bool op_shorten(struct arena *arena, struct node *node, const struct placement *placements, int64_t ranks, int axis);

/* Operand `index` of a node: its inputs, then output 0. */
struct value *op_operand(const struct node *node, int index);

/* An argument of a tensor function as the model wrote it. */
enum argument_kind { ARGUMENT_SCOPE, ARGUMENT_TENSOR, ARGUMENT_INT, ARGUMENT_REAL, ARGUMENT_STRING };
struct argument {
  enum argument_kind kind;
  struct scope *scope;
  struct value *tensor;
  int64_t integer; /* also enumerators */
  double real;     /* also set for ARGUMENT_INT */
  const char *string;
  struct location where;
};

/* A function of accel/model.h that builds nodes. The C compiler has checked the call against its prototype; variadic
 * arguments follow one by one. `build` returns the result, or NULL once an error was reported through builder_error;
 * without it, the function is a node of `kind` over its arguments, which are tensors. */
struct op_function {
  const char *name;
  struct value *(*build)(struct builder *builder, const struct argument *arguments, int count);
  const struct op_kind *kind;
};

/* What one file gives: kinds end with a NULL, functions with a NULL name; either may be absent. */
struct op_file {
  const char *name;
  const struct op_kind *const *kinds;
  const struct op_function *functions;
};

/* Made by the build from the files of gen/ops. */
extern const struct op_file *const op_files[];
extern const int op_file_count;

/* Whether a node of the kind assigns to parameters. */
bool op_assigns(const struct op_kind *kind);

/* By name; NULL when there is none. */
const struct op_kind *op_kind_find(const char *name);

/* Whether a list of names, NULL after the last one, has this kind's; NULL: no list. */
bool op_kind_is_among(const struct op_kind *kind, const char *const *names);
const struct op_function *op_function_find(const char *name);

/* The output by which a kind's members describe output `output`. */
int op_described(const struct op_kind *kind, int output);

/* The floating-point operations of one execution of a node. */
double op_flops(const struct node *node);

/* Those of them that are matmuls. */
double op_matmul_flops(const struct node *node);

/* The variants of a loop, for op_choice.variants: "all" threads, and "one" where dividing it among threads may cost
 * more than running it. `work`: the elements of a loop of a few operations each that would take as long; op_threads: a
 * quarter of the kind's operations. */
int op_thread_variants(double work, const char **variants);
int op_threads(const struct node *node, const int64_t *const *strides, const char **variants);

/* The kind that casts to a floating-point type. */
const struct op_kind *op_cast_kind(enum dtype dtype);

/* The one operation that is not in gen/ops: a region's call. */
extern const struct op_kind op_call;

/* Whether a node adds two values of one shape. */
bool op_is_sum(const struct node *node);

/* Whether what is known of an index keeps it within 0 and below `limit`, but for elements that are `none`. Sets *wrong
 * to one that it does not, where that is false. */
bool op_index_fits(const struct value *index, int64_t limit, int64_t none, int64_t *wrong);

/* A number that no element of data is: for an index of which nothing is left out. */
#define OP_NO_NUMBER INT64_MIN

/* The number that counts for nothing as an index in the node's inputs; OP_NO_NUMBER where all count. */
int64_t op_left_out(const struct node *node);

/* Whether a value is another one's memory under other strides, by the operation that makes it. */
bool value_is_view(const struct value *value);

/* What a value is a view of, through all views; the value itself when it is none. */
const struct value *viewed_value(const struct value *value);

#endif
