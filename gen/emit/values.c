#include "gen/emit/values.h"

#include "gen/base/text.h"
#include "gen/program/target.h"

void set_text(struct arena *arena, struct jinja_value map, const char *key, const char *text) {
  jinja_set(arena, map, key, jinja_string(arena, text));
}

void set_int(struct arena *arena, struct jinja_value map, const char *key, int64_t number) {
  jinja_set(arena, map, key, jinja_int(number));
}

void set_real(struct arena *arena, struct jinja_value map, const char *key, double number) {
  jinja_set(arena, map, key, jinja_double(number));
}

void set_bool(struct arena *arena, struct jinja_value map, const char *key, bool truth) {
  jinja_set(arena, map, key, jinja_bool(truth));
}

struct jinja_value shape_value(struct arena *arena, struct shape shape) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < shape.rank; i++) jinja_push(arena, list, jinja_int(shape.dim[i]));
  return list;
}

const char *init_enumerator(enum initializer_kind kind) {
  static const char *const names[] = {"ZEROS", "ZEROS", "ONES", "NORMAL", "UNIFORM", "SINUSOID"};
  return names[kind];
}

const char *dtype_enumerator(enum dtype dtype) {
  static const char *const names[] = {"FLOAT32", "INT32", "BFLOAT16", "FLOAT16", "UINT8", "INT64", "FLOAT64", "INT8"};
  return names[dtype];
}

const char *element_type(enum dtype dtype) {
  static const char *const types[] = {"float",   "int32_t", "accel_bf16", "accel_f16",
                                      "uint8_t", "int64_t", "double",     "int8_t"};
  return types[dtype];
}

const char *bits16_name(const struct program *program) {
  const enum dtype copies = target_copies(program);
  return copies != DTYPE_FLOAT32 ? dtype_short_name(copies) : "";
}

const char *bits16_weights(const struct program *program) {
  return arena_printf(program->arena, "weights_%s", bits16_name(program));
}

const char *bits16_struct(struct arena *arena, const struct program *program, const struct weight_struct *type) {
  return arena_printf(arena, "%s_%s", type->name, bits16_name(program));
}

const char *extent_text(struct arena *arena, struct shape shape) {
  if (shape.rank < 2) return arena_printf(arena, "%lld", (long long)shape_count(shape));
  int64_t rows = shape_product(shape, 0, shape.rank - 1), columns = shape.dim[shape.rank - 1];
  if (rows == 1 || columns == 1) return arena_printf(arena, "%lld", (long long)(rows * columns));
  return arena_printf(arena, "%lld * %lld", (long long)rows, (long long)columns);
}

const char *saved_type(struct arena *arena, const struct function *function) {
  return arena_printf(arena, "%s_saved", function->region->name);
}

const char *scratch_type(struct arena *arena, const struct function *function) {
  return arena_printf(arena, "%s_scratch", function->name);
}

/* Characters that a C literal cannot hold as they are. A '?' is escaped too: two of them could begin a trigraph. */
static void add_escaped(struct text *text, unsigned char c) {
  if (c == '"' || c == '\\' || c == '?')
    text_printf(text, "\\%c", c);
  else if (c == '\n')
    text_puts(text, "\\n");
  else if (c < ' ' || c >= 127)
    text_printf(text, "\\%03o", c);
  else
    text_add(text, &c, 1);
}

void set_literal(struct arena *arena, struct jinja_value map, const char *key, const char *string) {
  struct text text = text_in(arena);
  if (string == NULL) {
    set_text(arena, map, key, "NULL");
    return;
  }
  text_puts(&text, "\"");
  for (const char *c = string; *c != '\0'; c++) {
    add_escaped(&text, (unsigned char)*c);
    if (*c == '\n' && c[1] != '\0') text_puts(&text, "\"\n            \"");
  }
  text_puts(&text, "\"");
  set_text(arena, map, key, text_string(&text));
}

void set_comment(struct arena *arena, struct jinja_value map, const char *key, const char *string) {
  char *text = arena_string(arena, string);
  for (char *c = text; *c != '\0'; c++) {
    bool closes = (c[0] == '*' && c[1] == '/') || (c[0] == '/' && c[1] == '*');
    if ((unsigned char)*c < ' ' || (unsigned char)*c >= 127 || *c == '\\' || *c == '?' || closes) *c = '_';
  }
  set_text(arena, map, key, text);
}
