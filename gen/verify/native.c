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
  text_puts(text, "\nvoid native_bind(void (*find(const char *name))(void));\n"
                  "void native_bind(void (*find(const char *name))(void)) {\n");
  for (int i = 0; i < reading_function_count; i++) {
    const char *name = reading_functions[i].name;
    text_printf(text, "  native_%s = (__typeof__(native_%s))find(\"%s\");\n", name, name, name);
  }
  text_puts(text, "}\n\n");
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
  text_puts(text, "#include ");
  text_printf(text, "\"%s\"\n\ntensor native_model(scope s, tensor (*input)(const char *name));\n", path);
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
