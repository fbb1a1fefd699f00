/* Types of C, as what a model may use them for. */
#ifndef ACCEL_MODEL_CTYPE_H
#define ACCEL_MODEL_CTYPE_H

#include "gen/c/tree.h"

enum ctype_kind {
  CTYPE_VOID,
  CTYPE_INTEGER, /* also bool, char and enums */
  CTYPE_REAL,    /* float, double */
  CTYPE_TENSOR,
  CTYPE_SCOPE,
  CTYPE_STRING,  /* const char * */
  CTYPE_POINTER, /* to an array's elements */
  CTYPE_ARRAY,
  CTYPE_STRUCT,
  CTYPE_OTHER /* outside the subset */
};

enum ctype_kind ctype_of(const struct type *type);

/* The bits of an integer or a real. */
int ctype_bits(const struct type *type);

/* Whether a value of the type can hold a tensor. */
bool ctype_has_tensor(const struct type *type);

/* Whether values of the type are made of parts. */
bool ctype_is_aggregate(const struct type *type);

/* The elements of an array or the members of a struct, and the type of one of them. */
int64_t ctype_parts(const struct type *type);
const struct type *ctype_part(const struct type *type, int64_t index);

#endif
