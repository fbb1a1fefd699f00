/* Undefined values: what they are called in messages, and the four behaviours. */
#include <stdarg.h>
#include <string.h>

#include "gen/jinja/run.h"

struct jinja_value jj_undefined(const struct undefined_info *info) {
  return (struct jinja_value){.kind = JINJA_UNDEFINED, .as.object = (void *)(uintptr_t)info};
}

/* Where Jinja2 has the type: its messages say so. */
static const char *home_of(enum object_type type) {
  switch (type) {
  case OBJECT_NAMESPACE:
  case OBJECT_CYCLER:
  case OBJECT_JOINER:
    return "jinja2.utils.";
  case OBJECT_MODULE:
    return "jinja2.environment.";
  case OBJECT_METHOD:
  case OBJECT_FUNCTION:
    return "";
  default:
    return "jinja2.runtime.";
  }
}

static const char *object_name(struct run *run, struct jinja_value object) {
  if (object.kind == JINJA_NONE) return "None";
  if (object.kind == JINJA_LIST && object.as.list->flavour == FLAVOUR_GROUP) return "jinja2.filters._GroupTuple object";
  if (object.kind == JINJA_STRING) return object.safe ? "markupsafe.Markup object" : "str object";
  const char *home = object.kind == JINJA_OBJECT ? home_of(((struct object *)object.as.object)->type) : "";
  return arena_printf(run->env->arena, "%s%s object", home, jj_type_name(object));
}

struct jinja_value jj_undefined_attr(struct run *run, struct jinja_value object, struct jinja_value key) {
  struct undefined_info *info = jj_alloc_zero(run->pool, sizeof *info);
  static const char *const kinds[] = {[JINJA_BOOL] = "bool object",
                                      [JINJA_INT] = "int object",
                                      [JINJA_DOUBLE] = "float object",
                                      [JINJA_MAP] = "dict object"};
  info->object = object.kind <= JINJA_MAP ? kinds[object.kind] : NULL;
  if (info->object == NULL) info->object = object_name(run, object);
  bool plain = key.kind == JINJA_STRING && !key.safe;
  info->is_item = !plain;
  info->name = plain ? key.as.string->bytes : jj_repr(run, key).as.string->bytes;
  return jj_undefined(info);
}

struct jinja_value jj_undefined_hint(struct run *run, const char *format, ...) {
  struct undefined_info *info = jj_alloc_zero(run->pool, sizeof *info);
  va_list args;
  va_start(args, format);
  info->hint = arena_vprintf(run->env->arena, format, args);
  va_end(args);
  return jj_undefined(info);
}

const char *jj_undefined_message(struct run *run, struct jinja_value value) {
  const struct undefined_info *info = value.as.object;
  if (info == NULL || (info->hint == NULL && info->name == NULL)) return "the value is undefined";
  if (info->hint != NULL) return info->hint;
  if (info->object == NULL) return arena_printf(run->env->arena, "'%s' is undefined", info->name);
  if (info->is_item) return arena_printf(run->env->arena, "%s has no element %s", info->object, info->name);
  return arena_printf(run->env->arena, "'%s' has no attribute '%s'", info->object, info->name);
}

void jj_fail_undefined(struct run *run, struct jinja_value value) {
  jj_fail(run, "%s", jj_undefined_message(run, value));
}
