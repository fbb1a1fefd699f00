/* accel-gen model check FILE: a model without a job. */
#include <stdio.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/generate/compilation.h"
#include "gen/model/model.h"
#include "gen/plan/report/inventory.h"

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

/* A job that the model could have, for batches of one sample; data.sequence_length and data.features by --set. */
static const char *job_text(const struct options *options, const struct tree *model, struct diagnostics *diags) {
  struct text text = text_in(options->arena);
  text_puts(&text, "model: {source: ");
  add_quoted(&text, options->second, strlen(options->second));
  text_puts(&text, ", config: {");
  if (!add_config(&text, options->config, diags)) return NULL;
  bool rows = model_takes(model, "model", "features"); /* instead of tokens */
  bool sized = options->config != NULL && strstr(options->config, "block_size=") != NULL;
  text_printf(&text, "}}\ndata: {train: {path: none, format: %s}, batch_size: 1%s}\ntraining: {steps: 1}\n",
              rows ? "csv" : "bytes", rows || sized ? "" : ", sequence_length: 128");
  return text_string(&text);
}

static bool sets(const struct options *options, const char *key) {
  for (int i = 0; i < options->n_overrides; i++)
    if (strcmp(options->overrides[i].key, key) == 0) return true;
  return false;
}

/* Of a table only its user knows how many columns it has. */
static bool knows_columns(struct compilation *compilation) {
  const struct options *options = compilation->options;
  if (!model_takes(compilation->model, "model", "features") || sets(options, "data.features")) return true;
  diag_error(&compilation->diags, (struct location){.file = options->second},
             "the number of columns of 'features' is not known");
  diag_help(&compilation->diags, "--set data.features=N sets it");
  return false;
}

static int check(struct compilation *compilation) {
  const struct options *options = compilation->options;
  compilation->model = model_parse(compilation->arena, options->second, &compilation->diags);
  if (compilation->model == NULL || !knows_columns(compilation)) return STATUS_BAD_JOB;
  compilation->text = job_text(options, compilation->model, &compilation->diags);
  return compilation->text != NULL ? compile_to_program(compilation) : STATUS_BAD_JOB;
}

int command_model(const struct options *options) {
  struct options own = *options;
  own.argument = "--config";
  struct compilation compilation = {
      .options = &own, .arena = options->arena, .diags = diagnostics_in(options->arena), .kind = PROGRAM_EVALUATE};
  int status = check(&compilation);
  if (compilation.diags.count > 0) diag_print(&compilation.diags, stderr, options->colour);
  if (status == STATUS_OK)
    fputs(options->json ? inventory_json(compilation.program) : inventory_text(compilation.program), stdout);
  return status;
}
