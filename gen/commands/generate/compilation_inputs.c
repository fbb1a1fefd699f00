#include "gen/base/path.h"
#include "gen/commands/cli/inputs.h"
#include "gen/commands/generate/compilation.h"
#include "gen/model/model.h"
#include "gen/tuning/tuning.h"
#include "runtime/data/paths.h"

/* The files of a path or a pattern; of one that finds nothing there is nothing to spare. */
static void add_pattern(struct inputs *inputs, const char *what, const char *path) {
  struct paths paths = {0};
  struct problem ignored;
  if (path == NULL) return;
  (void)rt_paths_add(&paths, path, "", &ignored);
  for (size_t i = 0; i < paths.count; i++) inputs_add(inputs, what, arena_string(inputs->arena, paths.items[i]));
  rt_paths_free(&paths);
}

static void add_data(struct inputs *inputs, const char *what, const struct data_source *source, int n_inputs) {
  for (int i = 0; i < source->n_parts; i++) {
    add_pattern(inputs, what, source->parts[i].path);
    for (int k = 0; source->parts[i].arrays != NULL && k < n_inputs; k++)
      add_pattern(inputs, what, source->parts[i].arrays[k]);
  }
}

/* An index names files in its folder. */
static void add_weights(struct inputs *inputs, const char *path) {
  static const char what[] = "the weights (model.weights)";
  inputs_add(inputs, what, path);
  if (path != NULL && has_ending(path, ".json"))
    add_pattern(inputs, what,
                arena_printf(inputs->arena, "%s/*.%s", folder_of(inputs->arena, path),
                             has_ending(path, ".bin.index.json") ? "bin" : "safetensors"));
}

void inputs_add_compilation(struct inputs *inputs, const struct compilation *compilation) {
  int n_includes;
  const struct job *job = compilation->job;
  const char *const *includes = model_includes(compilation->model, &n_includes);
  inputs_add(inputs, "the job", compilation->options->argument);
  for (int i = 0; i < job->n_extends; i++) inputs_add(inputs, "a file that the job extends", job->extends[i]);
  inputs_add(inputs, "the model (model.source)", job->model.source);
  for (int i = 0; i < n_includes; i++) inputs_add(inputs, "a header of the model", includes[i]);
  inputs_add(inputs, "the hooks (hooks.source)", job->hooks.source);
  inputs_add(inputs, "the templates", compilation->options->templates);
  if (compilation->tuning != NULL)
    inputs_add(inputs, "the table of measurements (devices.tuning)", compilation->tuning->file);
  add_weights(inputs, job->model.weights);
  for (int i = 0; i < job->model.n_weights_map; i++) add_weights(inputs, job->model.weights_map[i].path.name);
  inputs_add(inputs, "the folder (checkpoint.folder_of)", job->checkpoint.folder_of);
  add_data(inputs, "training data (data.train)", &job->data.train, job->data.n_inputs);
  add_data(inputs, "evaluation data (data.eval)", &job->data.eval, job->data.n_inputs);
}
