/* Values as bytes: a byte for the kind, then what the kind has. Lengths and counts are eight bytes; all numbers are as
 * the machine has them. Bytes may come from another rank, or from a file: a reader that trusts none of them. */
#include "runtime/values/store.h"

#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64 };

/* ---- Writing ---- */

/* Counts what it writes; with `bytes` NULL it only counts. */
struct writer {
  char *bytes;
  size_t at;
};

static void put(struct writer *writer, const void *from, size_t size) {
  if (writer->bytes != NULL && size > 0) memcpy(writer->bytes + writer->at, from, size);
  writer->at += size;
}

static void put_text(struct writer *writer, const char *text, size_t length) {
  uint64_t size = length;
  put(writer, &size, sizeof size);
  put(writer, text, length);
}

static void put_tensor(struct writer *writer, const struct accel_value *value) {
  uint8_t head[] = {(uint8_t)value->tensor.dtype, (uint8_t)value->tensor.rank};
  put(writer, head, sizeof head);
  put(writer, value->tensor.shape, (size_t)value->tensor.rank * sizeof *value->tensor.shape);
  if (value->kind == ACCEL_TENSOR) put(writer, value->tensor.data, rt_tensor_bytes(value));
}

static bool put_value(struct writer *writer, const struct accel_value *value, int depth);

static bool put_list(struct writer *writer, const struct accel_value *value, int depth) {
  put(writer, &value->list.count, sizeof value->list.count);
  for (int64_t i = 0; i < value->list.count; i++) {
    if (value->kind == ACCEL_MAP) put_text(writer, value->list.names[i], strlen(value->list.names[i]));
    if (!put_value(writer, value->list.items[i], depth + 1)) return false;
  }
  return true;
}

static bool put_value(struct writer *writer, const struct accel_value *value, int depth) {
  uint8_t kind = (uint8_t)value->kind, boolean = value->kind == ACCEL_BOOLEAN && value->boolean;
  if (depth > DEEPEST) return false;
  put(writer, &kind, 1);
  switch (value->kind) {
  case ACCEL_NONE:
    break;
  case ACCEL_BOOLEAN:
    put(writer, &boolean, 1);
    break;
  case ACCEL_INTEGER:
    put(writer, &value->integer, sizeof value->integer);
    break;
  case ACCEL_REAL:
    put(writer, &value->real, sizeof value->real);
    break;
  case ACCEL_STRING:
    put_text(writer, value->string.text, value->string.length);
    break;
  case ACCEL_TENSOR:
  case ACCEL_INFORMATION:
    put_tensor(writer, value);
    break;
  default:
    return put_list(writer, value, depth);
  }
  return true;
}

void *accel_to_bytes(struct accel_store *store, const struct accel_value *value, size_t *size) {
  struct writer writer = {0};
  *size = 0;
  if (value == NULL) return NULL;
  if (!put_value(&writer, value, 0)) return rt_store_fail(store, "a value that is nested more than %d deep", DEEPEST);
  if ((writer.bytes = rt_store_take(store, writer.at)) == NULL) return NULL;
  *size = writer.at;
  writer.at = 0;
  put_value(&writer, value, 0);
  return writer.bytes;
}

/* ---- Reading ---- */

struct reader {
  struct accel_store *store;
  const char *bytes;
  size_t left;
};

static bool get(struct reader *reader, void *to, size_t size) {
  if (size > reader->left) return false;
  if (size > 0) memcpy(to, reader->bytes, size);
  reader->bytes += size;
  reader->left -= size;
  return true;
}

static struct accel_value *get_text(struct reader *reader) {
  uint64_t length;
  if (!get(reader, &length, sizeof length) || length > reader->left) return NULL;
  struct accel_value *value = accel_make_bytes(reader->store, reader->bytes, (size_t)length);
  reader->bytes += length;
  reader->left -= length;
  return value;
}

static struct accel_value *get_tensor(struct reader *reader, enum accel_kind kind) {
  uint8_t head[2];
  int64_t shape[ACCEL_MOST_DIMENSIONS] = {0};
  if (!get(reader, head, sizeof head) || head[0] >= ACCEL_DTYPES || head[1] > ACCEL_MOST_DIMENSIONS) return NULL;
  enum accel_dtype dtype = head[0];
  if (!get(reader, shape, head[1] * sizeof *shape)) return NULL;
  struct accel_value *value = accel_make_view(reader->store, dtype, head[1], shape, NULL);
  if (value == NULL || kind == ACCEL_INFORMATION) {
    if (value != NULL) value->kind = kind;
    return value;
  }
  size_t size = rt_tensor_bytes(value);
  if (size > reader->left || (value->tensor.data = rt_store_take(reader->store, size > 0 ? size : 1)) == NULL)
    return NULL;
  get(reader, value->tensor.data, size);
  for (size_t i = 0; dtype == ACCEL_BOOL && i < size; i++)
    if (((uint8_t *)value->tensor.data)[i] > 1) return NULL;
  return value;
}

static struct accel_value *get_value(struct reader *reader, int depth);

/* An item takes a byte at least, so a count is below what is left. Names are texts without a 0, each once. */
static struct accel_value *get_list(struct reader *reader, enum accel_kind kind, int depth) {
  int64_t count;
  struct accel_value *list = rt_value(reader->store, kind);
  if (list == NULL || !get(reader, &count, sizeof count) || count < 0 || (uint64_t)count > reader->left) return NULL;
  for (int64_t i = 0; i < count; i++) {
    struct accel_value *name = kind == ACCEL_MAP ? get_text(reader) : NULL;
    if (kind == ACCEL_MAP && (name == NULL || strlen(name->string.text) != name->string.length ||
                              accel_get(list, name->string.text) != NULL))
      return NULL;
    if (!rt_add(reader->store, list, name != NULL ? name->string.text : NULL, get_value(reader, depth + 1)))
      return NULL;
  }
  return list;
}

static struct accel_value *get_value(struct reader *reader, int depth) {
  uint8_t kind, boolean;
  int64_t integer;
  double real;
  if (depth > DEEPEST || !get(reader, &kind, 1)) return NULL;
  switch ((enum accel_kind)kind) {
  case ACCEL_NONE:
    return accel_make_none(reader->store);
  case ACCEL_BOOLEAN:
    return get(reader, &boolean, 1) && boolean <= 1 ? accel_make_boolean(reader->store, boolean) : NULL;
  case ACCEL_INTEGER:
    return get(reader, &integer, sizeof integer) ? accel_make_integer(reader->store, integer) : NULL;
  case ACCEL_REAL:
    return get(reader, &real, sizeof real) ? accel_make_real(reader->store, real) : NULL;
  case ACCEL_STRING:
    return get_text(reader);
  case ACCEL_TENSOR:
  case ACCEL_INFORMATION:
    return get_tensor(reader, (enum accel_kind)kind);
  case ACCEL_LIST:
  case ACCEL_MAP:
    return get_list(reader, (enum accel_kind)kind, depth);
  }
  return NULL;
}

struct accel_value *accel_from_bytes(struct accel_store *store, const void *bytes, size_t size) {
  struct reader reader = {store, bytes, size};
  struct accel_value *value = bytes != NULL ? get_value(&reader, 0) : NULL;
  if (value != NULL && reader.left == 0) return value;
  return rt_store_fail(store, "%zu bytes that are not a value: byte %zu", size, size - reader.left);
}
