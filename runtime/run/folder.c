#define _XOPEN_SOURCE 700 /* realpath */
#include "runtime/run/folder.h"

#include "runtime/files/files.h"
#include "runtime/files/mapping.h"
#include "runtime/process/fail.h"
#include "runtime/run/run.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char cure[] = "name in checkpoint.folder_of a folder of Hugging Face, with a config.json";

/* ---- The config ---- */

static bool is_listed(const char *words, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = words; at != NULL && *at != '\0'; at += strspn(at, " ")) {
    const size_t next = strcspn(at, " ");
    if (next == length && strncmp(at, word, length) == 0) return true;
    at += next;
  }
  return false;
}

/* The class as diffusers has it; NULL: the config is of transformers. */
static const char *diffusers_class(const struct folder *folder) {
  return json_string_value(json_object_get(folder->config, "_class_name"));
}

/* The folder's class where the model is one of it, else the first that the model is of. */
static void set_class(struct folder *folder, const char *classes) {
  folder->class = diffusers_class(folder);
  if (folder->class != NULL) return;
  json_t *list = json_object_get(folder->config, "architectures");
  const char *theirs = json_string_value(json_array_get(list, 0));
  if (classes != NULL && (theirs == NULL || !is_listed(classes, theirs))) {
    json_t *own = json_stringn(classes, strcspn(classes, " "));
    json_object_set_new(folder->config, "architectures", json_pack("[o]", own));
    list = json_object_get(folder->config, "architectures");
  }
  const char *class = json_string_value(json_array_get(list, 0));
  folder->class = class != NULL ? class : "";
}

/* The type that the run saves, whatever it started from; diffusers reads it from the weights alone. */
static void set_type(const struct folder *folder, enum accel_dtype dtype) {
  static const char *const names[ACCEL_DTYPES] = {
      [ACCEL_FLOAT32] = "float32", [ACCEL_FLOAT16] = "float16", [ACCEL_BFLOAT16] = "bfloat16"};
  if (diffusers_class(folder) != NULL) return;
  const bool old = json_object_get(folder->config, "torch_dtype") != NULL;
  json_object_set_new(folder->config, old ? "torch_dtype" : "dtype", json_string(names[dtype]));
}

/* The program's own, which the generator has made of the model's config. */
static bool take_config(struct folder *folder, const char *text, struct problem *problem) {
  folder->config = json_loads(text, 0, NULL);
  return folder->config != NULL || rt_problem(problem, "no memory for the config.json");
}

static bool read_config(struct folder *folder, struct problem *problem) {
  char path[4096];
  json_error_t error;
  if (!rt_join(path, sizeof path, folder->of, "config.json", problem)) return false;
  folder->config = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
  if (json_is_object(folder->config)) return true;
  if (folder->config != NULL)
    rt_problem(problem, "%s: a config.json is an object", path);
  else if (error.line > 0)
    rt_problem(problem, "%s:%d:%d: %s", path, error.line, error.column, error.text);
  else
    rt_problem(problem, "%s: cannot be read: %s", path, strerror(errno));
  return rt_help(problem, "%s", cure);
}

/* ---- What adapters belong to ---- */

static const char *task_of(const char *class) {
  static const char *const tasks[][2] = {{"ForCausalLM", "CAUSAL_LM"},
                                         {"LMHeadModel", "CAUSAL_LM"},
                                         {"ForConditionalGeneration", "SEQ_2_SEQ_LM"},
                                         {"ForSequenceClassification", "SEQ_CLS"},
                                         {"ForTokenClassification", "TOKEN_CLS"},
                                         {"ForQuestionAnswering", "QUESTION_ANS"}};
  for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
    if (strstr(class, tasks[i][0]) != NULL) return tasks[i][1];
  return NULL;
}

/* The published files of GPT-2 have the names of the inner model, which its class with a head calls transformer. */
static const char *prefix_of(const struct folder *folder, int n_names) {
  static const char inner[] = "transformer.";
  if (strncmp(folder->class, "GPT2", 4) != 0 || strcmp(folder->class, "GPT2Model") == 0) return "";
  for (int i = 0; i < n_names; i++)
    if (folder->names[i] != NULL && strncmp(folder->names[i], inner, sizeof inner - 1) == 0) return "";
  return inner;
}

const struct adapter_base *rt_folder_base(const struct accel_run *run) {
  return run->model.folder.names != NULL ? &run->model.folder.base : NULL;
}

/* ---- Opening ---- */

static bool is_own(const struct accel_run *run, struct problem *problem) {
  if (!rt_is_same_file(run->project_dir, run->model.folder.of)) return false;
  rt_problem(problem,
             "%s: the run's folder is the one that checkpoint.folder_of names, and its files would be replaced",
             run->project_dir);
  rt_help(problem, "choose another folder with --project-dir");
  return true;
}

/* The whole path, by which the adapters name their base: they may be read from any folder. */
static bool find_path(struct folder *folder, const char *of, struct problem *problem) {
  char *path = realpath(of, NULL);
  if (path == NULL) {
    rt_problem(problem, "%s: cannot be read: %s", of, strerror(errno));
    return rt_help(problem, "%s", cure);
  }
  const bool found = strlen(path) < sizeof folder->of || rt_problem(problem, "%s: the path is too long", of);
  if (found) memcpy(folder->of, path, strlen(path) + 1);
  free(path);
  return found;
}

bool rt_folder_open(struct accel_run *run, struct problem *problem) {
  const struct accel_program *program = run->program;
  struct folder *folder = &run->model.folder;
  const char *of = program->checkpoint.folder_of;
  const char *own = program->checkpoint.config;
  if (of == NULL && own == NULL) return true;
  if (of != NULL && (!find_path(folder, of, problem) || is_own(run, problem))) return false;
  if (own != NULL ? !take_config(folder, own, problem) : !read_config(folder, problem)) return false;
  set_class(folder, program->checkpoint.classes);
  set_type(folder, program->checkpoint.dtype);
  if (of == NULL) return true;
  folder->names = rt_weights_names(program, program->start.path, problem);
  if (folder->names == NULL) return false;
  folder->base = (struct adapter_base){.names = folder->names,
                                       .prefix = prefix_of(folder, program->n_tensors),
                                       .path = folder->of,
                                       .task = task_of(folder->class)};
  return true;
}

void rt_folder_close(struct accel_run *run) {
  rt_weights_names_free(run->program, run->model.folder.names);
  json_decref(run->model.folder.config);
}

/* ---- What is left ---- */

const char *rt_folder_stem(const struct accel_run *run) {
  return diffusers_class(&run->model.folder) != NULL ? rt_diffusers_stem : "model";
}

bool rt_folder_model(const struct accel_run *run, char *path, size_t size, struct problem *problem) {
  char name[64];
  snprintf(name, sizeof name, "%s.safetensors", rt_folder_stem(run));
  return rt_join(path, size, run->project_dir, name, problem);
}

/* Leaves a tensor out of the list. */
static void drop(struct tensor_list *tensors, int i) {
  struct tensor_list dropped = {.items = malloc(sizeof *tensors->items), .count = 1};
  if (dropped.items != NULL) *dropped.items = tensors->items[i];
  memmove(&tensors->items[i], &tensors->items[i + 1], (size_t)(--tensors->count - i) * sizeof *tensors->items);
  if (dropped.items != NULL) rt_tensors_free(&dropped);
}

bool rt_folder_rename(const struct accel_run *run, struct tensor_list *tensors, struct problem *problem) {
  const struct accel_program *program = run->program;
  char **names = run->model.folder.names;
  for (int i = tensors->count - 1; names != NULL && i >= 0; i--) {
    int k = 0;
    while (k < program->n_tensors && strcmp(program->tensors[k].name, tensors->items[i].name) != 0) k++;
    if (k == program->n_tensors) continue;
    if (names[k] == NULL) {
      drop(tensors, i);
      continue;
    }
    char *name = strdup(names[k]);
    if (name == NULL) return rt_problem(problem, "no memory for the names of tensors");
    free(tensors->items[i].name);
    tensors->items[i].name = name;
  }
  return true;
}

static bool copy_file(const char *from, const char *to, struct problem *problem) {
  struct mapping mapping;
  if (!rt_map(&mapping, from, cure, problem)) return false;
  const bool written = rt_write_file(to, BY_RENAME, mapping.bytes != NULL ? mapping.bytes : (const uint8_t *)"",
                                     mapping.size, NULL, problem);
  rt_unmap(&mapping);
  return written;
}

/* Of the tokenizer, of the processor of images or sounds, of generation, and what a license asks to keep with the
 * weights. */
static bool copy_files(const struct accel_run *run, struct problem *problem) {
  static const char *const names[] = {"tokenizer.json",
                                      "tokenizer_config.json",
                                      "special_tokens_map.json",
                                      "added_tokens.json",
                                      "vocab.json",
                                      "merges.txt",
                                      "vocab.txt",
                                      "tokenizer.model",
                                      "spiece.model",
                                      "sentencepiece.bpe.model",
                                      "chat_template.jinja",
                                      "chat_template.json",
                                      "preprocessor_config.json",
                                      "processor_config.json",
                                      "normalizer.json",
                                      "generation_config.json",
                                      "LICENSE",
                                      "LICENSE.txt",
                                      "LICENSE.md",
                                      "NOTICE",
                                      "NOTICE.txt"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char from[4096], to[4096];
    if (!rt_join(from, sizeof from, run->model.folder.of, names[i], problem) ||
        !rt_join(to, sizeof to, run->project_dir, names[i], problem))
      return false;
    if (access(from, F_OK) == 0 && !copy_file(from, to, problem)) return false;
  }
  return true;
}

/* With as few digits as give the same numbers again. The caller's; NULL: there is no memory. */
static char *text_of(const json_t *json) {
  enum { LEAST_DIGITS = 15, MOST_DIGITS = 17 };
  char *text = NULL;
  for (size_t digits = LEAST_DIGITS; digits <= MOST_DIGITS; digits++) {
    free(text);
    text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(digits));
    json_t *read = text != NULL ? json_loads(text, 0, NULL) : NULL;
    const bool same = json_equal(json, read);
    json_decref(read);
    if (same) break;
  }
  return text;
}

static bool write_json(const struct accel_run *run, const char *name, const json_t *json, struct problem *problem) {
  char path[4096];
  if (!rt_join(path, sizeof path, run->project_dir, name, problem)) return false;
  char *text = text_of(json);
  const bool written = text != NULL ? rt_write_file(path, BY_RENAME, text, strlen(text), NULL, problem)
                                    : rt_problem(problem, "%s: no memory to write it", path);
  free(text);
  return written;
}

/* Where no folder has one: the tokens of config.json that begin, end and fill texts, for classes that write them. */
static bool write_generation(const struct accel_run *run, struct problem *problem) {
  static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"};
  const struct folder *folder = &run->model.folder;
  const char *task = task_of(folder->class);
  char path[4096];
  if (run->program->checkpoint.config == NULL || task == NULL || strstr(task, "_LM") == NULL) return true;
  if (folder->of[0] != '\0' && rt_join(path, sizeof path, folder->of, "generation_config.json", problem) &&
      access(path, F_OK) == 0)
    return true;
  json_t *json = json_pack("{s:b}", "_from_model_config", 1);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    json_t *value = json_object_get(folder->config, keys[i]);
    if (value != NULL) json_object_set(json, keys[i], value);
  }
  const bool written = write_json(run, "generation_config.json", json, problem);
  json_decref(json);
  return written;
}

bool rt_folder_leave(const struct accel_run *run, struct problem *problem) {
  const struct folder *folder = &run->model.folder;
  if (run->program->checkpoint.no_config != NULL)
    rt_warn("%s gets no config.json that transformers opens: %s", run->project_dir, run->program->checkpoint.no_config);
  if (folder->config == NULL) return true;
  return write_json(run, "config.json", folder->config, problem) &&
         (folder->of[0] == '\0' || copy_files(run, problem)) && write_generation(run, problem);
}
