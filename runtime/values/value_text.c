/* Values as text, for people. */
#include "runtime/values/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_SHOWN = 8 };

static void show_string(FILE *out, const char *text, size_t length) {
  putc('"', out);
  for (size_t i = 0; i < length; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '"' || c == '\\')
      fprintf(out, "\\%c", c);
    else
      fprintf(out, c < 0x20 || c == 0x7f ? "\\u%04x" : "%c", c);
  }
  putc('"', out);
}

static void show_tensor(FILE *out, const struct accel_value *value) {
  fprintf(out, "%s[", accel_dtype_name(value->tensor.dtype));
  for (int i = 0; i < value->tensor.rank; i++) fprintf(out, i > 0 ? ", %" PRId64 : "%" PRId64, value->tensor.shape[i]);
  putc(']', out);
  if (value->kind == ACCEL_INFORMATION) return;
  int64_t count = rt_tensor_count(value);
  fputs(" (", out);
  for (int64_t i = 0; i < count && i < ELEMENTS_SHOWN; i++)
    fprintf(out, i > 0 ? ", %.9g" : "%.9g", accel_element(value, i));
  fputs(count > ELEMENTS_SHOWN ? ", ...)" : ")", out);
}

static void show(FILE *out, const struct accel_value *value);

static void show_list(FILE *out, const struct accel_value *value) {
  bool map = value->kind == ACCEL_MAP;
  putc(map ? '{' : '[', out);
  for (int64_t i = 0; i < value->list.count; i++) {
    if (i > 0) fputs(", ", out);
    if (map) show_string(out, value->list.names[i], strlen(value->list.names[i]));
    if (map) fputs(": ", out);
    show(out, value->list.items[i]);
  }
  putc(map ? '}' : ']', out);
}

static void show(FILE *out, const struct accel_value *value) {
  switch (value->kind) {
  case ACCEL_NONE:
    fputs("null", out);
    break;
  case ACCEL_BOOLEAN:
    fputs(value->boolean ? "true" : "false", out);
    break;
  case ACCEL_INTEGER:
    fprintf(out, "%" PRId64, value->integer);
    break;
  case ACCEL_REAL:
    fprintf(out, "%.17g", value->real);
    break;
  case ACCEL_STRING:
    show_string(out, value->string.text, value->string.length);
    break;
  case ACCEL_TENSOR:
  case ACCEL_INFORMATION:
    show_tensor(out, value);
    break;
  default:
    show_list(out, value);
  }
}

const char *accel_show(struct accel_store *store, const struct accel_value *value) {
  char *text = NULL, *copy = NULL;
  size_t size = 0;
  if (value == NULL) return NULL;
  FILE *out = open_memstream(&text, &size);
  if (out == NULL) return rt_store_fail(store, "no memory for a value's text");
  show(out, value);
  if (fclose(out) == 0 && (copy = rt_store_take(store, size + 1)) != NULL) memcpy(copy, text, size);
  free(text);
  return copy;
}
