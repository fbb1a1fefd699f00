/* Text of values: Python's str() and repr(). */
#include <stdio.h>
#include <string.h>

#include "gen/jinja/run.h"

static void put(struct run *run, const char *text) {
  jj_write(run, text, strlen(text));
}

static void put_int(struct run *run, int64_t value) {
  char text[24];
  int length = jj_int_text(value, text);
  jj_write(run, text, (size_t)length);
}

/* One character inside of a repr, after whatever escape it needs. */
static void repr_char(struct run *run, const char *bytes, size_t length, char quote, int *size) {
  char text[16];
  unsigned char c = (unsigned char)bytes[0];
  *size = 1;
  if (c == (unsigned char)quote || c == '\\') {
    snprintf(text, sizeof text, "\\%c", c);
  } else if (c == '\n' || c == '\r' || c == '\t') {
    snprintf(text, sizeof text, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
  } else if (c < 32 || c == 127) {
    snprintf(text, sizeof text, "\\x%02x", c);
  } else {
    uint32_t code = jj_utf8_decode(bytes, length, size);
    if ((code >= 0x80 && code < 0xA1) || code == 0xAD) {
      snprintf(text, sizeof text, "\\x%02x", (unsigned)code);
    } else if (jj_is_space_code(code) && code > 127) {
      snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
    } else {
      jj_write(run, bytes, (size_t)*size);
      return;
    }
  }
  put(run, text);
}

static void repr_string(struct run *run, const struct jinja_string *string) {
  bool single = memchr(string->bytes, '\'', string->length) != NULL;
  char quote = single && memchr(string->bytes, '"', string->length) == NULL ? '"' : '\'';
  jj_write(run, &quote, 1);
  for (size_t at = 0; at < string->length;) {
    int size;
    repr_char(run, string->bytes + at, string->length - at, quote, &size);
    at += (size_t)size;
  }
  jj_write(run, &quote, 1);
}

static void repr_range(struct run *run, const struct jinja_list *range) {
  put(run, "range(");
  put_int(run, range->start);
  put(run, ", ");
  put_int(run, range->stop);
  if (range->step != 1) {
    put(run, ", ");
    put_int(run, range->step);
  }
  put(run, ")");
}

static void repr_items(struct run *run, const struct jinja_list *list, const char *open, const char *close) {
  put(run, open);
  for (int i = 0; i < list->count; i++) {
    if (i > 0) put(run, ", ");
    jj_write_repr(run, list->items[i]);
  }
  put(run, close);
}

static void repr_list(struct run *run, const struct jinja_list *list) {
  switch (list->flavour) {
  case FLAVOUR_RANGE:
    repr_range(run, list);
    break;
  case FLAVOUR_GENERATOR:
    put(run, "<generator object>");
    break;
  case FLAVOUR_ITEMS:
    repr_items(run, list, "dict_items([", "])");
    break;
  case FLAVOUR_KEYS:
    repr_items(run, list, "dict_keys([", "])");
    break;
  case FLAVOUR_VALUES:
    repr_items(run, list, "dict_values([", "])");
    break;
  case FLAVOUR_LIST:
    repr_items(run, list, "[", "]");
    break;
  default:
    repr_items(run, list, "(", list->count == 1 ? ",)" : ")");
    break;
  }
}

static void repr_map(struct run *run, const struct jinja_map *map) {
  put(run, "{");
  for (int i = 0; i < map->count; i++) {
    if (i > 0) put(run, ", ");
    jj_write_repr(run, map->items[i].key);
    put(run, ": ");
    jj_write_repr(run, map->items[i].value);
  }
  put(run, "}");
}

static void repr_macro(struct run *run, const struct macro *macro) {
  put(run, "<Macro ");
  if (macro->function->node->kind == N_CALL_BLOCK) {
    put(run, "anonymous");
  } else {
    repr_string(run, macro->function->name);
  }
  put(run, ">");
}

static void repr_object(struct run *run, struct jinja_value value) {
  const struct object *object = value.as.object;
  switch (object->type) {
  case OBJECT_MACRO:
    repr_macro(run, value.as.object);
    break;
  case OBJECT_LOOP: {
    const struct loop_object *loop = value.as.object;
    put(run, "<LoopContext ");
    put_int(run, loop->index0 + 1);
    put(run, "/");
    put_int(run, loop->length);
    put(run, ">");
    break;
  }
  case OBJECT_NAMESPACE:
    put(run, "<Namespace ");
    repr_map(run, ((const struct namespace *)object)->attributes);
    put(run, ">");
    break;
  case OBJECT_SELF:
    put(run, "<TemplateReference ");
    put(run, "'");
    put(run, ((const struct self_object *)object)->context->template->name);
    put(run, "'>");
    break;
  case OBJECT_FUNCTION:
    put(run, "<class '");
    put(run, ((const struct function_object *)object)->type_name);
    put(run, "'>");
    break;
  default:
    put(run, "<");
    put(run, jj_type_name(value));
    put(run, ">");
    break;
  }
}

static void write_undefined(struct run *run, struct jinja_value value) {
  const struct undefined_info *info = value.as.object;
  if (jj_is_strict(run, value)) jj_fail_undefined(run, value);
  if (!jj_is_undefined(run, value, JINJA_DEBUG)) return;
  put(run, "{{ ");
  if (info == NULL || (info->hint == NULL && info->name == NULL)) {
    put(run, "undefined value printed: ");
  } else if (info->hint != NULL) {
    put(run, "undefined value printed: ");
    put(run, info->hint);
  } else if (info->object == NULL) {
    put(run, info->name);
  } else {
    put(run, "no such element: ");
    put(run, info->object);
    put(run, "[");
    if (info->is_item) {
      put(run, info->name);
    } else {
      repr_string(run, jj_string_new(run->pool, info->name, strlen(info->name)));
    }
    put(run, "]");
  }
  put(run, " }}");
}

static void write_scalar(struct run *run, struct jinja_value value) {
  char text[32];
  switch (value.kind) {
  case JINJA_NONE:
    put(run, "None");
    break;
  case JINJA_BOOL:
    put(run, value.as.boolean ? "True" : "False");
    break;
  case JINJA_INT:
    put_int(run, value.as.integer);
    break;
  case JINJA_DOUBLE:
    jj_write(run, text, (size_t)jj_double_text(value.as.real, text));
    break;
  default:
    break;
  }
}

void jj_write_repr(struct run *run, struct jinja_value value) {
  jj_enter(run); /* a list can hold itself */
  switch (value.kind) {
  case JINJA_UNDEFINED:
    put(run, "Undefined");
    break;
  case JINJA_STRING:
    if (value.safe) put(run, "Markup(");
    repr_string(run, value.as.string);
    if (value.safe) put(run, ")");
    break;
  case JINJA_LIST:
    repr_list(run, value.as.list);
    break;
  case JINJA_MAP:
    repr_map(run, value.as.map);
    break;
  case JINJA_OBJECT:
    repr_object(run, value);
    break;
  default:
    write_scalar(run, value);
    break;
  }
  jj_leave(run);
}

void jj_write_str(struct run *run, struct jinja_value value) {
  if (value.kind == JINJA_STRING) {
    jj_write_part(run, value.as.string, 0, value.as.string->length);
  } else if (value.kind == JINJA_UNDEFINED) {
    write_undefined(run, value);
  } else if (value.kind == JINJA_OBJECT && ((struct object *)value.as.object)->type == OBJECT_MODULE) {
    jj_write_str(run, ((struct module *)value.as.object)->body);
  } else {
    jj_write_repr(run, value);
  }
}

struct jinja_value jj_str(struct run *run, struct jinja_value value) {
  if (value.kind == JINJA_STRING) return value;
  struct buffer *before = jj_capture_begin(run);
  jj_write_str(run, value);
  return jj_capture_end(run, before);
}

struct jinja_value jj_repr(struct run *run, struct jinja_value value) {
  struct buffer *before = jj_capture_begin(run);
  jj_write_repr(run, value);
  return jj_capture_end(run, before);
}

struct jinja_value jj_escape(struct run *run, struct jinja_value value) {
  if (value.kind == JINJA_STRING && value.safe) return value;
  struct jinja_value text = jj_str(run, value);
  if (strpbrk(text.as.string->bytes, "&<>\"'") != NULL) {
    struct buffer *before = jj_capture_begin(run);
    jj_write_escaped(run, text.as.string->bytes, text.as.string->length);
    text = jj_capture_end(run, before);
  }
  text.safe = true;
  return text;
}
