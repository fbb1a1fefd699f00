/* The items of a function, and how tensors and numbers are spelled. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/stablehlo/state.h"

/* ---- Spelling ---- */

const char *hlo_type_text(struct arena *arena, struct shape shape, enum hlo_type type) {
  static const char *const names[] = {"f32", "i32", "bf16", "f16", "ui8", "i64", "f64", "i8", "i1", "ui32"};
  struct text text = text_in(arena);
  text_puts(&text, "tensor<");
  for (int i = 0; i < shape.rank; i++) text_printf(&text, "%lldx", (long long)shape.dim[i]);
  text_printf(&text, "%s>", names[type]);
  return text_string(&text);
}

const char *hlo_numbers(struct arena *arena, struct shape list) {
  struct text text = text_in(arena);
  for (int i = 0; i < list.rank; i++) text_printf(&text, "%s%lld", i > 0 ? ", " : "", (long long)list.dim[i]);
  return text_string(&text);
}

const char *hlo_type_of(const struct stablehlo *hlo, struct hlo x) {
  return hlo_type_text(hlo->arena, x.shape, x.type);
}

const char *hlo_name_of(const struct stablehlo *hlo, struct hlo x) {
  const bool several = x.item >= 0 && hlo->function->items.items[x.item].results > 1;
  return several ? arena_printf(hlo->arena, "%%{%d}#%d", x.item, x.result) : arena_printf(hlo->arena, "%%{%d}", x.item);
}

/* The shortest text of a number that is read as the same float32; MLIR wants a point in it. */
static const char *real_literal(struct arena *arena, double value) {
  char text[32];
  for (int digits = 1; digits < 10; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, (double)(float)value);
    if (strtof(text, NULL) == (float)value) break;
  }
  const size_t mantissa = strcspn(text, "e");
  if (memchr(text, '.', mantissa) != NULL) return arena_printf(arena, "%s", text);
  return arena_printf(arena, "%.*s.0%s", (int)mantissa, text, text + mantissa);
}

const char *hlo_literal(struct arena *arena, double value, enum hlo_type type) {
  if (type == HLO_BOOL) return value != 0 ? "true" : "false";
  if (hlo_is_whole(type) || type == HLO_UI8) return arena_printf(arena, "%lld", (long long)value);
  if (isnan((float)value)) return "0x7FC00000";
  if (isinf((float)value)) return value > 0 ? "0x7F800000" : "0xFF800000";
  return real_literal(arena, value);
}

const char *hlo_quoted(struct arena *arena, const char *string) {
  struct text text = text_in(arena);
  text_puts(&text, "\"");
  for (const char *at = string; *at != '\0'; at++) {
    const bool plain = *at >= ' ' && *at <= '~' && *at != '"' && *at != '\\';
    text_printf(&text, plain ? "%c" : "\\%02X", (unsigned char)*at);
  }
  text_puts(&text, "\"");
  return text_string(&text);
}

/* ---- Items ---- */

int hlo_add_item(struct stablehlo *hlo, const char *text, const char *name, int results) {
  const struct location where = hlo->node != NULL ? hlo->node->where : (struct location){0};
  const struct hlo_item item = {.text = text, .name = name, .where = where, .results = results};
  ARENA_PUSH(hlo->arena, hlo->function->items, item);
  return hlo->function->items.count - 1;
}

struct hlo hlo_op(struct stablehlo *hlo, struct shape shape, enum hlo_type type, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *text = arena_vprintf(hlo->arena, format, arguments);
  va_end(arguments);
  struct hlo made = {.item = -1, .shape = shape, .type = type};
  for (int i = 0; i < hlo->function->items.count && made.item < 0; i++) {
    const char *other = hlo->function->items.items[i].text;
    if (other != NULL && strcmp(other, text) == 0) made.item = i;
  }
  if (made.item < 0) made.item = hlo_add_item(hlo, text, NULL, 1);
  return made;
}

/* ---- Values of the graph ---- */

struct hlo hlo_value(const struct stablehlo *hlo, const struct value *value) {
  return hlo->function->values[value->id];
}

void hlo_set_value(struct stablehlo *hlo, const struct value *value, struct hlo tensor) {
  struct hlo_item *item = &hlo->function->items.items[tensor.item];
  if (item->name == NULL && item->results == 1) item->name = value->name;
  hlo->function->values[value->id] = tensor;
}

/* ---- The node that a rule is of ---- */

const struct node *hlo_node(const struct stablehlo *hlo) {
  return hlo->node;
}

struct arena *hlo_arena(const struct stablehlo *hlo) {
  return hlo->arena;
}

struct hlo hlo_fail(struct stablehlo *hlo, const char *format, ...) {
  const struct hlo none = {.is_number = true};
  va_list arguments;
  if (hlo->failed) return none;
  va_start(arguments, format);
  const char *why = arena_vprintf(hlo->arena, format, arguments);
  va_end(arguments);
  diag_error(hlo->diags, hlo->node->where, "'%s' cannot be written in StableHLO: %s", hlo->node->kind->name, why);
  hlo->failed = true;
  return none;
}

struct hlo hlo_raw_input(struct stablehlo *hlo, int input) {
  const struct hlo x = hlo_value(hlo, hlo->node->inputs[input]);
  if (x.item >= 0) return x;
  const struct value *value = hlo->node->inputs[input];
  hlo_fail(hlo, "its input %d is memory that only kernels of a device use", input);
  return (struct hlo){
      .item = hlo_add_item(hlo, "", NULL, 1), .shape = value->shape, .type = (enum hlo_type)value->dtype};
}

struct hlo hlo_input(struct stablehlo *hlo, int input) {
  const struct hlo x = hlo_raw_input(hlo, input);
  return x.type == HLO_BF16 || x.type == HLO_F16 ? hlo_convert(hlo, x, HLO_F32) : x;
}

void hlo_result(struct stablehlo *hlo, int output, struct hlo tensor) {
  const struct value *value = hlo->node->outputs[output];
  const enum hlo_type type = (enum hlo_type)value->dtype;
  if (hlo->failed) return;
  if (tensor.is_number) tensor = hlo_tensor(hlo, tensor, value->shape, type);
  tensor = hlo_reshape(hlo, hlo_convert(hlo, tensor, type), value->shape);
  hlo_set_value(hlo, value, tensor);
}
