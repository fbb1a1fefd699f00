#define _XOPEN_SOURCE 700 /* realpath */
/* The model's C, compiled over the second reading. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/embedded.h"
#include "gen/base/path.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/process.h"
#include "gen/commands/generate/compiler.h"
#include "gen/commands/verify/verify.h"
#include "gen/verify/adapters.h"

/* ---- Compilation ---- */

static bool put(const struct verification *verify, const char *name, const char *text) {
  const struct inputs none = {.arena = verify->arena};
  const char *path = arena_printf(verify->arena, "%s/%s", verify->folder, name);
  return make_folders(verify->arena, path) && write_file(&none, path, text, strlen(text));
}

static bool put_headers(const struct verification *verify) {
  static const char *const headers[] = {"include/accel/model.h", "include/accel/images.h", "include/accel/losses.h"};
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
    if (!put(verify, headers[i], embedded_source(headers[i]))) return false;
  return true;
}

static bool compile(struct verification *verify, const char *library, const char *compiler) {
  struct words command = words_in(verify->arena);
  words_split(&command, compiler);
  words_split(&command, "-std=c17 -D_DEFAULT_SOURCE -O1 -w -fPIC -shared -finstrument-functions -I");
  words_add(&command, arena_printf(verify->arena, "%s/include", verify->folder));
  words_add(&command, "-o");
  words_add(&command, library);
  words_add(&command, arena_printf(verify->arena, "%s/native.c", verify->folder));
  return process_run(&command) || verify_unknown(verify, "%s does not take the model", compiler);
}

/* Where C leaves the order of random numbers open, clang has the order that docs/runtime.md says. */
static const char *compiler_of(const struct tree *model) {
  return native_order_is_open(model) ? "clang" : compiler_name();
}

static native_function find(const char *name) {
  for (int i = 0; i < reading_function_count; i++)
    if (strcmp(reading_functions[i].name, name) == 0) return reading_functions[i].function;
  return NULL;
}

/* A function of a library: dlsym gives a pointer to data. */
static native_function symbol(void *library, const char *name) {
  void *found = dlsym(library, name);
  native_function function;
  memcpy(&function, &found, sizeof function);
  return function;
}

static bool load(struct verification *verify, const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return verify_unknown(verify, "the compiled model cannot be loaded: %s", dlerror());
  native_bind *bind = (native_bind *)symbol(library, "native_bind");
  verify->measuring.model = (native_model *)symbol(library, "native_model");
  if (bind == NULL || verify->measuring.model == NULL)
    return verify_unknown(verify, "the compiled model is incomplete");
  bind(find, trace_native);
  return true;
}

/* ---- Parameters ---- */

static double normal(struct reading *reading) {
  double sum = 0;
  for (int i = 0; i < 12; i++) sum += tape_draw(reading);
  return sum / 2;
}

/* A parameter does not start as a run of the job would, where that is all zeros or ones: what a program does wrong with
 * them would not be seen. Buffers do, since they are what the model computes with. */
static double start_value(struct reading *reading, const struct stored *stored, int64_t i) {
  (void)i;
  if (!stored->trained && stored->start != START_NORMAL && stored->start != START_UNIFORM)
    return stored->start == START_ONES ? 1 : stored->start == START_CONSTANT ? stored->a : 0;
  switch ((enum start)stored->start) {
  case START_ZEROS:
    return (double)(float)(0.05 * tape_draw(reading));
  case START_ONES:
    return (double)(float)(1 + 0.1 * tape_draw(reading));
  case START_CONSTANT:
    return (double)(float)(stored->a + 0.05 * tape_draw(reading));
  case START_NORMAL:
    return (double)(float)(stored->b * normal(reading));
  case START_UNIFORM:
    return (double)(float)(stored->b * tape_draw(reading));
  case START_SINUSOID:
    return (double)(float)tape_draw(reading);
  }
  return 0;
}

/* A batch of zeros, which shows what parameters there are. */
static struct micro_batch empty_batch(const struct verification *verify) {
  const struct job *job = verify->job;
  struct micro_batch batch = {0};
  int64_t length = job->data.sequence_length;
  for (int i = 0; length == 0 && i < job->model.n_config; i++)
    if (strcmp(job->model.config[i].name, "block_size") == 0) length = job->model.config[i].integer;
  const char *const tokens[] = {"tokens", "targets", "starts", "positions"};
  const int count = job->data.n_inputs > 0 ? 0 : job->data.packing != PACKING_NONE ? 4 : 2;
  for (int i = 0; i < count; i++)
    batch.tensors[batch.count++] =
        (struct loaded){.name = tokens[i], .rank = 2, .dim = {job->data.batch_size, length}, .whole = true};
  for (int i = 0; i < job->data.n_inputs && i < MOST_TENSORS_OF_BATCH; i++) {
    const struct data_input *input = &job->data.inputs[i];
    struct loaded loaded = {.name = input->name, .rank = input->rank + 1, .whole = input->is_integer};
    loaded.dim[0] = job->data.batch_size;
    for (int k = 0; k < input->rank; k++) loaded.dim[k + 1] = input->dims[k];
    batch.tensors[batch.count++] = loaded;
  }
  for (int t = 0; t < batch.count; t++) {
    int64_t count = 1;
    for (int k = 0; k < batch.tensors[t].rank; k++) count *= batch.tensors[t].dim[k];
    batch.tensors[t].values = arena_alloc(verify->arena, (size_t)count * sizeof(double));
  }
  return batch;
}

static bool freeze(struct verification *verify) {
  verify->frozen = arena_alloc(verify->arena, (size_t)verify->reading.count + 1);
  int i = 0, adapters = 0;
  for (struct stored *at = verify->reading.first; at != NULL; at = at->next, i++) {
    verify->frozen[i] = !reading_trains(verify->job, at->name);
    adapters += strstr(at->name, ".lora_A.") != NULL;
  }
  verify->measuring.frozen = verify->frozen;
  return verify->job->model.lora.rank == 0 || adapters > 0 ||
         verify_unknown(verify, "model.lora: no target is a layer by linear() of the model");
}

/* The rounding of what a gradient is computed with. In 16 bits an operation rounds once, and so do the weights that it
 * takes; in float32 it may take a few roundings. */
static void set_precision(struct verification *verify) {
  const struct job *job = verify->job;
  const bool bf16 = job->precision.mixed == PRECISION_BF16 || job->precision.param == PRECISION_BF16;
  const bool fp16 = job->precision.mixed == PRECISION_FP16 || job->precision.param == PRECISION_FP16;
  verify->reading.narrow = bf16 || fp16 || job->precision.tf32;
  verify->measuring.unit = bf16 ? 0x1p-8 : verify->reading.narrow ? 0x1p-11 : 0x1p-24;
  verify->measuring.roundings = verify->reading.narrow ? 1 : 4;
  verify->measuring.readings = 2;
}

bool verify_read_model(struct verification *verify, const struct tree *model) {
  struct text text = text_in(verify->arena);
  const char *why = NULL, *library = arena_printf(verify->arena, "%s/native.so", verify->folder);
  char *path = realpath(verify->job->model.source, NULL);
  const bool written = path != NULL && native_write(&text, verify->job, model, path, &why);
  free(path);
  if (!written) return verify_unknown(verify, "%s", why != NULL ? why : "the model cannot be read");
  if (!put_headers(verify) || !put(verify, "native.c", text_string(&text)))
    return verify_unknown(verify, "the folder %s cannot be written", verify->folder);
  if (!compile(verify, library, compiler_of(model)) || !load(verify, library)) return false;
  verify->reading = (struct reading){.training = true, .start_value = start_value, .state = 1};
  verify->measuring.reading = &verify->reading;
  verify->measuring.job = verify->job;
  if (verify->job->model.lora.rank > 0) verify->reading.job = verify->job;
  set_precision(verify);
  const struct micro_batch batch = empty_batch(verify);
  if (!measure_parameters(&verify->measuring, verify->arena, &batch))
    return verify_unknown(verify, "%s", verify->reading.refused);
  if (verify->reading.n_draws > 0 && !native_notes_loops(model))
    return verify_unknown(verify, "random numbers of a model with loops by while or do");
  if (verify->reading.first == NULL) return verify_unknown(verify, "the model has no parameters");
  verify->tokens = verify->job->data.n_inputs == 0 ? verify->reading.vocabulary : 0;
  verify->seen = arena_alloc(verify->arena, (size_t)verify->tokens + 1);
  return freeze(verify);
}
