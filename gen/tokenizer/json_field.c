/* Accepts only what jansson accepts, with JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL: yajl alone takes keys twice, halves
 * of surrogate pairs, numbers of any size, two more characters as blanks, and half a token after the object. */
#include "gen/tokenizer/json_field.h"

#include <string.h>
#include <yajl/yajl_parse.h>

enum { LEVELS = 32, KEYS = 64, DIGITS = 18 };

struct key {
  const char *text;
  size_t length;
};

/* A record as it is read. */
struct reading {
  struct json_field *field;
  yajl_handle handle;
  const char *name, *record;
  size_t size, name_length;
  size_t end;            /* of the object */
  struct key keys[KEYS]; /* of all objects that are open */
  int n_keys, level;
  int first[LEVELS]; /* of the keys of each level */
  bool is_wanted;    /* the next value */
  bool is_found;
};

/* ---- What yajl calls: 0 ends the reading ---- */

static int enter(void *context) {
  struct reading *of = context;
  if (of->is_wanted || of->level == LEVELS) return 0;
  of->first[of->level++] = of->n_keys;
  return 1;
}

static int leave(void *context) {
  struct reading *of = context;
  of->n_keys = of->first[--of->level];
  if (of->level == 0) of->end = yajl_get_bytes_consumed(of->handle);
  return 1;
}

/* A key that is not a part of the record had escapes. */
static int take_key(void *context, const unsigned char *bytes, size_t length) {
  struct reading *of = context;
  const char *text = (const char *)bytes;
  if (text < of->record || text >= of->record + of->size || of->n_keys == KEYS) return 0;
  for (int i = of->first[of->level - 1]; i < of->n_keys; i++)
    if (of->keys[i].length == length && memcmp(of->keys[i].text, text, length) == 0) return 0;
  of->keys[of->n_keys++] = (struct key){text, length};
  of->is_wanted = of->level == 1 && length == of->name_length && memcmp(text, of->name, length) == 0;
  return 1;
}

static int take_string(void *context, const unsigned char *bytes, size_t length) {
  struct reading *of = context;
  struct json_field *field = of->field;
  const char *text = (const char *)bytes;
  if (!of->is_wanted) return 1;
  of->is_wanted = false;
  of->is_found = true;
  field->text = text;
  field->length = length;
  if (text >= of->record && text < of->record + of->size) return 1;
  field->own.size = 0; /* yajl's memory is that of the next string, too */
  bytes_add(&field->own, text, length);
  field->text = length > 0 ? field->own.text : "";
  return !field->own.failed;
}

static int take_number(void *context, const char *text, size_t length) {
  const struct reading *of = context;
  return !of->is_wanted && length <= DIGITS && memchr(text, 'e', length) == NULL && memchr(text, 'E', length) == NULL;
}

static int take_null(void *context) {
  return !((const struct reading *)context)->is_wanted;
}

static int take_truth(void *context, int value) {
  (void)value;
  return take_null(context);
}

/* ---- */

/* Whether \u is the beginning of half a pair. */
static bool has_surrogate(const char *record, size_t size) {
  const char *at = record, *end = record + size;
  while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL) {
    if (end - at > 2 && at[1] == 'u' && (at[2] == 'd' || at[2] == 'D')) return true;
    at++;
  }
  return false;
}

static bool may_be_read(const char *record, size_t size) {
  size_t at;
  return size > 0 && memchr(record, '\v', size) == NULL && memchr(record, '\f', size) == NULL &&
         !has_surrogate(record, size) && is_utf8(record, size, &at);
}

/* Objects and lists are levels; a list has no keys. */
static const yajl_callbacks callbacks = {.yajl_null = take_null,
                                         .yajl_boolean = take_truth,
                                         .yajl_number = take_number,
                                         .yajl_string = take_string,
                                         .yajl_start_map = enter,
                                         .yajl_map_key = take_key,
                                         .yajl_end_map = leave,
                                         .yajl_start_array = enter,
                                         .yajl_end_array = leave};

/* yajl does not see the half of a token after an object. An object that does not end is one of its own level. */
static bool ends_in_blanks(const struct reading *of) {
  for (size_t i = of->end; i < of->size; i++)
    if (strchr(" \t\r", of->record[i]) == NULL || of->record[i] == '\0') return false;
  return of->level == 0;
}

bool json_field_find(struct json_field *field, const char *name, const char *record, size_t size) {
  while (size > 0 && (*record == ' ' || *record == '\t')) record++, size--;
  if (size == 0 || *record != '{' || !may_be_read(record, size)) return false;
  struct reading reading = {.field = field, .name = name, .record = record, .size = size, .name_length = strlen(name)};
  reading.handle = yajl_alloc(&callbacks, NULL, &reading);
  if (reading.handle == NULL) return false;
  yajl_config(reading.handle, yajl_dont_validate_strings, 1); /* as UTF-8, which was done */
  bool good = yajl_parse(reading.handle, (const unsigned char *)record, size) == yajl_status_ok;
  yajl_free(reading.handle);
  return good && reading.is_found && ends_in_blanks(&reading);
}

void json_field_end(struct json_field *field) {
  bytes_free(&field->own);
  *field = (struct json_field){0};
}
