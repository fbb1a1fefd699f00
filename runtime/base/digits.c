#include "runtime/base/digits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void rt_digits(char *out, size_t size, int64_t number) {
  char plain[32];
  snprintf(plain, sizeof plain, "%" PRId64, number);
  size_t length = strlen(plain), sign = plain[0] == '-', at = 0;
  for (size_t i = 0; i < length && at + 2 < size; i++) {
    if (i > sign && (length - i) % 3 == 0) out[at++] = ',';
    out[at++] = plain[i];
  }
  out[at] = '\0';
}

void rt_duration(char *out, size_t size, double seconds) {
  if (seconds < 100)
    snprintf(out, size, "%.0f s", seconds);
  else if (seconds < 100 * 60)
    snprintf(out, size, "%.0f min", seconds / 60);
  else if (seconds < 48 * 3600)
    snprintf(out, size, "%.1f h", seconds / 3600);
  else
    snprintf(out, size, "%.1f d", seconds / 86400);
}

double rt_unsigned_nan(double value) {
  return isnan(value) ? fabs(value) : value;
}
