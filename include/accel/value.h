/* Values: nested lists and maps of tensors, numbers and strings, as what user code says to other ranks and hears from
 * them is made of.
 *
 *   struct accel_store *store = accel_store_new();
 *   struct accel_value *losses = accel_make_tensor(store, ACCEL_FLOAT32, 1, (int64_t[]){3}, mine);
 *   struct accel_value *all = accel_gather(store, losses);
 *   if (all == NULL) puts(accel_store_error(store));
 *   accel_store_free(store);
 *
 * Ownership: a store owns every value that is made in it, and frees them together. What an operation gives is in
 * the store that it was given, and may share parts with what it was made from: values of a list are read, not written,
 * once they are a part of something. Values of several stores are not mixed.
 *
 * Errors are values: a function that fails gives NULL (or what its sentence says) and leaves a message in the store; a
 * function that is given NULL gives NULL. So a chain of calls is checked once, at its end; the first message stays. A
 * function that is given no store (NULL) where it says so reports nothing. */
#ifndef ACCEL_VALUE_H
#define ACCEL_VALUE_H

#include "dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ACCEL_MOST_DIMENSIONS = 8 };

enum accel_kind {
  ACCEL_NONE,
  ACCEL_BOOLEAN,
  ACCEL_INTEGER,
  ACCEL_REAL,
  ACCEL_STRING,
  ACCEL_TENSOR,
  ACCEL_INFORMATION, /* what a tensor is like, without its elements */
  ACCEL_LIST,
  ACCEL_MAP, /* names in the order in which they were set */
};

struct accel_value {
  enum accel_kind kind;
  union {
    bool boolean;
    int64_t integer;
    double real;
    struct {
      const char *text; /* closed by a 0, which does not count; others may stand in it */
      size_t length;
    } string;
    struct {
      enum accel_dtype dtype;
      int rank;                             /* 0: a scalar */
      int64_t shape[ACCEL_MOST_DIMENSIONS]; /* each 0 or more */
      void *data;                           /* row-major; NULL in ACCEL_INFORMATION */
    } tensor;
    struct {
      struct accel_value **items;
      const char **names; /* of a map; NULL in a list */
      int64_t count, capacity;
    } list; /* lists and maps */
  };
};

struct accel_store;

/* ---- The store ---- */

/* An empty store, which the caller frees. NULL: there is no memory. */
struct accel_store *accel_store_new(void);

/* Frees all values of it, and itself. NULL: nothing is done. */
void accel_store_free(struct accel_store *store);

/* Frees all values of it, and takes back its message. */
void accel_store_clear(struct accel_store *store);

/* What went wrong first since the store was made or cleared; NULL: nothing. */
const char *accel_store_error(const struct accel_store *store);

/* ---- Making values ---- */

/* What Python calls None. */
struct accel_value *accel_make_none(struct accel_store *store);

/* A boolean. */
struct accel_value *accel_make_boolean(struct accel_store *store, bool boolean);

/* An integer. */
struct accel_value *accel_make_integer(struct accel_store *store, int64_t integer);

/* A real number. */
struct accel_value *accel_make_real(struct accel_store *store, double real);

/* A string: a copy of `text`. */
struct accel_value *accel_make_string(struct accel_store *store, const char *text);

/* The same of `length` bytes, among which there may be zeros. */
struct accel_value *accel_make_bytes(struct accel_store *store, const char *text, size_t length);

/* A tensor with a copy of `data`; NULL: zeros. `shape` has `rank` lengths. Fails where the rank is above
 * ACCEL_MOST_DIMENSIONS or a length is negative. */
struct accel_value *accel_make_tensor(struct accel_store *store, enum accel_dtype dtype, int rank, const int64_t *shape,
                                      const void *data);

/* The same without a copy: `data` stays the caller's, and must outlive the value. Operations that write do so in
 * copies. */
struct accel_value *accel_make_view(struct accel_store *store, enum accel_dtype dtype, int rank, const int64_t *shape,
                                    const void *data);

/* A list without items. */
struct accel_value *accel_make_list(struct accel_store *store);

/* A map without items. */
struct accel_value *accel_make_map(struct accel_store *store);

/* Adds `item` to the end of `list`, which it gives back. Fails where that is no list. */
struct accel_value *accel_append(struct accel_store *store, struct accel_value *list, struct accel_value *item);

/* Sets `name` of `map`, which it gives back: a name that is there already keeps its position. */
struct accel_value *accel_set(struct accel_store *store, struct accel_value *map, const char *name,
                              struct accel_value *item);

/* ---- Reading values ---- */

/* Item `index` of a list or a map; negative: from the end. NULL where there is none. */
struct accel_value *accel_at(const struct accel_value *list, int64_t index);

/* Item `name` of a map; NULL where there is none. */
struct accel_value *accel_get(const struct accel_value *map, const char *name);

/* Items of a list or a map, bytes of a string, elements of a tensor; 1 for others, 0 for NULL. */
int64_t accel_count(const struct accel_value *value);

/* Element `index` of a tensor, in the order of its memory; true is 1. */
double accel_element(const struct accel_value *tensor, int64_t index);

/* Bytes of an element. */
size_t accel_dtype_size(enum accel_dtype dtype);

/* The type's name as PyTorch has it ("float32"). It is static. */
const char *accel_dtype_name(enum accel_dtype dtype);

/* Whether two values are of the same kinds, shapes and types, with the same bits. */
bool accel_equal(const struct accel_value *a, const struct accel_value *b);

/* The value on one line, for people: {"loss": float32[2] (1.5, 2), "names": ["a", null]}. Elements after the eighth of
 * a tensor are left out; a tensor's information has none. The text is the store's. */
const char *accel_show(struct accel_store *store, const struct accel_value *value);

/* ---- Values as bytes ---- */

/* The value as bytes, which are the store's, for accel_save_file, say; NULL with a message. Numbers are as this
 * machine has them, tensors aligned to nothing. */
void *accel_to_bytes(struct accel_store *store, const struct accel_value *value, size_t *size);

/* The value of such bytes, copied. They are not trusted: every length is checked before it is used, and nothing but a
 * whole value is accepted. */
struct accel_value *accel_from_bytes(struct accel_store *store, const void *bytes, size_t size);

#endif
