/* A call of a function from outside, for the files that say what such functions do to memory. */
#ifndef ACCEL_AUDIT_WALK_EXTERNAL_H
#define ACCEL_AUDIT_WALK_EXTERNAL_H

#include "gen/audit/walk.h"

struct call {
  struct walk *walk;
  struct syntax *node;
  const struct value *arguments;
  int count;
  uint64_t doubt; /* loops that make the sizes at hand ranges */
};

/* `bytes` bytes behind an argument are read or written. */
void external_touch(const struct call *call, int which, int64_t bytes, bool is_write);

/* The most that an integer argument can be; VALUE_MOST when it is not known. */
int64_t external_most(const struct call *call, int which);

/* The integer that a member of a constant record says; -1 when it is not known. `index` of an array member. */
int64_t external_member(const struct walk *walk, const struct object *object, const char *name, int64_t index);

/* The same for `count` integers of a member that is a record of them. */
void external_members(const struct walk *walk, const struct object *object, const char *name, int64_t *integers,
                      int count);

/* The constant record that says what a call of a library does: its first argument. NULL, with what is wrong said, when
 * it is not known. */
const struct object *external_described(const struct call *call);

/* What the runtime's functions for a GPU do; false: it is none of them. */
bool walk_device_external(const struct call *call, struct value *result);

/* The name of the enumerator that a member of a constant record says; "" when it is not known. */
const char *external_enumerator(const struct walk *walk, const struct object *object, const char *name);

/* Two arguments must lie apart: remembered for the kernel's callers when both are its parameters. */
void external_keep_apart(const struct call *call, int a, int b);

/* gemm of BLAS and oneDNN; accel_multiply; accel_convolve; the last two on a device. */
struct value external_multiply(const struct call *call);
struct value external_multiply_described(const struct call *call);
struct value external_multiply_on_device(const struct call *call);
struct value external_convolve_described(const struct call *call);
struct value external_convolve_on_device(const struct call *call);

#endif
