/* From a model's config to a config.json: the table `published` in the direction opposite to published.c. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/base/text.h"
#include "gen/model/fields.h"
#include "gen/model/published.h"
#include "gen/model/published_file.h"
#include "gen/model/rows.h"

enum { KEYS, FIELD, IS, ABSENT, NULLED }; /* the cells of a row */

struct writer {
  struct arena *arena;
  struct model_rows rows;
  struct model_values values;
  struct model_field *fields; /* with their defaults */
  int n_fields;
  json_t *json;
  int64_t positions;
  const char *reason;
};

/* ---- Values ---- */

static const struct model_value *value_at(const struct writer *of, const char *path) {
  for (int i = 0; i < of->values.count; i++)
    if (strcmp(of->values.items[i].path, path) == 0) return &of->values.items[i];
  return NULL;
}

static bool number_at(const void *context, const char *path, double *number) {
  const struct model_value *value = value_at(context, path);
  if (value == NULL || value->kind == MODEL_TEXT) return false;
  *number = value->number;
  return true;
}

static json_t *json_of(const struct model_value *value) {
  if (value->word != NULL) return json_string(value->word);
  if (value->kind == MODEL_TEXT) return json_string(value->text != NULL ? value->text : "");
  if (value->kind == MODEL_BOOL) return json_boolean(value->number != 0);
  return value->kind == MODEL_INTEGER ? json_integer((json_int_t)value->number) : json_real(value->number);
}

/* Word number `number` of the words; NULL: there are fewer. The caller's. */
static json_t *word_at(const struct writer *of, const char *words, int64_t number) {
  for (; number > 0 && *words != '\0'; number--) {
    words += strcspn(words, " ");
    words += strspn(words, " ");
  }
  const size_t length = strcspn(words, " ");
  return length > 0 && number == 0 ? published_word(of->arena, arena_copy(of->arena, words, length), number_at, of)
                                   : NULL;
}

/* Whether a value is what a word of the table means. */
static bool is_word(const struct writer *of, const struct model_value *value, const char *words) {
  json_t *own = json_of(value);
  bool same = false;
  for (int64_t i = 0; !same; i++) {
    json_t *word = word_at(of, words, i);
    if (word == NULL) break;
    same = json_equal(own, word) || (value->kind != MODEL_TEXT && value->word == NULL && json_is_number(word) &&
                                     json_number_value(word) == value->number);
    json_decref(word);
  }
  json_decref(own);
  return same;
}

static bool is_default(const struct writer *of, const struct model_value *value) {
  for (int i = 0; i < of->n_fields; i++) {
    const char *text = of->fields[i].value;
    if (strcmp(of->fields[i].name, value->path) != 0 || text == NULL) continue;
    return value->kind == MODEL_INTEGER || value->kind == MODEL_REAL
               ? strcmp(text, value->text) == 0 || strtod(text, NULL) == value->number
               : strcmp(text, value->text != NULL ? value->text : "") == 0;
  }
  return false;
}

/* ---- Keys ---- */

/* Sets what is at "rope_parameters.factor" or "depths.0", whose lists get their items in order. Takes the value. */
static void set_at(json_t *json, struct arena *arena, const char *path, json_t *value) {
  const size_t length = strcspn(path, ".");
  const char *name = arena_copy(arena, path, length), *rest = path + length + (path[length] == '.');
  const bool is_item = json_is_array(json);
  json_t *below = is_item ? json_array_get(json, (size_t)strtol(name, NULL, 10)) : json_object_get(json, name);
  if (*rest == '\0')
    below = value;
  else if (below == NULL)
    below = strspn(rest, "0123456789") == strcspn(rest, ".") ? json_array() : json_object();
  else
    json_incref(below);
  if (*rest != '\0') set_at(below, arena, rest, value);
  if (!is_item)
    json_object_set_new(json, name, below);
  else if (*rest == '\0' || (size_t)strtol(name, NULL, 10) == json_array_size(json))
    json_array_append_new(json, below);
  else
    json_decref(below);
}

/* The first key of a row; NULL where it stands for several. */
static const char *key_of(const struct writer *of, const struct model_row *row) {
  if (row->cells[KEYS] == NULL) return NULL;
  const char *key = arena_copy(of->arena, row->cells[KEYS], strcspn(row->cells[KEYS], " "));
  return strpbrk(key, "*?[#") == NULL ? key : NULL;
}

/* A field that no key says: the classes compute with one of the words, or nothing that depends on it. */
static void check_own(struct writer *of, const struct model_row *row) {
  const struct model_value *value = value_at(of, row->cells[FIELD]);
  if (value == NULL || row->cells[IS] == NULL || is_word(of, value, row->cells[IS])) return;
  of->reason = arena_printf(of->arena, "'%s' is %s, and no config.json says so: its classes compute with %s",
                            value->path, value->text, row->cells[IS]);
}

/* Whether a number of a struct at its default says nothing: it is 0, or the first kind of the struct has no numbers. */
static bool is_unused(const struct writer *of, const struct model_value *value) {
  const char *dot = strrchr(value->path, '.');
  if (dot == NULL || value->number == 0) return dot != NULL;
  const char *path =
      arena_printf(of->arena, "%skind", arena_copy(of->arena, value->path, (size_t)(dot - value->path) + 1));
  const struct model_value *kind = value_at(of, path);
  return kind == NULL || kind->number == 0;
}

/* What the class computes with is said at the top alone: the parts of an object depend on each other. */
static bool is_left_out(const struct model_row *row) {
  return row->cells[ABSENT] == NULL && strchr(row->cells[KEYS], '.') != NULL;
}

static json_t *meaning_of(struct writer *of, const struct model_row *row) {
  const char *field = row->cells[FIELD], *words = row->cells[IS];
  const struct model_value *value = field != NULL ? value_at(of, field) : NULL;
  if (field == NULL) return words != NULL && !is_left_out(row) ? word_at(of, words, 0) : NULL;
  if (value == NULL) return NULL;
  if (words != NULL) return word_at(of, words, (int64_t)value->number);
  if (row->cells[NULLED] != NULL && is_word(of, value, row->cells[NULLED])) return json_null();
  if (row->cells[ABSENT] == NULL && is_default(of, value) && is_unused(of, value)) return NULL;
  return json_of(value);
}

/* How many items the list "down_block_types" has by a row of "down_block_types.#"; 0: no row says it. */
static int64_t length_of(struct writer *of, const char *list) {
  const char *number = arena_printf(of->arena, "%s.#", list);
  int64_t length = 0;
  for (int i = 0; i < of->rows.count; i++) {
    const struct model_row *row = &of->rows.items[i];
    if (row->cells[KEYS] == NULL || strcmp(row->cells[KEYS], number) != 0) continue;
    json_t *value = meaning_of(of, row);
    length = json_integer_value(value);
    json_decref(value);
  }
  return length;
}

/* A list of a word: {"down_block_types.*", .is = "DownEncoderBlock2D"}. */
static void write_list(struct writer *of, const struct model_row *row) {
  const char *keys = row->cells[KEYS];
  if (row->cells[FIELD] != NULL || row->cells[IS] == NULL || strchr(keys, ' ') != NULL || !has_ending(keys, ".*"))
    return;
  const char *list = without_ending(of->arena, keys, ".*");
  const int64_t length = length_of(of, list);
  for (int64_t i = 0; i < length; i++)
    set_at(of->json, of->arena, arena_printf(of->arena, "%s.%lld", list, (long long)i), word_at(of, row->cells[IS], 0));
}

static void write_row(struct writer *of, const struct model_row *row) {
  const char *key = key_of(of, row);
  if (row->cells[KEYS] == NULL) check_own(of, row);
  if (key == NULL && row->cells[KEYS] != NULL) write_list(of, row);
  if (key == NULL) return;
  const bool is_length = strcmp(key, "max_position_embeddings") == 0 && row->cells[FIELD] == NULL;
  json_t *value = is_length && of->positions > 0 ? json_integer(of->positions) : meaning_of(of, row);
  if (value != NULL) set_at(of->json, of->arena, key, value);
}

/* ---- Fields of their own name ---- */

static bool is_in_row(const struct writer *of, const char *path) {
  for (int i = 0; i < of->rows.count; i++)
    if (of->rows.items[i].cells[FIELD] != NULL && strcmp(of->rows.items[i].cells[FIELD], path) == 0) return true;
  return false;
}

/* How many items of the list before "depths.2" there are, by a row of "depths.#"; else those up to the last that is not
 * 0; -1: it is in no list. */
static int64_t items_of(const struct writer *of, const char *path) {
  const char *dot = strrchr(path, '.');
  int64_t count = 0;
  if (dot == NULL || strspn(dot + 1, "0123456789") != strlen(dot + 1)) return -1;
  const char *list = arena_copy(of->arena, path, (size_t)(dot - path) + 1);
  const char *number = arena_printf(of->arena, "%s#", list);
  for (int i = 0; i < of->rows.count; i++) {
    const char *const *cells = of->rows.items[i].cells;
    const struct model_value *value = cells[FIELD] != NULL ? value_at(of, cells[FIELD]) : NULL;
    if (value != NULL && cells[KEYS] != NULL && strstr(cells[KEYS], number) != NULL) return (int64_t)value->number;
  }
  for (int i = 0; i < of->values.count; i++)
    if (strncmp(of->values.items[i].path, list, strlen(list)) == 0 && of->values.items[i].number != 0)
      count = strtol(of->values.items[i].path + strlen(list), NULL, 10) + 1;
  return count;
}

/* Whether a field is in a struct that a config.json does not have: rows give other fields of it keys elsewhere. */
static bool is_in_own_struct(const struct writer *of, const char *path) {
  const size_t length = strcspn(path, ".") + 1;
  for (int i = 0; path[length - 1] == '.' && i < of->rows.count; i++) {
    const char *const *cells = of->rows.items[i].cells;
    if (cells[KEYS] != NULL && cells[FIELD] != NULL && strncmp(cells[FIELD], path, length) == 0 &&
        strncmp(cells[KEYS], path, length) != 0)
      return true;
  }
  return false;
}

/* Of a model without padding, pad_token_id is -1. */
static bool is_no_token(const struct model_value *value) {
  return has_ending(value->path, "_token_id") && value->kind == MODEL_INTEGER && value->number < 0;
}

static void write_field(struct writer *of, const struct model_value *value) {
  const int64_t items = items_of(of, value->path);
  if (is_in_own_struct(of, value->path)) {
    if (!is_default(of, value))
      of->reason =
          arena_printf(of->arena, "'%s' is %s, which no config.json of its classes says", value->path, value->text);
  } else if (items < 0 || strtol(strrchr(value->path, '.') + 1, NULL, 10) < items) {
    set_at(of->json, of->arena, value->path, is_no_token(value) ? json_null() : json_of(value));
  }
}

static void write_fields(struct writer *of) {
  for (int i = 0; i < of->values.count; i++)
    if (!is_in_row(of, of->values.items[i].path)) write_field(of, &of->values.items[i]);
}

/* Tokens with a meaning, which a model over tokens has none of where nothing names them. */
static void write_tokens(struct writer *of) {
  static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys && value_at(of, "vocab_size") != NULL; i++)
    if (json_object_get(of->json, keys[i]) == NULL) json_object_set_new(of->json, keys[i], json_null());
}

/* ---- The class ---- */

/* Whether the config has the values after a class, "qk_norm=false". */
static bool has_settings(const struct writer *of, const char *settings) {
  for (; *settings != '\0'; settings += strspn(settings, " ")) {
    const size_t length = strcspn(settings, " "), name = strcspn(settings, "=");
    if (name >= length) return false;
    const struct model_value *value = value_at(of, arena_copy(of->arena, settings, name));
    const char *text = arena_copy(of->arena, settings + name + 1, length - name - 1);
    if (value == NULL || value->text == NULL || strcmp(value->text, text) != 0) return false;
    settings += length;
  }
  return true;
}

/* The class that the config makes the model: one with settings before the first without. */
static const char *class_of(const struct writer *of, const struct tree *model, const char *classes) {
  const char *plain = NULL;
  for (const char *at = classes; *at != '\0'; at += strspn(at, " ")) {
    const char *class = arena_copy(of->arena, at, strcspn(at, " "));
    const char *settings = model_class(of->arena, model, class);
    if (settings[0] != '\0' && has_settings(of, settings)) return class;
    if (settings[0] == '\0' && plain == NULL) plain = class;
    at += strlen(class);
  }
  return plain;
}

/* ---- The file ---- */

/* Whether the classes are of diffusers, whose config.json names its class by a row of the table. */
static bool is_of_diffusers(const struct writer *of) {
  for (int i = 0; i < of->rows.count; i++)
    if (of->rows.items[i].cells[KEYS] != NULL && strcmp(of->rows.items[i].cells[KEYS], "_class_name") == 0) return true;
  return false;
}

static void write_all(struct writer *of, const char *class) {
  if (!is_of_diffusers(of)) json_object_set_new(of->json, "architectures", json_pack("[s]", class));
  for (int i = 0; i < of->rows.count; i++) write_row(of, &of->rows.items[i]);
  write_fields(of);
  write_tokens(of);
}

/* What reading the text as a config.json finds against the config; NULL: nothing. */
static const char *contradiction(const struct writer *of, const struct tree *model, const struct model_request *request,
                                 const char *text) {
  struct diagnostics unread = diagnostics_in(of->arena);
  if (model_check_published_text(of->arena, model, request, text, &unread)) return NULL;
  return unread.items[0].message;
}

/* A value on one line if it is short, as the lines of a program are; NULL: there is no memory. */
static char *value_text(const json_t *value) {
  enum { LONGEST = 60 };
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
  if (text == NULL || strlen(text) <= LONGEST) return text;
  free(text);
  return json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15) | JSON_INDENT(2));
}

/* The object with a line for each of its members; NULL: there is no memory. */
static const char *text_of(const struct writer *of) {
  struct text out = text_in(of->arena);
  const char *key, *before = "{";
  json_t *value;
  json_object_foreach(of->json, key, value) {
    char *text = value_text(value);
    if (text == NULL) return NULL;
    text_printf(&out, "%s\"%s\": %s", before, key, text);
    before = ",\n";
    free(text);
  }
  text_puts(&out, "}");
  return text_string(&out);
}

const char *model_published_of_config(struct arena *arena, const struct tree *model,
                                      const struct model_request *request, int64_t positions, const char **reason) {
  struct diagnostics unread = diagnostics_in(arena);
  struct writer of = {.arena = arena, .positions = positions};
  const char *classes = model_classes(arena, model), *text = NULL;
  *reason = NULL;
  if (classes == NULL || !model_rows(arena, model, "published", &of.rows, &unread) ||
      !model_values(arena, model, request, &of.values, &unread))
    return NULL;
  of.n_fields = model_fields(arena, model, request->entry, &of.fields);
  const char *class = class_of(&of, model, classes);
  if (class == NULL) of.reason = "its values are those of none of the model's classes";
  of.json = json_object();
  if (class != NULL) write_all(&of, class);
  if (of.reason == NULL) text = text_of(&of);
  if (text != NULL) of.reason = contradiction(&of, model, request, text);
  json_decref(of.json);
  *reason = of.reason;
  return of.reason == NULL ? text : NULL;
}
