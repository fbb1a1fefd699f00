/* Filters on markup, URLs and JSON. */
#include <math.h>
#include <stdio.h>

#include "gen/jinja/scan.h"
#include "gen/jinja/support.h"

FILTER(filter_escape) {
  (void)call;
  return jj_escape(run, input);
}

FILTER(filter_forceescape) {
  struct jinja_value text = jj_str(run, input);
  (void)call;
  text.safe = false;
  return jj_escape(run, text);
}

FILTER(filter_safe) {
  struct jinja_value text = jj_str(run, input);
  (void)call;
  text.safe = true;
  return text;
}

/* --- striptags --- */

static const struct {
  const char *name;
  uint32_t code;
} entities[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"nbsp", 0xA0}, {"copy", 0xA9}};

static uint32_t entity_code(const char *name, size_t length) {
  if (length > 1 && name[0] == '#') {
    bool hex = (name[1] | 0x20) == 'x';
    uint32_t code = 0;
    for (size_t i = hex ? 2 : 1; i < length; i++) {
      int c = name[i] | 0x20, digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
      if (digit >= (hex ? 16 : 10) || code > 0x10FFFF) return 0;
      code = code * (hex ? 16 : 10) + (uint32_t)digit;
    }
    return code <= 0x10FFFF ? code : 0;
  }
  for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
    if (strlen(entities[i].name) == length && memcmp(entities[i].name, name, length) == 0) return entities[i].code;
  }
  return 0;
}

static void write_unescaped(struct run *run, const char *bytes, size_t length) {
  for (size_t at = 0; at < length; at++) {
    size_t stop = at + 1;
    while (bytes[at] == '&' && stop < length && stop - at < 12 && bytes[stop] != ';') stop++;
    uint32_t code =
        bytes[at] == '&' && stop < length && bytes[stop] == ';' ? entity_code(bytes + at + 1, stop - at - 1) : 0;
    char text[4];
    if (code == 0) {
      jj_write(run, bytes + at, 1);
      continue;
    }
    jj_write(run, text, (size_t)jj_utf8_encode(code, text));
    at = stop;
  }
}

/* Cuts everything from `open` to the next `close`. */
static struct jinja_value cut_between(struct run *run, struct jinja_value text, const char *open, const char *close) {
  const char *at = text.as.string->bytes, *end = at + text.as.string->length;
  struct buffer *before = jj_capture_begin(run);
  while (at < end) {
    const char *from = jj_find_bytes(at, (size_t)(end - at), open, strlen(open));
    const char *to = from != NULL ? jj_find_bytes(from, (size_t)(end - from), close, strlen(close)) : NULL;
    if (to == NULL) break;
    jj_write(run, at, (size_t)(from - at));
    at = to + strlen(close);
  }
  jj_write(run, at, (size_t)(end - at));
  return jj_capture_end(run, before);
}

FILTER(filter_striptags) {
  struct jinja_value text = jj_str(run, input);
  (void)call;
  text = cut_between(run, text, "<!--", "-->");
  text = cut_between(run, text, "<", ">");
  struct jinja_value parts = jj_list(run->pool, FLAVOUR_LIST, 0);
  const char *at = text.as.string->bytes, *end = at + text.as.string->length;
  while ((at += jj_scan_space(at, (size_t)(end - at))) < end) {
    const char *stop = at;
    while (stop < end && jj_scan_space(stop, (size_t)(end - stop)) == 0) stop++;
    jj_push(run->pool, parts.as.list, jj_copy_text(run, at, (size_t)(stop - at)));
    at = stop;
  }
  struct jinja_value joined =
      jj_join(run, jj_string_new(run->pool, " ", 1), parts.as.list->items, parts.as.list->count);
  struct buffer *before = jj_capture_begin(run);
  write_unescaped(run, joined.as.string->bytes, joined.as.string->length);
  return jj_capture_end(run, before);
}

FILTER(filter_xmlattr) {
  bool space = jj_arg_true(run, call, 0, true), any = false;
  if (input.kind == JINJA_UNDEFINED) jj_fail_undefined(run, input);
  if (input.kind != JINJA_MAP) jj_fail(run, "'%s object' has no attribute 'items'", jj_type_name(input));
  struct buffer *before = jj_capture_begin(run);
  for (int i = 0; i < input.as.map->count; i++) {
    const struct map_entry *entry = &input.as.map->items[i];
    if (entry->value.kind == JINJA_NONE || entry->value.kind == JINJA_UNDEFINED) continue;
    if (entry->key.kind != JINJA_STRING)
      jj_fail(run, "expected string or bytes-like object, got '%s'", jj_type_name(entry->key));
    if (strpbrk(entry->key.as.string->bytes, " \t\n\v\f\r/>=") != NULL) {
      jj_fail(run, "Invalid character in attribute name: %s", jj_repr(run, entry->key).as.string->bytes);
    }
    if (any || space) jj_write(run, " ", 1);
    any = true;
    jj_write_str(run, jj_escape(run, entry->key));
    jj_write(run, "=\"", 2);
    jj_write_str(run, jj_escape(run, entry->value));
    jj_write(run, "\"", 1);
  }
  struct jinja_value text = jj_capture_end(run, before);
  text.safe = run->autoescape;
  return text;
}

/* --- urlencode --- */

static void write_quoted(struct run *run, struct jinja_value value, bool query) {
  const struct jinja_string *text = jj_str(run, value).as.string;
  for (size_t i = 0; i < text->length; i++) {
    unsigned char c = (unsigned char)text->bytes[i];
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 (c != 0 && strchr("_.-~", c) != NULL);
    char code[8];
    if (plain || (c == '/' && !query)) {
      jj_write(run, text->bytes + i, 1);
    } else if (c == ' ' && query) {
      jj_write(run, "+", 1);
    } else {
      jj_write(run, code, (size_t)snprintf(code, sizeof code, "%%%02X", c));
    }
  }
}

static void write_query(struct run *run, struct jinja_value input) {
  struct jinja_value pairs = input;
  if (input.kind == JINJA_MAP) pairs = jj_apply_filter(run, jj_find_filter("items"), input, &(struct call){0});
  const struct jinja_list *list = jj_iterate(run, pairs);
  for (int i = 0; i < list->count; i++) {
    const struct jinja_list *pair = jj_iterate(run, list->items[i]);
    if (pair->count != 2) jj_fail(run, "urlencode wants pairs of a key and a value");
    if (i > 0) jj_write(run, "&", 1);
    write_quoted(run, pair->items[0], true);
    jj_write(run, "=", 1);
    write_quoted(run, pair->items[1], true);
  }
}

FILTER(filter_urlencode) {
  bool query = input.kind == JINJA_MAP || input.kind == JINJA_LIST || input.kind == JINJA_UNDEFINED;
  struct buffer *before = jj_capture_begin(run);
  (void)call;
  if (query) {
    write_query(run, input);
  } else {
    write_quoted(run, input, false);
  }
  return jj_capture_end(run, before);
}

/* --- tojson --- */

struct json {
  struct run *run;
  const struct json_style *style;
  int depth;
};

static void json_value(struct json *json, struct jinja_value value);

static void json_break(const struct json *json) {
  if (json->style->indent.kind == JINJA_NONE) return;
  jj_write(json->run, "\n", 1);
  for (int i = 0; i < json->depth; i++) jj_write_str(json->run, json->style->indent);
}

/* Before an item that is not the first. */
static void json_comma(const struct json *json) {
  const char *between = json->style->between;
  if (between == NULL) between = json->style->indent.kind == JINJA_NONE ? ", " : ",";
  jj_write(json->run, between, strlen(between));
}

static void json_unicode(struct run *run, uint32_t code) {
  char text[16];
  if (code > 0xFFFF) {
    code -= 0x10000;
    snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xD800 + (code >> 10)),
             (unsigned)(0xDC00 + (code & 0x3FF)));
  } else {
    snprintf(text, sizeof text, "\\u%04x", (unsigned)code);
  }
  jj_write(run, text, strlen(text));
}

static void json_string(const struct json *json, const struct jinja_string *string) {
  struct run *run = json->run;
  static const char special[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
  jj_write(run, "\"", 1);
  for (size_t at = 0; at < string->length;) {
    int size;
    uint32_t code = jj_utf8_decode(string->bytes + at, string->length - at, &size);
    const char *escape = code != 0 && code < 128 ? strchr(special, (int)code) : NULL;
    if (escape != NULL) {
      jj_write(run, (char[2]){'\\', letters[escape - special]}, 2);
    } else if (code < 32 || (json->style->ascii && code >= 127) ||
               (json->style->markup && code < 128 && strchr("<>&'", (int)code) != NULL)) {
      json_unicode(run, code);
    } else {
      jj_write(run, string->bytes + at, (size_t)size);
    }
    at += (size_t)size;
  }
  jj_write(run, "\"", 1);
}

static void json_list(struct json *json, const struct jinja_list *list) {
  if (list->count == 0) {
    jj_write(json->run, "[]", 2);
    return;
  }
  jj_write(json->run, "[", 1);
  json->depth++;
  for (int i = 0; i < list->count; i++) {
    if (i > 0) json_comma(json);
    json_break(json);
    json_value(json, list->items[i]);
  }
  json->depth--;
  json_break(json);
  jj_write(json->run, "]", 1);
}

static struct jinja_value json_key(struct run *run, struct jinja_value key) {
  if (key.kind == JINJA_STRING) return key;
  if (key.kind == JINJA_BOOL) return jj_cstr(run->pool, key.as.boolean ? "true" : "false");
  if (key.kind == JINJA_NONE) return jj_cstr(run->pool, "null");
  if (!jj_is_number(key)) jj_fail(run, "keys must be str, int, float, bool or None, not %s", jj_type_name(key));
  return jj_str(run, key);
}

static void json_map(struct json *json, struct jinja_value map) {
  struct run *run = json->run;
  if (map.as.map->count == 0) {
    jj_write(run, "{}", 2);
    return;
  }
  struct jinja_value arguments[] = {jinja_bool(true)};
  struct call call = {.items = arguments, .count = json->style->sorts ? 1 : 0};
  const char *order = json->style->sorts ? "dictsort" : "items";
  const struct jinja_list *pairs = jj_iterate(run, jj_apply_filter(run, jj_find_filter(order), map, &call));
  jj_write(run, "{", 1);
  json->depth++;
  for (int i = 0; i < pairs->count; i++) {
    const struct jinja_list *pair = pairs->items[i].as.list;
    if (i > 0) json_comma(json);
    json_break(json);
    json_string(json, json_key(run, pair->items[0]).as.string);
    jj_write(run, json->style->colon, strlen(json->style->colon));
    json_value(json, pair->items[1]);
  }
  json->depth--;
  json_break(json);
  jj_write(run, "}", 1);
}

static void json_real(struct run *run, double value) {
  char text[32];
  if (isnan(value))
    strcpy(text, "NaN");
  else if (isinf(value))
    strcpy(text, value < 0 ? "-Infinity" : "Infinity");
  else
    jj_double_text(value, text);
  jj_write(run, text, strlen(text));
}

static void json_value(struct json *json, struct jinja_value value) {
  struct run *run = json->run;
  bool plain_list =
      value.kind == JINJA_LIST && (value.as.list->flavour <= FLAVOUR_TUPLE || value.as.list->flavour == FLAVOUR_GROUP);
  jj_enter(run);
  switch (value.kind) {
  case JINJA_NONE:
    jj_write(run, "null", 4);
    break;
  case JINJA_BOOL:
    jj_write(run, value.as.boolean ? "true" : "false", value.as.boolean ? 4 : 5);
    break;
  case JINJA_INT:
    jj_write_str(run, value);
    break;
  case JINJA_DOUBLE:
    json_real(run, value.as.real);
    break;
  case JINJA_STRING:
    json_string(json, value.as.string);
    break;
  case JINJA_MAP:
    json_map(json, value);
    break;
  default:
    if (!plain_list) jj_fail(run, "Object of type %s is not JSON serializable", jj_type_name(value));
    json_list(json, value.as.list);
  }
  jj_leave(run);
}

struct jinja_value jj_json(struct run *run, struct jinja_value value, struct json_style style) {
  struct json json = {.run = run, .style = &style};
  if (jj_is_integral(style.indent))
    style.indent = jj_pad(run, jj_cstr(run->pool, ""), jj_as_int(style.indent), 'l', " ");
  else if (style.indent.kind != JINJA_NONE)
    jj_arg_string(run, &(struct call){.items = &style.indent, .count = 1}, 0);
  struct buffer *before = jj_capture_begin(run);
  json_value(&json, value);
  return jj_capture_end(run, before);
}

/* The text can be put in HTML. */
FILTER(filter_tojson) {
  const struct json_style style = {
      .indent = jj_arg(call, 0, jinja_none()), .colon = ": ", .ascii = true, .markup = true, .sorts = true};
  struct jinja_value text = jj_json(run, input, style);
  text.safe = true;
  return text;
}

const struct filter jj_filters_markup[] = {
    {"escape", filter_escape, {.required = 0}},
    {"e", filter_escape, {.required = 0}},
    {"forceescape", filter_forceescape, {.required = 0}},
    {"safe", filter_safe, {.required = 0}},
    {"striptags", filter_striptags, {.required = 0}},
    {"xmlattr", filter_xmlattr, {{"autospace"}, 0, false}},
    {"urlencode", filter_urlencode, {.required = 0}},
    {"tojson", filter_tojson, {{"indent"}, 0, false}},
    {.name = NULL},
};
