#include "runtime/tracking/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void rt_json_text(struct bytes *to, const char *text) {
  rt_bytes_add(to, "\"", 1);
  for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
    if (*c == '"' || *c == '\\')
      rt_bytes_print(to, "\\%c", *c);
    else
      rt_bytes_print(to, *c < 0x20 ? "\\u%04x" : "%c", *c);
  }
  rt_bytes_add(to, "\"", 1);
}

void rt_json_number(struct bytes *to, const struct scalar *scalar) {
  const double value = scalar->value;
  if (isfinite(value))
    rt_bytes_print(to, scalar->format, value);
  else
    rt_bytes_print(to, "%s", isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

/* JSON has no leading zero, plus sign or hexadecimal digits, and strtod reads them all. */
static bool is_number(const char *text) {
  char *end;
  strtod(text, &end);
  const char *digits = text + (text[0] == '-');
  return *text != '\0' && *end == '\0' && strspn(text, "0123456789.eE+-") == strlen(text) && digits[0] >= '0' &&
         digits[0] <= '9' && (digits[0] != '0' || strspn(digits, "0123456789") == 1) && end[-1] != '.' &&
         strstr(text, ".e") == NULL;
}

void rt_json_value(struct bytes *to, const char *text) {
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0 || is_number(text))
    rt_bytes_print(to, "%s", text);
  else
    rt_json_text(to, text);
}
