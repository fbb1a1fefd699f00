/* Any bytes as a manifest, as they are and with the sum that closes one: what is accepted holds plain names. */
#include "runtime/files/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_one(const char *bytes, size_t size) {
  struct manifest manifest;
  struct problem problem;
  if (!rt_manifest_read(&manifest, "fuzz", bytes, size, &problem)) return;
  for (int i = 0; i < manifest.count; i++) {
    const struct manifest_file *file = &manifest.files[i];
    if (strchr(file->name, '/') != NULL || file->name[0] == '\0') __builtin_trap();
    if (file->sum.marks.count < 0 || file->sum.marks.count > RT_MOST_MARKS) __builtin_trap();
  }
  rt_manifest_free(&manifest);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char tail[64], *summed = malloc(size + sizeof tail);
  if (summed == NULL) abort();
  read_one((const char *)bytes, size);
  memcpy(summed, bytes, size);
  int length = snprintf(tail, sizeof tail, ",\n  \"manifest\": \"%016" PRIx64 "\"\n}\n", rt_checksum(bytes, size));
  memcpy(summed + size, tail, (size_t)length);
  read_one(summed, size + (size_t)length);
  free(summed);
  return 0;
}
