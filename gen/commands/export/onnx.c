/* The inference graph of a folder's model as ONNX: the model's function `predict` at several sizes of a batch and of a
 * sequence, which are what the graph of ONNX follows. */
#include <string.h>

#include "gen/commands/cli/commands.h"
#include "gen/commands/export/onnx_file.h"
#include "gen/model/published.h"
#include "gen/model/sample.h"

/* The longest sequence at which a model is tried that has no limit itself, and the shortest limit. */
enum { FAR = 1 << 16, SHORTEST = 8 };

/* What the model takes. */
struct entry {
  struct onnx_sizes sizes;
  struct sample_tensors samples; /* `tokens` alone, or tensors of other names */
  int64_t positions;             /* of a sequence, at most; 0: it has no limit, or is none */
};

static bool fail(const struct exported *of, const char *what, const char *help) {
  diag_error(of->diags, (struct location){.file = of->family.source}, "%s", what);
  diag_help(of->diags, "%s", help);
  return false;
}

/* Of the named tensors, `input_ids` says how long a sequence is. */
static bool read_samples(const struct exported *of, struct entry *entry) {
  const struct model_request request = {.entry = "model",
                                        .config = of->family.values,
                                        .n_config = of->family.n_values,
                                        .config_where = (struct location){.file = of->family.config}};
  const struct sample_tensor tokens = {.name = "tokens", .shape = shape_of(1, of->family.positions), .whole = true};
  if (!model_sample(of->arena, of->family.model, &request, &entry->samples, of->diags)) return false;
  if (entry->samples.count == 0) ARENA_PUSH(of->arena, entry->samples, tokens);
  for (int i = 0; i < entry->samples.count; i++) {
    struct sample_tensor *sample = &entry->samples.items[i];
    sample->whole |= strcmp(sample->name, "tokens") == 0;
    const bool names = strcmp(sample->name, "tokens") == 0 || strcmp(sample->name, "input_ids") == 0;
    if (names && sample->shape.rank == 1) entry->positions = sample->shape.dim[0];
  }
  return true;
}

/* Whether an input is [batch][sequence]. */
static bool is_along(const struct entry *entry, const struct sample_tensor *sample) {
  const bool alike = entry->positions > 0 && sample->shape.rank == 1 && sample->shape.dim[0] == entry->positions;
  return alike || strcmp(sample->name, "tokens") == 0;
}

/* Whether a row is an image, whose extents the model says. */
static bool is_image(const struct sample_tensor *sample) {
  return strcmp(sample->name, "features") == 0 && sample->shape.rank == 3;
}

static bool choose_sizes(const struct exported *of, int batch, int sequence, struct entry *entry) {
  const int64_t most = entry->positions > 0 ? entry->positions : FAR;
  const struct onnx_sizes any = {.batch = {2, 3, 2, 3, 5}, .sequence = {5, 5, 7, 7, most}};
  bool has_sequence = false;
  for (int i = 0; i < entry->samples.count; i++) has_sequence |= is_along(entry, &entry->samples.items[i]);
  entry->sizes = any;
  if (!has_sequence && sequence > 0)
    return fail(of, "it reads no sequences, whose length --sequence fixes", "leave --sequence out");
  if (!has_sequence) sequence = 1; /* nothing follows it */
  if (sequence == 0 && most < SHORTEST)
    return fail(of, "its sequences are too short to tell what follows their length", "--sequence N fixes it");
  for (int i = 0; i < ONNX_SIZES; i++) {
    if (batch > 0) entry->sizes.batch[i] = batch;
    if (sequence > 0) entry->sizes.sequence[i] = sequence;
  }
  return true;
}

static const struct graph *graph_at(const struct exported *of, const struct entry *entry, int size) {
  struct model_input *inputs = arena_alloc(of->arena, (size_t)entry->samples.count * sizeof *inputs);
  for (int i = 0; i < entry->samples.count; i++) {
    const struct sample_tensor *sample = &entry->samples.items[i];
    struct shape shape = shape_of(1, entry->sizes.batch[size]);
    for (int k = 0; k < sample->shape.rank && !is_image(sample); k++) shape.dim[shape.rank++] = sample->shape.dim[k];
    if (is_image(sample)) shape.dim[shape.rank++] = shape_count(sample->shape);
    if (is_along(entry, sample)) shape.dim[1] = entry->sizes.sequence[size];
    inputs[i] = (struct model_input){sample->name, shape, sample->whole ? DTYPE_INT32 : DTYPE_FLOAT32};
  }
  const struct model_request request = {.entry = "predict",
                                        .config = of->family.values,
                                        .n_config = of->family.n_values,
                                        .config_where = (struct location){.file = of->family.config},
                                        .inputs = inputs,
                                        .n_inputs = entry->samples.count};
  return model_graph(of->arena, of->family.model, &request, of->diags);
}

/* At the longest sequence, a part of all positions may be all of them, which is another graph: one position less serves
 * then. A window that is as long as that hides nothing there, and is refused. */
static bool read_graphs(const struct exported *of, struct entry *entry, const struct graph **graphs) {
  const struct onnx_sizes *sizes = &entry->sizes;
  const int far = ONNX_SIZES - 1;
  for (int i = 0; i < ONNX_SIZES; i++) {
    const bool same = i > 0 && sizes->batch[i] == sizes->batch[0] && sizes->sequence[i] == sizes->sequence[0];
    graphs[i] = same ? graphs[0] : graph_at(of, entry, i);
    if (graphs[i] == NULL) return false;
  }
  if (sizes->sequence[far] == sizes->sequence[0] || onnx_is_alike(of->arena, graphs[0], graphs[far])) return true;
  if (onnx_has_window(of->arena, graphs[far], --entry->sizes.sequence[far]))
    return fail(of,
                "attention sees all positions of the longest sequence but one, and shorter ones do not show its window",
                "--sequence N fixes the length");
  graphs[far] = graph_at(of, entry, far);
  return graphs[far] != NULL;
}

/* The graph's inputs by transformers' names. */
static const struct onnx_input *inputs_of(const struct exported *of, const struct entry *entry,
                                          const struct graph *graph) {
  const struct value_list *values = &graph->entry->inputs;
  struct onnx_input *inputs = arena_alloc(of->arena, ((size_t)values->count + 1) * sizeof *inputs);
  for (int i = 0; i < values->count; i++)
    for (int k = 0; k < entry->samples.count; k++) {
      const struct sample_tensor *sample = &entry->samples.items[k];
      if (strcmp(sample->name, values->items[i]->name) != 0) continue;
      inputs[i].name = strcmp(sample->name, "tokens") == 0 ? "input_ids" : sample->name;
      inputs[i].along = is_along(entry, sample);
      if (!is_image(sample)) continue;
      inputs[i].name = "pixel_values";
      inputs[i].sample = sample->shape;
    }
  return inputs;
}

/* Whoever runs the graph gives it token numbers of [batch][sequence], or images. */
static bool check_inputs(const struct exported *of, const struct onnx_input *inputs, const struct graph *graph) {
  for (int i = 0; i < graph->entry->inputs.count; i++)
    if (!inputs[i].along && inputs[i].sample.rank == 0)
      return fail(of,
                  arena_printf(of->arena, "'predict' takes '%s', which is neither [batch][sequence] nor an image",
                               graph->entry->inputs.items[i]->name),
                  "docs/models.md lists the classes that are exported as ONNX");
  return true;
}

int onnx_write(struct exported *of, int batch, int sequence, const char *output) {
  static const char *const usual[] = {"logits"};
  struct entry entry = {0};
  const struct graph *graphs[ONNX_SIZES];
  struct onnx_graph made;
  if (!model_has(of->family.model, "predict")) {
    fail(of, "the model has no function 'predict', which the graph is made of",
         "docs/models.md says which ones have it");
    return STATUS_BAD_JOB;
  }
  if (model_takes(of->family.model, "predict", "tokens") && !model_takes(of->family.model, "model", "tokens")) {
    fail(of, "'predict' writes a text from another input, and the graph would need what reads that and what writes",
         "docs/models.md lists the classes that are exported as ONNX");
    return STATUS_BAD_JOB;
  }
  if (!read_samples(of, &entry) || !choose_sizes(of, batch, sequence, &entry)) return STATUS_BAD_JOB;
  if (!read_graphs(of, &entry, graphs)) return STATUS_BAD_JOB;
  const struct onnx_input *inputs = inputs_of(of, &entry, graphs[0]);
  if (!check_inputs(of, inputs, graphs[0])) return STATUS_BAD_JOB;
  const struct model_texts own = model_published_outputs(of->arena, of->family.model);
  const char *const *outputs = own.count > 0 ? own.items : usual;
  if (!onnx_make(of->arena, &entry.sizes, graphs, inputs, outputs, own.count > 0 ? own.count : 1, &made, of->diags))
    return STATUS_BAD_JOB;
  return onnx_write_file(of, &made, output);
}
