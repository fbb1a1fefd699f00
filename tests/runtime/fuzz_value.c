/* Any bytes as a value: what is accepted is written as the same bytes again, and can be shown. */
#include "include/accel/value.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct accel_store *store = accel_store_new();
  if (store == NULL) abort();
  struct accel_value *value = accel_from_bytes(store, bytes, size);
  if ((value == NULL) == (accel_store_error(store) == NULL)) __builtin_trap();
  if (value != NULL) {
    size_t written;
    const void *again = accel_to_bytes(store, value, &written);
    if (again == NULL || written != size || memcmp(again, bytes, size) != 0) __builtin_trap();
    if (accel_show(store, value) == NULL) __builtin_trap();
  }
  accel_store_free(store);
  return 0;
}
