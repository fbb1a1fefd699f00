#include "gen/plan/report/report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/plan/kernels/predict.h"
#include "gen/plan/memory/alias.h"
#include "gen/plan/ranks/sharing.h"
#include "gen/plan/ranks/tree.h"
#include "gen/plan/report/bytes.h"
#include "gen/plan/report/stages.h"
#include "gen/plan/report/traffic.h"
#include "gen/program/choose.h"
#include "gen/program/fp8.h"
#include "gen/program/quantized.h"
#include "gen/program/results.h"
#include "gen/program/state.h"
#include "gen/program/streams.h"
#include "gen/program/target.h"
#include "gen/program/weight_names.h"
#include "gen/program/weights.h"

static double mebibytes(int64_t bytes) {
  return (double)bytes / (1024.0 * 1024.0);
}

static void add_model(struct text *text, const struct program *program) {
  text_printf(text, "model     %s: ", name_in_folder(program->job->model.source));
  if (program->figures.n_layers > 1) text_printf(text, "%d layers, ", program->figures.n_layers);
  text_printf(text, "%s parameters", count_text(text->arena, program->figures.n_parameters));
  if (program->figures.n_tied > 0) text_printf(text, " (%lld tied)", (long long)program->figures.n_tied);
  if (program->figures.n_frozen > 0)
    text_printf(text, " (%s frozen)", count_text(text->arena, program->figures.n_frozen));
  text_puts(text, "\n");
}

/* The axis whose ranks divide parameters. */
static enum axis split_axis(const struct program *program) {
  return axis_sharding(program, program->figures.n_expert_weights > 0 ? SHARDED_EXPERTS : SHARDED_TENSORS);
}

/* What tensor or expert parallelism divides. */
static void add_split(struct text *text, const struct program *program) {
  const struct program_figures *figures = &program->figures;
  int ranks = (int)ranks_along(program, split_axis(program));
  int others = figures->n_expert_weights * (ranks - 1); /* that other ranks have */
  if (figures->n_split == 0) return;
  text_printf(text, "split     %d of %d parameters among %d ranks (%s); each has %s of %s elements\n",
              figures->n_split + others, program->weights->count + others, ranks, job_axis_names[split_axis(program)],
              count_text(text->arena, figures->own_elements), count_text(text->arena, figures->n_parameters));
}

static void add_step(struct text *text, const struct program *program) {
  const struct job *job = program->job;
  bool trains = program->kind == PROGRAM_TRAIN;
  int64_t samples = (int64_t)job->data.batch_size * (trains ? job->accumulation.num_steps * job_batch_ranks(job) : 1);
  const char *unit = trains ? "step " : "batch";
  if (program->kind == PROGRAM_GENERATE && program->decode.endless)
    text_puts(text, "token     computes 1 position of any number, ");
  else if (program->kind == PROGRAM_GENERATE)
    text_printf(text, "token     computes %s %d positions, ", program->decode.recomputed != NULL ? "all" : "1 of",
                job->data.sequence_length);
  else if (job_has_rows(job))
    text_printf(text, "%s     %lld rows, ", unit, (long long)samples);
  else
    text_printf(text, "%s     %lld x %d = %s tokens, ", unit, (long long)samples, job->data.sequence_length,
                count_text(text->arena, samples * job->data.sequence_length));
  text_printf(text, "%s (matmuls %.0f %%)\n", flops_text(text->arena, program->figures.flops_per_step),
              100.0 * program->figures.matmul_flops_per_step / program->figures.flops_per_step);
}

/* The name of the state to which an array belongs: with its values, or with the scales of its codes. */
static const char *name_of(const struct state *state) {
  return state->scales_of != NULL ? state->scales_of : state->name;
}

/* What the host keeps of one state, from its first array on; 0: this is not the first. A state of 8 bits has codes,
 * their scales and the floats of what has no codes. */
static int64_t host_bytes(const struct program *program, int first) {
  const struct state *states = program->states.items;
  int64_t bytes = 0;
  for (int i = 0; i < program->states.count; i++) {
    if (!states[i].on_host || strcmp(name_of(&states[i]), name_of(&states[first])) != 0) continue;
    if (i < first) return 0;
    bytes += state_bytes(&states[i]);
  }
  return bytes;
}

static void add_host(struct text *text, const struct program *program) {
  if (program->figures.bytes.host == 0) return;
  text_printf(text, "host      %.1f MiB, pinned", mebibytes(program->figures.bytes.host));
  const char *between = ": ";
  if (program->streams) {
    text_printf(text, ": layers %.1f, read from files %.1f", mebibytes(streamed_bytes(program, false)),
                mebibytes(STREAM_PIECES * largest_read(program)));
  }
  for (int i = 0; i < program->states.count; i++) {
    const struct state *state = &program->states.items[i];
    const int64_t bytes = host_bytes(program, i);
    if (bytes == 0) continue;
    text_printf(text, "%s%s %.1f", between, *state->name != '\0' ? state->name : "weights", mebibytes(bytes));
    between = ", ";
  }
  text_puts(text, "\n");
}

/* What reads layers takes in addition to the arena. */
static void add_reads(struct text *text, const struct program *program) {
  const int64_t bytes = stream_buffer_bytes(program);
  if (bytes > 0) text_printf(text, "buffers   %.1f MiB more, into which blocks of layers are read\n", mebibytes(bytes));
}

static int64_t layer_bytes(const struct program *program) {
  return layers_are_on_disk(program) ? streamed_bytes(program, true) : 0;
}

/* Each step reads all states and writes them. It writes layers once and reads them twice, but for those that have a
 * slot between the forward and the backward. */
static int64_t read_bytes(const struct program *program) {
  const int count = layers_are_on_disk(program) ? program->ranks.fsdp_units.count : 0;
  int64_t bytes = program->figures.bytes.disk + layer_bytes(program);
  for (int u = 0; u < count; u++) {
    const char *path = program->ranks.fsdp_units.items[u].paths[0];
    const struct weight_node *node = weight_node_at(program->weights->root, path);
    const bool stays = weight_element(node) >= node->array->count - node->array->slots;
    if (stays) bytes -= streamed_unit_bytes(program, u);
  }
  return bytes;
}

static void add_disk(struct text *text, const struct program *program) {
  const struct program_disk *disk = &program->disk;
  if (disk->n_states == 0) return;
  const double bytes = mebibytes(program->figures.bytes.disk), layers = mebibytes(layer_bytes(program));
  text_printf(text, "disk      %.1f MiB in %lld buckets", bytes, (long long)disk->buckets);
  for (int i = 0; i < disk->n_states; i++)
    text_printf(text, "%s%s %.1f", i == 0 ? ": " : ", ", program->states.items[disk->first_state + i].name,
                (bytes - layers) / disk->n_states);
  if (layers > 0) text_printf(text, ", layers %.1f", layers);
  text_printf(text, "; a step reads %.1f and writes %.1f\n", mebibytes(read_bytes(program)), bytes);
  text_printf(text, "          %lld of them at a time in memory", (long long)(disk->slots + disk->ahead.slots));
  if (disk->ahead.slots > 0)
    text_printf(text, ", %lld in that of gradients that are not written yet", (long long)disk->ahead.slots);
  if (layers > 0) text_printf(text, ", and two layers");
  text_printf(text, "; updated %s the backward\n", disk->in_backward ? "within" : "after");
}

/* Bytes on each of the devices of what is placed so along the axis whose devices divide states. */
static int64_t on_device(int devices, enum placement_form placed, int64_t bytes) {
  return placed == PLACED_SPLIT ? (bytes + devices - 1) / devices : bytes;
}

/* Of a module: what it needs at least; its compiler finds how much more. */
static void add_least_memory(struct text *text, const struct program *program) {
  const struct mesh_axis *axis = &program->mesh.axes[program->mesh.devices];
  const struct memory_bytes *all = &program->figures.bytes;
  const int devices = program->kind == PROGRAM_TRAIN ? target_devices(program->job) : 1;
  const int64_t weights = on_device(devices, axis->weights, all->weights);
  const int64_t optimizer = on_device(devices, axis->states, all->optimizer);
  const int64_t averages = on_device(devices, axis->states, all->averages);
  const int64_t total = all->total - all->weights - all->optimizer - all->averages + weights + optimizer + averages;
  text_printf(text, "memory    at least %.1f MiB", mebibytes(total));
  if (devices > 1) text_printf(text, " on each of %d devices", devices);
  text_printf(text, ": weights %.1f", mebibytes(weights));
  if (program->kind == PROGRAM_TRAIN)
    text_printf(text, ", gradients %.1f, optimizer %.1f", mebibytes(all->gradients), mebibytes(optimizer));
  if (all->averages > 0) text_printf(text, ", averages %.1f", mebibytes(averages));
  if (all->cache > 0) text_printf(text, ", cache %.1f", mebibytes(all->cache));
  text_puts(text, "\n");
}

static void add_memory(struct text *text, const struct program *program) {
  if (program->target->module != NULL) {
    add_least_memory(text, program);
    return;
  }
  text_printf(text, "memory    %.1f MiB: weights %.1f", mebibytes(program->figures.bytes.total),
              mebibytes(program->figures.bytes.weights));
  if (program->figures.bytes.cache > 0) text_printf(text, ", cache %.1f", mebibytes(program->figures.bytes.cache));
  if (program->kind == PROGRAM_TRAIN)
    text_printf(text, ", gradients %.1f, optimizer %.1f, activations %.1f", mebibytes(program->figures.bytes.gradients),
                mebibytes(program->figures.bytes.optimizer), mebibytes(program->figures.bytes.activations));
  if (program->figures.bytes.averages > 0)
    text_printf(text, ", averages %.1f", mebibytes(program->figures.bytes.averages));
  if (program->figures.bytes.checkpoint > 0)
    text_printf(text, ", checkpoint %.1f", mebibytes(program->figures.bytes.checkpoint));
  text_printf(text, ", scratch %.1f\n", mebibytes(program->figures.bytes.scratch + program->figures.bytes.batch));
  if (aliased_bytes(program) > 0)
    text_printf(text, "aliased   %.1f MiB more of activations, in memory of gradients that are not written yet\n",
                mebibytes(aliased_bytes(program)));
  add_host(text, program);
  add_reads(text, program);
  add_disk(text, program);
}

/* Bytes of the weights in codes: their codes, their scales of all kinds, and what they would take as floats. */
struct quantized_bytes {
  int64_t codes, scales, floats;
};

static struct quantized_bytes quantized_bytes(const struct program *program) {
  struct quantized_bytes bytes = {0};
  for (int i = 0; i < program->quantized.count; i++) {
    const struct quantized *quantized = &program->quantized.items[i];
    bytes.codes += shape_count(weight_named(program->weights, quantized->weight)->parameter->shape);
    bytes.floats += quantized->out * quantized->in * dtype_size(DTYPE_FLOAT32);
    for (int k = 0; k < QUANTIZED_PARTS; k++) {
      const struct weight *scales = quantized_buffer(program, quantized, k);
      if (scales != NULL) bytes.scales += shape_count(scales->parameter->shape) * dtype_size(scales->parameter->dtype);
    }
  }
  return bytes;
}

static void add_quantized(struct text *text, const struct program *program) {
  const struct job *job = program->job;
  const struct quantized_bytes bytes = quantized_bytes(program);
  if (program->quantized.count == 0) return;
  text_printf(text, "quantized %d weights in %s: codes %.1f MiB, scales %.1f; in float32 they would take %.1f\n",
              program->quantized.count,
              job->model.quantize.quant_type != NULL ? job->model.quantize.quant_type
              : job->model.quantize.load_in_8bit     ? "int8"
                                                     : job_word(job, "model.quantize.bnb_4bit_quant_type"),
              mebibytes(bytes.codes), mebibytes(bytes.scales), mebibytes(bytes.floats));
}

/* Which numbers linear layers multiply, and by what. */
static void add_fp8(struct text *text, const struct program *program) {
  const struct job *job = program->job;
  const bool te = job->precision.fp8.backend == FP8_TE;
  const char *when =
      program->kind != PROGRAM_TRAIN && te && !job->precision.fp8.in_evaluation ? " in training alone" : "";
  if (!job->precision.fp8.on) return;
  if (fp8_has_codes(program))
    text_printf(text, "fp8       linear layers, rounded to 8 bits%s, multiplied so by cuBLASLt\n", when);
  else
    text_printf(text, "fp8       linear layers, emulated: rounded to 8 bits%s, multiplied in %s\n", when,
                job->precision.autocast ? "bfloat16" : "float32");
}

/* An evaluation of other batches than those of training. */
static void add_evaluation_batch(struct text *text, const struct program *program) {
  const struct job *job = program->job;
  if (program->kind != PROGRAM_TRAIN || !job_evaluates_other_batches(job) || program->entry.second == NULL) return;
  const long long samples = (long long)job_eval_batch(job), excess = (long long)evaluation_excess(program);
  const char *of = evaluation_reuses_saved(program) ? "activations and scratch" : "scratch";
  text_printf(text, "evaluates %lld %s a batch, in %.1f MiB: in memory of %s", samples,
              job_has_rows(job) ? "rows" : arena_printf(text->arena, "x %d tokens", job->data.sequence_length),
              mebibytes(program->entry.second->scratch_bytes), of);
  if (excess > 0) text_printf(text, ", and %.1f more", mebibytes(excess));
  text_puts(text, "\n");
}

const char *classes_text(struct arena *arena, const struct memory_bytes *bytes) {
  const struct {
    const char *name;
    int64_t bytes;
  } classes[] = {{"weights", bytes->weights},         {"cache", bytes->cache},
                 {"gradients", bytes->gradients},     {"optimizer", bytes->optimizer},
                 {"averages", bytes->averages},       {"checkpoint", bytes->checkpoint},
                 {"activations", bytes->activations}, {"scratch", bytes->scratch + bytes->batch}};
  struct text text = text_in(arena);
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
    if (classes[i].bytes > 0)
      text_printf(&text, "%s%s %s", i > 0 ? ", " : "", classes[i].name, bytes_text(arena, classes[i].bytes));
  return text_string(&text);
}

static void add_savings(struct text *text, const struct program *program) {
  for (int i = 0; i < program->figures.n_savings; i++) {
    const struct saving *saving = &program->figures.savings[i];
    double percent = 100 * saving->flops / (program->figures.flops_per_step - saving->flops);
    int64_t size = saving->bytes < 0 ? -saving->bytes : saving->bytes;
    text_printf(text, "%-9s %s by %s, for %s more a step (%.0f %%)\n", saving->bytes < 0 ? "lost" : "saved",
                bytes_text(text->arena, size), saving->measure, flops_text(text->arena, saving->flops), percent);
  }
}

const char *report_text(const struct program *program) {
  struct text text = text_in(program->arena);
  add_model(&text, program);
  add_split(&text, program);
  add_step(&text, program);
  add_memory(&text, program);
  add_quantized(&text, program);
  add_evaluation_batch(&text, program);
  text_puts(&text, stages_text(program));
  add_savings(&text, program);
  if (program->bits16 != DTYPE_FLOAT32)
    text_printf(&text, "precision %s %s, weights and their gradients in float32\n", dtype_name(program->bits16),
                program->job->precision.param == PRECISION_NO ? "by autocast" : "throughout");
  add_fp8(&text, program);
  if (program->decode.recomputed != NULL)
    text_printf(&text, "recompute all positions for each token: %s\n", program->decode.recomputed);
  text_puts(&text, sharing_text(program));
  text_puts(&text, traffic_summary(program));
  text_puts(&text, tree_text(program));
  if (program->job->training.deterministic && program->kind == PROGRAM_TRAIN)
    text_puts(&text, "bits      the same for any number of threads: matmuls in blocks of their own\n");
  return text_string(&text);
}

const char *report_summary(const struct program *program) {
  const char *first =
      program->figures.n_layers > 1 ? arena_printf(program->arena, "%d layers, ", program->figures.n_layers) : "";
  return arena_printf(program->arena, "%s%.2f M parameters, %s", first, (double)program->figures.n_parameters / 1e6,
                      dtype_name(program->bits16));
}

static json_t *savings_json(const struct program *program) {
  json_t *list = json_array();
  for (int i = 0; i < program->figures.n_savings; i++) {
    const struct saving *saving = &program->figures.savings[i];
    json_array_append_new(list, json_pack("{s:s, s:I, s:f}", "measure", saving->measure, "bytes",
                                          (json_int_t)saving->bytes, "flops_per_step", saving->flops));
  }
  return list;
}

/* What each plan has. */
static json_t *figures_json(const struct program *program) {
  const struct job *job = program->job;
  int64_t samples = (int64_t)job->data.batch_size * job->accumulation.num_steps * job_batch_ranks(job);
  int64_t tokens = job_has_rows(job) ? samples : samples * job->data.sequence_length;
  return json_pack(
      "{s:s, s:s, s:I, s:I, s:f, s:f, s:I, s:I, s:{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}}", "model",
      name_in_folder(job->model.source), "precision", dtype_name(program->bits16), "parameters",
      (json_int_t)program->figures.n_parameters, "tied", (json_int_t)program->figures.n_tied, "flops_per_step",
      program->figures.flops_per_step, "matmul_flops_per_step", program->figures.matmul_flops_per_step,
      "samples_per_step", (json_int_t)samples, "tokens_per_step", (json_int_t)tokens, "arena_bytes", "weights",
      (json_int_t)program->figures.bytes.weights, "cache", (json_int_t)program->figures.bytes.cache, "gradients",
      (json_int_t)program->figures.bytes.gradients, "optimizer", (json_int_t)program->figures.bytes.optimizer,
      "averages", (json_int_t)program->figures.bytes.averages, "checkpoint",
      (json_int_t)program->figures.bytes.checkpoint, "activations", (json_int_t)program->figures.bytes.activations,
      "scratch", (json_int_t)program->figures.bytes.scratch, "batch", (json_int_t)program->figures.bytes.batch, "total",
      (json_int_t)program->figures.bytes.total);
}

/* What a plan has where its job, or its ranks, have it. */
static void add_parts_json(json_t *root, const struct program *program) {
  const struct job *job = program->job;
  if (aliased_bytes(program) > 0)
    json_object_set_new(root, "aliased_bytes", json_integer((json_int_t)aliased_bytes(program)));
  if (program->kind == PROGRAM_TRAIN && job_evaluates_other_batches(job) && program->entry.second != NULL)
    json_object_set_new(root, "evaluation",
                        json_pack("{s:I, s:I, s:I}", "batch_size", (json_int_t)job_eval_batch(job), "scratch_bytes",
                                  (json_int_t)program->entry.second->scratch_bytes, "excess_bytes",
                                  (json_int_t)evaluation_excess(program)));
  if (program->quantized.count > 0) {
    const struct quantized_bytes bytes = quantized_bytes(program);
    json_object_set_new(root, "quantized",
                        json_pack("{s:i, s:I, s:I, s:I}", "weights", program->quantized.count, "codes_bytes",
                                  (json_int_t)bytes.codes, "scales_bytes", (json_int_t)bytes.scales, "float32_bytes",
                                  (json_int_t)bytes.floats));
  }
  if (program->figures.bytes.host > 0)
    json_object_set_new(root, "host_bytes", json_integer((json_int_t)program->figures.bytes.host));
  if (stream_buffer_bytes(program) > 0)
    json_object_set_new(root, "read_buffer_bytes", json_integer((json_int_t)stream_buffer_bytes(program)));
  if (program->disk.n_states > 0)
    json_object_set_new(
        root, "disk",
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:I, s:I}", "bytes", (json_int_t)program->figures.bytes.disk,
                  "layers_bytes", (json_int_t)layer_bytes(program), "buckets", (json_int_t)program->disk.buckets,
                  "slots", (json_int_t)program->disk.slots, "slots_in_gradients", (json_int_t)program->disk.ahead.slots,
                  "updates_in_backward", program->disk.in_backward, "read_bytes_per_step",
                  (json_int_t)read_bytes(program), "written_bytes_per_step", (json_int_t)program->figures.bytes.disk));
  if (program->figures.n_split > 0)
    json_object_set_new(root, "split",
                        json_pack("{s:i, s:I, s:I}", "parameters", program->figures.n_split, "elements",
                                  (json_int_t)program->figures.own_elements, "ranks",
                                  (json_int_t)ranks_along(program, split_axis(program))));
  if (program->ranks.pipeline.stages > 0) json_object_set_new(root, "pipeline", stages_json(program));
  struct shared_bytes shared = most_shared_bytes(program);
  if (program->ranks.collectives.count > 0) {
    json_object_set_new(root, "collectives", traffic_json(program, &program->ranks.collectives));
    json_object_set_new(root, "shared_bytes",
                        json_pack("{s:I, s:I}", "own", (json_int_t)shared.own, "touched", (json_int_t)shared.touched));
  }
}

/* What was chosen for the program, and what it is expected to take and to save. */
static void add_choices_json(json_t *root, const struct program *program) {
  if (program->choices.count > 0) json_object_set_new(root, "choices", choices_json(program));
  json_t *step = prediction_json(program);
  if (step != NULL) json_object_set_new(root, "predicted_step", step);
  if (program->figures.n_savings > 0) json_object_set_new(root, "savings", savings_json(program));
}

const char *report_json(const struct program *program, json_t *predicted, json_t *search, json_t *data) {
  json_t *root = figures_json(program);
  if (root != NULL) add_parts_json(root, program);
  if (root != NULL && data != NULL) json_object_set_new(root, "data", data);
  if (root != NULL && predicted != NULL) json_object_set_new(root, "predicted", predicted);
  if (root != NULL && search != NULL) json_object_set_new(root, "search", search);
  if (root != NULL) add_choices_json(root, program);
  char *text = root != NULL ? json_dumps(root, JSON_INDENT(2)) : NULL;
  const char *copy = arena_printf(program->arena, "%s\n", text != NULL ? text : "{}");
  free(text);
  json_decref(root);
  return copy;
}
