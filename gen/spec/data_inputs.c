#include "gen/spec/data_inputs.h"

#include <string.h>

#include "gen/spec/bind.h"
#include "gen/spec/node.h"

/* ---- Binding ---- */

static bool has_format(const struct spec_node *job, const char *format) {
  return spec_is(spec_find(job, "data.train.format"), format);
}

static bool is_table(const struct spec_node *job) {
  return has_format(job, "csv");
}

/* Whether one file has the numbers of several inputs, by names. */
static bool has_names(const struct spec_node *job) {
  return is_table(job) || has_format(job, "npz");
}

static struct data_input input_of(const struct spec_node *job, const struct spec_entry *entry) {
  const struct spec_node *node = entry->value, *column = spec_find(node, "column"), *shape = spec_find(node, "shape");
  const struct spec_node *dtype = spec_find(node, "dtype"), *below = spec_find(node, "below");
  struct data_input input = {.name = entry->key, .width = 1, .where = node->where};
  if (column != NULL) input.column = column->text;
  if (column == NULL && has_names(job) && spec_find(node, "path") == NULL) input.column = entry->key;
  input.is_integer = dtype != NULL && spec_is(dtype, "int32");
  input.below = below != NULL ? below->integer : 0;
  for (int i = 0; shape != NULL && i < shape->count; i++) {
    input.dims[input.rank++] = shape->entries[i].value->integer;
    input.width *= shape->entries[i].value->integer;
  }
  return input;
}

void data_inputs_bind(struct arena *arena, struct job *job) {
  const struct spec_node *named = spec_find(job->tree, "data.inputs");
  job->data.names_inputs = named != NULL;
  job->data.n_inputs = named != NULL ? named->count : job_has_rows(job) ? 2 : 0;
  job->data.inputs = arena_alloc(arena, ((size_t)job->data.n_inputs + 1) * sizeof *job->data.inputs);
  for (int i = 0; named != NULL && i < named->count; i++) job->data.inputs[i] = input_of(job->tree, &named->entries[i]);
  if (named != NULL || job->data.n_inputs == 0) return;
  int64_t features = spec_integer(job, "data.features");
  bool is_class = strcmp(spec_string(job, "data.label"), "class") == 0;
  job->data.inputs[0] = (struct data_input){.name = "features", .rank = 1, .dims = {features}, .width = features};
  job->data.inputs[1] = (struct data_input){.name = "labels", .is_integer = is_class, .width = 1};
}

const char **data_inputs_arrays(struct arena *arena, const struct job *job, bool is_eval, int part,
                                const char *labels) {
  const struct spec_node *named = spec_find(job->tree, "data.inputs");
  const char **arrays = arena_alloc(arena, ((size_t)job->data.n_inputs + 1) * sizeof *arrays);
  bool any = labels != NULL;
  if (labels != NULL) arrays[1] = labels;
  for (int i = 0; named != NULL && i < named->count; i++) {
    const struct spec_node *path = spec_at(spec_find(named->entries[i].value, is_eval ? "eval_path" : "path"), part);
    arrays[i] = path != NULL ? path->text : NULL;
    any = any || arrays[i] != NULL;
  }
  return any ? arrays : NULL;
}

/* ---- Checks ---- */

/* What emitted programs have in structures with the inputs. Words of C are refused with the model that has them as a
 * parameter: gen/model/graph.h. */
static bool is_taken(const char *name) {
  static const char *const taken[] = {"arriving",
                                      "contribution",
                                      "copy",
                                      "evaluated",
                                      "evaluation_scratch",
                                      "feed",
                                      "gathered",
                                      "growth_tracker",
                                      "hysteresis",
                                      "last",
                                      "moment_1",
                                      "moment_2",
                                      "momentum",
                                      "newest",
                                      "noise",
                                      "packed",
                                      "partial_gradients",
                                      "partial_losses",
                                      "partial_sums",
                                      "position",
                                      "positions",
                                      "predictions",
                                      "progress",
                                      "result",
                                      "run",
                                      "scale",
                                      "seed",
                                      "skipped",
                                      "split",
                                      "squares",
                                      "starts",
                                      "stopping",
                                      "sums",
                                      "targets",
                                      "tokens",
                                      "valid",
                                      "variance",
                                      "whole_gradients",
                                      "wire"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (strcmp(taken[i], name) == 0) return true;
  static const char *const numbered[] = {"weights_", "gradients_", "tensors_"}; /* of several scopes */
  for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
    size_t length = strlen(numbered[i]);
    if (strncmp(numbered[i], name, length) == 0 && name[length] >= '0' && name[length] <= '9') return true;
  }
  return name[0] == '_' || strncmp(name, "accel_", 6) == 0 || strncmp(name, "all_", 4) == 0;
}

static void check_name(const struct spec_entry *entry, struct diagnostics *diags) {
  if (!is_taken(entry->key)) return;
  diag_error(diags, entry->value->where, "'%s' is not a name for an input: programs have it for something else",
             entry->key);
  diag_help(diags, "rename the input, and the model's parameter");
}

/* As many files as the source has. */
static void check_files(const struct spec_node *job, const struct spec_entry *entry, bool is_eval,
                        struct diagnostics *diags) {
  const struct spec_node *own = spec_find(entry->value, is_eval ? "eval_path" : "path");
  const struct spec_node *paths = spec_find(job, is_eval ? "data.eval.path" : "data.train.path");
  const char *source = is_eval ? "data.eval" : "data.train", *key = is_eval ? "eval_path" : "path";
  if (own != NULL && paths == NULL) {
    diag_error(diags, own->where, "'%s' is of the samples of %s.path, and there is no '%s'", key, source, source);
    diag_help(diags, "set %s, or leave it out", source);
  } else if (own != NULL && spec_count(own) != spec_count(paths)) {
    diag_error(diags, own->where, "'%s' has %d, but there are %d paths", key, spec_count(own), spec_count(paths));
    diag_note(diags, paths->where, "the paths are here");
    diag_help(diags, "give one for each path, in the same order");
  } else if (own == NULL && is_eval && paths != NULL && spec_find(entry->value, "path") != NULL) {
    diag_error(diags, entry->value->where, "'%s' has a file for data.train and none for data.eval", entry->key);
    diag_help(diags, "set data.inputs.%s.eval_path", entry->key);
  } else if (own != NULL && is_eval && spec_find(entry->value, "path") == NULL) {
    diag_error(diags, own->where, "'%s' has a file for data.eval and none for data.train", entry->key);
    diag_help(diags, "set data.inputs.%s.path", entry->key);
  }
}

/* Of arrays, one file has the numbers of one input. */
static void check_shared_file(const struct spec_node *job, const struct spec_node *inputs, struct diagnostics *diags) {
  const struct spec_entry *first = NULL;
  for (int i = 0; !has_names(job) && i < inputs->count; i++) {
    const struct spec_entry *entry = &inputs->entries[i];
    if (spec_find(entry->value, "path") != NULL) continue;
    if (first != NULL) {
      diag_error(diags, entry->value->where, "'%s' and '%s' have no file of their own, and an array is one tensor",
                 first->key, entry->key);
      diag_help(diags, "set data.inputs.%s.path to an array that has it", entry->key);
    }
    first = entry;
  }
}

/* Files of both sources have numbers by names, or are arrays of one input. */
static void check_formats(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *eval = spec_find(job, "data.eval.format"), *train = spec_find(job, "data.train.format");
  if (eval == NULL || train == NULL || spec_is(eval, "npy") == spec_is(train, "npy")) return;
  diag_error(diags, eval->where,
             "data.eval has the format %s, and data.train %s: one names its inputs, the other is one", eval->text,
             train->text);
  diag_note(diags, train->where, "data.train.format is here");
  diag_help(diags, "write both in one format");
}

/* Of a table, some input is a column. */
static void check_columns(const struct spec_node *job, const struct spec_node *inputs, struct diagnostics *diags) {
  const struct spec_node *path = spec_find(job, "data.train.path");
  for (int i = 0; i < inputs->count; i++)
    if (spec_find(inputs->entries[i].value, "path") == NULL) return;
  if (!has_names(job) || path == NULL || inputs->count == 0) return;
  diag_error(diags, path->where, "no input takes its numbers from this file: each has a path of its own");
  diag_help(diags, "set data.train.format: npy, and data.train.path to the array of one of them");
}

static void check_input(const struct spec_node *job, const struct spec_entry *entry, struct diagnostics *diags) {
  const struct spec_node *below = spec_find(entry->value, "below"), *column = spec_find(entry->value, "column");
  const struct spec_node *dtype = spec_find(entry->value, "dtype"), *shape = spec_find(entry->value, "shape");
  check_name(entry, diags);
  check_files(job, entry, false, diags);
  check_files(job, entry, true, diags);
  if (below != NULL && (dtype == NULL || !spec_is(dtype, "int32"))) {
    diag_error(diags, below->where, "'below' is of whole numbers, and '%s' is float32", entry->key);
    diag_help(diags, "set data.inputs.%s.dtype: int32, or leave it out", entry->key);
  }
  if (column != NULL && !has_names(job)) {
    diag_error(diags, column->where, "'column' is of files with names, and data.train.format is npy");
    diag_help(diags, "set data.inputs.%s.path, or leave it out", entry->key);
  }
  if (shape != NULL && is_table(job) && spec_find(entry->value, "path") == NULL) {
    diag_error(diags, shape->where, "'shape' is of arrays, and '%s' is a column of a table", entry->key);
    diag_help(diags, "set data.inputs.%s.path, or leave it out", entry->key);
  }
  int64_t width = 1;
  for (int i = 0; shape != NULL && i < shape->count; i++)
    if (__builtin_mul_overflow(width, shape->entries[i].value->integer, &width) || width > 1 << 30) {
      diag_error(diags, shape->where, "a sample of '%s' has more than 2^30 numbers", entry->key);
      return;
    }
}

void data_inputs_check(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *inputs = spec_find(job, "data.inputs");
  if (inputs == NULL) return;
  for (int i = 0; i < inputs->count; i++) check_input(job, &inputs->entries[i], diags);
  check_shared_file(job, inputs, diags);
  check_columns(job, inputs, diags);
  check_formats(job, diags);
}
