#include "runtime/base/ending.h"

#include <string.h>

bool rt_has_ending(const char *name, const char *ending) {
  const size_t length = strlen(name), end = strlen(ending);
  return length > end && strcmp(name + length - end, ending) == 0;
}
