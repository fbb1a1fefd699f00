#include "gen/model/published.h"

#include <ctype.h>
#include <fnmatch.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/model/config.h"
#include "gen/model/published_file.h"

/* A row of the model's table; NULL: left out. */
struct row {
  const char *keys, *field, *is, *absent, *null;
  const char **patterns; /* the keys, each of its own */
  int n_patterns;
};

struct rows {
  struct row *items;
  int count, capacity;
};

struct comparison {
  struct evaluator *evaluator;
  const struct type *type; /* struct config */
  struct cvalue config;
  const struct model_request *request;
  const char *path;
  struct published_values values;
  struct rows rows;
};

/* ---- Fields of the config ---- */

/* The field at "rope.factor" or "hidden_sizes.0"; NULL where there is none. */
static const struct cvalue *find_field(const struct comparison *of, const char *path, const struct type **type) {
  const struct cvalue *at = &of->config;
  *type = of->type;
  while (*path != '\0') {
    size_t length = strcspn(path, ".");
    int64_t index = -1;
    if (ctype_of(*type) == CTYPE_STRUCT)
      index = type_member(*type, arena_copy(of->evaluator->arena, path, length));
    else if (ctype_of(*type) == CTYPE_ARRAY && strspn(path, "0123456789") == length && length < 10)
      index = strtol(path, NULL, 10);
    if (index < 0 || at->kind != CVALUE_AGGREGATE || index >= at->count) return NULL;
    at = &at->items[index];
    *type = ctype_part(*type, index);
    path += length + (path[length] == '.');
  }
  return at->kind == CVALUE_AGGREGATE ? NULL : at;
}

/* ROPE_LLAMA3 is "llama3": whether a name is the word, or ends with it after a _, whatever the case. */
static bool ends_with_word(const char *name, const char *word) {
  size_t longer = strlen(name), length = strlen(word), same = 0;
  if (length > longer) return false;
  const char *end = name + longer - length;
  while (same < length && tolower((unsigned char)end[same]) == tolower((unsigned char)word[same])) same++;
  return same == length && (end == name || end[-1] == '_');
}

/* The enumerator that a word names; NULL: none. Of several it is the shortest: "gelu" is not ACTIVATION_QUICK_GELU. */
static const struct enumerator *named_by(const struct type *type, const char *word) {
  const struct enumerator *best = NULL;
  for (int i = 0; i < type->n_enumerators; i++) {
    const struct enumerator *one = &type->enumerators[i];
    if (ends_with_word(one->name, word) && (best == NULL || strlen(one->name) < strlen(best->name))) best = one;
  }
  return best;
}

static bool same_number(double a, double b) {
  return fabs(a - b) <= 1e-7 * fmax(fabs(a), fabs(b));
}

static bool same_value(const struct type *type, const struct cvalue *field, const json_t *value) {
  if (field->kind == CVALUE_STRING)
    return json_is_string(value) && strcmp(field->string, json_string_value(value)) == 0;
  if (field->kind == CVALUE_REAL) return json_is_number(value) && same_number(field->real, json_number_value(value));
  if (field->kind != CVALUE_INTEGER) return true;
  if (type->n_enumerators > 0) {
    const struct enumerator *named = json_is_string(value) ? named_by(type, json_string_value(value)) : NULL;
    return named != NULL && named->value == field->integer;
  }
  if (json_is_boolean(value)) return (field->integer != 0) == json_is_true(value);
  return json_is_number(value) && (double)field->integer == json_number_value(value);
}

static const char *field_text(struct arena *arena, const struct type *type, const struct cvalue *field) {
  for (int i = 0; field->kind == CVALUE_INTEGER && i < type->n_enumerators; i++)
    if (type->enumerators[i].value == field->integer) return type->enumerators[i].name;
  if (field->kind == CVALUE_INTEGER && type->is_bool) return field->integer ? "true" : "false";
  return cvalue_text(arena, *field);
}

/* ---- What the table says of values ---- */

/* The number that a field holds. */
static bool field_number(const void *context, const char *field, double *number) {
  const struct type *type;
  const struct cvalue *cell = find_field(context, field, &type);
  if (cell == NULL || (cell->kind != CVALUE_INTEGER && cell->kind != CVALUE_REAL)) return false;
  *number = cell->kind == CVALUE_REAL ? cell->real : (double)cell->integer;
  return true;
}

static json_t *read_word(const struct comparison *of, const char *word) {
  return published_word(of->evaluator->arena, word, field_number, of);
}

static bool same_json(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b)) return same_number(json_number_value(a), json_number_value(b));
  return json_equal(a, b);
}

/* Which of the words a value is; -1: none. */
static int word_number(const struct comparison *of, const json_t *value, const char *words) {
  int number = -1, count = 0;
  for (const char *at = words; number < 0 && *at != '\0'; at += strspn(at, " ")) {
    size_t length = strcspn(at, " ");
    json_t *word = read_word(of, arena_copy(of->evaluator->arena, at, length));
    if (same_json(value, word)) number = count;
    count++;
    json_decref(word);
    at += length;
  }
  return number;
}

/* ---- Comparing ---- */

/* Where the job says a field, else where its config is. */
static struct location field_where(const struct comparison *of, const char *field) {
  for (int i = 0; i < of->request->n_config; i++)
    if (strcmp(of->request->config[i].name, field) == 0) return of->request->config[i].where;
  return of->request->config_where;
}

/* `meant` is what the value says of the field: itself, or the number of a word. */
static void compare_field(const struct comparison *of, const char *path, const char *key, const json_t *value,
                          const json_t *meant, bool is_absent) {
  struct arena *arena = of->evaluator->arena;
  struct diagnostics *diags = of->evaluator->diags;
  const struct type *type;
  const struct cvalue *field = find_field(of, path, &type);
  if (field == NULL) {
    diag_error(diags, (struct location){.file = of->evaluator->program->file},
               "the model's table 'published' names '%s', which its config does not have", path);
    return;
  }
  if (same_value(type, field, meant)) return;
  const char *said = published_text(arena, value);
  diag_error(diags, field_where(of, path), "'%s' is %s here, but the weights' %s %s %s of '%s'", path,
             field_text(arena, type, field), of->path, is_absent ? "without the key means" : "says", said, key);
  diag_help(diags, "give model.config what the weights were trained with, or name other weights");
}

static void compare_words(const struct comparison *of, const struct row *row, const char *key, const json_t *value) {
  struct diagnostics *diags = of->evaluator->diags;
  if (word_number(of, value, row->is) >= 0) return;
  diag_error(diags, of->request->config_where, "the weights' %s says %s of '%s', and %s computes with %s", of->path,
             published_text(of->evaluator->arena, value), key, of->evaluator->program->file, row->is);
  diag_help(diags, "name weights that the model can compute with, or another model");
}

static void compare_value(const struct comparison *of, const struct row *row, const char *key, const json_t *value,
                          bool is_absent) {
  if (row->field == NULL && row->is == NULL) return;
  const int number = row->is != NULL ? word_number(of, value, row->is) : -1;
  if (row->is != NULL && (row->field == NULL || number < 0)) {
    compare_words(of, row, key, value);
    return;
  }
  json_t *meant = row->is != NULL ? json_integer(number) : json_incref((json_t *)value);
  compare_field(of, row->field, key, value, meant, is_absent);
  json_decref(meant);
}

/* What a word of the table means, as a value. */
static void compare_meant(const struct comparison *of, const struct row *row, const char *key, const char *word) {
  json_t *value = read_word(of, word);
  compare_value(of, row, key, value, true);
  json_decref(value);
}

/* Whether a row's key is that of a leaf. How many items there are is requested by name alone. */
static bool is_named(const char *key, const char *path) {
  return fnmatch(key, path, 0) == 0 && (key[strlen(key) - 1] == '#' || path[strlen(path) - 1] != '#');
}

/* All leaves that one of a row's keys matches; of several keys the first that the file has. */
static void compare_row(const struct comparison *of, const struct row *row) {
  bool found = false;
  for (int k = 0; k < row->n_patterns; k++) {
    bool here = false;
    for (int i = 0; i < of->values.count; i++) {
      struct published_value *leaf = &of->values.items[i];
      if (!is_named(row->patterns[k], leaf->path)) continue;
      leaf->known = here = true;
      const char *null = row->null != NULL ? row->null : row->absent;
      if (found) continue;
      if (!json_is_null(leaf->value))
        compare_value(of, row, leaf->path, leaf->value, false);
      else if (null != NULL)
        compare_meant(of, row, leaf->path, null);
      else if (row->field == NULL)
        compare_value(of, row, leaf->path, leaf->value, false);
    }
    found |= here;
  }
  if (!found && row->absent != NULL) compare_meant(of, row, row->keys, row->absent);
}

static void split_keys(struct arena *arena, struct row *row) {
  const char *keys = row->keys != NULL ? row->keys : "";
  row->patterns = arena_alloc(arena, (strlen(keys) / 2 + 1) * sizeof *row->patterns);
  for (const char *at = keys; *at != '\0'; at += strspn(at, " ")) {
    const size_t length = strcspn(at, " ");
    if (length > 0) row->patterns[row->n_patterns++] = arena_copy(arena, at, length);
    at += length;
  }
}

static void read_table(struct comparison *of) {
  struct evaluator *evaluator = of->evaluator;
  for (int i = 0; i < evaluator->program->n_statics; i++) {
    const struct variable *variable = evaluator->program->statics[i];
    if (strcmp(variable->name, "published") != 0 || variable->initial == NULL) continue;
    struct cvalue table = initialize(evaluator, variable->type, variable->initial, false);
    for (int64_t k = 0; table.kind == CVALUE_AGGREGATE && k < table.count; k++) {
      const struct cvalue *cells = table.items[k].kind == CVALUE_AGGREGATE ? table.items[k].items : NULL;
      if (cells == NULL || table.items[k].count != 5 ||
          (cvalue_string_of(&cells[0]) == NULL && cvalue_string_of(&cells[1]) == NULL))
        evaluate_fail(evaluator, (struct location){.file = evaluator->program->file},
                      "write const struct published published[] = {{\"n_head\", \"heads\"}, ...};",
                      "the model's table 'published' is not a list of struct published");
      struct row row = {.keys = cvalue_string_of(&cells[0]),
                        .field = cvalue_string_of(&cells[1]),
                        .is = cvalue_string_of(&cells[2]),
                        .absent = cvalue_string_of(&cells[3]),
                        .null = cvalue_string_of(&cells[4])};
      split_keys(evaluator->arena, &row);
      ARENA_PUSH(evaluator->arena, of->rows, row);
    }
  }
}

/* The first keys that nothing has, and how many more there are. */
static const char *compare_all(struct comparison *of) {
  enum { MOST = 50 };
  struct arena *arena = of->evaluator->arena;
  struct text unknown = text_in(arena);
  int count = 0;
  read_table(of);
  for (int i = 0; i < of->rows.count; i++) compare_row(of, &of->rows.items[i]);
  for (int i = 0; i < of->values.count; i++) {
    const struct published_value *leaf = &of->values.items[i];
    const struct type *type;
    if (leaf->known || published_is_aside(leaf->path)) continue;
    if (find_field(of, leaf->path, &type) != NULL && !json_is_null(leaf->value))
      compare_field(of, leaf->path, leaf->path, leaf->value, leaf->value, false);
    else if (!published_is_nothing(leaf->value) && count++ < MOST)
      text_printf(&unknown, "%s%s (%s)", count > 1 ? ", " : "", leaf->path, published_text(arena, leaf->value));
  }
  if (count > MOST) text_printf(&unknown, ", and %d more", count - MOST);
  return text_string(&unknown);
}

/* ---- The config ---- */

/* Alone in its function, so that no variable of it lives across the jump. */
static bool compare_guarded(struct comparison *of, const char **unknown) {
  if (setjmp(of->evaluator->failure) != 0) return false;
  of->config = config_argument(of->evaluator, of->type, of->request);
  *unknown = compare_all(of);
  return true;
}

/* The values of the file at `path`, or of `json`, against the config. */
static bool check(struct arena *arena, const struct tree *model, const struct model_request *request, const char *path,
                  const char *json, struct diagnostics *diags, const char **unknown) {
  int before = diags->errors;
  *unknown = "";
  struct evaluator evaluator = model_evaluator(arena, model, diags);
  struct comparison of = {
      .evaluator = &evaluator, .type = config_type(model, request->entry), .request = request, .path = path};
  if (of.type != NULL &&
      (json != NULL ? published_parse(arena, json, &of.values) : published_read(arena, path, &of.values, diags))) {
    compare_guarded(&of, unknown);
    published_free(&of.values);
  }
  builder_abandon(evaluator.builder);
  return diags->errors == before;
}

bool model_check_published(struct arena *arena, const struct tree *model, const struct model_request *request,
                           const char *path, struct diagnostics *diags, const char **unknown) {
  return check(arena, model, request, path, NULL, diags, unknown);
}

bool model_check_published_text(struct arena *arena, const struct tree *model, const struct model_request *request,
                                const char *json, struct diagnostics *diags) {
  const char *unknown;
  return check(arena, model, request, "config.json", json, diags, &unknown);
}

/* ---- From the file to the config ---- */

struct found {
  struct config_value *items;
  int count, capacity;
};

static bool is_found(const struct found *found, const char *field) {
  for (int i = 0; i < found->count; i++)
    if (strcmp(found->items[i].name, field) == 0) return true;
  return false;
}

/* A value as the job writes it for a field of the type; false where it is none. */
static bool value_for(const struct type *type, const json_t *value, struct config_value *out) {
  const double number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
  const bool is_number = json_is_number(value) || json_is_boolean(value);
  const enum ctype_kind kind = ctype_of(type);
  out->real = number;
  if (kind == CTYPE_STRING || type->n_enumerators > 0) {
    out->kind = CONFIG_STRING;
    out->string = json_string_value(value);
    const struct enumerator *named = json_is_string(value) ? named_by(type, json_string_value(value)) : NULL;
    if (named != NULL) out->string = named->name;
    return json_is_string(value) && (named != NULL || type->n_enumerators == 0);
  }
  if (!is_number || (kind != CTYPE_REAL && number != trunc(number)) || fabs(number) >= 0x1p53)
    return out->kind = CONFIG_REAL, is_number && kind == CTYPE_REAL;
  out->integer = (int64_t)number;
  out->kind = type->is_bool ? CONFIG_BOOL : number == trunc(number) ? CONFIG_INT : CONFIG_REAL;
  return true;
}

/* Adds a field's value, unless it has one. A text that denotes a product of fields that are not known yet is none.
 */
static void add_found(const struct comparison *of, struct found *found, const char *field, const char *key,
                      const json_t *value, bool is_meant) {
  const struct location where = {.file = of->path};
  const struct type *type;
  if (is_found(found, field) || find_field(of, field, &type) == NULL) return;
  struct config_value out = {.name = arena_string(of->evaluator->arena, field), .where = where, .name_where = where};
  if (value_for(type, value, &out)) {
    if (out.kind == CONFIG_STRING) out.string = arena_string(of->evaluator->arena, out.string);
    ARENA_PUSH(of->evaluator->arena, *found, out);
  } else if (!is_meant) {
    diag_error(of->evaluator->diags, where, "%s of '%s' is not a value for '%s' of %s",
               published_text(of->evaluator->arena, value), key, field, of->evaluator->program->file);
  }
}

/* What a row's key says of its field: the value, or of words the number of the one that it is. */
static void add_said(const struct comparison *of, const struct row *row, struct found *found, const char *key,
                     const json_t *value, bool is_meant) {
  if (row->is == NULL) {
    add_found(of, found, row->field, key, value, is_meant);
    return;
  }
  const int number = word_number(of, value, row->is);
  json_t *meant = number >= 0 ? json_integer(number) : json_incref((json_t *)value);
  add_found(of, found, row->field, key, meant, is_meant);
  json_decref(meant);
}

static const struct published_value *leaf_of(const struct comparison *of, const char *key) {
  for (int i = 0; i < of->values.count; i++)
    if (is_named(key, of->values.items[i].path)) return &of->values.items[i];
  return NULL;
}

/* What a row says of its field: the value of its first key that the file has, or what it means that there is none. */
static void find_by_row(const struct comparison *of, const struct row *row, struct found *found, bool meant) {
  const char *word = row->absent, *key = row->keys;
  const struct published_value *leaf = NULL;
  for (int i = 0; leaf == NULL && i < row->n_patterns; i++) leaf = leaf_of(of, key = row->patterns[i]);
  if (leaf != NULL && !json_is_null(leaf->value)) {
    if (!meant) add_said(of, row, found, leaf->path, leaf->value, false);
    return;
  }
  if (leaf != NULL && row->null != NULL) word = row->null;
  if (!meant || word == NULL) return;
  json_t *value = read_word(of, word);
  add_said(of, row, found, key, value, true);
  json_decref(value);
}

static bool is_in_table(const struct comparison *of, const char *path) {
  for (int i = 0; i < of->rows.count; i++)
    for (int k = 0; k < of->rows.items[i].n_patterns; k++)
      if (is_named(of->rows.items[i].patterns[k], path)) return true;
  return false;
}

/* transformers writes no labels where there are two of them, its default. */
static void find_labels(const struct comparison *of, struct found *found) {
  json_t *two = json_integer(2);
  if (leaf_of(of, "id2label.#") == NULL) add_found(of, found, "num_labels", "id2label", two, true);
  json_decref(two);
}

/* ---- What is missing ---- */

/* A field without a value, and what a file may call it. */
struct missing {
  const char *name, *field;
};

struct missing_list {
  struct missing *items;
  int count, capacity;
};

static void find_missing(const struct comparison *of, struct missing_list *list) {
  struct arena *arena = of->evaluator->arena;
  for (int i = 0; i < of->type->n_members; i++) {
    const char *field = of->type->members[i].name;
    const struct type *type;
    const struct cvalue *cell = find_field(of, field, &type);
    if (cell == NULL || cell->kind != CVALUE_UNSET) continue;
    struct missing missing = {field, field};
    ARENA_PUSH(arena, *list, missing);
    for (int k = 0; k < of->rows.count; k++) {
      const struct row *row = &of->rows.items[k];
      for (int j = 0; row->field != NULL && strcmp(row->field, field) == 0 && j < row->n_patterns; j++) {
        missing.name = row->patterns[j];
        ARENA_PUSH(arena, *list, missing);
      }
    }
  }
}

/* A key that nothing has, near the name of a field that has no value, is that one misspelt: an error for each field. */
static void report_misspelt(const struct comparison *of) {
  struct missing_list list = {0};
  struct arena *arena = of->evaluator->arena;
  struct diagnostics *diags = of->evaluator->diags;
  find_missing(of, &list);
  const char **names = arena_alloc(arena, ((size_t)list.count + 1) * sizeof *names);
  for (int i = 0; i < of->values.count && list.count > 0; i++) {
    const char *path = of->values.items[i].path;
    const struct type *type;
    if (is_in_table(of, path) || published_is_aside(path) || find_field(of, path, &type) != NULL) continue;
    for (int k = 0; k < list.count; k++) names[k] = list.items[k].name;
    const char *near = nearest_word(path, names, list.count);
    int at = 0;
    while (near != NULL && names[at] != near) at++;
    if (near == NULL) continue;
    diag_error(diags, (struct location){.file = of->path}, "'%s' is missing, and %s has no '%s'", near,
               of->evaluator->program->file, path);
    diag_help(diags, "did you mean '%s'?", near);
    const char *field = list.items[at].field;
    int kept = 0;
    for (int k = 0; k < list.count; k++)
      if (strcmp(list.items[k].field, field) != 0) list.items[kept++] = list.items[k];
    list.count = kept;
  }
}

/* First what the file says, then what it means that it does not, of which some depends on other fields. */
static void find_all(struct comparison *of, struct found *found) {
  enum { ROUNDS = 4 };
  read_table(of);
  for (int round = 0; round < ROUNDS; round++) {
    struct model_request request = *of->request;
    request.config = found->items;
    request.n_config = found->count;
    of->config = config_so_far(of->evaluator, of->type, &request);
    for (int i = 0; i < of->rows.count; i++)
      if (of->rows.items[i].field != NULL) find_by_row(of, &of->rows.items[i], found, round > 0);
    for (int i = 0; i < of->values.count && round == 0; i++) {
      const struct published_value *leaf = &of->values.items[i];
      if (json_is_null(leaf->value) || is_in_table(of, leaf->path)) continue;
      add_found(of, found, leaf->path, leaf->path, leaf->value, published_is_aside(leaf->path));
    }
  }
  find_labels(of, found);
  report_misspelt(of);
}

static bool find_guarded(struct comparison *of, struct found *found) {
  if (setjmp(of->evaluator->failure) != 0) return false;
  find_all(of, found);
  return true;
}

bool model_config_of_published(struct arena *arena, const struct tree *model, const struct model_request *request,
                               const char *path, struct config_value **config, int *n_config,
                               struct diagnostics *diags) {
  const int before = diags->errors;
  struct found found = {0};
  struct evaluator evaluator = model_evaluator(arena, model, diags);
  struct comparison of = {
      .evaluator = &evaluator, .type = config_type(model, request->entry), .request = request, .path = path};
  for (int i = 0; i < request->n_config; i++) ARENA_PUSH(arena, found, request->config[i]);
  if (of.type != NULL && published_read(arena, path, &of.values, diags)) {
    find_guarded(&of, &found);
    published_free(&of.values);
  }
  builder_abandon(evaluator.builder);
  *config = found.items;
  *n_config = found.count;
  return diags->errors == before;
}
