/* Any bytes as a folder that is exported: its config.json, tokenizer.json and model.safetensors, with a NUL between
 * them. The weights are not compared with the model's parameters before, as the command does; so more of them comes as
 * far as the files that are written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gen/commands/export/export.h"
#include "gen/model/published.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { LARGEST = 512 }; /* of numbers of the config: ONNX has a graph of all layers */

static char folder[] = "/tmp/fuzz-export-XXXXXX";

static void remove_folder(void) {
  static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors", "out.onnx",
                                      "out.onnx_data"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[sizeof folder + 32];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

static void make_folder(void) {
  static bool is_made;
  if (is_made) return;
  if (mkdtemp(folder) == NULL || atexit(remove_folder) != 0) abort();
  is_made = true;
}

/* The models are read once. */
static struct tree *model_of(const char *architecture, const char **source) {
  static const char *const families[][2] = {
      {"LlamaForCausalLM", "examples/models/llama.c"},     {"GPT2LMHeadModel", "examples/models/gpt2.c"},
      {"Gemma2ForCausalLM", "examples/models/gemma2.c"},   {"DeepseekV3ForCausalLM", "examples/models/deepseek_v3.c"},
      {"MixtralForCausalLM", "examples/models/mixtral.c"}, {"MambaForCausalLM", "examples/models/mamba.c"}};
  enum { FAMILIES = sizeof families / sizeof *families };
  static struct tree *trees[FAMILIES];
  for (int i = 0; i < FAMILIES; i++) {
    if (architecture == NULL || strcmp(architecture, families[i][0]) != 0) continue;
    struct arena *arena = arena_new(); /* stays */
    struct diagnostics *diags = arena_alloc(arena, sizeof *diags);
    *diags = diagnostics_in(arena);
    if (trees[i] == NULL) trees[i] = model_parse(arena, families[i][1], diags);
    *source = families[i][1];
    return trees[i];
  }
  return NULL;
}

static const char *path_of(struct arena *arena, const char *name) {
  return arena_printf(arena, "%s/%s", folder, name);
}

static void write_file(struct arena *arena, const char *name, const uint8_t *bytes, size_t size) {
  FILE *file = fopen(path_of(arena, name), "wb");
  if (file == NULL || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) abort();
}

/* Writes the parts; false where there are no three. */
static bool write_parts(struct arena *arena, const uint8_t *bytes, size_t size) {
  static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors"};
  for (int i = 0; i < 3; i++) {
    const uint8_t *end = i < 2 ? memchr(bytes, '\0', size) : bytes + size;
    if (end == NULL) return false;
    write_file(arena, names[i], bytes, (size_t)(end - bytes));
    size -= (size_t)(end - bytes) + (i < 2);
    bytes = end + 1;
  }
  return true;
}

static bool read_family(struct exported *of) {
  struct family *family = &of->family;
  struct model_request request = {.entry = "model", .config_where = {.file = family->config}};
  const char *unknown;
  of->published = json_load_file(family->config, JSON_REJECT_DUPLICATES, NULL);
  family->architecture = json_string_value(json_array_get(json_object_get(of->published, "architectures"), 0));
  family->model = model_of(family->architecture, &family->source);
  family->positions = 16;
  if (family->model == NULL || !model_config_of_published(of->arena, family->model, &request, family->config,
                                                          &family->values, &family->n_values, of->diags))
    return false;
  request.config = family->values;
  request.n_config = family->n_values;
  return model_check_published(of->arena, family->model, &request, family->config, of->diags, &unknown) &&
         model_values(of->arena, family->model, &request, &of->config, of->diags);
}

static bool is_small(const struct exported *of) {
  for (int i = 0; i < of->config.count; i++)
    if (of->config.items[i].kind == MODEL_INTEGER && !(of->config.items[i].number <= LARGEST)) return false;
  return true;
}

/* Each tensor as the parameter of its name. */
static void name_tensors(struct exported *of) {
  for (int i = 0; i < of->shards.n_tensors; i++) {
    const char *name = of->shards.by_name[i]->name;
    struct tensor_row row = {.state = TENSOR_USED, .parameter = name, .name = name};
    ARENA_PUSH(of->arena, of->tensors, row);
  }
}

static void export_all(struct exported *of) {
  static const enum gguf_type types[] = {GGUF_F32, GGUF_F16, GGUF_Q8_0};
  const char *output = path_of(of->arena, "out");
  struct problem problem;
  if (!read_family(of) || !rt_shards_open(&of->shards, folder, "", &problem)) return;
  name_tensors(of);
  for (int i = 0; i < 3; i++) {
    of->diags->errors = 0;
    if (gguf_write(of, types[i], output) == STATUS_OK && unlink(output) != 0) abort();
    if (access(output, F_OK) == 0 || access(path_of(of->arena, "out.partial"), F_OK) == 0) abort();
  }
  if (is_small(of)) onnx_write(of, 1, 4, path_of(of->arena, "out.onnx"));
  rt_shards_close(&of->shards);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  make_folder();
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  struct exported of = {.arena = arena, .diags = &diags, .folder = folder};
  of.family.config = path_of(arena, "config.json");
  if (write_parts(arena, bytes, size)) export_all(&of);
  json_decref(of.published);
  arena_free(arena);
  return 0;
}
