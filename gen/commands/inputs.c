#define _XOPEN_SOURCE 700 /* realpath */
#include "gen/commands/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gen/base/path.h"
#include "gen/commands/files.h"
#include "gen/commands/travel.h"
#include "gen/model/model.h"
#include "gen/tuning/tuning.h"
#include "runtime/data/paths.h"
#include "runtime/files/files.h"

struct inputs inputs_in(struct arena *arena) {
  return (struct inputs){.arena = arena};
}

void inputs_add(struct inputs *inputs, const char *what, const char *path) {
  if (path != NULL) ARENA_PUSH(inputs->arena, *inputs, ((struct input){what, path}));
}

/* ---- Of a travel ---- */

/* The files of a path or a pattern; of one that finds nothing there is nothing to spare. */
static void add_pattern(struct inputs *inputs, const char *what, const char *path) {
  struct paths paths = {0};
  struct problem ignored;
  if (path == NULL) return;
  (void)rt_paths_add(&paths, path, "", &ignored);
  for (size_t i = 0; i < paths.count; i++) inputs_add(inputs, what, arena_string(inputs->arena, paths.items[i]));
  rt_paths_free(&paths);
}

static void add_data(struct inputs *inputs, const char *what, const struct data_source *source) {
  for (int i = 0; i < source->n_parts; i++) {
    add_pattern(inputs, what, source->parts[i].path);
    add_pattern(inputs, what, source->parts[i].labels);
  }
}

/* An index names files beside it. */
static void add_weights(struct inputs *inputs, const char *path) {
  static const char what[] = "the weights (model.weights)";
  inputs_add(inputs, what, path);
  if (path != NULL && has_ending(path, ".json"))
    add_pattern(inputs, what, arena_printf(inputs->arena, "%s/*.safetensors", folder_of(inputs->arena, path)));
}

void inputs_add_travel(struct inputs *inputs, const struct travel *travel) {
  int n_includes;
  const struct job *job = travel->job;
  const char *const *includes = model_includes(travel->model, &n_includes);
  inputs_add(inputs, "the job", travel->options->argument);
  inputs_add(inputs, "the model (model.source)", job->model.source);
  for (int i = 0; i < n_includes; i++) inputs_add(inputs, "a header of the model", includes[i]);
  inputs_add(inputs, "the hooks (hooks.source)", job->hooks.source);
  inputs_add(inputs, "the templates", travel->options->templates);
  if (travel->tuning != NULL) inputs_add(inputs, "the table of measurements (devices.tuning)", travel->tuning->file);
  add_weights(inputs, job->model.weights);
  add_data(inputs, "training data (data.train)", &job->data.train);
  add_data(inputs, "evaluation data (data.eval)", &job->data.eval);
}

/* ---- Outputs ---- */

/* Whether a file lies in a folder, or in one of the folders in it. */
static bool lies_in(const char *file, const char *folder) {
  char *path = realpath(file, NULL);
  bool lies = false;
  for (char *slash; !lies && path != NULL && (slash = strrchr(path, '/')) != NULL && slash != path;) {
    *slash = '\0';
    lies = rt_is_same_file(path, folder);
  }
  free(path);
  return lies;
}

bool inputs_spare(const struct inputs *inputs, const char *output) {
  struct stat written;
  if (strcmp(output, "-") == 0 || stat(output, &written) != 0 || !S_ISREG(written.st_mode)) return true;
  for (int i = 0; i < inputs->count; i++) {
    const struct input *input = &inputs->items[i];
    bool folder = is_folder(input->path);
    if (folder ? !lies_in(output, input->path) : !rt_is_same_file(output, input->path)) continue;
    fprintf(stderr, "accel-gen: cannot write %s: it is %s%s, which is read\n    help: write to another file\n", output,
            folder ? "a file of " : "", input->what);
    return false;
  }
  return true;
}
