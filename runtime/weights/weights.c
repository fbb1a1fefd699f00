#include "runtime/weights/weights.h"

#include "runtime/base/dtype.h"
#include "runtime/base/half.h"
#include "runtime/base/progress.h"
#include "runtime/base/terminal.h"
#include "runtime/files/files.h"
#include "runtime/process/fail.h"
#include "runtime/weights/bitsandbytes.h"
#include "runtime/weights/disk_states.h"
#include "runtime/weights/init.h"
#include "runtime/weights/quantize.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/streamed.h"
#include "runtime/weights/tensors.h"
#include "runtime/weights/window.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_SHOWN = 8 };

/* What the model classes of Transformers put before the names of their inner model: GPT2LMHeadModel's own files say
 * "transformer.wte.weight" where the published file says "wte.weight". */
static const char outer_prefix[] = "transformer.";

/* In chunks, as most of the time goes into first touches, which threads can share. */
static void copy(char *out, const uint8_t *bytes, size_t size) {
  static const size_t chunk = (size_t)1 << 20;
#pragma omp parallel for
  for (size_t at = 0; at < size; at += chunk) memcpy(out + at, bytes + at, size - at < chunk ? size - at : chunk);
}

static inline uint16_t bits_at(const uint8_t *from, int64_t i) {
  return (uint16_t)(from[2 * i] | from[2 * i + 1] << 8);
}

void rt_weights_convert(float *out, const char *dtype, const uint8_t *from, int64_t count) {
  bool brain = strcmp(dtype, "BF16") == 0;
  if (!brain && strcmp(dtype, "F16") != 0) {
    copy((char *)out, from, (size_t)count * rt_stored_size(dtype));
    return;
  }
  if (brain) {
#pragma omp parallel for simd
    for (int64_t i = 0; i < count; i++) out[i] = rt_widen_bfloat16(bits_at(from, i));
  } else {
#pragma omp parallel for simd
    for (int64_t i = 0; i < count; i++) out[i] = rt_widen_float16(bits_at(from, i));
  }
}

/* ---- What is quantized ---- */

/* A weight in floats: from a file, or where that is NULL, or has none, as its initializer makes it. */
struct unquantized {
  const struct accel_program *program;
  const struct accel_quantized *quantized;
  const struct weights_file *file;
  struct accel_tensor source;
  const uint8_t *bytes; /* of a file, from element `first` on */
  int64_t first;
};

static const struct named_tensor *found_of(const struct unquantized *weight) {
  return weight->file != NULL ? weight->file->matched[weight->quantized->codes] : NULL;
}

/* Elements [first, first + count) as they follow each other in the file. */
static void read_floats(const struct unquantized *weight, int64_t first, int64_t count, float *values) {
  const int codes = weight->quantized->codes;
  const struct named_tensor *found = found_of(weight);
  if (found == NULL) {
    rt_init_part(&weight->source, codes, weight->program->seed, first, count, values);
    return;
  }
  const char *dtype = found->tensor->dtype;
  rt_weights_convert(values, dtype, weight->bytes + (size_t)(first - weight->first) * rt_stored_size(dtype), count);
}

/* Rows of [out][in] that a file has as columns of [in][out]. */
static void read_columns(const struct unquantized *weight, int64_t row, int64_t rows, float *values) {
  enum { AT_ONCE = 64 };
  const int64_t out = weight->quantized->out, in = weight->quantized->in;
#pragma omp parallel for
  for (int64_t i = 0; i < in; i++)
    for (int64_t r = 0; r < rows; r += AT_ONCE) {
      const int64_t count = rows - r < AT_ONCE ? rows - r : AT_ONCE;
      float part[AT_ONCE];
      read_floats(weight, i * out + row + r, count, part);
      for (int64_t k = 0; k < count; k++) values[(r + k) * in + i] = part[k];
    }
}

/* What has been read is not read again, and need not stay in memory. */
static void read_rows(const void *context, int64_t row, int64_t rows, float *values) {
  struct unquantized weight = *(const struct unquantized *)context;
  const struct named_tensor *found = found_of(&weight);
  const int64_t in = weight.quantized->in, count = weight.quantized->in_out ? weight.quantized->out * in : rows * in;
  struct window window = {0};
  weight.first = weight.quantized->in_out ? 0 : row * in;
  if (found != NULL) {
    const size_t size = rt_stored_size(found->tensor->dtype);
    window = rt_window_open(found->tensor, (size_t)weight.first * size, (size_t)count * size);
    weight.bytes = window.bytes;
  }
  if (weight.quantized->in_out)
    read_columns(&weight, row, rows, values);
  else
    read_floats(&weight, row * in, rows * in, values);
  rt_window_close(&window);
  if (found != NULL) rt_sources_forget(&weight.file->sources, found);
}

static void quantize(const struct accel_program *program, const struct accel_quantized *quantized,
                     const struct weights_file *file, void *weights) {
  const struct unquantized weight = {
      .program = program, .quantized = quantized, .file = file, .source = rt_quantized_source(program, quantized)};
  rt_quantize(program, quantized, &(struct rt_rows){read_rows, &weight}, weights);
}

static size_t bytes_of(const struct accel_tensor *tensor) {
  return (size_t)rt_shape_count(tensor->rank, tensor->shape) * rt_dtype_size(tensor->dtype);
}

static void init_tensor(const struct accel_program *program, int which, void *weights) {
  const struct accel_tensor *tensor = &program->tensors[which];
  char *to = rt_weights_of(program, tensor, weights) + tensor->offset;
  rt_init_tensor(tensor, which, program->seed, (float *)to);
  rt_weights_made(program, tensor, to, bytes_of(tensor));
}

void rt_weights_init(const struct accel_program *program, void *weights) {
  for (int i = 0; i < program->n_tensors; i++) {
    const struct accel_quantized *quantized = rt_quantized_of(program, i);
    if (quantized == NULL)
      init_tensor(program, i, weights);
    else if (quantized->codes == i)
      quantize(program, quantized, NULL, weights);
  }
}

/* A list of names that grows up to what is shown. */
struct names {
  char text[600];
  int count;
};

static void add_name(struct names *names, const char *name) {
  size_t at = strlen(names->text);
  if (names->count++ < NAMES_SHOWN)
    snprintf(names->text + at, sizeof names->text - at, "%s%.64s", at == 0 ? "" : ", ", name);
}

static void end_names(struct names *names) {
  size_t at = strlen(names->text);
  if (names->count > NAMES_SHOWN)
    snprintf(names->text + at, sizeof names->text - at, " and %d more", names->count - NAMES_SHOWN);
}

static const struct named_tensor *find(const struct sources *sources, const char *prefix, const char *name) {
  char whole[1024];
  int length = snprintf(whole, sizeof whole, "%s%s", prefix, name);
  if (length < 0 || (size_t)length >= sizeof whole) return NULL;
  return rt_sources_find(sources, whole);
}

/* A tensor of the program under the name that bitsandbytes has for it, in a file of the same kind of codes. */
static const struct named_tensor *find_in_layout(const struct accel_program *program, const struct sources *sources,
                                                 const char *prefix, int tensor) {
  const struct accel_quantized *quantized = rt_quantized_of(program, tensor);
  char name[1024], state[1024];
  if (quantized == NULL || rt_layout_name(program, tensor, name, sizeof name) == NULL) return NULL;
  const char *kind = rt_layout_state(program, quantized, state, sizeof state);
  return kind != NULL && find(sources, prefix, kind) != NULL ? find(sources, prefix, name) : NULL;
}

/* What a file need not have: scales are made of the weight where that is in floats. */
static bool is_fresh(const struct accel_program *program, const struct named_tensor *const *matched, int tensor) {
  const struct accel_quantized *quantized = rt_quantized_of(program, tensor);
  for (int i = 0; i < program->start.n_fresh; i++)
    if (program->start.fresh[i] == tensor) return true;
  return quantized != NULL && quantized->codes != tensor && !rt_has_codes(matched[quantized->codes]);
}

/* Finds each parameter's tensor under the prefix; returns how many are missing that may not be. */
static int match(const struct accel_program *program, const struct sources *sources, const char *prefix,
                 const struct named_tensor **matched, struct names *missing) {
  *missing = (struct names){0};
  for (int i = 0; i < program->n_tensors; i++) {
    matched[i] = find(sources, prefix, program->tensors[i].name);
    if (matched[i] == NULL) matched[i] = find_in_layout(program, sources, prefix, i);
  }
  for (int i = 0; i < program->n_tensors; i++)
    if (matched[i] == NULL && !is_fresh(program, matched, i)) add_name(missing, program->tensors[i].name);
  end_names(missing);
  return missing->count;
}

static bool is_convertible(const char *dtype) {
  return strcmp(dtype, "F32") == 0 || strcmp(dtype, "F16") == 0 || strcmp(dtype, "BF16") == 0;
}

static bool check_tensor(const struct accel_tensor *wanted, const struct named_tensor *found, struct problem *problem) {
  const struct stored_tensor *stored = found->tensor;
  const char *path = found->path;
  char has[200], needs[200];
  if (wanted->dtype == ACCEL_FLOAT32 && rt_has_codes(found)) {
    rt_problem(problem, "%s: tensor '%s' is of codes (%s), the model's is of floats", path, stored->name,
               stored->dtype);
    return rt_help(problem, "set model.quantize as these weights were quantized");
  }
  if (wanted->rank != stored->rank ||
      memcmp(wanted->shape, stored->shape, (size_t)wanted->rank * sizeof(int64_t)) != 0) {
    rt_problem(problem, "%s: tensor '%s' has the shape %s, the model's is %s", path, stored->name,
               rt_shape_text(has, sizeof has, stored->rank, stored->shape),
               rt_shape_text(needs, sizeof needs, wanted->rank, wanted->shape));
    return rt_help(problem, "give the weights of this model, or set model.config to that of the weights");
  }
  if (wanted->dtype != ACCEL_FLOAT32) {
    const char *name = rt_dtype_name(wanted->dtype);
    if (strcmp(stored->dtype, name) == 0) return true;
    rt_problem(problem, "%s: tensor '%s' is of dtype %s, the model's is %s", path, stored->name, stored->dtype, name);
    return rt_help(problem, "save the weights with that type");
  }
  if (is_convertible(stored->dtype)) return true;
  rt_problem(problem, "%s: tensor '%s' is of dtype %s; F32, F16 and BF16 are read", path, stored->name, stored->dtype);
  return rt_help(problem, "save the weights in one of these");
}

static bool is_ignored(const struct accel_start_file *start, const char *name) {
  for (int i = 0; i < start->n_ignored; i++)
    if (fnmatch(start->ignored[i], name, FNM_NOESCAPE) == 0) return true;
  return false;
}

/* Whether it is this tensor, perhaps by another name: torch.save keeps all names of what is tied. */
static bool is_same(const struct stored_tensor *a, const struct stored_tensor *b) {
  return a == b ||
         (a != NULL && a->bytes == b->bytes && a->file == b->file && a->at == b->at && a->size == b->size &&
          a->size > 0 && a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0);
}

/* Whether bitsandbytes' layout has a tensor besides the codes and scales of a weight that is read in it. */
static bool is_beside_codes(const struct accel_program *program, const struct named_tensor *const *matched,
                            const char *name) {
  for (int i = 0; i < program->n_quantized; i++) {
    const struct named_tensor *codes = matched[program->quantized[i].codes];
    if (rt_has_codes(codes) && rt_layout_has(name, codes->tensor->name)) return true;
  }
  return false;
}

static bool check_extra(const struct sources *sources, const struct accel_program *program,
                        const struct named_tensor *const *matched, struct problem *problem) {
  struct names extra = {0};
  const char *path = "";
  for (int i = 0; i < sources->n_tensors; i++) {
    const struct named_tensor *tensor = &sources->tensors[i];
    bool used =
        is_ignored(&program->start, tensor->tensor->name) || is_beside_codes(program, matched, tensor->tensor->name);
    for (int k = 0; k < program->n_tensors && !used; k++)
      used = matched[k] != NULL && is_same(matched[k]->tensor, tensor->tensor);
    if (used || (extra.count > 0 && strcmp(path, tensor->path) != 0)) continue;
    path = tensor->path;
    add_name(&extra, tensor->tensor->name);
  }
  end_names(&extra);
  if (extra.count == 0) return true;
  rt_problem(problem, "%s: tensors that this model does not have: %s", path, extra.text);
  return rt_help(problem, "name in model.ignore what may be left out, with * and ?");
}

/* Under the job's prefix, or else as they are, or below the usual one. */
static int match_all(const struct accel_program *program, const struct sources *sources,
                     const struct named_tensor **matched, struct names *missing) {
  struct names outer;
  if (program->start.prefix != NULL) return match(program, sources, program->start.prefix, matched, missing);
  int lacks = match(program, sources, "", matched, missing);
  if (lacks == 0 || program->start.n_renames > 0) return lacks;
  if (match(program, sources, outer_prefix, matched, &outer) < lacks) {
    *missing = outer;
    return outer.count;
  }
  return match(program, sources, "", matched, missing);
}

/* What bitsandbytes' layout says of the weights that are read in it. */
static bool check_states(const struct accel_program *program, const struct sources *sources,
                         const struct named_tensor *const *matched, struct problem *problem) {
  static const char tail[] = ".absmax";
  for (int i = 0; i < program->n_quantized; i++) {
    const struct accel_quantized *quantized = &program->quantized[i];
    const struct named_tensor *scales = quantized->absmax >= 0 ? matched[quantized->absmax] : NULL;
    const struct named_tensor *codes = matched[quantized->codes];
    const size_t length = scales != NULL ? strlen(scales->name) : 0;
    char name[1024];
    float offset;
    if (codes == NULL || length < sizeof tail || strcmp(scales->name + length - sizeof tail + 1, tail) != 0) continue;
    const char *own = rt_layout_state(program, quantized, name, sizeof name);
    const size_t prefix = length - (sizeof tail - 1) - strlen(program->tensors[quantized->codes].name);
    char whole[2048];
    snprintf(whole, sizeof whole, "%.*s%s", (int)prefix, scales->name, own != NULL ? own : "");
    const struct named_tensor *state = rt_sources_find(sources, whole);
    if (own == NULL || state == NULL) {
      rt_problem(problem, "%s: there is no '%s' next to '%s'", scales->path, whole, scales->name);
      return rt_help(problem, "save the quantized weights again");
    }
    if (!rt_layout_read(quantized, state->tensor, state->path, &offset, problem)) return false;
  }
  return true;
}

static bool check_all(const struct accel_program *program, const struct sources *sources,
                      const struct named_tensor **matched, const char *path, struct problem *problem) {
  struct names missing;
  if (match_all(program, sources, matched, &missing) > 0) {
    rt_problem(problem, "%s: no tensor for the parameters %s", path, missing.text);
    return rt_help(problem, "give the weights of this model, or list in model.fresh what to initialize");
  }
  if (!check_states(program, sources, matched, problem)) return false;
  for (int i = 0; i < program->n_tensors; i++) {
    if (matched[i] != NULL && rt_is_layout_state(matched[i]->tensor->name)) continue;
    const struct accel_quantized *quantized = rt_quantized_of(program, i);
    const bool floats = quantized != NULL && quantized->codes == i && !rt_has_codes(matched[i]);
    const struct accel_tensor wanted = floats ? rt_quantized_source(program, quantized) : program->tensors[i];
    if (matched[i] != NULL && !check_tensor(&wanted, matched[i], problem)) return false;
  }
  return check_extra(sources, program, matched, problem);
}

static void read_stored(const struct stored_tensor *stored, int64_t first, int64_t count, float *values) {
  const size_t size = rt_stored_size(stored->dtype);
  struct window window = rt_window_open(stored, (size_t)first * size, (size_t)count * size);
  rt_weights_convert(values, stored->dtype, window.bytes, count);
  rt_window_close(&window);
}

bool rt_is_quantized_here(const struct accel_program *program, const struct weights_file *file, int tensor) {
  const struct accel_quantized *quantized = rt_quantized_of(program, tensor);
  return quantized != NULL && !rt_has_codes(file->matched[quantized->codes]);
}

void rt_weights_read(const struct accel_program *program, const struct weights_file *file, int tensor, int64_t first,
                     int64_t count, float *values) {
  const struct named_tensor *found = file->matched[tensor];
  struct problem checked;
  if (found != NULL && rt_is_layout_state(found->tensor->name))
    rt_layout_read(rt_quantized_of(program, tensor), found->tensor, found->path, values, &checked);
  else if (found != NULL)
    read_stored(found->tensor, first, count, values);
  else
    rt_init_tensor(&program->tensors[tensor], tensor, program->seed, values);
}

/* Finds the parameters in files that are open. */
static bool find_all(struct weights_file *file, const struct accel_program *program, const char *path,
                     struct problem *problem) {
  file->matched = calloc((size_t)program->n_tensors + 1, sizeof *file->matched);
  if (file->matched == NULL) return rt_problem(problem, "%s: no memory for the list of tensors", path);
  if (check_all(program, &file->sources, file->matched, path, problem)) return true;
  rt_weights_close(file);
  return false;
}

/* A whole tensor, of which no more than some is in memory twice. */
static void read_tensor(const struct accel_program *program, const struct weights_file *file, int tensor, char *to) {
  static const int64_t at_once = 1 << 22;
  const struct accel_tensor *whole = &program->tensors[tensor];
  const int64_t count = rt_shape_count(whole->rank, whole->shape);
  if (file->matched[tensor] == NULL) {
    rt_weights_read(program, file, tensor, 0, count, (float *)to);
    return;
  }
  for (int64_t first = 0; first < count; first += at_once) {
    const int64_t own = count - first < at_once ? count - first : at_once;
    rt_weights_read(program, file, tensor, first, own, (float *)(to + (size_t)first * rt_dtype_size(whole->dtype)));
    rt_sources_forget(&file->sources, file->matched[tensor]);
  }
}

void rt_weights_make(const struct accel_program *program, const struct weights_file *file, int tensor, void *weights) {
  const struct accel_quantized *quantized = rt_quantized_of(program, tensor);
  if (!rt_is_quantized_here(program, file, tensor))
    read_tensor(program, file, tensor, (char *)weights + program->tensors[tensor].offset);
  else if (quantized->codes == tensor)
    quantize(program, quantized, file, weights);
}

static void fill(const struct accel_program *program, const struct weights_file *file, void *weights) {
  struct progress progress = rt_progress_begin(stderr, "reads weights", 0, program->weights_bytes);
  for (int i = 0; i < program->n_tensors; i++) {
    const struct accel_tensor *tensor = &program->tensors[i];
    if (rt_is_streamed(program, tensor)) continue;
    char *base = rt_weights_of(program, tensor, weights);
    rt_weights_make(program, file, i, base);
    rt_weights_made(program, tensor, base + tensor->offset, bytes_of(tensor));
    rt_progress_add(&progress, (uint64_t)rt_shape_count(tensor->rank, tensor->shape) * sizeof(float));
  }
  rt_terminal_clear();
}

bool rt_weights_match(struct weights_file *file, const struct accel_program *program, const char *path,
                      struct problem *problem) {
  struct names missing;
  if (!rt_sources_open(&file->sources, &program->start, path, rt_streams(program), problem)) return false;
  file->matched = calloc((size_t)program->n_tensors + 1, sizeof *file->matched);
  if (file->matched != NULL) {
    match_all(program, &file->sources, file->matched, &missing);
    return true;
  }
  rt_sources_close(&file->sources);
  return rt_problem(problem, "%s: no memory for the list of tensors", path);
}

bool rt_weights_open(struct weights_file *file, const struct accel_program *program, const char *path,
                     struct problem *problem) {
  return rt_sources_open(&file->sources, &program->start, path, rt_streams(program), problem) &&
         find_all(file, program, path, problem);
}

void rt_weights_close(struct weights_file *file) {
  free(file->matched);
  rt_sources_close(&file->sources);
}

void rt_weights_fill(const struct accel_program *program, const struct weights_file *file, void *weights) {
  fill(program, file, weights);
}

bool rt_weights_load(const struct accel_program *program, const char *path, void *weights, struct problem *problem) {
  struct weights_file file;
  if (!rt_weights_open(&file, program, path, problem)) return false;
  fill(program, &file, weights);
  rt_weights_close(&file);
  return true;
}

bool rt_weights_load_own(const struct accel_program *program, const struct shards *shards, const char *path,
                         void *weights, struct problem *problem) {
  struct weights_file file;
  struct accel_program plain = *program;
  plain.start = (struct accel_start_file){.prefix = ""};
  if (!rt_sources_of(&file.sources, shards, path, problem) || !find_all(&file, &plain, path, problem)) return false;
  fill(&plain, &file, weights);
  rt_weights_close(&file);
  return true;
}

/* Whether a run has left its model in the project folder, in one file or in several; the last name that was tried is in
 * `path`. */
static bool has_model(const struct accel_program *program, char *path, size_t size, struct problem *problem) {
  const char *trained = program->start.trained;
  const char *const stems[] = {rt_diffusers_stem, "model"}, *const ends[] = {"safetensors.index.json", "safetensors"};
  for (int i = trained != NULL ? 2 : 0; i < 4; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s.%s", trained != NULL ? trained : stems[i / 2], ends[i % 2]);
    if (rt_join(path, size, program->project_dir, name, problem) && access(path, F_OK) == 0) return true;
  }
  return false;
}

bool rt_weights_open_trained(struct weights_file *file, const struct accel_program *program, const char *path,
                             struct problem *problem) {
  char left[4096];
  struct accel_program named = *program;
  if (path == NULL && !has_model(program, left, sizeof left, problem) && program->start.path != NULL)
    return rt_weights_open(file, program, program->start.path, problem);
  named.start.n_renames = 0;
  named.start.prefix = NULL; /* the runtime saves without one; a published folder, as a run may leave it, has it */
  const char *found = path != NULL ? path : left;
  struct problem as_published;
  return rt_weights_open(file, &named, found, problem) ||
         ((program->start.prefix != NULL || program->start.n_renames > 0) &&
          rt_weights_open(file, program, found, &as_published));
}

bool rt_weights_load_trained(const struct accel_program *program, const char *path, void *weights,
                             struct problem *problem) {
  struct weights_file file;
  if (!rt_weights_open_trained(&file, program, path, problem)) return false;
  fill(program, &file, weights);
  rt_weights_close(&file);
  return true;
}

/* ---- Their names there ---- */

static size_t module_length(const char *parameter) {
  const char *last = strrchr(parameter, '.');
  return last != NULL ? (size_t)(last - parameter) : 0;
}

/* A part of an adapter is called after its weight: MODULE.weight and MODULE.lora_A.weight. */
static bool name_part(const struct accel_program *program, char **names, int weight, int part) {
  if (names[weight] == NULL) return true;
  const char *own = program->tensors[weight].name, *tail = program->tensors[part].name + module_length(own);
  const size_t length = module_length(names[weight]), size = length + strlen(tail) + 1;
  char *name = malloc(size);
  if (name == NULL) return false;
  snprintf(name, size, "%.*s%s", (int)length, names[weight], tail);
  free(names[part]);
  names[part] = name;
  return true;
}

static bool name_all(const struct accel_program *program, const struct weights_file *file, char **names) {
  bool good = true;
  for (int i = 0; i < program->n_tensors; i++) {
    const struct named_tensor *found = file != NULL ? file->matched[i] : NULL;
    if (found != NULL && found->source > 0) continue; /* it is another file's */
    names[i] = strdup(found != NULL ? found->tensor->name : program->tensors[i].name);
    good &= names[i] != NULL;
  }
  for (int i = 0; i < program->adapters.count && good; i++) {
    const struct accel_adapter *adapter = &program->adapters.items[i];
    good = name_part(program, names, adapter->weight, adapter->a) &&
           name_part(program, names, adapter->weight, adapter->b);
  }
  return good;
}

char **rt_weights_names(const struct accel_program *program, const char *path, struct problem *problem) {
  struct weights_file file;
  if (path != NULL && !rt_weights_open(&file, program, path, problem)) return NULL;
  char **names = calloc((size_t)program->n_tensors + 1, sizeof *names);
  if (names == NULL || !name_all(program, path != NULL ? &file : NULL, names)) {
    rt_problem(problem, "no memory for the names of tensors");
    if (names != NULL) rt_weights_names_free(program, names);
    names = NULL;
  }
  if (path != NULL) rt_weights_close(&file);
  return names;
}

void rt_weights_names_free(const struct accel_program *program, char **names) {
  for (int i = 0; names != NULL && i < program->n_tensors; i++) free(names[i]);
  free(names);
}

static bool is_of_file(const char *output, const char *weights) {
  char path[4096];
  return rt_is_same_file(output, weights) ||
         (rt_shards_of_folder(weights, path, sizeof path) && rt_is_same_file(output, path));
}

bool rt_is_of_weights(const struct accel_start_file *start, const char *output, const char *weights) {
  bool found = weights != NULL && is_of_file(output, weights);
  for (int i = 0; i < start->n_renames && !found; i++)
    found = start->renames[i].path != NULL && is_of_file(output, start->renames[i].path);
  return found;
}
