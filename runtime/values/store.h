/* The memory of values: blocks that are freed together, and the first message. */
#ifndef RUNTIME_VALUES_STORE_H
#define RUNTIME_VALUES_STORE_H

#include "include/accel/value.h"

/* `size` bytes, zeroed, aligned to 64; NULL with a message when there is no memory. */
void *rt_store_take(struct accel_store *store, size_t size);

/* Leaves a message unless there is one. Returns NULL, so that a caller can return its result. `store` may be NULL. */
void *rt_store_fail(struct accel_store *store, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A value of a kind, all else 0. */
struct accel_value *rt_value(struct accel_store *store, enum accel_kind kind);

/* A tensor whose elements are 0, or as `shape` of a tensor with another first length. */
struct accel_value *rt_tensor_like(struct accel_store *store, const struct accel_value *like, int64_t rows);

/* Adds an item under a name that the list does not have. */
bool rt_add(struct accel_store *store, struct accel_value *list, const char *name, struct accel_value *item);

/* An empty list or map, as `like` is, or a list of `kind`; its items come by rt_add. */
struct accel_value *rt_empty_like(struct accel_store *store, const struct accel_value *like);

bool rt_is_list(const struct accel_value *value); /* or a map */
bool rt_is_tensor(const struct accel_value *value);

/* The name of a kind, for messages: "a tensor". */
const char *rt_kind_name(const struct accel_value *value);

/* Elements and bytes of a tensor. */
int64_t rt_tensor_count(const struct accel_value *tensor);
size_t rt_tensor_bytes(const struct accel_value *tensor);

#endif
