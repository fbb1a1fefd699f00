/* A value of the model's C while it is evaluated: a number, a string, a tensor, a scope, or a struct or array
 * of them. */
#ifndef ACCEL_MODEL_CVALUE_H
#define ACCEL_MODEL_CVALUE_H

#include "gen/ir/graph.h"
#include "gen/model/ctype.h"

enum cvalue_kind {
  CVALUE_UNSET, /* declared, but nothing was written to it */
  CVALUE_VOID,
  CVALUE_INTEGER,
  CVALUE_REAL,
  CVALUE_TENSOR,
  CVALUE_SCOPE,
  CVALUE_STRING,
  CVALUE_AGGREGATE, /* struct or array: its parts are owned by the one variable that holds it */
  CVALUE_POINTER    /* into an array */
};

struct cvalue {
  enum cvalue_kind kind;
  bool fixed;              /* a pointer: what it points to cannot be assigned */
  const struct type *type; /* of a number */
  union {
    int64_t integer; /* unsigned 64-bit values as the same bits */
    double real;
    struct value *tensor;
    struct scope *scope;
    const char *string;
    struct {
      struct cvalue *items;
      int64_t count; /* of the aggregate, or of the array that the pointer points into */
      int64_t index; /* of a pointer */
    };
  };
};

/* A value of each kind: an int, a double, a tensor of the graph, a scope, a string. */
struct cvalue cvalue_integer(int64_t integer);
struct cvalue cvalue_real(double real);
struct cvalue cvalue_tensor(struct value *tensor);
struct cvalue cvalue_scope(struct scope *scope);
struct cvalue cvalue_string(const char *string);

/* The string that a value is; NULL where it is none. */
const char *cvalue_string_of(const struct cvalue *value);

/* "3", "0.5", "a tensor", "a string", … for messages. In the arena. */
const char *cvalue_text(struct arena *arena, struct cvalue value);

#endif
