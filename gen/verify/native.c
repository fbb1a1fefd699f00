#include "gen/verify/native.h"

#include <ctype.h>
#include <string.h>

#include "gen/verify/tape/reading.h"

/* Each function of accel/model.h is a pointer under its name, so that what is compiled needs no library. */
static void write_functions(struct text *text) {
  text_puts(text, "#include <assert.h>\n#include <math.h>\n#include <stdbool.h>\n#include <string.h>\n"
                  "#include <accel/model.h>\n\n");
  for (int i = 0; i < reading_function_count; i++) {
    const char *name = reading_functions[i].name;
    text_printf(text, "static __typeof__(&%s) native_%s;\n#define %s native_%s\n", name, name, name, name);
  }
  text_puts(text, "\nstatic long (*native_note)(int kind, const void *function, long loop);\n"
                  "void native_bind(void (*find(const char *name))(void), __typeof__(native_note) note);\n"
                  "void native_bind(void (*find(const char *name))(void), __typeof__(native_note) note) {\n"
                  "  native_note = note;\n");
  for (int i = 0; i < reading_function_count; i++) {
    const char *name = reading_functions[i].name;
    text_printf(text, "  native_%s = (__typeof__(native_%s))find(\"%s\");\n", name, name, name);
  }
  text_puts(text, "}\n\n");
}

/* A loop notes its beginning, its passes and its end; `return` from inside of it leaves the end out. */
static const char loops[] =
    "#define for(...) \\\n"
    "  for (long native_loop = native_note(2, 0, 0); native_loop; native_note(4, 0, native_loop), native_loop = 0) \\\n"
    "    for (__VA_ARGS__) if (native_note(3, 0, native_loop))\n";

/* What the compiler calls at both ends of each function. They are hidden, since a C library may have some, too. */
static const char ends[] = "__attribute__((no_instrument_function, visibility(\"hidden\"))) void "
                           "__cyg_profile_func_enter(void *function, void *caller) {\n"
                           "  (void)caller;\n  if (native_is_own(function)) native_note(0, function, 0);\n}\n"
                           "__attribute__((no_instrument_function, visibility(\"hidden\"))) void "
                           "__cyg_profile_func_exit(void *function, void *caller) {\n"
                           "  (void)caller;\n  if (native_is_own(function)) native_note(1, function, 0);\n}\n";

static bool has_tensor(const struct type *type) {
  if (type->kind == TYPE_POINTER && type->element->kind == TYPE_RECORD)
    return strcmp(type->element->tag, "accel_tensor") == 0 || (!type->is_recursive && has_tensor(type->element));
  if (type->kind == TYPE_POINTER || type->kind == TYPE_ARRAY) return has_tensor(type->element);
  for (int i = 0; type->kind == TYPE_RECORD && i < type->n_members; i++)
    if (has_tensor(type->members[i].type)) return true;
  return false;
}

/* Whether the function may have a key of random numbers of its own (docs/runtime.md). */
static bool may_have_key(const struct function *function) {
  return function->body != NULL && !function->is_system && !function->is_inline && has_tensor(function->result) &&
         strcmp(function->name, "model") != 0;
}

static void write_ends(struct text *text, const struct tree *model) {
  text_puts(text, "__attribute__((no_instrument_function)) static int native_is_own(const void *function) {\n");
  for (int i = 0; i < model->n_functions; i++) {
    const struct function *function = model->functions[i];
    if (may_have_key(function)) text_printf(text, "  if (function == (const void *)%s) return 1;\n", function->name);
  }
  text_puts(text, "  return 0;\n}\n");
  text_puts(text, ends);
}

static bool loops_by_for(const struct syntax *at) {
  if (at == NULL) return true;
  if (at->kind == SYNTAX_WHILE || at->kind == SYNTAX_DO) return false;
  for (int i = 0; i < at->n_parts; i++)
    if (!loops_by_for(at->parts[i])) return false;
  return true;
}

bool native_notes_loops(const struct tree *model) {
  for (int i = 0; i < model->n_functions; i++)
    if (!model->functions[i]->is_system && !loops_by_for(model->functions[i]->body)) return false;
  return true;
}

static bool draws(const struct function *function) {
  return strcmp(function->name, "dropout") == 0 || strncmp(function->name, "random_", 7) == 0;
}

/* Whether an expression has a draw, or a call of what may have a key; *open: and whether one below it has two in parts
 * that have no order. */
static bool has_draw(const struct syntax *at, bool *open) {
  if (at == NULL) return false;
  const bool ordered = at->kind >= SYNTAX_STATEMENTS || at->kind == SYNTAX_LIST || at->kind == SYNTAX_SELECT ||
                       (at->kind == SYNTAX_BINARY && (at->operation == OPERATOR_AND || at->operation == OPERATOR_OR ||
                                                      at->operation == OPERATOR_COMMA));
  const bool own = at->kind == SYNTAX_CALL && at->function != NULL;
  int count = at->kind == SYNTAX_DECLARE && has_draw(at->variable->initial, open);
  for (int i = 0; i < at->n_parts; i++) count += has_draw(at->parts[i], open);
  *open = *open || (count > 1 && !ordered);
  return count > 0 || (own && (draws(at->function) || may_have_key(at->function)));
}

bool native_order_is_open(const struct tree *model) {
  bool open = false, drawn = false;
  for (int i = 0; i < model->n_functions; i++) {
    const struct function *function = model->functions[i];
    if (function->body == NULL) drawn = drawn || draws(function);
    if (function->body != NULL && !function->is_system) has_draw(function->body, &open);
  }
  return open && drawn;
}

static void write_string(struct text *text, const char *string) {
  text_puts(text, "\"");
  for (; *string != '\0'; string++) text_printf(text, "\\%03o", (unsigned)(unsigned char)*string);
  text_puts(text, "\"");
}

/* The type of a field, "rope.kind" or "widths.0"; NULL: there is none. */
static const struct type *field_type(const struct type *type, const char *path) {
  while (*path != '\0' && type != NULL) {
    const size_t length = strcspn(path, ".");
    const struct type *part = type->kind == TYPE_ARRAY ? type->element : NULL;
    for (int i = 0; type->kind == TYPE_RECORD && i < type->n_members; i++)
      if (strlen(type->members[i].name) == length && memcmp(type->members[i].name, path, length) == 0)
        part = type->members[i].type;
    type = part;
    path += length + (path[length] == '.');
  }
  return type;
}

/* config.widths.0 = 3 as c.widths[0] = 3; */
static bool write_field(struct text *text, const struct config_value *value, const struct type *config) {
  const struct type *type = field_type(config, value->name);
  if (type == NULL) return false;
  text_puts(text, "  c");
  for (const char *at = value->name; *at != '\0';) {
    const size_t length = strcspn(at, ".");
    text_printf(text, isdigit((unsigned char)*at) ? "[%.*s]" : ".%.*s", (int)length, at);
    at += length + (at[length] == '.');
  }
  text_puts(text, " = ");
  if (value->kind == CONFIG_REAL)
    text_printf(text, "%.17g", value->real);
  else if (value->kind != CONFIG_STRING)
    text_printf(text, "%lld", (long long)value->integer);
  else if (type->kind == TYPE_POINTER)
    write_string(text, value->string);
  else
    text_puts(text, value->string);
  text_puts(text, ";\n");
  return true;
}

static bool has_defaults(const struct tree *model, const struct type *config) {
  const struct variable *variable = tree_variable(model, "defaults");
  return variable != NULL && variable->type == config;
}

bool native_write(struct text *text, const struct job *job, const struct tree *model, const char *path,
                  const char **reason) {
  const struct function *entry = tree_function(model, "model");
  *reason = "the model has no function 'model'";
  if (entry == NULL || entry->body == NULL) return false;
  write_functions(text);
  text_puts(text, loops);
  text_printf(text, "#include \"%s\"\n#undef for\n\n", path);
  write_ends(text, model);
  text_puts(text, "tensor native_model(scope s, tensor (*input)(const char *name));\n");
  text_puts(text, "tensor native_model(scope s, tensor (*input)(const char *name)) {\n");
  struct text call = text_in(text->arena);
  for (int i = 0; i < entry->n_parameters; i++) {
    const struct variable *parameter = entry->parameters[i];
    const char *comma = i > 0 ? ", " : "";
    if (parameter->type->kind == TYPE_RECORD) {
      text_printf(text, "  %s c%s;\n", parameter->type->name,
                  has_defaults(model, parameter->type) ? " = defaults" : " = {0}");
      for (int k = 0; k < job->model.n_config; k++)
        if (!write_field(text, &job->model.config[k], parameter->type)) {
          *reason = arena_printf(text->arena, "the model's config has no '%s'", job->model.config[k].name);
          return false;
        }
      text_printf(&call, "%sc", comma);
    } else if (i == 0) {
      text_printf(&call, "%ss", comma);
    } else {
      text_printf(&call, "%sinput(\"%s\")", comma, parameter->name);
    }
  }
  text_printf(text, "  return model(%s);\n}\n", text_string(&call));
  return true;
}
