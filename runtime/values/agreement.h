/* Whether all ranks are at the same operation of user code, with values that go together. */
#ifndef RUNTIME_VALUES_AGREEMENT_H
#define RUNTIME_VALUES_AGREEMENT_H

#include "include/accel/value.h"

enum operation {
  OPERATION_GATHER,
  OPERATION_GATHER_OBJECT,
  OPERATION_REDUCE,
  OPERATION_BROADCAST,
  OPERATION_BROADCAST_OBJECT_LIST,
  OPERATION_PAD,
  OPERATION_WAIT,
  OPERATION_TRIGGER,
  OPERATION_REGISTER,
  OPERATION_LOAD_FILE,
  OPERATION_COLLECT,
  OPERATION_LOG,
  OPERATION_END
};

/* The function's name: "accel_gather". */
const char *rt_operation_name(enum operation operation);

/* Goes on when all ranks call it for the same operation with the same text `of`, which says with what. NULL: this rank
 * has failed already, and its message is in the store. False with a message on all ranks. */
bool rt_agree(struct accel_store *store, enum operation operation, const char *of);

/* The same for what gives no value: all end when ranks are elsewhere, or have another text. */
void rt_meet(enum operation operation, const char *of);

/* How a value is built, after `with`, such as "mean of ": its tensors' types and shapes, or their types and numbers of
 * dimensions alone. NULL with a message: the value is NULL, or a leaf is no tensor. */
const char *rt_build_of(struct accel_store *store, struct accel_value *value, const char *with, bool lengths);

#endif
