#include "gen/model/config.h"

#include <setjmp.h>
#include <string.h>

#include "gen/model/fields.h"
#include "gen/spec/node.h"

/* One number or string of the config: a field, or inside a nested struct or array ("experts.count", "widths.0"). */
struct leaf {
  const char *path;
  const struct type *type;
  const struct member *field; /* of the outermost struct */
  struct cvalue *cell;
  bool given;
};

struct leaves {
  struct leaf *items;
  int count, capacity;
};

static struct location field_where(const struct member *field) {
  return (struct location){.file = field->where.file, .line = field->where.line};
}

static bool is_plain(const struct type *type) {
  return ctype_of(type) == CTYPE_INTEGER || ctype_of(type) == CTYPE_REAL || ctype_of(type) == CTYPE_STRING;
}

static void add_leaves(struct evaluator *evaluator, const char *path, const struct type *type,
                       const struct member *field, struct cvalue *cell, struct leaves *leaves) {
  if (!ctype_is_aggregate(type)) {
    if (!is_plain(type))
      evaluate_fail(evaluator, field_where(field), "a config has numbers, booleans, strings and enums",
                    "a job cannot give a value to '%s', a '%s'", path, type->name);
    struct leaf leaf = {.path = path, .type = type, .field = field, .cell = cell};
    ARENA_PUSH(evaluator->arena, *leaves, leaf);
    return;
  }
  for (int64_t i = 0; i < cell->count; i++) {
    const struct member *part = ctype_of(type) == CTYPE_STRUCT ? &type->members[i] : NULL;
    const char *name = part != NULL ? part->name : arena_printf(evaluator->arena, "%lld", (long long)i);
    const char *below = path[0] == '\0' ? name : arena_printf(evaluator->arena, "%s.%s", path, name);
    add_leaves(evaluator, below, ctype_part(type, i), field != NULL ? field : part, &cell->items[i], leaves);
  }
}

/* ---- One value ---- */

static bool set_enum(const struct leaf *leaf, const struct config_value *value, struct diagnostics *diags) {
  const struct type *type = leaf->type;
  const char **names = arena_alloc(diags->arena, ((size_t)type->n_enumerators + 1) * sizeof *names);
  for (int i = 0; i < type->n_enumerators; i++) {
    names[i] = type->enumerators[i].name;
    if (value->kind != CONFIG_STRING || strcmp(names[i], value->string) != 0) continue;
    *leaf->cell = (struct cvalue){.kind = CVALUE_INTEGER, .type = type, .integer = type->enumerators[i].value};
    return true;
  }
  const char *similar = value->kind == CONFIG_STRING ? nearest_word(value->string, names, type->n_enumerators) : NULL;
  diag_error(diags, value->where, "'%s' must be one of the names of '%s'", leaf->path, type->name);
  if (similar != NULL) diag_help(diags, "did you mean '%s'?", similar);
  return false;
}

static bool integer_fits(const struct config_value *value, const struct type *type) {
  if (type->is_bool) return true;
  if (!type->is_signed && value->integer < 0) return false;
  int bits = type->is_signed ? ctype_bits(type) - 1 : ctype_bits(type);
  if (bits >= 63) return true;
  int64_t limit = INT64_C(1) << bits;
  return value->integer < limit && (!type->is_signed || value->integer >= -limit);
}

static bool set_number(const struct leaf *leaf, const struct config_value *value) {
  const struct type *type = leaf->type;
  bool real = ctype_of(type) == CTYPE_REAL;
  bool number = value->kind == CONFIG_INT || (real && value->kind == CONFIG_REAL);
  if (type->is_bool ? value->kind != CONFIG_BOOL : !number) return false;
  *leaf->cell = (struct cvalue){.kind = real ? CVALUE_REAL : CVALUE_INTEGER, .type = type, .integer = value->integer};
  if (real) leaf->cell->real = ctype_bits(type) == 32 ? (float)value->real : value->real;
  return true;
}

static const char *wanted(const struct type *type) {
  if (ctype_of(type) == CTYPE_STRING) return "a string";
  if (ctype_of(type) == CTYPE_REAL) return "a number";
  if (type->is_bool) return "true or false";
  return "a whole number";
}

static void set_leaf(struct evaluator *evaluator, struct leaf *leaf, const struct config_value *value) {
  struct diagnostics *diags = evaluator->diags;
  const struct type *type = leaf->type;
  leaf->given = true;
  if (ctype_of(type) == CTYPE_INTEGER && type->n_enumerators > 0) {
    set_enum(leaf, value, diags);
    return;
  }
  if (ctype_of(type) == CTYPE_STRING && value->kind == CONFIG_STRING) {
    *leaf->cell = cvalue_string(value->string);
    return;
  }
  bool number = ctype_of(type) == CTYPE_INTEGER || ctype_of(type) == CTYPE_REAL;
  if (number && set_number(leaf, value)) {
    if (ctype_of(type) == CTYPE_REAL || integer_fits(value, type)) return;
    diag_error(diags, value->where, "'%s' does not fit into '%s'", leaf->path, type->name);
  } else {
    diag_error(diags, value->where, "'%s' must be %s", leaf->path, wanted(type));
  }
  diag_note(diags, field_where(leaf->field), "'%s' is declared here", leaf->path);
}

/* ---- All values ---- */

static struct leaf *find_leaf(const struct leaves *leaves, const char *name) {
  for (int i = 0; i < leaves->count; i++)
    if (strcmp(leaves->items[i].path, name) == 0) return &leaves->items[i];
  return NULL;
}

static void report_unknown(struct evaluator *evaluator, const struct leaves *leaves, const struct config_value *value) {
  const char **names = arena_alloc(evaluator->arena, ((size_t)leaves->count + 1) * sizeof *names);
  for (int i = 0; i < leaves->count; i++) names[i] = leaves->items[i].path;
  const char *similar = nearest_word(value->name, names, leaves->count);
  const char *file = evaluator->program->file;
  if (similar != NULL)
    diag_error(evaluator->diags, value->name_where, "the config of %s has no '%s'; did you mean '%s'?", file,
               value->name, similar);
  else
    diag_error(evaluator->diags, value->name_where, "the config of %s has no '%s'", file, value->name);
}

/* What the job leaves open and the model's defaults say. */
static void take_defaults(struct evaluator *evaluator, const struct type *type, struct leaves *leaves) {
  for (int i = 0; i < evaluator->program->n_statics; i++) {
    const struct variable *variable = evaluator->program->statics[i];
    if (strcmp(variable->name, "defaults") != 0 || variable->type != type || variable->initial == NULL) continue;
    struct cvalue defaults = initialize(evaluator, type, variable->initial, true);
    struct leaves given = {0};
    add_leaves(evaluator, "", type, NULL, &defaults, &given);
    for (int k = 0; k < leaves->count; k++)
      if (!leaves->items[k].given) *leaves->items[k].cell = *given.items[k].cell;
  }
}

static void report_missing(struct evaluator *evaluator, const struct leaf *leaf, const struct model_request *request) {
  diag_error(evaluator->diags, request->config_where, "model.config lacks '%s', %s", leaf->path, wanted(leaf->type));
  diag_note(evaluator->diags, field_where(leaf->field), "the model needs it here");
  diag_help(evaluator->diags, "or give it a default in the model: const struct config defaults = {.%s = ...};",
            leaf->path);
}

/* The values of the request, and the model's defaults where it has none. */
static struct cvalue fill(struct evaluator *evaluator, const struct type *type, const struct model_request *request,
                          struct leaves *cells) {
  struct location where = {.file = evaluator->program->file};
  struct cvalue config = new_value(evaluator, type, false, where);
  struct leaves leaves = {0};
  add_leaves(evaluator, "", type, NULL, &config, &leaves);
  for (int i = 0; i < request->n_config; i++) {
    struct leaf *leaf = find_leaf(&leaves, request->config[i].name);
    if (leaf == NULL)
      report_unknown(evaluator, &leaves, &request->config[i]);
    else
      set_leaf(evaluator, leaf, &request->config[i]);
  }
  take_defaults(evaluator, type, &leaves);
  *cells = leaves;
  return config;
}

struct cvalue config_so_far(struct evaluator *evaluator, const struct type *type, const struct model_request *request) {
  struct diagnostics unread = diagnostics_in(evaluator->arena), *diags = evaluator->diags;
  struct leaves leaves;
  evaluator->diags = &unread;
  struct cvalue config = fill(evaluator, type, request, &leaves);
  evaluator->diags = diags;
  return config;
}

struct cvalue config_argument(struct evaluator *evaluator, const struct type *type,
                              const struct model_request *request) {
  int errors = evaluator->diags->errors;
  struct leaves leaves;
  struct cvalue config = fill(evaluator, type, request, &leaves);
  for (int i = 0; i < leaves.count; i++)
    if (!leaves.items[i].given && leaves.items[i].cell->kind == CVALUE_UNSET)
      report_missing(evaluator, &leaves.items[i], request);
  if (evaluator->diags->errors > errors) evaluate_stop(evaluator);
  return config;
}

const struct type *config_type(const struct tree *model, const char *entry) {
  const struct function *function = model_function(model, entry);
  for (int i = 0; function != NULL && i < function->n_parameters; i++)
    if (ctype_of(function->parameters[i]->type) == CTYPE_STRUCT) return function->parameters[i]->type;
  return NULL;
}

/* ---- A list of the fields ---- */

struct listing {
  struct model_field *items;
  int count, capacity;
};

/* A default as YAML; NULL: there is none. */
static const char *default_text(struct arena *arena, const struct leaf *leaf) {
  const struct cvalue *cell = leaf->cell;
  for (int i = 0; cell->kind == CVALUE_INTEGER && i < leaf->type->n_enumerators; i++)
    if (leaf->type->enumerators[i].value == cell->integer) return leaf->type->enumerators[i].name;
  if (cell->kind == CVALUE_INTEGER && leaf->type->is_bool) return cell->integer != 0 ? "true" : "false";
  if (cell->kind == CVALUE_INTEGER) return arena_printf(arena, "%lld", (long long)cell->integer);
  if (cell->kind == CVALUE_REAL) return spec_number(arena, cell->real, true);
  if (cell->kind != CVALUE_STRING) return NULL;
  const struct spec_node word = {.kind = SPEC_STRING, .text = cell->string, .length = strlen(cell->string)};
  struct text out = text_in(arena);
  spec_write_value(&out, &word);
  return text_string(&out);
}

static void list_fields(struct evaluator *evaluator, const struct type *type, struct listing *listing) {
  const struct model_request none = {0};
  struct leaves leaves;
  fill(evaluator, type, &none, &leaves);
  for (int i = 0; i < leaves.count; i++)
    ARENA_PUSH(evaluator->arena, *listing,
               ((struct model_field){leaves.items[i].path, default_text(evaluator->arena, &leaves.items[i])}));
}

static bool list_guarded(struct evaluator *evaluator, const struct type *type, struct listing *listing) {
  if (setjmp(evaluator->failure) != 0) return false;
  list_fields(evaluator, type, listing);
  return true;
}

int model_fields(struct arena *arena, const struct tree *model, const char *entry, struct model_field **fields) {
  struct diagnostics unread = diagnostics_in(arena);
  struct listing listing = {0};
  const struct type *type = config_type(model, entry);
  struct evaluator evaluator = model_evaluator(arena, model, &unread);
  if (type != NULL) list_guarded(&evaluator, type, &listing);
  builder_abandon(evaluator.builder);
  *fields = listing.items;
  return listing.count;
}
