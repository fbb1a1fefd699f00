#include "gen/base/embedded.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

const char *embedded_template(const char *name) {
  for (int i = 0; i < accel_template_count; i++)
    if (strcmp(accel_templates[i].name, name) == 0) return accel_templates[i].text;
  return NULL;
}

const char *embedded_source(const char *path) {
  int i = 0;
  while (i < accel_source_count && strcmp(accel_sources[i].name, path) != 0) i++;
  assert(i < accel_source_count);
  return accel_sources[i].text;
}
