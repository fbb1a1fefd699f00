/* The graph of ONNX while it is made. */
#ifndef ACCEL_ONNX_STATE_H
#define ACCEL_ONNX_STATE_H

#include "gen/onnx/flat.h"
#include "gen/onnx/make.h"
#include "gen/onnx/onnx.h"
#include "gen/onnx/proto.h"

/* The fields that are written, by their numbers in onnx.proto. */
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3, NODE_OPERATOR = 4, NODE_ATTRIBUTE = 5 };
enum {
  ATTRIBUTE_NAME = 1,
  ATTRIBUTE_F = 2,
  ATTRIBUTE_I = 3,
  ATTRIBUTE_S = 4,
  ATTRIBUTE_GRAPH = 6,
  ATTRIBUTE_FIELD_INTS = 8,
  ATTRIBUTE_TYPE = 20
};
enum {
  TYPE_FLOAT = 1,
  TYPE_INT = 2,
  TYPE_STRING = 3,
  TYPE_GRAPH = 5,
  TYPE_INTS = 7
}; /* AttributeProto.AttributeType */
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };

/* An operator or a constant: what it is, but for its name, and the names of its outputs. */
struct onnx_item {
  const char *key;
  size_t length;
  const char **outputs;
  int next; /* the number of the next item of its bucket, counted from 1; 0: none */
};

enum { ONNX_BUCKETS = 4096 };

struct onnx {
  struct arena *arena;
  struct diagnostics *diags;
  const struct onnx_sizes *sizes;
  struct flat *flats[ONNX_SIZES];
  int node;           /* of which a rule is asked */
  uint32_t read;      /* the bits of its attributes that the rule has read */
  const char **names; /* of tensors, by the number of the value */
  bool *taken;        /* which of them a rule takes, by the same */
  struct {
    struct onnx_item *items;
    int count, capacity;
  } made;
  int buckets[ONNX_BUCKETS];    /* the number of the newest item, as `next` */
  struct text nodes, constants; /* fields of a GraphProto */
  const char *sized;            /* an input [batch][sequence], or [batch][...] where there is no sequence */
  bool failed;
};

/* The numbers of one thing at all sizes as an extent; false where it is none. */
bool onnx_fit(const struct onnx *onnx, const int64_t numbers[ONNX_SIZES], struct onnx_extent *extent);

/* The item of a key; NULL: there is none yet. */
const struct onnx_item *onnx_find(const struct onnx *onnx, const struct text *key);

/* Adds it. */
const char *const *onnx_add(struct onnx *onnx, const struct text *key, const char **outputs);

/* Forgets all but the first `made` items: they are in a body, where operators that follow it do not see them. */
void onnx_forget(struct onnx *onnx, int made);

enum onnx_type onnx_type_of(enum dtype dtype);

/* The outputs of an operator with attributes that are given as fields of a NodeProto, and an attribute of whole numbers
 * as such a field. */
const char *const *onnx_node_of(struct onnx *onnx, const char *operator, const char * const * inputs, int n_inputs,
                                const struct text *attributes, int n_outputs);
void onnx_add_attribute(struct text *node, struct arena *arena, const struct attribute *attribute);

/* A 1-D or, with rank 0, single constant of these bytes, little-endian. */
const char *onnx_constant(struct onnx *onnx, enum onnx_type type, int rank, const void *bytes, size_t each,
                          int64_t count);

/* Reports an attribute that the rule has not read. */
void onnx_check_read(struct onnx *onnx);

/* The node of which a rule is asked, at a size. */
const struct node *onnx_node_at(const struct onnx *onnx, int size);

#endif
