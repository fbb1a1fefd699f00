/* Datum: a value of the model's C while it is evaluated: a number, a string, a tensor, a scope, or a struct or array
 * of them. */
#ifndef ACCEL_MODEL_DATUM_H
#define ACCEL_MODEL_DATUM_H

#include "gen/ir/graph.h"
#include "gen/model/ctype.h"

enum datum_kind {
  DATUM_UNSET, /* declared, but nothing was written to it */
  DATUM_VOID,
  DATUM_INTEGER,
  DATUM_REAL,
  DATUM_TENSOR,
  DATUM_SCOPE,
  DATUM_STRING,
  DATUM_AGGREGATE, /* struct or array: its parts are owned by the one variable that holds it */
  DATUM_POINTER    /* into an array */
};

struct datum {
  enum datum_kind kind;
  bool fixed;              /* a pointer: what it points to cannot be assigned */
  const struct type *type; /* of a number */
  union {
    int64_t integer; /* unsigned 64-bit values as the same bits */
    double real;
    struct value *tensor;
    struct scope *scope;
    const char *string;
    struct {
      struct datum *items;
      int64_t count; /* of the aggregate, or of the array that the pointer points into */
      int64_t index; /* of a pointer */
    };
  };
};

struct datum datum_integer(int64_t integer);
struct datum datum_real(double real);
struct datum datum_tensor(struct value *tensor);
struct datum datum_scope(struct scope *scope);
struct datum datum_string(const char *string);

/* "3", "0.5", "a tensor", "a string", … for messages. */
const char *datum_text(struct arena *arena, struct datum datum);

#endif
