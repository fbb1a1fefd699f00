/* Graph: a model as tensor operations with static shapes, and the one IR that every pass of the plan works on.
 *
 * A graph is a list of regions. A region is a function: it has scopes (where its parameters are named), inputs,
 * nodes in an order that can run, and results. A node applies an operation (gen/ir/op.h) to values; the operation
 * "call" applies another region, once or `count` times in a row. Regions never nest and never recurse.
 * Everything lives in the graph's arena. */
#ifndef ACCEL_IR_GRAPH_H
#define ACCEL_IR_GRAPH_H

#include "gen/base/diag.h"
#include "gen/ir/placement.h"
#include "gen/ir/tensor.h"

struct op_kind;
struct region;
struct node;

/* A named number of a node, such as axis or eps, or a list of them. */
enum attribute_kind { ATTRIBUTE_INT, ATTRIBUTE_REAL, ATTRIBUTE_INTS, ATTRIBUTE_REALS };
struct attribute {
  const char *name;
  enum attribute_kind kind;
  int64_t integer;
  double real;
  struct shape ints;   /* a short list of numbers */
  const double *reals; /* a list of any length: the elements of a table */
  int64_t n_reals;
};

enum { MAX_ATTRIBUTES = 7 };

/* What autocast does with an operation: it runs in the types of its operands, in the 16-bit type, in float32, or in the
 * widest type of its operands, to which all are cast. PyTorch has a list for each device
 * (aten/src/ATen/autocast_mode.h); what a list does not name runs as it is. */
enum autocast_rule { AUTOCAST_AS_IS, AUTOCAST_BITS16, AUTOCAST_FLOAT32, AUTOCAST_PROMOTE };
struct autocast {
  enum autocast_rule cpu, cuda;
};

/* How a parameter starts. NORMAL: mean a, deviation b. UNIFORM: [a, b). SINUSOID: waves of the ratio a over the rows,
 * or over a grid of rows of b positions where b is above 0. DEFAULT: what the operation that names the parameter takes
 * by itself. */
enum initializer_kind { INIT_DEFAULT, INIT_ZEROS, INIT_ONES, INIT_NORMAL, INIT_UNIFORM, INIT_SINUSOID };
struct initializer {
  enum initializer_kind kind;
  double a, b;
};

/* A parameter of a region: named below one of the region's scopes. */
struct parameter {
  int scope;        /* index among the region's scopes */
  const char *path; /* below that scope: "ln_1.weight" */
  struct shape shape;
  enum dtype dtype;
  struct initializer init;
  struct value *value;  /* the parameter as an operand in its region */
  bool buffer;          /* state that is no parameter: what the model assigns to it is all that changes it */
  bool passing;         /* a buffer of one run of a program, which no file has */
  bool moved;           /* it came from a function that the region calls, which names it still */
  bool in_backward;     /* updated as soon as the backward has its gradient, which is never stored */
  struct value *bits16; /* its copy of 16 bits, which the optimizer writes with it; NULL: not used */
  /* How it is placed on the ranks along `axis`, an enum axis, of the mesh: `shape` is that of a rank's part. */
  struct placement placement;
  int axis;
  /* EXPERT: so many parameters of the region in a row, this one among them, are followed by those of the next rank
   * where one rank has all. */
  int together;
  bool partial_gradient; /* its gradient on a rank along that axis is a part of the sum over them */
  struct location where;
};

enum value_kind {
  VALUE_INPUT,     /* an input of the region */
  VALUE_PARAMETER, /* a parameter of the region */
  VALUE_RESULT     /* a result of a node */
};

/* A tensor in a region. Pointers identify values; a backward region may use values of its forward region. */
struct value {
  int id;           /* unique in the graph, in the order of making */
  const char *name; /* unique in its region after naming; an identifier of C */
  struct shape shape;
  enum dtype dtype;
  enum value_kind kind;
  int index; /* among the region's inputs or parameters, or the producer's outputs */
  struct region *region;
  struct node *producer;      /* NULL unless VALUE_RESULT */
  bool differentiable;        /* depends on a parameter through floating point */
  struct placement placement; /* on ranks that divide tensors, once they do: the shape is that of a rank's part */
};

/* One name below a scope of the calling region: where a scope of the called region is bound. */
struct scope {
  struct region *region;
  int formal;       /* index among that region's scopes */
  const char *path; /* "" for the scope itself, else "transformer.h.0" */
  struct initializer init;
};

/* What a call node adds to a node. inputs of the node are the callee's inputs, outputs its results. With count > 1 the
 * callee runs count times in a row: an input with carry[i] = r takes result r of the iteration before (the node's
 * input is what the first one takes, the node's output r what the last one gave); an input with carry[i] = -1 is the
 * same for all. */
struct call {
  struct region *callee;
  int count;
  /* Which call of its region it is, as the model made it, and as which of its iterations iteration i counts there:
   * first + step i. It distinguishes random streams. */
  int number, first, step;
  struct scope **scopes; /* [callee->n_scopes][count] */
  int *carry;            /* [n_inputs] */
  /* Of a repeated call that is differentiated: the outputs after the callee's results are histories: the value of a
   * carried input in each iteration, [count] + its shape. history[h] is that input; with after[h] (NULL: of none) it is
   * the value after the iteration. */
  int n_histories;
  int *history;
  bool *after;
  /* Of a call of a backward region: the call that it differentiates, in the forward region or, where that is run again,
   * before it in the same one. Iterations run from the last to the first, with that call's scopes and saved values; an
   * input with stacked[i] has a leading dimension, one slice an iteration. */
  struct node *forward;
  bool *stacked;
};

/* Growing lists. */
struct node_list {
  struct node **items;
  int count, capacity;
};
struct value_list {
  struct value **items;
  int count, capacity;
};
struct node {
  int id;
  const struct op_kind *kind;
  struct attribute attributes[MAX_ATTRIBUTES];
  int n_attributes;
  struct value **inputs;
  int n_inputs;
  struct value **outputs;
  int n_outputs;
  struct region *region;
  struct location where; /* the model's line */
  struct autocast autocast;
  struct call *call;     /* of a call node */
  struct node_list body; /* of a fused elementwise node: its parts, in order */
  bool again;            /* of a backward region: makes a value of the forward region again */
  bool discards;         /* where it runs again: what it assigns to parameters is discarded */
  bool deferred;         /* of a backward region: only gradients of parameters depend on it, and it runs later */
};

struct parameter_list {
  struct parameter *items;
  int count, capacity;
};

/* A gradient that a backward region adds to its parameter: of parameter `parameter` of the forward region. */
struct parameter_gradient {
  int parameter;
  struct value *value;
  bool accumulate; /* others have written before: add */
  bool shared;     /* others add to what it writes */
  bool meets;      /* its node makes another gradient, and some call has one weight for both */
};
struct gradient_list {
  struct parameter_gradient *items;
  int count, capacity;
};

struct region {
  int id;
  const char *function;  /* the model's function */
  const char *name;      /* the same, made unique among regions */
  struct location where; /* its definition */
  int n_scopes;
  struct value_list inputs;
  struct parameter_list parameters;
  struct node_list nodes;
  struct value_list results;
  /* Of a backward region: the region whose gradient it is. It uses that region's parameters and values as they are;
   * what it uses is saved by the forward. */
  struct region *forward;
  struct gradient_list gradients;
  /* Activation checkpointing: no value of the region is saved; its backward region computes them again from the inputs
   * (Chen, Xu, Zhang, Guestrin, arXiv:1604.06174). */
  bool recompute;
  bool group; /* made by the plan: calls of one function that follow each other */
};

struct graph {
  struct arena *arena;
  struct region **regions; /* callees before callers; the entry is the last one */
  int n_regions, regions_capacity;
  struct region *entry;
  int next_value, next_node;
};

/* Makers of attributes; a list of numbers is referenced, not copied. */
struct attribute attribute_int(const char *name, int64_t value);
struct attribute attribute_real(const char *name, double value);
struct attribute attribute_ints(const char *name, struct shape value);
struct attribute attribute_reals(const char *name, const double *values, int64_t count);

/* Reading attributes; the node must have them. */
int64_t node_int(const struct node *node, const char *name);
double node_real(const struct node *node, const char *name);
struct shape node_ints(const struct node *node, const char *name);
const double *node_reals(const struct node *node, const char *name);

/* " eps=1e-05"; a long list by its length and a digest of its bits. */
const char *attribute_text(struct arena *arena, const struct attribute *attribute);

/* One node a line: "%7 x [12][64][128] = add(%3, %5)"; regions with their parameters; stable from run to run. */
const char *graph_text(struct arena *arena, const struct graph *graph);

#endif
