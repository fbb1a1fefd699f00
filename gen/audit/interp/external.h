/* A call of a function from outside, for the files that model what such functions do to memory. */
#ifndef ACCEL_AUDIT_INTERP_EXTERNAL_H
#define ACCEL_AUDIT_INTERP_EXTERNAL_H

#include "gen/audit/interp/interp.h"

struct call {
  struct interp *interp;
  struct syntax *node;
  const struct value *arguments;
  int count;
  uint64_t imprecision; /* loops that make the sizes ranges */
};

/* Reads or writes `bytes` bytes that an argument points to. */
void external_touch(const struct call *call, int which, int64_t bytes, bool is_write);

/* The largest value of an integer argument; VALUE_MAX when it is not known. */
int64_t external_max(const struct call *call, int which);

/* The integer in a member of a constant record; -1 when it is not known. `index` of an array member. */
int64_t external_member(const struct interp *interp, const struct object *object, const char *name, int64_t index);

/* The same for `count` integers of a member that is a record of them. */
void external_members(const struct interp *interp, const struct object *object, const char *name, int64_t *integers,
                      int count);

/* The constant record that describes a call of a library: its first argument. NULL when it is not known, which is
 * reported. */
const struct object *external_described(const struct call *call);

/* What the runtime's functions that exchange with other ranks do; false: it is none of them. */
bool interp_exchange_external(const struct call *call, struct value *result);

/* What collectives do that the program starts and waits for later; false: it is none of them. And sends in flight that
 * a call waits for. */
bool interp_transfer_external(const struct call *call, struct value *result);
void external_end_sends(const struct call *call);

/* Ranks along an axis, at least 1; along the one that is a collective's first argument. VALUE_MAX: the axis is not one
 * number, or the program's constants are not known. */
int64_t external_ranks(const struct interp *interp, struct value axis);
int64_t external_ranks_along(const struct call *call);

/* Bytes that a state has on the disk, by its number; -1: none, or the number is not known. */
int64_t external_disk_bytes(const struct interp *interp, struct value state);

/* What the runtime's functions for a GPU do; false: it is none of them. */
bool interp_device_external(const struct call *call, struct value *result);

/* The name of the enumerator in a member of a constant record; "" when it is not known. */
const char *external_enumerator(const struct interp *interp, const struct object *object, const char *name);

/* interp_require_noalias of two arguments, the first of which is written. */
void external_require_noalias(const struct call *call, int a, int b);

/* A matrix's rows, their elements, the stride of these, and the size of one; the bytes that it takes. */
struct matrix {
  struct value rows;
  int64_t columns, step, size;
};
int64_t external_matrix_bytes(struct matrix matrix);

/* external_touch of a matrix, and of bytes whose number is linear in what the argument is, too; of the second one,
 * false where that says nothing. */
void external_touch_rows(const struct call *call, int which, struct matrix matrix, bool is_write);
bool external_touch_linear(const struct call *call, int which, const struct linear *bytes, bool is_write);

/* gemm of BLAS and oneDNN; accel_multiply; the same by codes, in int8, and of a row; accel_convolve; accel_multiply and
 * it on a device. */
struct value external_multiply(const struct call *call);
struct value external_multiply_described(const struct call *call);
struct value external_multiply_quantized(const struct call *call);
struct value external_multiply_int8(const struct call *call);
struct value external_multiply_q8_0(const struct call *call);
struct value external_gemv(const struct call *call);
struct value external_multiply_on_device(const struct call *call);
struct value external_convolve_described(const struct call *call);
struct value external_convolve_on_device(const struct call *call);

#endif
