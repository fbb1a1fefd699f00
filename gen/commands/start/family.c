#include "gen/commands/start/family.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/base/text.h"
#include "gen/commands/cli/files.h"
#include "gen/model/published.h"
#include "gen/model/published_file.h"
#include "gen/spec/node.h"

/* ---- The available models ---- */

/* Next to the installed command, or in the tree in which it was built; NULL where they are at neither. */
static const char *models_folder(const struct options *options) {
  static const char *const places[] = {"../share/accel-gen/models", "../examples/models"};
  for (size_t i = 0; i < sizeof places / sizeof *places && options->binary != NULL; i++) {
    const char *folder = arena_printf(options->arena, "%s/%s", options->binary, places[i]);
    if (is_folder(folder)) return folder;
  }
  return NULL;
}

struct sources {
  const char **items;
  int count, capacity;
};

static int by_name(const void *left, const void *right) {
  return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The paths of all, by name. */
static struct sources sources_of(const struct options *options) {
  struct sources sources = {0};
  const char *folder = models_folder(options);
  DIR *entries = folder != NULL ? opendir(folder) : NULL;
  for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
    if (has_ending(entry->d_name, ".c"))
      ARENA_PUSH(options->arena, sources, arena_printf(options->arena, "%s/%s", folder, entry->d_name));
  if (entries != NULL) closedir(entries);
  if (sources.count > 0) qsort(sources.items, (size_t)sources.count, sizeof *sources.items, by_name);
  return sources;
}

static const char *name_of(struct arena *arena, const char *source) {
  return without_ending(arena, name_in_folder(source), ".c");
}

const char *family_source(const struct options *options, const char *name) {
  const struct sources sources = sources_of(options);
  for (int i = 0; i < sources.count; i++)
    if (strcmp(name_of(options->arena, sources.items[i]), name) == 0) return sources.items[i];
  return NULL;
}

const char *family_names(const struct options *options) {
  const struct sources sources = sources_of(options);
  struct text out = text_in(options->arena);
  text_puts(&out, " ");
  for (int i = 0; i < sources.count; i++) text_printf(&out, "%s ", name_of(options->arena, sources.items[i]));
  return text_string(&out);
}

/* ---- By architecture ---- */

struct class_names {
  const char **items;
  int count, capacity;
};

/* The classes that a model's text lists, without what follows them: "A", "B k=v". */
static void add_listed(struct arena *arena, const char *text, struct class_names *names) {
  static const char start[] = "architectures[] = {";
  const char *at = strstr(text, start);
  if (at == NULL) return;
  at += sizeof start - 1;
  while ((at += strcspn(at, "\"}"))[0] == '"') {
    const size_t length = strcspn(++at, "\"");
    if (at[length] == '\0') return;
    ARENA_PUSH(arena, *names, arena_copy(arena, at, strcspn(at, " \"")));
    at += length + 1;
  }
}

static void refuse(const struct options *options, const struct sources *sources, const struct family *family,
                   struct diagnostics *diags) {
  struct class_names names = {0};
  struct text known = text_in(options->arena);
  size_t length;
  diag_error(diags, (struct location){.file = family->config}, "no model here is of '%s'", family->architecture);
  for (int i = 0; i < sources->count; i++) {
    const char *text = read_bytes(options->arena, sources->items[i], &length);
    if (text != NULL) add_listed(options->arena, text, &names);
  }
  const char *similar = nearest_word(family->architecture, names.items, names.count);
  if (similar != NULL) diag_help(diags, "did you mean '%s'?", similar);
  for (int i = 0; i < names.count; i++) text_printf(&known, "%s%s", i > 0 ? ", " : "", names.items[i]);
  if (similar == NULL && names.count > 0)
    diag_help(diags, "there are models of %s; docs/models.md says how to write one", text_string(&known));
}

/* Reads only the models whose text has the class. */
static bool find_model(const struct options *options, struct family *family, struct diagnostics *diags) {
  const struct sources sources = sources_of(options);
  const char *word = arena_printf(options->arena, "\"%s", family->architecture);
  for (int i = 0; i < sources.count; i++) {
    size_t length;
    const char *text = read_bytes(options->arena, sources.items[i], &length);
    if (text == NULL || strstr(text, word) == NULL) continue;
    family->source = sources.items[i];
    family->model = model_parse(options->arena, sources.items[i], diags);
    if (family->model == NULL) return false;
    family->settings = model_class(options->arena, family->model, family->architecture);
    if (family->settings != NULL) return true;
  }
  refuse(options, &sources, family, diags);
  return false;
}

/* ---- The config.json ---- */

static int64_t whole_at(const struct published_values *values, const char *key) {
  for (int i = 0; i < values->count; i++)
    if (strcmp(values->items[i].path, key) == 0) return json_integer_value(values->items[i].value);
  return 0;
}

/* The longest sequence, which not every model has in its config. */
static void read_positions(const struct published_values *values, struct family *family) {
  static const char *const lengths[] = {"max_position_embeddings", "n_positions", "n_ctx",
                                        "text_config.max_position_embeddings"};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths && family->positions <= 0; i++)
    family->positions = whole_at(values, lengths[i]);
}

/* An input as an item of data.inputs. */
static void add_input(struct text *out, const struct sample_tensor *input) {
  text_printf(out, "%s%s: {", out->length > 0 ? ", " : "{", input->name);
  for (int i = 0; i < input->shape.rank; i++)
    text_printf(out, "%s%lld", i > 0 ? ", " : "shape: [", (long long)input->shape.dim[i]);
  if (input->shape.rank > 0) text_puts(out, "]");
  if (input->whole) text_printf(out, "%sdtype: int32", input->shape.rank > 0 ? ", " : "");
  text_puts(out, "}");
}

/* What the model says of its inputs: the longest sequence, the numbers of a row, or tensors of other names. */
static bool find_inputs(const struct options *options, struct family *family, const struct model_request *request,
                        struct diagnostics *diags) {
  struct text out = text_in(options->arena);
  if (!model_sample(options->arena, family->model, request, &family->takes, diags)) return false;
  for (int i = 0; i < family->takes.count; i++) {
    const struct sample_tensor *input = &family->takes.items[i];
    if (strcmp(input->name, "tokens") == 0)
      family->positions = shape_count(input->shape);
    else if (strcmp(input->name, "features") == 0)
      family->features = shape_count(input->shape);
    else
      add_input(&out, input);
  }
  if (out.length == 0) return true;
  text_puts(&out, "}");
  family->inputs = text_string(&out);
  return true;
}

static bool read_file(const struct options *options, struct family *family, struct published_values *values,
                      struct diagnostics *diags) {
  const struct location where = {.file = family->config};
  const int before = diags->errors;
  if (!published_read(options->arena, family->config, values, diags)) {
    if (diags->errors == before) diag_error(diags, where, "there is no such file");
    return false;
  }
  for (int i = 0; i < values->count; i++) {
    const bool names = strcmp(values->items[i].path, "architectures.0") == 0 ||
                       strcmp(values->items[i].path, "_class_name") == 0; /* of diffusers */
    if (names && json_is_string(values->items[i].value))
      family->architecture = arena_string(options->arena, json_string_value(values->items[i].value));
  }
  if (family->architecture == NULL)
    diag_error(diags, where, "it does not say of which class the model is: 'architectures' is missing");
  return family->architecture != NULL;
}

/* A value as YAML would read it: a number, true, false, or a word. */
static struct config_value given_value(const char *key, const char *text, struct location where) {
  char *end;
  const double number = strtod(text, &end);
  struct config_value value = {.name = key, .kind = CONFIG_STRING, .string = text, .where = where, .name_where = where};
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
    value.kind = CONFIG_BOOL;
    value.integer = text[0] == 't';
  } else if (end != text && *end == '\0') {
    value.real = number;
    value.kind = strpbrk(text, ".eE") == NULL && number > -1e15 && number < 1e15 ? CONFIG_INT : CONFIG_REAL;
    if (value.kind == CONFIG_INT) value.integer = (int64_t)number;
  }
  return value;
}

struct given {
  struct config_value *items;
  int count, capacity;
};

/* Those of --set model.config.KEY=VALUE, and those of the class. */
static struct given given_values(const struct options *options, const struct family *family) {
  static const char group[] = "model.config.";
  struct arena *arena = options->arena;
  struct given given = {0};
  for (int i = 0; i < options->n_overrides; i++) {
    const char *key = options->overrides[i].key, *text = options->overrides[i].value;
    const struct location where = {.file = arena_printf(arena, "--set %s=%s", key, text)};
    if (strncmp(key, group, sizeof group - 1) != 0) continue;
    ARENA_PUSH(arena, given, given_value(key + sizeof group - 1, text, where));
  }
  for (const char *at = family->settings; *at != '\0'; at += strspn(at, " ")) {
    const size_t name = strcspn(at, "="), length = strcspn(at, " ");
    if (name >= length) break;
    const char *text = arena_copy(arena, at + name + 1, length - name - 1);
    ARENA_PUSH(arena, given, given_value(arena_copy(arena, at, name), text, (struct location){.file = family->source}));
    at += length;
  }
  return given;
}

/* The values, and that the model computes with all that the file says. */
static bool read_values(const struct options *options, struct family *family, struct diagnostics *diags) {
  const struct given given = given_values(options, family);
  struct model_request request = {.entry = "model",
                                  .config = given.items,
                                  .n_config = given.count,
                                  .config_where = (struct location){.file = family->config}};
  const char *unknown;
  if (!model_config_of_published(options->arena, family->model, &request, family->config, &family->values,
                                 &family->n_values, diags))
    return false;
  request.config = family->values;
  request.n_config = family->n_values;
  if (!model_check_published(options->arena, family->model, &request, family->config, diags, &unknown)) return false;
  if (unknown[0] == '\0') return find_inputs(options, family, &request, diags);
  diag_error(diags, (struct location){.file = family->config}, "%s does not have what these say: %s", family->source,
             unknown);
  diag_help(diags, "a model that has them loads the weights exactly; a row in this one's table 'published' says that "
                   "nothing depends on a key");
  return false;
}

bool family_read(const struct options *options, const char *path, struct family *family, struct diagnostics *diags) {
  struct published_values values = {0};
  *family = (struct family){.config = is_folder(path) ? arena_printf(options->arena, "%s/config.json", path) : path};
  const bool read = read_file(options, family, &values, diags) && find_model(options, family, diags);
  if (read) read_positions(&values, family);
  published_free(&values);
  return read && read_values(options, family, diags);
}

static void add_word(struct text *out, const char *word) {
  const struct spec_node node = {.kind = SPEC_STRING, .text = word, .length = strlen(word)};
  spec_write_value(out, &node);
}

const char *family_config(struct arena *arena, const struct family *family) {
  struct text out = text_in(arena);
  text_puts(&out, "{");
  for (int i = 0; i < family->n_values; i++) {
    const struct config_value *value = &family->values[i];
    text_printf(&out, "%s\"%s\": ", i > 0 ? ", " : "", value->name);
    if (value->kind == CONFIG_STRING)
      add_word(&out, value->string);
    else if (value->kind == CONFIG_BOOL)
      text_puts(&out, value->integer ? "true" : "false");
    else if (value->kind == CONFIG_INT)
      text_printf(&out, "%lld", (long long)value->integer);
    else
      text_puts(&out, spec_number(arena, value->real, true));
  }
  text_puts(&out, "}");
  return text_string(&out);
}
