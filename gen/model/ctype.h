/* Types of C, as far as a model may use them. */
#ifndef ACCEL_MODEL_CTYPE_H
#define ACCEL_MODEL_CTYPE_H

#include <stdbool.h>
#include <stdint.h>

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

struct enumerator {
  const char *name;
  int64_t value;
};

struct field {
  const char *name;
  const struct ctype *type;
  int line; /* in the model */
  const char *file;
};

struct ctype {
  enum ctype_kind kind;
  const char *name; /* as written: "struct config", "int [3]" */
  int bits;         /* of an integer or a real */
  bool is_signed, is_bool;
  const struct enumerator *enumerators; /* of an enum */
  int n_enumerators;
  const struct ctype *element; /* of an array or a pointer */
  int64_t count;               /* of an array; -1 when it is known only in evaluation */
  const struct field *fields;  /* of a struct */
  int n_fields;
};

extern const struct ctype ctype_int, ctype_double, ctype_void;

/* Whether a value of the type can hold a tensor. */
bool ctype_has_tensor(const struct ctype *type);

/* Whether values of the type are made of parts. */
bool ctype_is_aggregate(const struct ctype *type);

/* The elements of an array or the fields of a struct, and the type of one of them. */
int64_t ctype_parts(const struct ctype *type);
const struct ctype *ctype_part(const struct ctype *type, int64_t index);

/* The index of a field; -1 when there is none. */
int ctype_field(const struct ctype *type, const char *name);

#endif
