/* Any bytes as a manifest: what is accepted holds plain names. */
#include "runtime/manifest.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct manifest manifest;
  struct problem problem;
  if (!rt_manifest_read(&manifest, "fuzz", (const char *)bytes, size, &problem)) return 0;
  for (int i = 0; i < manifest.count; i++)
    if (strchr(manifest.files[i].name, '/') != NULL || manifest.files[i].name[0] == '\0') __builtin_trap();
  rt_manifest_free(&manifest);
  return 0;
}
