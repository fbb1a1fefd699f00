#include "gen/model/published.h"

#include <ctype.h>
#include <fnmatch.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/model/config.h"
#include "gen/model/published_file.h"

/* A row of the model's table; NULL: left out. */
struct row {
  const char *keys, *field, *is, *absent, *null;
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

/* One factor: a number, or a field that holds one. */
static bool read_factor(const struct comparison *of, const char *word, double *number) {
  char *end;
  const struct type *type;
  *number = strtod(word, &end);
  if (end != word && *end == '\0') return true;
  const struct cvalue *field = find_field(of, word, &type);
  if (field == NULL || (field->kind != CVALUE_INTEGER && field->kind != CVALUE_REAL)) return false;
  *number = field->kind == CVALUE_REAL ? field->real : (double)field->integer;
  return true;
}

/* A word of the table as JSON: null, true, false, a product of numbers and fields such as 4*n_embd or
 * hidden_size/num_attention_heads, or itself as a text. The caller's. */
static json_t *read_word(const struct comparison *of, const char *word) {
  struct arena *arena = of->evaluator->arena;
  double product = 1, factor;
  char before = '*';
  if (strcmp(word, "null") == 0) return json_null();
  if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) return json_boolean(word[0] == 't');
  for (const char *at = word; before != '\0';) {
    size_t length = strcspn(at, "*/");
    if (!read_factor(of, arena_copy(arena, at, length), &factor)) return json_string(word);
    product = before == '*' ? product * factor : product / factor;
    before = at[length];
    at += length + 1;
  }
  return product == trunc(product) && fabs(product) < 1e15 ? json_integer((json_int_t)product) : json_real(product);
}

static bool same_json(const json_t *a, const json_t *b) {
  if (json_is_number(a) && json_is_number(b)) return same_number(json_number_value(a), json_number_value(b));
  return json_equal(a, b);
}

/* Whether a value is one of the words. */
static bool is_one_of(const struct comparison *of, const json_t *value, const char *words) {
  bool found = false;
  for (const char *at = words; !found && *at != '\0'; at += strspn(at, " ")) {
    size_t length = strcspn(at, " ");
    json_t *word = read_word(of, arena_copy(of->evaluator->arena, at, length));
    found = same_json(value, word);
    json_decref(word);
    at += length;
  }
  return found;
}

/* ---- Comparing ---- */

/* Where the job says a field, else where its config is. */
static struct location field_where(const struct comparison *of, const char *field) {
  for (int i = 0; i < of->request->n_config; i++)
    if (strcmp(of->request->config[i].name, field) == 0) return of->request->config[i].where;
  return of->request->config_where;
}

static void compare_field(const struct comparison *of, const char *path, const char *key, const json_t *value,
                          bool is_absent) {
  struct arena *arena = of->evaluator->arena;
  struct diagnostics *diags = of->evaluator->diags;
  const struct type *type;
  const struct cvalue *field = find_field(of, path, &type);
  if (field == NULL) {
    diag_error(diags, (struct location){.file = of->evaluator->program->file},
               "the model's table 'published' names '%s', which its config does not have", path);
    return;
  }
  if (same_value(type, field, value)) return;
  const char *said = published_text(arena, value);
  diag_error(diags, field_where(of, path), "'%s' is %s here, but the weights' %s %s %s of '%s'", path,
             field_text(arena, type, field), of->path, is_absent ? "without the key means" : "says", said, key);
  diag_help(diags, "give model.config what the weights were trained with, or name other weights");
}

static void compare_words(const struct comparison *of, const struct row *row, const char *key, const json_t *value) {
  struct diagnostics *diags = of->evaluator->diags;
  if (is_one_of(of, value, row->is)) return;
  diag_error(diags, of->request->config_where, "the weights' %s says %s of '%s', and %s computes with %s", of->path,
             published_text(of->evaluator->arena, value), key, of->evaluator->program->file, row->is);
  diag_help(diags, "name weights that the model can compute with, or another model");
}

static void compare_value(const struct comparison *of, const struct row *row, const char *key, const json_t *value,
                          bool is_absent) {
  if (row->field != NULL)
    compare_field(of, row->field, key, value, is_absent);
  else if (row->is != NULL)
    compare_words(of, row, key, value);
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
  struct arena *arena = of->evaluator->arena;
  bool found = false;
  for (const char *at = row->keys; *at != '\0'; at += strspn(at, " ")) {
    size_t length = strcspn(at, " ");
    const char *key = arena_copy(arena, at, length);
    bool here = false;
    for (int i = 0; i < of->values.count; i++) {
      struct published_value *leaf = &of->values.items[i];
      if (!is_named(key, leaf->path)) continue;
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
    at += length;
  }
  if (!found && row->absent != NULL) compare_meant(of, row, row->keys, row->absent);
}

static void read_table(struct comparison *of) {
  struct evaluator *evaluator = of->evaluator;
  for (int i = 0; i < evaluator->program->n_statics; i++) {
    const struct variable *variable = evaluator->program->statics[i];
    if (strcmp(variable->name, "published") != 0 || variable->initial == NULL) continue;
    struct cvalue table = initialize(evaluator, variable->type, variable->initial, false);
    for (int64_t k = 0; table.kind == CVALUE_AGGREGATE && k < table.count; k++) {
      const struct cvalue *cells = table.items[k].kind == CVALUE_AGGREGATE ? table.items[k].items : NULL;
      if (cells == NULL || table.items[k].count != 5 || cvalue_string_of(&cells[0]) == NULL)
        evaluate_fail(evaluator, (struct location){.file = evaluator->program->file},
                      "write const struct published published[] = {{\"n_head\", \"heads\"}, ...};",
                      "the model's table 'published' is not a list of struct published");
      struct row row = {cvalue_string_of(&cells[0]), cvalue_string_of(&cells[1]), cvalue_string_of(&cells[2]),
                        cvalue_string_of(&cells[3]), cvalue_string_of(&cells[4])};
      ARENA_PUSH(evaluator->arena, of->rows, row);
    }
  }
}

static const char *compare_all(struct comparison *of) {
  struct arena *arena = of->evaluator->arena;
  const char *unknown = "";
  read_table(of);
  for (int i = 0; i < of->rows.count; i++) compare_row(of, &of->rows.items[i]);
  for (int i = 0; i < of->values.count; i++) {
    const struct published_value *leaf = &of->values.items[i];
    const struct type *type;
    if (leaf->known || published_is_aside(leaf->path)) continue;
    if (find_field(of, leaf->path, &type) != NULL && !json_is_null(leaf->value))
      compare_field(of, leaf->path, leaf->path, leaf->value, false);
    else if (!published_is_nothing(leaf->value))
      unknown = arena_printf(arena, "%s%s%s (%s)", unknown, unknown[0] == '\0' ? "" : ", ", leaf->path,
                             published_text(arena, leaf->value));
  }
  return unknown;
}

/* ---- The config ---- */

/* Alone in its function, so that no variable of it lives across the jump. */
static bool compare_guarded(struct comparison *of, const char **unknown) {
  if (setjmp(of->evaluator->failure) != 0) return false;
  of->config = config_argument(of->evaluator, of->type, of->request);
  *unknown = compare_all(of);
  return true;
}

bool model_check_published(struct arena *arena, const struct tree *model, const struct model_request *request,
                           const char *path, struct diagnostics *diags, const char **unknown) {
  int before = diags->errors;
  *unknown = "";
  struct evaluator evaluator = model_evaluator(arena, model, diags);
  struct comparison of = {
      .evaluator = &evaluator, .type = config_type(model, request->entry), .request = request, .path = path};
  if (of.type != NULL && published_read(arena, path, &of.values, diags)) {
    compare_guarded(&of, unknown);
    published_free(&of.values);
  }
  builder_abandon(evaluator.builder);
  return diags->errors == before;
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
  struct config_value out = {.name = arena_string(of->evaluator->arena, field), .where = where, .name_where = where};
  if (is_found(found, field) || find_field(of, field, &type) == NULL) return;
  if (value_for(type, value, &out)) {
    if (out.kind == CONFIG_STRING) out.string = arena_string(of->evaluator->arena, out.string);
    ARENA_PUSH(of->evaluator->arena, *found, out);
  } else if (!is_meant) {
    diag_error(of->evaluator->diags, where, "%s of '%s' is not a value for '%s' of %s",
               published_text(of->evaluator->arena, value), key, field, of->evaluator->program->file);
  }
}

static const struct published_value *leaf_of(const struct comparison *of, const char *key) {
  for (int i = 0; i < of->values.count; i++)
    if (is_named(key, of->values.items[i].path)) return &of->values.items[i];
  return NULL;
}

/* What a row says of its field: the value of its first key that the file has, or what it means that there is none. */
static void find_by_row(const struct comparison *of, const struct row *row, struct found *found, bool meant) {
  struct arena *arena = of->evaluator->arena;
  const char *word = row->absent, *key = row->keys;
  const struct published_value *leaf = NULL;
  for (const char *at = row->keys; leaf == NULL && *at != '\0'; at += strspn(at, " ")) {
    key = arena_copy(arena, at, strcspn(at, " "));
    leaf = leaf_of(of, key);
    at += strcspn(at, " ");
  }
  if (leaf != NULL && !json_is_null(leaf->value)) {
    if (!meant) add_found(of, found, row->field, leaf->path, leaf->value, false);
    return;
  }
  if (leaf != NULL && row->null != NULL) word = row->null;
  if (!meant || word == NULL) return;
  json_t *value = read_word(of, word);
  add_found(of, found, row->field, key, value, true);
  json_decref(value);
}

static bool is_in_table(const struct comparison *of, const char *path) {
  for (int i = 0; i < of->rows.count; i++)
    for (const char *at = of->rows.items[i].keys; *at != '\0'; at += strspn(at, " ")) {
      const char *key = arena_copy(of->evaluator->arena, at, strcspn(at, " "));
      if (is_named(key, path)) return true;
      at += strcspn(at, " ");
    }
  return false;
}

/* transformers writes no labels where there are two of them, its default. */
static void find_labels(const struct comparison *of, struct found *found) {
  json_t *two = json_integer(2);
  if (leaf_of(of, "id2label.#") == NULL) add_found(of, found, "num_labels", "id2label", two, true);
  json_decref(two);
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
