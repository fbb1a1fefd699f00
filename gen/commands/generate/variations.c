#include "gen/commands/generate/variations.h"

#include <string.h>

#include "gen/base/difference.h"
#include "gen/base/path.h"
#include "gen/spec/alternatives.h"
#include "gen/spec/schema.h"
#include "gen/spec/source.h"

struct experiment {
  const struct compilation *compilation;
  struct templates *templates; /* of all variations */
  struct json_t *schema;       /* the same */
  const char *job;             /* the text that is read again for each */
  struct {
    const char *text; /* of the program as it is */
    struct lines lines;
    struct manifest *manifest;
  } texts[2];
  int n_texts;
};

/* The texts of the program with another value of one key; false where that is refused. The model was read before. */
static bool program_with(const struct experiment *experiment, struct arena *arena, struct job_override set,
                         const char *texts[2]) {
  const struct compilation *compilation = experiment->compilation;
  const struct options *options = compilation->options;
  size_t n = (size_t)options->n_overrides;
  struct options changed = *options;
  changed.arena = arena;
  changed.overrides = arena_alloc(arena, (n + 1) * sizeof *changed.overrides);
  for (size_t i = 0; i < n; i++) changed.overrides[i] = options->overrides[i];
  changed.overrides[n] = set;
  changed.n_overrides = (int)n + 1;
  struct compilation again = {.options = &changed,
                              .job_file = compilation->job_file,
                              .arena = arena,
                              .diags = diagnostics_in(arena),
                              .kind = compilation->kind,
                              .text = experiment->job,
                              .model = compilation->model,
                              .templates = experiment->templates,
                              .schema = experiment->schema};
  if (compile_to_text(&again, NULL, &texts[0]) != STATUS_OK) return false;
  texts[1] = again.second;
  return true;
}

static void add_key(struct arena *arena, struct manifest_line *line, int key) {
  if (line->n_keys > 0 && line->keys[line->n_keys - 1] == key) return;
  line->keys = arena_grow(arena, line->keys, line->n_keys, &line->keys_capacity, sizeof *line->keys);
  line->keys[line->n_keys++] = key;
}

/* Gives the key to the lines of a text that the other program does not have; without one, to all. */
static void compare(const struct experiment *experiment, int which, int key, struct arena *arena, const char *text) {
  const struct lines *lines = &experiment->texts[which].lines;
  if (text != NULL && strcmp(text, experiment->texts[which].text) == 0) return;
  struct lines other = lines_of(arena, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
  const int *match = lines_match(arena, lines, &other);
  for (int i = 0; i < lines->count; i++)
    if (match[i] < 0) add_key(experiment->compilation->arena, &experiment->texts[which].manifest->lines[i], key);
}

/* False where the value is refused. */
static bool try_value(const struct experiment *experiment, int key, struct job_override set) {
  struct arena *arena = arena_new();
  const char *texts[2];
  bool made = program_with(experiment, arena, set, texts);
  for (int i = 0; i < experiment->n_texts && made; i++) compare(experiment, i, key, arena, texts[i]);
  arena_free(arena);
  return made;
}

static const char *where_text(struct arena *arena, const struct job_choice *choice) {
  if (!choice->written || choice->where.file == NULL) return "";
  if (choice->where.line == 0) return choice->where.file;
  return arena_printf(arena, "%s:%d", name_in_folder(choice->where.file), choice->where.line);
}

void find_keys(const struct compilation *compilation, const char *text, struct manifest *manifest) {
  struct arena *arena = compilation->arena;
  struct experiment experiment = {
      .compilation = compilation, .templates = compilation->templates, .schema = schema_of_job(), .n_texts = 1};
  struct diagnostics unread = diagnostics_in(arena); /* it was read before */
  size_t length;
  experiment.job = compilation->text != NULL
                       ? compilation->text
                       : source_read(arena, compilation->options->argument, (struct location){0}, &length, &unread);
  experiment.texts[0].text = text;
  experiment.texts[0].lines = lines_of(arena, text, strlen(text));
  experiment.texts[0].manifest = manifest;
  if (manifest->second != NULL) {
    experiment.texts[1].text = compilation->second;
    experiment.texts[1].lines = lines_of(arena, compilation->second, strlen(compilation->second));
    experiment.texts[1].manifest = manifest->second;
    experiment.n_texts = 2;
  }
  const struct job_choice *choices = job_choices(arena, compilation->job, &manifest->n_keys);
  manifest->keys = arena_alloc(arena, ((size_t)manifest->n_keys + 1) * sizeof *manifest->keys);
  for (int i = 0; i < manifest->n_keys; i++) {
    const struct job_choice *choice = &choices[i];
    manifest->keys[i] = (struct manifest_key){
        .key = choice->key, .value = choice->value, .written = choice->written, .where = where_text(arena, choice)};
    bool refused = true;
    for (int k = 0; k < choice->n_alternatives; k++) {
      if (choice->alternatives[k].in_need && !refused) continue;
      refused = !try_value(&experiment, i, choice->alternatives[k].set);
      if (!refused) manifest_add(arena, &manifest->keys[i].tried, choice->alternatives[k].value);
    }
  }
  json_decref(experiment.schema);
  if (manifest->second == NULL) return;
  manifest->second->keys = manifest->keys;
  manifest->second->n_keys = manifest->n_keys;
}
