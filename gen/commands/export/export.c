/* accel-gen export FOLDER --format gguf -o FILE. */
#include "gen/commands/export/export.h"

#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/start/model.h"

/* ---- Values ---- */

const struct model_value *exported_field(const struct exported *of, const char *path) {
  for (int i = 0; i < of->config.count; i++)
    if (strcmp(of->config.items[i].path, path) == 0) return &of->config.items[i];
  return NULL;
}

/* A number of the config.json at "a.b". */
static bool published_number(const struct exported *of, const char *path, struct model_value *value) {
  const json_t *at = of->published;
  for (; at != NULL && *path != '\0'; path += strspn(path, ".")) {
    const size_t length = strcspn(path, ".");
    at = json_object_get(at, arena_copy(of->arena, path, length));
    path += length;
  }
  if (!json_is_number(at)) return false;
  value->number = json_number_value(at);
  value->kind = json_is_integer(at) ? MODEL_INTEGER : MODEL_REAL;
  return true;
}

static bool factor_of(const struct exported *of, const char *word, struct model_value *value) {
  const struct model_value *field = exported_field(of, word);
  char *end;
  if (field != NULL) *value = *field;
  if (field != NULL) return field->kind != MODEL_TEXT;
  value->number = strtod(word, &end);
  value->kind = strpbrk(word, ".eE") != NULL ? MODEL_REAL : MODEL_INTEGER;
  return (end != word && *end == '\0') || published_number(of, word, value);
}

bool exported_number(const struct exported *of, const char *word, struct model_value *value) {
  char operation = '*';
  *value = (struct model_value){.kind = MODEL_INTEGER, .number = 1};
  if (strpbrk(word, "*/") == NULL) return factor_of(of, word, value);
  while (operation != '\0') {
    struct model_value factor;
    const size_t length = strcspn(word, "*/");
    if (!factor_of(of, arena_copy(of->arena, word, length), &factor)) return false;
    if (factor.kind == MODEL_REAL) value->kind = MODEL_REAL;
    value->number = operation == '*' ? value->number * factor.number : value->number / factor.number;
    operation = word[length];
    word += length + 1;
  }
  return true;
}

bool exported_holds(const struct exported *of, const char *when) {
  const size_t length = when != NULL ? strcspn(when, "=") : 0;
  if (when == NULL) return true;
  const struct model_value *field = exported_field(of, arena_copy(of->arena, when, length));
  return field != NULL && when[length] == '=' && strcmp(field->text, when + length + 1) == 0;
}

/* ---- The folder ---- */

static bool read_config(struct exported *of) {
  json_error_t error;
  const struct model_request request = {.entry = "model",
                                        .config = of->family.values,
                                        .n_config = of->family.n_values,
                                        .config_where = (struct location){.file = of->family.config}};
  of->published = json_load_file(of->family.config, JSON_REJECT_DUPLICATES, &error);
  if (of->published == NULL)
    diag_error(of->diags, (struct location){.file = of->family.config, .line = error.line}, "%s", error.text);
  return of->published != NULL && model_values(of->arena, of->family.model, &request, &of->config, of->diags);
}

static bool read_weights(struct exported *of) {
  struct problem problem = {0};
  if (rt_shards_open(&of->shards, of->folder, "export takes a folder with config.json and weights", &problem))
    return true;
  diag_error(of->diags, (struct location){.file = of->folder}, "%s", problem.what);
  if (problem.help[0] != '\0') diag_help(of->diags, "%s", problem.help);
  return false;
}

static bool spares_inputs(const struct options *options) {
  struct inputs inputs = inputs_in(options->arena);
  inputs_add(&inputs, "the model", options->argument);
  return inputs_spare(&inputs, options->output) &&
         inputs_spare(&inputs, arena_printf(options->arena, "%s.partial", options->output));
}

static enum gguf_type type_of(const struct options *options) {
  const char *type = options->dtype;
  return type == NULL || strcmp(type, "f32") == 0 ? GGUF_F32 : strcmp(type, "f16") == 0 ? GGUF_F16 : GGUF_Q8_0;
}

static int export_folder(const struct options *options, struct exported *of) {
  if (!is_folder(of->folder)) {
    diag_error(of->diags, (struct location){.file = of->folder}, "there is no such folder");
    diag_help(of->diags, "export takes a folder of Hugging Face, or one that a run with checkpoint.folder_of left");
    return STATUS_BAD_JOB;
  }
  if (!family_read(options, of->folder, &of->family, of->diags) || !read_config(of)) return STATUS_BAD_JOB;
  if (!read_weights(of)) return STATUS_BAD_JOB;
  const int status = gguf_write(of, type_of(options), options->output);
  rt_shards_close(&of->shards);
  return status;
}

int command_export(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  struct exported of = {.arena = options->arena, .diags = &diags, .folder = options->argument};
  if (options->format == NULL) {
    options_refuse(options, "the format is missing: --format gguf", "");
    return STATUS_BAD_JOB;
  }
  if (!spares_inputs(options)) return STATUS_CANNOT;
  if (is_folder(of.folder) && !model_fits_folder(options, of.folder)) return STATUS_BAD_JOB;
  const int status = export_folder(options, &of);
  json_decref(of.published);
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  return status;
}
