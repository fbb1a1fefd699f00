#include "gen/commands/start/tensors.h"

#include <fnmatch.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/base/text.h"
#include "runtime/weights/shards.h"
#include "runtime/weights/weights.h"

/* ---- The program as the runtime has it ---- */

static struct accel_tensor tensor_of(const struct weight *weight) {
  const struct parameter *p = weight->parameter;
  struct accel_tensor tensor = {
      .name = weight->path, .rank = p->shape.rank, .dtype = p->dtype == DTYPE_INT64 ? ACCEL_INT64 : ACCEL_FLOAT32};
  for (int i = 0; i < p->shape.rank; i++) tensor.shape[i] = p->shape.dim[i];
  return tensor;
}

static struct accel_start_file start_of(struct arena *arena, const struct program *program) {
  const struct job *job = program->job;
  const char **ignored = arena_alloc(arena, ((size_t)job->model.n_ignore + 1) * sizeof *ignored);
  int *fresh = arena_alloc(arena, ((size_t)program->weights->count + 1) * sizeof *fresh), n_fresh = 0;
  struct accel_rename *renames = arena_alloc(arena, ((size_t)job->model.n_weights_map + 1) * sizeof *renames);
  for (int i = 0; i < job->model.n_ignore; i++) ignored[i] = job->model.ignore[i].name;
  for (int i = 0; i < program->weights->count; i++)
    if (program->weights->items[i].fresh) fresh[n_fresh++] = i;
  for (int i = 0; i < job->model.n_weights_map; i++) {
    const struct weights_rule *rule = &job->model.weights_map[i];
    renames[i] = (struct accel_rename){rule->from.name, rule->to.name, rule->path.name};
  }
  return (struct accel_start_file){.path = job->model.weights,
                                   .prefix = job->model.weights_prefix,
                                   .fresh = fresh,
                                   .n_fresh = n_fresh,
                                   .ignored = ignored,
                                   .n_ignored = job->model.n_ignore,
                                   .renames = renames,
                                   .n_renames = job->model.n_weights_map};
}

static struct accel_program runtime_program(struct arena *arena, const struct program *program) {
  const int count = program->weights->count;
  struct accel_tensor *tensors = arena_alloc(arena, ((size_t)count + 1) * sizeof *tensors);
  for (int i = 0; i < count; i++) tensors[i] = tensor_of(&program->weights->items[i]);
  return (struct accel_program){.tensors = tensors, .n_tensors = count, .start = start_of(arena, program)};
}

/* ---- Names of other times ---- */

const char *tensors_map(const char *path) {
  static const struct {
    const char *ending, *map;
  } old[] = {
      {".gamma", "[{from: \"*.gamma\", to: \"*.weight\"}, {from: \"*.beta\", to: \"*.bias\"}]"}, /* TensorFlow's */
      {"mid_block.attentions.0.proj_attn.weight", /* of diffusers, before it had one class of attention */
       "[{from: \"*.query.*\", to: \"*.to_q.*\"}, {from: \"*.key.*\", to: \"*.to_k.*\"}, "
       "{from: \"*.value.*\", to: \"*.to_v.*\"}, {from: \"*.proj_attn.*\", to: \"*.to_out.0.*\"}]"}};
  struct shards shards;
  struct problem unread; /* what is wrong with the file is reported when its tensors are compared */
  const char *map = NULL;
  if (!rt_shards_open(&shards, path, "", &unread)) return NULL;
  for (int i = 0; i < shards.n_tensors && map == NULL; i++)
    for (size_t k = 0; k < sizeof old / sizeof *old; k++)
      if (has_ending(shards.by_name[i]->name, old[k].ending)) map = old[k].map;
  rt_shards_close(&shards);
  return map;
}

bool tensors_are_in(const char *folder) {
  char path[4096];
  return rt_shards_of_folder(folder, path, sizeof path);
}

/* ---- Comparing ---- */

static void add(struct arena *arena, struct tensor_table *table, struct tensor_row row) {
  table->states[row.state]++;
  ARENA_PUSH(arena, *table, row);
}

static const char *shape_words(struct arena *arena, int rank, const int64_t *shape) {
  char text[200];
  return arena_string(arena, rt_shape_text(text, sizeof text, rank, shape));
}

static bool is_like(const struct accel_tensor *wanted, const struct stored_tensor *stored) {
  const bool floats =
      strcmp(stored->dtype, "F32") == 0 || strcmp(stored->dtype, "F16") == 0 || strcmp(stored->dtype, "BF16") == 0;
  return wanted->rank == stored->rank && memcmp(wanted->shape, stored->shape, (size_t)wanted->rank * 8) == 0 &&
         (wanted->dtype == ACCEL_INT64 ? strcmp(stored->dtype, "I64") == 0 : floats);
}

static bool is_fresh(const struct accel_start_file *start, int tensor) {
  for (int i = 0; i < start->n_fresh; i++)
    if (start->fresh[i] == tensor) return true;
  return false;
}

static void add_parameter(struct arena *arena, struct tensor_table *table, const struct accel_program *program,
                          const struct named_tensor *found, int i) {
  const struct accel_tensor *wanted = &program->tensors[i];
  struct tensor_row row = {.parameter = wanted->name};
  if (found != NULL) {
    row.state = is_like(wanted, found->tensor) ? TENSOR_USED : TENSOR_UNLIKE;
    row.name = arena_string(arena, found->tensor->name);
    row.dtype = arena_string(arena, found->tensor->dtype);
    row.shape = shape_words(arena, found->tensor->rank, found->tensor->shape);
  } else {
    row.state = is_fresh(&program->start, i) ? TENSOR_FRESH : TENSOR_MISSING;
    row.dtype = wanted->dtype == ACCEL_INT64 ? "I64" : "F32";
    row.shape = shape_words(arena, wanted->rank, wanted->shape);
  }
  add(arena, table, row);
}

/* Buffers of older files of transformers: masks [1, 1, n, n], the number that hides, angles, numbers of positions. */
static bool is_mask(const struct stored_tensor *tensor) {
  static const struct {
    const char *ending;
    int rank;
  } known[] = {{"attn.bias", 4},           {"attention.bias", 4}, {"attn.masked_bias", 0}, {"attention.masked_bias", 0},
               {"rotary_emb.inv_freq", 1}, {"position_ids", 2}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (tensor->rank == known[i].rank && has_ending(tensor->name, known[i].ending)) return true;
  return false;
}

/* Whether a tensor that is used has the same bytes: a tied one that is stored twice. */
static bool is_copy(const struct weights_file *file, int n_tensors, const struct stored_tensor *tensor) {
  for (int i = 0; i < n_tensors; i++) {
    const struct stored_tensor *other = file->matched[i] != NULL ? file->matched[i]->tensor : NULL;
    if (other == NULL || other->size != tensor->size || other->size == 0 || strcmp(other->dtype, tensor->dtype) != 0)
      continue;
    if (other->rank == tensor->rank && memcmp(other->bytes, tensor->bytes, tensor->size) == 0) return true;
  }
  return false;
}

static bool is_used(const struct weights_file *file, int n_tensors, const struct named_tensor *tensor) {
  for (int i = 0; i < n_tensors; i++)
    if (file->matched[i] == tensor) return true;
  return false;
}

static bool is_ignored(const struct accel_start_file *start, const char *name) {
  for (int i = 0; i < start->n_ignored; i++)
    if (fnmatch(start->ignored[i], name, FNM_NOESCAPE) == 0) return true;
  return false;
}

/* The pattern that the name is one of; NULL: it is none of any. */
static const char *pattern_for(const struct model_texts *patterns, const char *name) {
  for (int i = 0; i < patterns->count; i++)
    if (fnmatch(patterns->items[i], name, FNM_NOESCAPE) == 0) return patterns->items[i];
  return NULL;
}

static void add_extra(struct arena *arena, struct tensor_table *table, const struct accel_program *program,
                      const struct model_texts *heads, const struct weights_file *file,
                      const struct named_tensor *found) {
  const struct stored_tensor *tensor = found->tensor;
  if (is_used(file, program->n_tensors, found)) return;
  const enum tensor_state state = is_ignored(&program->start, tensor->name)   ? TENSOR_IGNORED
                                  : is_mask(tensor)                           ? TENSOR_MASK
                                  : pattern_for(heads, tensor->name) != NULL  ? TENSOR_HEAD
                                  : is_copy(file, program->n_tensors, tensor) ? TENSOR_COPY
                                                                              : TENSOR_UNUSED;
  add(arena, table,
      (struct tensor_row){.state = state,
                          .name = arena_string(arena, tensor->name),
                          .pattern = state == TENSOR_HEAD ? pattern_for(heads, tensor->name) : NULL,
                          .dtype = arena_string(arena, tensor->dtype),
                          .shape = shape_words(arena, tensor->rank, tensor->shape)});
}

bool tensors_compare(const struct program *program, const struct model_texts *heads, struct tensor_table *table,
                     struct diagnostics *diags) {
  struct arena *arena = program->arena;
  const struct accel_program own = runtime_program(arena, program);
  struct weights_file file;
  struct problem problem;
  *table = (struct tensor_table){0};
  if (!rt_weights_match(&file, &own, own.start.path, &problem)) {
    diag_error(diags, job_where(program->job, "model.weights"), "%s", problem.what);
    if (problem.help[0] != '\0') diag_help(diags, "%s", problem.help);
    return false;
  }
  for (int i = 0; i < own.n_tensors; i++) add_parameter(arena, table, &own, file.matched[i], i);
  for (int i = 0; i < file.sources.n_tensors; i++)
    add_extra(arena, table, &own, heads, &file, &file.sources.tensors[i]);
  rt_weights_close(&file);
  return true;
}

/* ---- What is wrong ---- */

/* The first names of a state, with how many more there are. */
static const char *names_of(struct arena *arena, const struct tensor_table *table, enum tensor_state state) {
  enum { SHOWN = 8 };
  struct text out = text_in(arena);
  int count = 0;
  for (int i = 0; i < table->count; i++) {
    const struct tensor_row *row = &table->items[i];
    if (row->state != state || count++ >= SHOWN) continue;
    text_printf(&out, "%s%s", count > 1 ? ", " : "", row->parameter != NULL ? row->parameter : row->name);
    if (state == TENSOR_UNLIKE) text_printf(&out, " (%s %s there)", row->shape, row->dtype);
  }
  if (count > SHOWN) text_printf(&out, " and %d more", count - SHOWN);
  return text_string(&out);
}

bool tensors_check(const struct program *program, const struct tensor_table *table, struct diagnostics *diags) {
  static const struct {
    enum tensor_state state;
    const char *what, *help;
  } wrong[] = {{TENSOR_MISSING, "no tensor for the parameters",
                "--set 'model.fresh=[NAME, ...]' initializes them, as a new head's; weights_map renames tensors"},
               {TENSOR_UNUSED, "tensors that this model does not have:",
                "--set 'model.ignore=[NAME, ...]' leaves them out, with * and ?"},
               {TENSOR_UNLIKE, "tensors of another shape or type:", "give weights that the config.json is of"}};
  const int before = diags->errors;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (table->states[wrong[i].state] == 0) continue;
    diag_error(diags, (struct location){.file = program->job->model.weights}, "%s %s", wrong[i].what,
               names_of(program->arena, table, wrong[i].state));
    diag_help(diags, "%s", wrong[i].help);
  }
  return diags->errors == before;
}

/* "h.11.attn.bias" as "h.*.attn.bias". */
static const char *pattern_of(struct arena *arena, const char *name) {
  struct text out = text_in(arena);
  for (const char *part = name; *part != '\0';) {
    const size_t length = strcspn(part, ".");
    const bool number = length > 0 && strspn(part, "0123456789") == length;
    text_printf(&out, "%s%.*s", part > name ? "." : "", number ? 1 : (int)length, number ? "*" : part);
    part += length + (part[length] == '.');
  }
  return text_string(&out);
}

const char **tensors_ignorable(struct arena *arena, const struct tensor_table *table, int *count) {
  const char **patterns = arena_alloc(arena, ((size_t)table->count + 1) * sizeof *patterns);
  *count = 0;
  for (int i = 0; i < table->count; i++) {
    const struct tensor_row *row = &table->items[i];
    if (row->state != TENSOR_MASK && row->state != TENSOR_HEAD && row->state != TENSOR_COPY) continue;
    bool known = false;
    for (int k = 0; k < *count; k++) known |= fnmatch(patterns[k], row->name, FNM_NOESCAPE) == 0;
    if (known) continue;
    patterns[(*count)++] = row->state == TENSOR_MASK   ? pattern_of(arena, row->name)
                           : row->state == TENSOR_HEAD ? row->pattern
                                                       : row->name;
  }
  return patterns;
}

/* ---- The table ---- */

static const char *const state_names[] = {"used",        "fresh",   "ignored", "not needed", "another head's",
                                          "a tied copy", "MISSING", "UNUSED",  "UNLIKE"};

const char *tensors_summary(struct arena *arena, const struct tensor_table *table) {
  struct text out = text_in(arena);
  for (int i = 0; i < TENSOR_STATES; i++)
    if (table->states[i] > 0)
      text_printf(&out, "%s%d %s", out.length > 0 ? ", " : "", table->states[i], state_names[i]);
  return text_string(&out);
}

const char *tensors_text(struct arena *arena, const struct tensor_table *table) {
  struct text out = text_in(arena);
  size_t width = strlen("parameter"), other = strlen("tensor");
  for (int i = 0; i < table->count; i++) {
    const struct tensor_row *row = &table->items[i];
    if (row->parameter != NULL && strlen(row->parameter) > width) width = strlen(row->parameter);
    if (row->name != NULL && strlen(row->name) > other) other = strlen(row->name);
  }
  text_printf(&out, "%-*s  %-*s  %-20s %-5s %s\n", (int)width, "parameter", (int)other, "tensor", "shape", "type", "");
  for (int i = 0; i < table->count; i++) {
    const struct tensor_row *row = &table->items[i];
    text_printf(&out, "%-*s  %-*s  %-20s %-5s %s\n", (int)width, row->parameter != NULL ? row->parameter : "-",
                (int)other, row->name != NULL ? row->name : "-", row->shape, row->dtype, state_names[row->state]);
  }
  text_printf(&out, "tensors: %s\n", tensors_summary(arena, table));
  return text_string(&out);
}

json_t *tensors_json(const struct tensor_table *table) {
  json_t *list = json_array();
  for (int i = 0; i < table->count; i++) {
    const struct tensor_row *row = &table->items[i];
    json_array_append_new(list,
                          json_pack("{s:s, s:s?, s:s?, s:s, s:s}", "state", state_names[row->state], "parameter",
                                    row->parameter, "tensor", row->name, "shape", row->shape, "dtype", row->dtype));
  }
  return list;
}
