/* The model cards of a run: README.md as Hugging Face reads it. */
#include "runtime/run/folder.h"

#include "runtime/files/files.h"
#include "runtime/process/fail.h"
#include "runtime/run/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By which a run knows a card that it may replace. */
static const char mark[] = "<!-- accel-gen writes this file at the end of each run. -->";

/* The losses of metrics.jsonl; NULL: there is none. */
struct losses {
  json_t *first, *last, *evaluated, *best;
  int64_t steps;
};

static void keep(json_t **place, json_t *value) {
  json_decref(*place);
  *place = json_incref(value);
}

static void add_line(struct losses *losses, json_t *line) {
  json_t *loss = json_object_get(line, "loss"), *eval = json_object_get(line, "eval_loss");
  const json_int_t step = json_integer_value(json_object_get(line, "step"));
  if (step > losses->steps) losses->steps = step;
  if (json_is_number(loss) && losses->first == NULL) keep(&losses->first, loss);
  if (json_is_number(loss)) keep(&losses->last, loss);
  if (!json_is_number(eval)) return;
  keep(&losses->evaluated, eval);
  if (losses->best == NULL || json_number_value(eval) < json_number_value(losses->best)) keep(&losses->best, eval);
}

static struct losses read_losses(const struct accel_run *run) {
  struct losses losses = {0};
  char *line = NULL;
  size_t capacity = 0;
  FILE *file = fopen(rt_trackers_metrics(&run->reports.trackers), "r");
  while (file != NULL && getline(&line, &capacity, file) > 0) {
    json_t *json = json_loads(line, 0, NULL);
    add_line(&losses, json);
    json_decref(json);
  }
  if (file != NULL) fclose(file);
  free(line);
  return losses;
}

static void free_losses(struct losses *losses) {
  json_t *const all[] = {losses->first, losses->last, losses->evaluated, losses->best};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) json_decref(all[i]);
}

/* The task by which Hugging Face sorts models of a class; NULL: none of its tasks is known to be this class's. */
static const char *pipeline_of(const char *class) {
  static const char *const tasks[][2] = {{"ForCausalLM", "text-generation"},
                                         {"LMHeadModel", "text-generation"},
                                         {"ForMaskedLM", "fill-mask"},
                                         {"ForSequenceClassification", "text-classification"},
                                         {"ForTokenClassification", "token-classification"},
                                         {"ForQuestionAnswering", "question-answering"},
                                         {"ForImageClassification", "image-classification"}};
  for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
    if (strstr(class, tasks[i][0]) != NULL) return tasks[i][1];
  return NULL;
}

/* In quotes, as YAML and JSON have them. */
static void add_quoted(FILE *out, const char *before, const char *text) {
  json_t *string = json_string(text);
  char *quoted = json_dumps(string, JSON_ENCODE_ANY);
  fprintf(out, "%s%s\n", before, quoted != NULL ? quoted : "\"\"");
  free(quoted);
  json_decref(string);
}

/* The published name of the model that the weights are of, else its folder's; NULL: they are of none. */
static const char *base_of(const struct accel_run *run) {
  const struct folder *folder = &run->model.folder;
  const char *name = json_string_value(json_object_get(folder->config, "_name_or_path")), *slash;
  if (name != NULL && name[0] != '\0') return name;
  if (folder->names == NULL || run->program->checkpoint.config != NULL) return run->program->start.path;
  slash = strrchr(folder->of, '/');
  return slash != NULL && slash[1] != '\0' ? slash + 1 : folder->of;
}

static void add_row(FILE *out, const char *name, json_t *value) {
  if (value != NULL) fprintf(out, "| %s | %.6g |\n", name, json_number_value(value));
}

static void add_front(const struct accel_run *run, FILE *out, const char *library) {
  const char *base = base_of(run), *class = run->model.folder.class,
             *pipeline = class != NULL ? pipeline_of(class) : NULL;
  fputs("---\n", out);
  if (base != NULL) add_quoted(out, "base_model: ", base);
  fprintf(out, "library_name: %s\n", library);
  if (pipeline != NULL) fprintf(out, "pipeline_tag: %s\n", pipeline);
  fprintf(out, "tags:\n- accel-gen\n%s---\n\n%s\n\n", strcmp(library, "peft") == 0 ? "- lora\n" : "", mark);
}

static void add_body(const struct accel_run *run, FILE *out, const struct losses *losses) {
  const struct accel_program *program = run->program;
  char data[600];
  rt_data_describe(&run->input.data, data, sizeof data);
  fprintf(out, "# %s\n\n%s, trained with %s%s.\n\n", program->name, program->summary, program->generator,
          program->adapters.count > 0 ? ", low-rank adapters" : "");
  fprintf(out, "| | |\n|---|---|\n| started from | %s |\n| job | SHA-256 %s |\n",
          program->start.path != NULL ? program->start.path : "the model's initialization", program->job_digest);
  fprintf(out, "| data | %s |\n| steps | %" PRId64 " |\n| seed | %" PRIu64 " |\n", data, losses->steps,
          (uint64_t)program->seed);
  add_row(out, "loss of the first step reported", losses->first);
  add_row(out, "loss of the last step reported", losses->last);
  add_row(out, "loss of the last evaluation", losses->evaluated);
  add_row(out, "least loss of an evaluation", losses->best);
  if (program->checkpoint.no_config != NULL)
    fprintf(out, "\nThere is no config.json that transformers opens: %s.\n", program->checkpoint.no_config);
  if (base_of(run) != NULL) fputs("\nThe license of the base model holds for these weights, too.\n", out);
}

/* Whether a card is there that someone else wrote. */
static bool is_foreign(const char *path) {
  char head[4096];
  FILE *file = fopen(path, "r");
  if (file == NULL) return false;
  const size_t length = fread(head, 1, sizeof head - 1, file);
  fclose(file);
  head[length] = '\0';
  return strstr(head, mark) == NULL;
}

static bool write_card(const struct accel_run *run, const char *folder, const char *library,
                       const struct losses *losses, struct problem *problem) {
  char path[4096], *text = NULL;
  size_t length;
  if (!rt_join(path, sizeof path, folder, "README.md", problem)) return false;
  if (is_foreign(path)) {
    rt_warn("%s: no run has written it; it stays", path);
    return true;
  }
  FILE *out = open_memstream(&text, &length);
  if (out == NULL) return rt_problem(problem, "%s: no memory to write it", path);
  add_front(run, out, library);
  add_body(run, out, losses);
  const bool whole = fclose(out) == 0;
  const bool written = whole ? rt_write_file(path, BY_RENAME, text, length, NULL, problem)
                             : rt_problem(problem, "%s: no memory to write it", path);
  free(text);
  return written;
}

bool rt_folder_describe(const struct accel_run *run, struct problem *problem) {
  char adapter[4096];
  const bool opens = run->model.folder.config != NULL;
  if ((!opens && run->program->checkpoint.no_config == NULL) || !run->model.is_left) return true;
  struct losses losses = read_losses(run);
  const char *library = strcmp(rt_folder_stem(run), "model") != 0 ? "diffusers" : opens ? "transformers" : "accel-gen";
  bool written = write_card(run, run->project_dir, library, &losses, problem);
  if (written && run->program->adapters.count > 0)
    written = rt_join(adapter, sizeof adapter, run->project_dir, "adapter", problem) &&
              write_card(run, adapter, "peft", &losses, problem);
  free_losses(&losses);
  return written;
}
