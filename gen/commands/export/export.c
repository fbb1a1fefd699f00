/* accel-gen export FOLDER --format FORMAT -o FILE, and of a job --format stablehlo. */
#include "gen/commands/export/export.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/export/stablehlo.h"
#include "gen/commands/start/model.h"

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
  const char *const endings[] = {"", ".partial", "_data", "_data.partial"};
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    if (!inputs_spare(&inputs, arena_printf(options->arena, "%s%s", options->output, endings[i]))) return false;
  return true;
}

static enum gguf_type type_of(const struct options *options) {
  const char *type = options->dtype;
  return type == NULL || strcmp(type, "f32") == 0 ? GGUF_F32 : strcmp(type, "f16") == 0 ? GGUF_F16 : GGUF_Q8_0;
}

static bool is_stablehlo(const struct options *options) {
  return strcmp(options->format, "stablehlo") == 0;
}

static bool is_onnx(const struct options *options) {
  return strcmp(options->format, "onnx") == 0;
}

/* Whether the options are those of the format. */
static bool check_format(const struct options *options) {
  if (options->format == NULL)
    return options_refuse(options, "the format is missing: --format gguf, onnx or stablehlo", "");
  if (is_onnx(options) && options->dtype != NULL)
    return options_refuse(options, "--dtype is for --format gguf; ONNX is written in float32", "");
  if (is_stablehlo(options) && options->dtype != NULL)
    return options_refuse(options, "--dtype is for --format gguf; a job's types are those of precision.mixed_precision",
                          "");
  if (!is_stablehlo(options) && options->compile)
    return options_refuse(options, "--compile is for --format stablehlo", "");
  if (!is_onnx(options) && (options->batch > 0 || options->sequence > 0))
    return options_refuse(options, "--batch and --sequence are for --format onnx", "");
  return true;
}

static int export_folder(const struct options *options, struct exported *of) {
  if (!is_folder(of->folder)) {
    diag_error(of->diags, (struct location){.file = of->folder}, "there is no such folder");
    diag_help(of->diags, "export takes a folder of Hugging Face, or one that a run with checkpoint.folder_of left");
    return STATUS_BAD_JOB;
  }
  if (!family_read(options, of->folder, &of->family, of->diags) || !read_config(of)) return STATUS_BAD_JOB;
  if (!read_weights(of)) return STATUS_BAD_JOB;
  const int status = is_onnx(options) ? onnx_write(of, options->batch, options->sequence, options->output)
                                      : gguf_write(of, type_of(options), options->output);
  rt_shards_close(&of->shards);
  return status;
}

/* The rest of a job is none of an exported model's. */
static bool check_settings(const struct options *options) {
  static const char group[] = "model.config.";
  for (int i = 0; i < options->n_overrides; i++)
    if (strncmp(options->overrides[i].key, group, sizeof group - 1) != 0)
      return options_refuse(options, "export takes --set of keys model.config.KEY, not ", options->overrides[i].key);
  return true;
}

int command_export(const struct options *options) {
  struct diagnostics diags = diagnostics_in(options->arena);
  struct exported of = {.arena = options->arena, .diags = &diags, .folder = options->argument, .quiet = options->quiet};
  if (!check_format(options)) return STATUS_BAD_JOB;
  if (is_stablehlo(options)) return stablehlo_write(options);
  if (!check_settings(options)) return STATUS_BAD_JOB;
  if (!spares_inputs(options)) return STATUS_CANNOT;
  if (is_folder(of.folder) && !model_fits_folder(options, of.folder, &of.tensors)) return STATUS_BAD_JOB;
  const int status = export_folder(options, &of);
  json_decref(of.published);
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  return status;
}
