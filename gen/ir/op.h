/* Operation: everything that the generator knows of one tensor operation. One file of gen/ops exports one
 * `const struct op_file op_file_NAME`; the build collects them into op_files. Nothing outside an op's own file may ask
 * which operation it has; it asks the fields below. */
#ifndef ACCEL_IR_OP_H
#define ACCEL_IR_OP_H

#include "gen/ir/graph.h"

struct builder;
struct new_places;

/* What a node is to the passes. */
enum op_class {
  OP_ELEMENTWISE, /* each element of the one result from the elements of the (broadcast) inputs at the same place; its
                     template is a scalar expression, so that chains fuse into one loop */
  OP_VIEW,        /* the result is the one input's memory under other strides; no kernel unless a copy is needed */
  OP_PARTS,       /* the inputs are parts of the result's memory, where their producers write; no kernel but copies */
  OP_KERNEL,      /* a kernel of its own */
  OP_CALL         /* another region */
};

/* What a library of products can do with one before it writes it, beside the product alone. */
enum epilogue {
  EPILOGUE_NONE,
  EPILOGUE_BIAS, /* a vector is added to each row */
  EPILOGUE_GELU, /* the form with tanh */
  EPILOGUE_RELU,
  EPILOGUE_DGELU, /* the product times the slope of such, where the operand of that was kept */
  EPILOGUE_DRELU,
  EPILOGUE_SUM /* the second factor is added up over its rows, which is the gradient of a bias */
};
#define EPILOGUE_BIT(epilogue) (1u << (epilogue))

/* A number that many samples give together: what joins the numbers of several batches into that of one big batch. */
struct mean {
  enum {
    MEAN_NONE,   /* they cannot be joined */
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

enum { MAX_OUTPUTS = 7, MAX_PRODUCTS = 8 };

/* One of the products of matrices that a kernel is made of: [rows][depth] x [depth][columns]. */
struct op_product {
  const char *name; /* among them, as the template has it: "logits" */
  int64_t rows, depth, columns;
  enum dtype factors, result;
};

/* What a job may leave to a device's library or to the program's own kernels. */
enum library_part { LIBRARY_NONE, LIBRARY_ATTENTION, LIBRARY_CONVOLUTION };

struct op_kind {
  const char *name; /* "layer_norm"; an identifier of C */
  enum op_class class;
  const char *template_name; /* below templates/DEVICE/, without ".c.j2"; NULL: the name. The template defines the
                                macro of this name */

  /* Names of operands, as the kernel's parameters; ends with NULL. Behind the last name, operands are numbered. */
  const char *input_names[10], *output_names[MAX_OUTPUTS];

  /* Sets n_outputs' shapes and dtypes from inputs and attributes: fills shapes[] and dtypes[] (room for MAX_OUTPUTS),
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

  /* Two contributions to one value's gradient, both made by this kind: their sum made smarter than by an addition, or
   * NULL. contributions: n values of equal shape. */
  struct value *(*sum)(struct builder *builder, struct value *const *contributions, int n);

  /* OP_VIEW: the result's offset and strides from the input's, in elements; false when no strides can say it. */
  bool (*view)(const struct node *node, const int64_t *in_strides, int64_t *offset, int64_t *out_strides);
  /* OP_VIEW: the other way: the input's strides that give the result these strides; false when there are none or when
   * the result holds only a part of the input. */
  bool (*unview)(const struct node *node, const int64_t *out_strides, int64_t *in_strides);

  /* OP_KERNEL: whether operand `index` (an output when `output`) may have these strides. NULL: dense only. */
  bool (*accepts)(const struct node *node, bool output, int index, const int64_t *strides);
  /* OP_PARTS: the part of output 0 that input `index` is; false when no strides can say it. */
  bool (*part)(const struct node *node, int index, const int64_t *out_strides, int64_t *offset, int64_t *in_strides);
  /* Bits of the outputs that the kernel can add to what stands there (gradient accumulation). */
  unsigned accumulates;
  /* Bits of the outputs that are room to work in: what the kernel leaves there is no value. */
  unsigned rooms;
  /* in_place[o] - 1 is the input whose memory output o may take over; 0: none. */
  int in_place[MAX_OUTPUTS];

  struct autocast autocast;

  /* OP_KERNEL: what its template reads and writes of floating point is float32, whatever the model is in. */
  bool wide;

  /* The result is the input in another element type: in `to`. */
  bool converts;
  enum dtype to;

  /* Floating-point operations of one execution: by a formula, or so many for each element of input 0; without either,
   * one for each element of the first output. op_flops reads them. */
  double (*flops)(const struct node *node);
  double flops_each;

  /* Those of them that are products of matrices. NULL: all where autocast is LOW, else none. */
  double (*product_flops)(const struct node *node);

  /* Where a device's library multiplies, the products that the template takes from it: fills products[] (room for
   * MAX_PRODUCTS), returns their number. NULL: none, or of `product` and `epilogues` the one that the kernel is. */
  int (*products)(const struct node *node, struct op_product *products);

  /* Which of its parts a device's library (cuDNN) has the kernel in, whose template then opens it there, where it has
   * it for these types and extents. Rooms of such a kernel are for devices without libraries: these work in a place of
   * their own, and the device's own kernel in none. */
  enum library_part library;
  bool (*in_library)(const struct node *node);
  /* Whether it can add to what stands in an output there. */
  bool library_adds;
  /* Bytes that the library may want to work in, beside the operands; `deterministic`: its results are the same in every
   * run. NULL: few. */
  int64_t (*library_room)(const struct node *node, bool deterministic);

  /* 1 + the input for each element of which a device's kernel leaves a number in float32, which another kernel then
   * adds up; 0: none. */
  int noted_input;

  /* The number that every element of an input must stay below, as an index into something; 0: any. NULL: none of its
   * inputs is an index. Of a floating-point input it is what data must keep; what is computed is cut to it. */
  int64_t (*index_limit)(const struct node *node, int input);
  bool ignores; /* the attribute "ignore" is a number that counts for nothing in such an input */

  /* OP_ELEMENTWISE: the float64 truth of one element, from the inputs' elements there; `scalar` where it is a function
   * of one number alone. */
  double (*scalar)(double x);
  double (*apply)(const struct node *node, const double *x);
  /* OP_ELEMENTWISE: the kind of its gradient, where it has one of its own. */
  const struct op_kind *slope;

  /* Of an integer output 0: its elements, all but those that are `none`, lie within [*low, *high], which contains 0.
   * NULL: nothing is known. */
  void (*range)(const struct node *node, int64_t none, int64_t *low, int64_t *high);

  /* float64 truth on dense arrays (integers as doubles). */
  void (*reference)(const struct node *node, const double *const *inputs, double *const *outputs);

  /* Of a scalar output 0: how it joins with those of other batches, from how the scalar inputs do (MEAN_NONE for all
   * others). NULL: MEAN_NONE. Views and conversions are as their input without it. */
  struct mean (*mean)(const struct node *node, const struct mean *inputs);

  /* The ways to write the kernel, which differ in speed and at most in rounding: fills ways[] (room for MAX_WAYS) with
   * words for its template, first that of the way that is taken where nothing was measured, and returns their number.
   * strides: of the outputs, then of the inputs; 0 along dimensions of one element. NULL: there is one way, without a
   * word. */
  int (*ways)(const struct node *node, const int64_t *const *strides, const char **ways);
  const char *chooses; /* what they are, for people: "keys of a block" */
  /* Those of them, ending with NULL, in which no bit depends on the number of threads; NULL: all. */
  const char *const *steady;

  /* Of a product: whether it is faster with input 1 in a layout of the library's own, made once for `times` executions,
   * where that is a weight. NULL: never. */
  bool (*packs)(const struct node *node, const int64_t *const *strides, int64_t times);

  /* Output 0 is the product of inputs 0 and 1 over their last two dimensions. */
  bool product;
  /* What of it an epilogue can do where its input 0 is a product: of slopes, input 1 is what was kept; of a sum over
   * all but the last dimension, input 0 is a product's second factor. */
  enum epilogue epilogue;
  /* A product of inputs 0 and 1 with these epilogues, as bits; op_product_with finds it by them. */
  unsigned epilogues;
  bool adds; /* OP_ELEMENTWISE: output 0 is the sum of inputs 0 and 1 */
  /* The same where input 0 is a sum: over a, b and the other inputs, with the sum behind its own outputs. */
  const struct op_kind *of_sum;
  /* The same with one more input, the last one, that is added to output 0; of such a kind, the one that has a copy of
   * output 0 in 16 bits behind it. */
  const struct op_kind *plus, *with_low;
  bool plus_repeated; /* of plus: what is added may have the last dimensions alone, and is the same along the others */
  const struct op_kind *plain; /* of what of_sum, plus and with_low name: the kind without the addition */
  /* The same as `node`, whose input 0 is the product a b, with no more than `rows` rows of that product in memory, each
   * `pitch` elements from the one before: a node that begins with node's outputs. The node's region is open in
   * `builder`. NULL: there is no such operation. */
  struct node *(*over_product)(struct builder *builder, const struct node *node, struct value *a, struct value *b,
                               int64_t rows, int64_t pitch);
  /* The node and its gradient as one: over what its gradient takes and the node does not make; output 0 is the node's,
   * behind it are the gradient's. NULL: there is no such kind. */
  const struct op_kind *at_once;
  /* What of such a node others may need, its output 2, by itself. The node's region is open. */
  struct node *(*share)(struct builder *builder, const struct node *node);

  /* assigns[o] - 1 is the input, a parameter, that output o is the new value of: it is written there, once the kernel
   * has read the old one; 0: none. The node stands for that alone already. */
  int assigns[MAX_OUTPUTS];

  /* In place of the node where the model is evaluated: its output 0. NULL: the node itself. Its region is open. */
  struct value *(*evaluated)(struct builder *builder, const struct node *node);

  /* The same where ranks keep what they ask of a batch for all of their batches together: the attributes "replicas" and
   * "shards" more, the ranks along either axis, and outputs behind this one's. NULL: it asks nothing of a batch. */
  const struct op_kind *over_ranks;
  /* Numbers of eight bytes that the kernel adds up over these ranks. NULL: it exchanges nothing. */
  int64_t (*exchanged)(const struct node *node);

  /* How the operation treats the places along an axis of output 0: element t there needs of input `input` element t
   * alone along the axis that this gives, or, with AXIS_WHOLE, all of an input that has no such axis; AXIS_MIXED:
   * elements at other places, too. NULL: elementwise operations by broadcasting, all others mix. op_along reads it. */
  int (*along)(const struct node *node, int axis, int input);
  const char *extents; /* the attribute that says output 0's extents; NULL: none does */

  /* Mixes places, but needs of earlier ones no more than can be kept: the operation over new places,
   * whose inputs are in `new`. Sets new->timeline and gives output 0; NULL without an error where there is no such
   * operation. The node's region is open. */
  struct value *(*resumed)(struct builder *builder, const struct node *node, struct new_places *new);

  /* The step updates a parameter. The optimizer's rule writes the function, one for all parameters: in the place of the
   * parameter it gets its row in the optimizer's table, and beside the gradient what the rule needs of the step. */
  bool updates;

  /* The kernel draws random numbers: it gets the step's and the call's place in the random stream. */
  bool random;
};

enum { AXIS_WHOLE = -1, AXIS_MIXED = -2, AXIS_SORTED = -3 };

enum { MAX_WAYS = 6 };
/* Where places of a sequence lie in a value: along `axis` (or AXIS_WHOLE, AXIS_MIXED), in order, and `before` elements
 * in front of that of the first place, each of which could be known as many places earlier. */
struct timeline {
  int axis, before;
  int more;                  /* elements of each place beyond one */
  const struct value *order; /* not in the places' order, but as this sorts them; NULL: in their order. With AXIS_SORTED
                                the value is numbers that say where elements of the places at hand have gone: `more` + 1
                                for each place, or where that is -1 others */
};

/* Places of a sequence that follow on those which have been before. */
struct new_places {
  struct value *const *inputs;      /* of the node, over the new places alone */
  const struct timeline *timelines; /* of each input */
  struct value *at;                 /* [1] int32: which place the first of them is */
  struct value *valid;       /* [1] int32: how many of them there are, the others being none of the text: they may
                                come to nothing, and nothing of them is kept; NULL: all */
  int64_t most, width;       /* places of the whole sequence, new ones */
  const struct scope *scope; /* where buffers go that keep something of earlier places */
  int number;                /* of such nodes in the region so far */
  struct timeline timeline;  /* of output 0: to be set */
  bool limited;              /* to be set where no more than `most` places can follow on each other */
};

/* What kind->along says. */
int op_along(const struct node *node, int axis, int input);

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
const struct op_function *op_function_find(const char *name);

/* The output by which a kind's members describe output `output`. */
int op_described(const struct op_kind *kind, int output);

/* The floating-point operations of one execution of a node. */
double op_flops(const struct node *node);

/* Those of them that are products of matrices. */
double op_product_flops(const struct node *node);

/* The ways of a loop, for op_kind.ways: "all" threads, and "one" where sharing it out may cost more than running it.
 * `work`: the elements of a loop of a few operations each that would take as long; op_threads: a quarter of the kind's
 * operations. */
int op_thread_ways(double work, const char **ways);
int op_threads(const struct node *node, const int64_t *const *strides, const char **ways);

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
