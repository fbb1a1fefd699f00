/* accel-gen checkpoint: the checkpoints of a run, from outside. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/path.h"
#include "gen/commands/checkpoint/checkpoint_report.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/inputs.h"
#include "runtime/base/terminal.h"

static const char *text_of(const json_t *object, const char *key) {
  return json_string_value(json_object_get(object, key));
}

static int64_t number_of(const json_t *object, const char *key) {
  return (int64_t)json_integer_value(json_object_get(object, key));
}

/* ---- Reports as text ---- */

static void print_list(const json_t *report) {
  size_t i;
  const json_t *entry;
  json_array_foreach(json_object_get(report, "checkpoints"), i, entry) {
    const char *damage = text_of(entry, "damage");
    if (damage != NULL)
      rt_print(stdout, "%s  damaged: %s\n", text_of(entry, "path"), damage);
    else
      rt_print(stdout, "%s  step %" PRId64 "  %.1f MB\n", text_of(entry, "path"), number_of(entry, "step"),
               (double)number_of(entry, "bytes") / 1e6);
  }
}

static void print_verify(const json_t *report) {
  rt_print(stdout, "%s: step %" PRId64 ", %" PRId64 " files of %.1f MB, all as they were written\n",
           text_of(report, "path"), number_of(report, "step"), number_of(report, "files"),
           (double)number_of(report, "bytes") / 1e6);
}

/* "768, 64" */
static const char *shape_text(const json_t *shape, char text[256]) {
  text[0] = '\0';
  for (size_t i = 0; i < json_array_size(shape) && strlen(text) < 230; i++)
    snprintf(text + strlen(text), 24, "%s%" PRId64, i > 0 ? ", " : "",
             (int64_t)json_integer_value(json_array_get(shape, i)));
  return text;
}

static void print_show(const json_t *report) {
  size_t i, k;
  const json_t *file, *tensor;
  rt_print(stdout, "%s: step %" PRId64 "\n", text_of(report, "path"), number_of(report, "step"));
  json_array_foreach(json_object_get(report, "files"), i, file) {
    rt_print(stdout, "%s  %" PRId64 " bytes, %s\n", text_of(file, "name"), number_of(file, "bytes"),
             text_of(file, "xxh64"));
    json_array_foreach(json_object_get(file, "tensors"), k, tensor) {
      char shape[256];
      rt_print(stdout, "  %-48s %-5s [%s]\n", text_of(tensor, "name"), text_of(tensor, "dtype"),
               shape_text(json_object_get(tensor, "shape"), shape));
    }
  }
}

static void print_merge(const json_t *report) {
  rt_print(stdout, "%s: %" PRId64 " tensors of %" PRId64 " files\n", text_of(report, "output"),
           number_of(report, "tensors"), number_of(report, "files"));
}

static void print_values(const json_t *report) {
  size_t i;
  const json_t *value;
  json_array_foreach(json_object_get(report, "values"), i, value) {
    char *a = json_dumps(json_object_get(value, "a"), JSON_ENCODE_ANY | JSON_COMPACT);
    char *b = json_dumps(json_object_get(value, "b"), JSON_ENCODE_ANY | JSON_COMPACT);
    rt_print(stdout, "%s  %s: %s -> %s\n", text_of(value, "file"), text_of(value, "key"), a, b);
    free(a);
    free(b);
  }
}

static void print_files(const json_t *report) {
  size_t i;
  const json_t *file;
  json_array_foreach(json_object_get(report, "files"), i, file) {
    const char *only = text_of(file, "only");
    if (only != NULL)
      rt_print(stdout, "%s  only in %s\n", text_of(file, "name"), text_of(report, only));
    else
      rt_print(stdout, "%s  other bytes\n", text_of(file, "name"));
  }
}

static void print_tensor(const json_t *report, const json_t *tensor) {
  const char *only = text_of(tensor, "only"), *file = text_of(tensor, "file"), *name = text_of(tensor, "name");
  if (only != NULL)
    rt_print(stdout, "%s  %s: only in %s\n", file, name, text_of(report, only));
  else if (text_of(tensor, "a") != NULL)
    rt_print(stdout, "%s  %s: %s -> %s\n", file, name, text_of(tensor, "a"), text_of(tensor, "b"));
  else if (json_is_null(json_object_get(tensor, "largest")))
    rt_print(stdout, "%s  %s: %" PRId64 " of %" PRId64 " elements, some not a number\n", file, name,
             number_of(tensor, "different"), number_of(tensor, "elements"));
  else
    rt_print(stdout, "%s  %s: %" PRId64 " of %" PRId64 " elements, by %.3g at most\n", file, name,
             number_of(tensor, "different"), number_of(tensor, "elements"),
             json_number_value(json_object_get(tensor, "largest")));
}

static void print_diff(const json_t *report) {
  const json_t *tensors = json_object_get(report, "tensors"), *steps = json_object_get(report, "steps"), *tensor;
  size_t i;
  print_values(report);
  print_files(report);
  json_array_foreach(json_object_get(tensors, "different"), i, tensor) print_tensor(report, tensor);
  rt_print(stdout, "%s: step %" PRId64 " and %" PRId64 ", %" PRId64 " tensors are equal, %zu are not\n",
           json_is_true(json_object_get(report, "equal")) ? "the same" : "different",
           (int64_t)json_integer_value(json_array_get(steps, 0)), (int64_t)json_integer_value(json_array_get(steps, 1)),
           number_of(tensors, "equal"), json_array_size(json_object_get(tensors, "different")));
}

/* ---- The command ---- */

static const struct word {
  const char *name;
  int arguments;
  void (*print)(const json_t *report);
} words[] = {
    {"list", 1, print_list}, {"show", 1, print_show},   {"verify", 1, print_verify},
    {"diff", 2, print_diff}, {"merge", 1, print_merge},
};

static json_t *report_of(const struct options *options, const char *word, struct problem *problem) {
  const char *const *arguments = options->arguments + 1;
  FILE *shown = options->quiet ? NULL : stderr;
  if (strcmp(word, "list") == 0) return checkpoint_list(arguments[0], shown, problem);
  if (strcmp(word, "show") == 0) return checkpoint_show(arguments[0], shown, problem);
  if (strcmp(word, "verify") == 0) return checkpoint_verify(arguments[0], shown, problem);
  if (strcmp(word, "diff") == 0) return checkpoint_diff(options->arena, arguments[0], arguments[1], shown, problem);
  return checkpoint_merge(arguments[0], options->output, shown, problem);
}

static int fail(const struct problem *problem, bool json) {
  if (json) {
    json_t *report = json_pack("{s:s, s:s}", "error", problem->what, "help", problem->help);
    json_dumpf(report, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(report);
  }
  rt_print(stderr, "accel-gen checkpoint: error: %s\n", problem->what);
  if (problem->help[0] != '\0') rt_print(stderr, "    help: %s\n", problem->help);
  return STATUS_CANNOT;
}

static const char *why_none(const char *path) {
  DIR *folder = opendir(path);
  if (folder == NULL) return strerror(errno);
  closedir(folder);
  return access(path, X_OK) == 0 ? "no whole checkpoint" : strerror(errno);
}

/* Also the name that the output has while it is written. */
static bool spares_input(struct arena *arena, const char *input, const char *output) {
  struct inputs inputs = inputs_in(arena);
  inputs_add(&inputs, "the checkpoint", input);
  if (has_ending(input, ".json")) inputs_add(&inputs, "the checkpoint", folder_of(arena, input));
  return inputs_spare(&inputs, output) && inputs_spare(&inputs, arena_printf(arena, "%s.partial", output));
}

static int run(const struct word *word, const struct options *options) {
  struct problem problem;
  const char *const *arguments = options->arguments + 1;
  const char *output = options->output;
  bool json = options->json;
  if (output != NULL && !spares_input(options->arena, arguments[0], output)) return STATUS_CANNOT;
  json_t *report = report_of(options, word->name, &problem);
  if (report == NULL) return fail(&problem, json);
  const json_t *whole = json_object_get(report, "whole");
  bool none = json_is_integer(whole) && json_integer_value(whole) == 0;
  bool differs = json_is_false(json_object_get(report, "equal"));
  if (json)
    json_dumpf(report, stdout, JSON_INDENT(2)), putchar('\n');
  else if (!options->quiet || (word->print != print_merge && word->print != print_verify))
    word->print(report);
  json_decref(report);
  if (none) rt_print(stderr, "accel-gen checkpoint: error: %s: %s\n", arguments[0], why_none(arguments[0]));
  return none || differs ? STATUS_CANNOT : STATUS_OK;
}

int command_checkpoint(const struct options *options) {
  const struct word *word = words;
  while (strcmp(word->name, options->argument) != 0) word++; /* the table of commands has no other words */
  bool merges = word->print == print_merge, writes = options->output != NULL;
  const char *problem = NULL;
  if (options->n_arguments - 1 < word->arguments) problem = "the folder of a second checkpoint is missing";
  if (options->n_arguments - 1 > word->arguments) problem = "one folder too many";
  if (merges && !writes) problem = "a file to write is missing: -o FILE";
  if (!merges && writes) problem = "only merge writes a file: -o is not used here";
  if (problem == NULL) return run(word, options);
  options_refuse(options, problem, "");
  return STATUS_BAD_JOB;
}
