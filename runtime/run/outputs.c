#include "runtime/run/outputs.h"

#include "runtime/files/files.h"
#include "runtime/run/run.h"
#include "runtime/weights/weights.h"

#include <stdio.h>

static bool is_data(const struct data_files *source, const char *output) {
  for (size_t i = 0; i < source->paths.count; i++)
    if (rt_is_same_file(output, source->paths.items[i])) return true;
  for (int k = 0; k < MOST_INPUTS; k++)
    for (size_t i = 0; i < source->arrays[k].count; i++)
      if (rt_is_same_file(output, source->arrays[k].items[i])) return true;
  return false;
}

/* What of a run it is; NULL: no input. */
static const char *input_that_is(const struct accel_run *run, const char *output) {
  const char *weights = run->program->start.path;
  if (rt_is_of_weights(&run->program->start, output, weights)) return "starts from";
  for (int i = 0; i < ACCEL_SPLITS; i++)
    if (is_data(&run->input.data.source[i], output)) return i == ACCEL_TRAIN ? "trains on" : "evaluates on";
  return NULL;
}

bool rt_outputs_spare_inputs(const struct accel_run *run, struct problem *problem) {
  static const char *const names[] = {"metrics.jsonl",
                                      "run.json",
                                      "model.safetensors",
                                      "model.safetensors.index.json",
                                      "diffusion_pytorch_model.safetensors",
                                      "diffusion_pytorch_model.safetensors.index.json",
                                      "ema.safetensors",
                                      "best.safetensors",
                                      "ema.safetensors.index.json",
                                      "best.safetensors.index.json"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[4096];
    if (!rt_join(path, sizeof path, run->project_dir, names[i], problem)) return false;
    const char *what = input_that_is(run, path);
    if (what == NULL) continue;
    rt_problem(problem, "%s: the run %s this file, and would write over it", path, what);
    return rt_help(problem, "choose another folder with --project-dir, or move the file");
  }
  return true;
}
