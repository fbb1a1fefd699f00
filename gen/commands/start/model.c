/* accel-gen model check FILE or FOLDER: a model without a job. */
#include <stdio.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/start/family.h"
#include "gen/commands/start/logits.h"
#include "gen/commands/start/model.h"
#include "gen/commands/start/tensors.h"
#include "gen/model/model.h"
#include "gen/plan/report/inventory.h"
#include "runtime/base/terminal.h"

/* What is checked. */
struct subject {
  const char *source;   /* in C */
  const char *folder;   /* of a published model; NULL: a model in C alone */
  struct family family; /* its, else empty */
  bool has_weights;
};

/* In double quotes, for YAML. */
static void add_quoted(struct text *text, const char *word, size_t length) {
  text_puts(text, "\"");
  for (size_t i = 0; i < length; i++) text_printf(text, word[i] == '"' || word[i] == '\\' ? "\\%c" : "%c", word[i]);
  text_puts(text, "\"");
}

/* "a=1,b.c=2" as the members of a map. False with an error for a word that is none. */
static bool add_config(struct text *text, const char *config, struct diagnostics *diags) {
  for (const char *at = config; at != NULL && *at != '\0';) {
    size_t length = strcspn(at, ","), name = strcspn(at, "=");
    if (name >= length || name == 0) {
      diag_error(diags, (struct location){0}, "--config: '%.*s' is not a KEY=VALUE", (int)length, at);
      diag_help(diags, "for example --config n_layer=2,width=64");
      return false;
    }
    if (at != config) text_puts(text, ", ");
    add_quoted(text, at, name);
    text_printf(text, ": %.*s", (int)(length - name - 1), at + name + 1);
    at += length + (at[length] == ',');
  }
  return true;
}

static void add_data(struct text *text, const struct options *options, const struct subject *subject,
                     const struct tree *model, int length) {
  const char *inputs = options_set(options, "data.inputs") ? NULL : subject->family.inputs;
  const bool named = options_set(options, "data.inputs") || inputs != NULL;
  const bool rows = model_takes(model, "model", "features"); /* not tokens */
  const bool sized = length == 0 && options->config != NULL && strstr(options->config, "block_size=") != NULL;
  text_printf(text, "data: {train: {path: none, format: %s}, batch_size: 1", named ? "npz" : rows ? "csv" : "bytes");
  if (rows && !named && subject->family.features > 0)
    text_printf(text, ", features: %lld", (long long)subject->family.features);
  if (!rows && !named && !sized) text_printf(text, ", sequence_length: %d", length > 0 ? length : 128);
  if (inputs != NULL) text_printf(text, ", inputs: %s", inputs);
  text_puts(text, "}\n");
}

/* A job that the model could have, for batches of one sample; data.sequence_length, data.features and data.inputs by
 * --set. `length` of a sequence: 0: any. */
static const char *job_text(const struct options *options, const struct subject *subject, const struct tree *model,
                            int length, struct diagnostics *diags) {
  struct text text = text_in(options->arena);
  text_puts(&text, "model: {source: ");
  add_quoted(&text, subject->source, strlen(subject->source));
  text_puts(&text, ", config: ");
  if (subject->folder != NULL) {
    text_puts(&text, family_config(options->arena, &subject->family));
  } else {
    text_puts(&text, "{");
    if (!add_config(&text, options->config, diags)) return NULL;
    text_puts(&text, "}");
  }
  if (subject->has_weights) {
    text_puts(&text, ", weights: ");
    add_quoted(&text, subject->folder, strlen(subject->folder));
    const char *map = tensors_map(subject->folder);
    if (map != NULL && !options_set(options, "model.weights_map")) text_printf(&text, ", weights_map: %s", map);
  }
  text_puts(&text, "}\n");
  add_data(&text, options, subject, model, length);
  text_puts(&text, "training: {steps: 1}\n");
  return text_string(&text);
}

/* Of a table only its user knows how many columns it has, and of tensors of other names their shapes. */
static bool knows_sizes(struct compilation *compilation, const struct subject *subject) {
  const struct options *options = compilation->options;
  const struct location where = {.file = subject->source};
  const bool rows = model_takes(compilation->model, "model", "features");
  if (options_set(options, "data.inputs") || subject->family.inputs != NULL) return true;
  if (!rows && !model_takes(compilation->model, "model", "tokens")) {
    diag_error(&compilation->diags, where, "the shapes of its inputs are not known");
    diag_help(&compilation->diags, "--set 'data.inputs={NAME: {shape: [3, 8]}, NAME: {dtype: int32}}' sets them");
    return false;
  }
  if (!rows || options_set(options, "data.features") || subject->family.features > 0) return true;
  diag_error(&compilation->diags, where, "the number of columns of 'features' is not known");
  diag_help(&compilation->diags, "--set data.features=N sets it");
  return false;
}

/* ---- A folder ---- */

/* Finds the model of a folder, or takes a file in C. */
static bool find_subject(const struct options *options, struct subject *subject, struct diagnostics *diags) {
  *subject = (struct subject){.source = options->second};
  if (!is_folder(options->second) && !has_ending(options->second, ".json")) return true;
  if (options->config != NULL) {
    diag_error(diags, (struct location){0}, "--config is of a model in C, and %s has a config.json", options->second);
    diag_help(diags, "--set model.config.KEY=VALUE sets a key");
    return false;
  }
  if (!family_read(options, options->second, &subject->family, diags)) return false;
  subject->source = subject->family.source;
  subject->folder = is_folder(options->second) ? options->second : folder_of(options->arena, options->second);
  subject->has_weights = tensors_are_in(subject->folder);
  return true;
}

/* A length that the model has positions for. */
static int length_of(const struct subject *subject) {
  if (subject->folder == NULL) return 0;
  return subject->family.positions > 0 && subject->family.positions < 128 ? (int)subject->family.positions : 128;
}

static int64_t vocabulary_of(const struct family *family) {
  for (int i = 0; i < family->n_values; i++)
    if (strcmp(family->values[i].name, "vocab_size") == 0) return family->values[i].integer;
  return 0;
}

/* Why the folder's model has no logits to print; NULL: it has. */
static const char *why_no_logits(const struct subject *subject, const struct tree *model) {
  if (subject->folder == NULL) return "--logits needs a folder of Hugging Face";
  if (!subject->has_weights) return "--logits needs weights, and the folder has none";
  if (!model_takes(model, "model", "tokens") || vocabulary_of(&subject->family) < 1 || !model_has(model, "predict"))
    return "--logits needs a model of tokens with a function 'predict'";
  return NULL;
}

/* ---- The command ---- */

static int check(struct compilation *compilation, struct subject *subject) {
  const struct options *options = compilation->options;
  if (!find_subject(options, subject, &compilation->diags)) return STATUS_BAD_JOB;
  compilation->model = subject->folder != NULL ? subject->family.model
                                               : model_parse(compilation->arena, subject->source, &compilation->diags);
  if (compilation->model == NULL || !knows_sizes(compilation, subject)) return STATUS_BAD_JOB;
  compilation->text = job_text(options, subject, compilation->model, length_of(subject), &compilation->diags);
  return compilation->text != NULL ? compile_to_program(compilation) : STATUS_BAD_JOB;
}

/* The logits that --logits asks for. */
static int find_logits(struct compilation *compilation, const struct subject *subject, struct logits *logits) {
  const struct options *options = compilation->options;
  const char *why = why_no_logits(subject, compilation->model);
  if (why != NULL) {
    diag_error(&compilation->diags, (struct location){0}, "%s", why);
    return STATUS_BAD_JOB;
  }
  const char *job = job_text(options, subject, compilation->model, LOGITS_PROMPT, &compilation->diags);
  return logits_compute(options, job, subject->folder, (int)vocabulary_of(&subject->family), logits) ? STATUS_OK
                                                                                                     : STATUS_CANNOT;
}

static void print_all(const struct compilation *compilation, const struct subject *subject,
                      const struct tensor_table *table, const struct logits *logits) {
  const struct options *options = compilation->options;
  if (options->json) {
    fputs(inventory_json(compilation->program, subject->has_weights ? tensors_json(table) : NULL,
                         options->logits ? logits_json(logits) : NULL),
          stdout);
    return;
  }
  rt_print_text(stdout, inventory_text(compilation->program));
  if (subject->has_weights) rt_print(stdout, "\n%s", tensors_text(options->arena, table));
  if (options->logits) rt_print_text(stdout, logits_text(options->arena, logits));
}

static bool compare(struct compilation *compilation, struct tensor_table *table) {
  const struct model_texts heads = model_other_heads(compilation->arena, compilation->model);
  return tensors_compare(compilation->program, &heads, table, &compilation->diags);
}

bool model_fits_folder(const struct options *options, const char *folder, struct tensor_table *table) {
  struct options own = *options;
  struct subject subject = {0};
  *table = (struct tensor_table){0};
  own.argument = "--config";
  own.second = folder;
  struct compilation compilation = {
      .options = &own, .arena = options->arena, .diags = diagnostics_in(options->arena), .kind = PROGRAM_EVALUATE};
  bool fits = check(&compilation, &subject) == STATUS_OK;
  if (fits && !subject.has_weights)
    diag_error(&compilation.diags, (struct location){.file = folder}, "the folder has no weights");
  fits = fits && subject.has_weights && compare(&compilation, table) &&
         tensors_check(compilation.program, table, &compilation.diags);
  if (compilation.diags.count > 0) diag_print(&compilation.diags, stderr, options->colour);
  return fits;
}

int command_model(const struct options *options) {
  struct options own = *options;
  struct subject subject = {0};
  struct tensor_table table = {0};
  struct logits logits = {0};
  own.argument = "--config";
  struct compilation compilation = {
      .options = &own, .arena = options->arena, .diags = diagnostics_in(options->arena), .kind = PROGRAM_EVALUATE};
  int status = check(&compilation, &subject);
  if (status == STATUS_OK && subject.has_weights && !compare(&compilation, &table)) status = STATUS_CANNOT;
  const bool fits =
      status != STATUS_OK || !subject.has_weights || tensors_check(compilation.program, &table, &compilation.diags);
  if (status == STATUS_OK && options->logits && fits) status = find_logits(&compilation, &subject, &logits);
  if (status == STATUS_OK) {
    own.logits = options->logits && fits;
    print_all(&compilation, &subject, &table, &logits);
  }
  if (compilation.diags.count > 0) diag_print(&compilation.diags, stderr, options->colour);
  return status == STATUS_OK && !fits ? STATUS_BAD_JOB : status;
}
