#include "gen/emit/emit.h"

#include <stdio.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/emit/stablehlo/program.h"
#include "gen/emit/values.h"
#include "gen/format/format.h"
#include "gen/ir/op.h"
#include "gen/program/optimizers.h"
#include "gen/program/processor.h"
#include "gen/program/results.h"
#include "gen/program/target.h"
#include "gen/program/weights.h"

static struct jinja_value batch_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value list = jinja_list(arena);
  const struct region *entry = program->graph->entry;
  for (int i = 0; i < entry->inputs.count; i++) {
    const struct value *input = entry->inputs.items[i];
    struct jinja_value value = jinja_map(arena);
    set_text(arena, value, "name", input->name);
    set_text(arena, value, "type", element_type(input->dtype));
    set_text(arena, value, "extent", extent_text(arena, largest_input(program, i)));
    set_text(arena, value, "shape", shape_text(arena, largest_input(program, i)));
    const struct region *second = program->kind == PROGRAM_TRAIN ? program->entry.second_region : NULL;
    jinja_set(arena, value, "dims", shape_value(arena, input->shape));
    jinja_set(arena, value, "evaluated_dims",
              shape_value(arena, second != NULL ? second->inputs.items[i]->shape : input->shape));
    set_text(arena, value, "dtype", dtype_enumerator(input->dtype));
    set_int(arena, value, "row", shape_count(input->shape) / input->shape.dim[0]);
    set_origin(arena, value, entry->where);
    jinja_push(arena, list, value);
  }
  return list;
}

/* What an evaluation gives in addition to its loss: {name, type, extent, shape, count, labels, classes, kind}, the kind
 * where it is not classes; nothing without it. */
static struct jinja_value predictions_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  if (program->evaluation.predicted == NULL) return value;
  set_text(arena, value, "name", program->evaluation.predicted->name);
  set_text(arena, value, "extent", extent_text(arena, program->evaluation.predicted->shape));
  set_text(arena, value, "shape", shape_text(arena, program->evaluation.predicted->shape));
  set_int(arena, value, "count", shape_count(program->evaluation.predicted->shape));
  static const char *const kinds[] = {"", "ACCEL_PREDICTS_SCORES", "ACCEL_PREDICTS_LABELS", "ACCEL_PREDICTS_VALUES"};
  set_text(arena, value, "type", program->evaluation.predicted->dtype == DTYPE_INT32 ? "int32_t" : "float");
  set_text(arena, value, "kind", kinds[program->evaluation.kind]);
  set_text(arena, value, "labels", program->evaluation.labels->name);
  set_int(arena, value, "classes", program->evaluation.classes);
  return value;
}

static struct jinja_value bytes_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  set_int(arena, value, "weights", program->figures.bytes.weights);
  set_int(arena, value, "total", program->figures.bytes.total);
  set_int(arena, value, "host", program->figures.bytes.host);
  set_int(arena, value, "packed", program->library.packed);
  return value;
}

/* The device, and what the plan gives it: {name, suffix, architectures, progress, workspace, sums}, and the processor:
 * {lanes, multiplies, flags}. */
static struct jinja_value device_value(const struct program *program) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena), architectures = jinja_list(arena);
  const char *const *names = program->target->texts.architectures;
  for (int i = 0; names != NULL && names[i] != NULL; i++)
    jinja_push(arena, architectures, jinja_string(arena, names[i]));
  jinja_set(arena, value, "architectures", architectures);
  set_text(arena, value, "name", program->target->name);
  set_text(arena, value, "suffix", program->target->texts.suffixes[program->target->texts.count - 1]);
  set_int(arena, value, "progress", program->target->memory.progress_bytes);
  set_int(arena, value, "workspace", program->library.workspace);
  set_int(arena, value, "sums", program->kernels.sums);
  set_int(arena, value, "lanes", processor_of(program->job)->lanes);
  set_bool(arena, value, "multiplies", processor_of(program->job)->multiplies);
  set_text(arena, value, "module", program->target->module != NULL ? program->target->module : "");
  set_text(arena, value, "flags", processor_of(program->job)->flags);
  return value;
}

static const char *model_name(struct arena *arena, const struct job *job) {
  const char *name = name_in_folder(job->model.source), *dot = strrchr(name, '.');
  return arena_copy(arena, name, dot != NULL ? (size_t)(dot - name) : strlen(name));
}

/* Text for people, as literals and as comments. */
static void set_texts(struct jinja_value context, const struct program *program, const struct emit_options *options) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value literals = jinja_map(arena), comments = jinja_map(arena), lines = jinja_list(arena);
  set_literal(arena, literals, "model_name", model_name(arena, job));
  set_literal(arena, literals, "summary", options->summary);
  set_literal(arena, literals, "plan", options->plan_text);
  set_literal(arena, literals, "job_file", options->job_file);
  set_comment(arena, comments, "model_name", model_name(arena, job));
  set_comment(arena, comments, "job_file", name_in_folder(job->file));
  for (const char *line = options->plan_text; *line != '\0';) {
    size_t length = strcspn(line, "\n");
    struct jinja_value holder = jinja_map(arena);
    set_comment(arena, holder, "text", arena_copy(arena, line, length));
    jinja_push(arena, lines, jinja_get(holder, "text"));
    line += length + (line[length] == '\n');
  }
  jinja_set(arena, comments, "plan_lines", lines);
  jinja_set(arena, context, "literals", literals);
  jinja_set(arena, context, "comments", comments);
}

/* The entry as it is evaluated, where that is another function than the one that is trained, or over other weights. */
static void set_evaluation(struct jinja_value context, const struct program *program) {
  struct arena *arena = program->arena;
  const struct function *evaluation = program->kind == PROGRAM_TRAIN ? program->entry.second : NULL;
  const struct function *whole = evaluation != NULL ? evaluation : program->entry.forward;
  set_bool(arena, context, "evaluation_scratch", evaluation != NULL && evaluation->scratch_bytes > 0);
  set_bool(arena, context, "evaluation_reuses", evaluation_reuses_saved(program));
  set_bool(arena, context, "evaluation_random", whole != NULL && whole->random);
  evaluation = evaluation_function(program);
  set_text(arena, context, "evaluation", evaluation != NULL ? evaluation->name : "");
  set_text(arena, context, "evaluation_counted",
           program->evaluation.count != NULL ? program->evaluation.count->name : "");
  if (evaluation != NULL)
    jinja_set(arena, context, "evaluation_arguments",
              entry_arguments_value(program, evaluation, evaluation_weights(program)));
}

/* What a text is written from: {name, shape, count}. */
static struct jinja_value source_value(struct arena *arena, const struct value *source) {
  struct jinja_value value = jinja_map(arena);
  set_text(arena, value, "name", source->name);
  set_text(arena, value, "shape", shape_text(arena, source->shape));
  set_int(arena, value, "count", shape_count(source->shape));
  return value;
}

/* The entry over one position, of a program that writes text, and how many positions the entry itself runs over. */
static void set_step(struct jinja_value context, const struct program *program) {
  struct arena *arena = program->arena;
  const struct function *one = program->kind == PROGRAM_GENERATE ? program->entry.second : NULL;
  const struct region *region = program->kind == PROGRAM_GENERATE ? program->entry.second_region : NULL;
  set_text(arena, context, "one", one != NULL ? one->name : region != NULL ? region->name : "");
  set_bool(arena, context, "one_scratch", one != NULL && one->scratch_bytes > 0);
  set_int(arena, context, "width", region != NULL ? program->graph->entry->inputs.items[0]->shape.dim[1] : 0);
  set_bool(arena, context, "endless", program->decode.endless);
  set_bool(arena, context, "partial", program->decode.partial);
  set_text(arena, context, "text_source", "");
  if (program->decode.source != NULL)
    jinja_set(arena, context, "text_source", source_value(arena, program->decode.source));
  if (one != NULL) jinja_set(arena, context, "one_arguments", entry_arguments_value(program, one, "weights"));
}

/* Whether a group of a loop's iterations draws random numbers. */
static bool draws_in_groups(const struct program *program) {
  for (int i = 0; i < program->functions.count; i++)
    if (program->functions.items[i]->random && program->functions.items[i]->region->group) return true;
  return false;
}

/* The entry functions: how main and step call them. */
static void set_entries(struct jinja_value context, const struct program *program) {
  struct arena *arena = program->arena;
  const struct function *forward = program->entry.forward, *backward = program->entry.backward;
  set_text(arena, context, "entry", program->graph->entry->name);
  set_text(arena, context, "forward", forward != NULL ? forward->name : "");
  set_bool(arena, context, "forward_random", forward != NULL && forward->random);
  set_bool(arena, context, "forward_saves", forward != NULL && forward->saved_bytes > 0);
  set_bool(arena, context, "forward_scratch", forward != NULL && forward->scratch_bytes > 0);
  if (forward != NULL)
    jinja_set(arena, context, "forward_arguments", entry_arguments_value(program, forward, "weights"));
  set_text(arena, context, "backward", backward != NULL ? backward->name : "");
  set_bool(arena, context, "loss_in_backward", program->entry.loss_in_backward);
  set_bool(arena, context, "backward_random", backward != NULL && backward->random);
  set_bool(arena, context, "groups_random", draws_in_groups(program));
  set_bool(arena, context, "backward_updates", backward != NULL && backward->updates);
  set_bool(arena, context, "backward_scratch", backward != NULL && backward->scratch_bytes > 0);
  const struct function *deferred = program->entry.deferred;
  set_text(arena, context, "deferred", deferred != NULL ? deferred->name : "");
  set_bool(arena, context, "deferred_scratch", deferred != NULL && deferred->scratch_bytes > 0);
  if (backward != NULL)
    jinja_set(arena, context, "backward_arguments", entry_arguments_value(program, backward, "weights"));
  set_evaluation(context, program);
  set_step(context, program);
}

static void set_result(struct jinja_value context, const struct program *program) {
  struct arena *arena = program->arena;
  const struct value_list results = step_results(program);
  struct shape shape = results.items[program->entry.loss_in_backward ? results.count - 1 : 0]->shape;
  set_text(arena, context, "result_extent", extent_text(arena, shape));
  set_text(arena, context, "result_shape", shape_text(arena, shape));
  set_int(arena, context, "result_columns", shape.rank > 0 ? shape.dim[shape.rank - 1] : 1);
}

static struct jinja_value context_value(struct program *program, const struct emit_options *options) {
  struct arena *arena = program->arena;
  const struct job *job = program->job;
  struct jinja_value context = jinja_map(arena);
  set_text(arena, context, "version", options->version);
  set_text(arena, context, "job_digest", job->digest);
  set_int(arena, context, "vocabulary", program->data.vocabulary);
  int64_t weights = weights_type(program->weights)->bytes;
  set_int(arena, context, "elements", weights / dtype_size(DTYPE_FLOAT32));
  set_int(arena, context, "whole_bytes", program->weights->bytes);
  set_text(arena, context, "bits16", bits16_name(program));
  set_text(arena, context, "bits16_words", dtype_name(program->bits16));
  const enum dtype half = half_of_kernels(program);
  set_text(arena, context, "half", half != DTYPE_FLOAT32 ? dtype_short_name(half) : "");
  set_text(arena, context, "half_words", dtype_name(half));
  set_text(arena, context, "gradients_struct", weights_type(program->gradients)->name);
  set_text(arena, context, "weights_struct", weights_type(program->weights)->name);
  jinja_set(arena, context, "data", data_value(program));
  jinja_set(arena, context, "optimizer", optimizer_value(program));
  jinja_set(arena, context, "schedule", schedule_value(arena, job));
  jinja_set(arena, context, "training", training_value(program));
  jinja_set(arena, context, "hooks", hooks_value(arena, job));
  jinja_set(arena, context, "step_end", step_end_value(program));
  jinja_set(arena, context, "mesh", mesh_value(program));
  jinja_set(arena, context, "scaling", scaling_value(program));
  jinja_set(arena, context, "pipeline", pipeline_value(program));
  jinja_set(arena, context, "tree", tree_value(program));
  jinja_set(arena, context, "compression", compression_value(program));
  jinja_set(arena, context, "disk", disk_value(program));
  jinja_set(arena, context, "bytes", bytes_value(program));
  jinja_set(arena, context, "device", device_value(program));
  jinja_set(arena, context, "weight_structs", weight_structs_value(program));
  jinja_set(arena, context, "tensors", tensors_value(program));
  jinja_set(arena, context, "gradient_table", gradients_value(program, GRADIENTS_ALL));
  jinja_set(arena, context, "layers", layers_value(program));
  jinja_set(arena, context, "start", start_value(program));
  jinja_set(arena, context, "adapters", adapters_value(program));
  jinja_set(arena, context, "quantized", quantized_value(program));
  jinja_set(arena, context, "keys", keys_value(program, options->model));
  jinja_set(arena, context, "checkpoint", checkpoint_value(program, options));
  jinja_set(arena, context, "states", states_value(program));
  jinja_set(arena, context, "sharding", sharding_value(program));
  jinja_set(arena, context, "memories", memories_value(program));
  jinja_set(arena, context, "aliased", aliased_value(program));
  jinja_set(arena, context, "kernels", kernels_value(program));
  jinja_set(arena, context, "functions", functions_value(program));
  jinja_set(arena, context, "profile", profile_value(program));
  jinja_set(arena, context, "batch", batch_value(program));
  jinja_set(arena, context, "predictions", predictions_value(program));
  set_texts(context, program, options);
  set_entries(context, program);
  set_result(context, program);
  return context;
}

static void report(const struct jinja_error *error, struct diagnostics *diags) {
  struct location where = {0};
  if (error->chain_count > 0)
    where = (struct location){error->chain[0].template_name, error->chain[0].line, error->chain[0].column, 0};
  diag_error(diags, where, "%s", error->message);
  for (int i = 1; i < error->chain_count; i++) {
    const struct jinja_location *location = &error->chain[i];
    diag_note(diags, (struct location){location->template_name, location->line, location->column, 0},
              "reached from here");
  }
}

static bool lacks(const struct target *target, const char *template) {
  const char *const *names = target->texts.lacks;
  while (names != NULL && *names != NULL && strcmp(*names, template) != 0) names++;
  return names != NULL && *names != NULL;
}

/* Each of the program's kernels has a template on the device. */
static bool check_kernels(struct program *program, const struct templates *templates, struct diagnostics *diags) {
  for (int i = 0; i < program->kernels.count; i++) {
    const struct node *node = program->kernels.items[i]->node;
    const char *name = kernel_template(program->arena, node->kind) + strlen("device/");
    bool lacking = lacks(program->target, name);
    if (!lacking && templates_of_device(templates, name) != NULL) continue;
    diag_error(diags, node->where, "there is no kernel of '%s' for devices.kind '%s' yet", node->kind->name,
               program->target->name);
    if (lacking)
      diag_help(diags, "use devices.kind: cpu");
    else
      diag_help(diags, "use devices.kind: cpu, or write it in templates/%s/%s", program->target->texts.templates[0],
                name);
  }
  return diags->errors == 0;
}

static bool is_function(const struct program *program, const char *name) {
  for (int i = 0; i < program->functions.count; i++)
    if (strcmp(program->functions.items[i]->name, name) == 0) return true;
  for (int i = 0; i < program->kernels.count; i++)
    if (strcmp(program->kernels.items[i]->name, name) == 0) return true;
  return false;
}

/* No input hides a function by its name where that is called. */
static bool check_inputs(const struct program *program, struct diagnostics *diags) {
  for (int i = 0; i < program->job->data.n_inputs; i++) {
    const struct data_input *input = &program->job->data.inputs[i];
    if (!is_function(program, input->name)) continue;
    diag_error(diags, input->where, "'%s' is not a name for an input: this program has a function of this name",
               input->name);
    diag_help(diags, "rename the input, and the model's parameter");
  }
  return diags->errors == 0;
}

/* ---- A module ---- */

/* The text in pieces that C takes as string literals of one line each. */
static struct jinja_value pieces_value(struct arena *arena, const char *text) {
  enum { MOST = 96 };
  struct jinja_value list = jinja_list(arena);
  while (*text != '\0') {
    size_t length = strcspn(text, "\n");
    if (length > MOST)
      length = MOST;
    else
      length += text[length] == '\n';
    struct jinja_value piece = jinja_map(arena);
    set_literal(arena, piece, "literal", arena_copy(arena, text, length));
    jinja_push(arena, list, jinja_get(piece, "literal"));
    text += length;
  }
  return list;
}

static void set_numbers(struct arena *arena, struct jinja_value value, const char *names, const char *rows,
                        const struct step_numbers *numbers) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < numbers->count; i++) jinja_push(arena, list, jinja_string(arena, numbers->names[i]));
  jinja_set(arena, value, names, list);
  set_int(arena, value, rows, numbers->rows);
}

/* What a module of text takes each time: {name, dtype, dims}, and how many logits it gives. */
static void set_text_arrays(struct arena *arena, struct jinja_value value, const char *inputs, const char *logits,
                            const struct region *region) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < region->inputs.count; i++) {
    const struct value *input = region->inputs.items[i];
    struct jinja_value row = jinja_map(arena);
    set_text(arena, row, "name", input->name);
    set_text(arena, row, "dtype", dtype_enumerator(input->dtype));
    jinja_set(arena, row, "dims", shape_value(arena, input->shape));
    jinja_push(arena, list, row);
  }
  jinja_set(arena, value, inputs, list);
  set_int(arena, value, logits, shape_count(region->results.items[0]->shape));
}

/* Of a program that writes text: these of both modules, and which weights are caches. */
static void set_text_modules(const struct program *program, struct jinja_value value) {
  struct arena *arena = program->arena;
  const struct region *one = program->entry.second_region;
  struct jinja_value kept = jinja_list(arena);
  set_text_arrays(arena, value, "text_inputs", "text_logits", program->graph->entry);
  if (one != NULL) set_text_arrays(arena, value, "step_inputs", "step_logits", one);
  for (int i = 0; i < program->weights->count; i++)
    if (program->weights->items[i].parameter->passing) jinja_push(arena, kept, jinja_int(i));
  jinja_set(arena, value, "kept", kept);
}

/* Of a program that has one: {pieces, second: pieces, numbers: names, rows, tensor_numbers, tensor_rows, random,
 * evaluation_random, plugin: the devices.kind}, and of text what set_text_modules sets. */
static void set_module(const struct program *program, struct jinja_value context, const struct step_modules *modules) {
  struct arena *arena = program->arena;
  struct jinja_value value = jinja_map(arena);
  set_numbers(arena, value, "numbers", "rows", &modules->numbers[HLO_ELEMENTS]);
  set_numbers(arena, value, "tensor_numbers", "tensor_rows", &modules->numbers[HLO_TENSORS]);
  set_int(arena, value, "whole", modules->whole);
  set_bool(arena, value, "random", modules->random);
  set_text(arena, value, "plugin", job_word(program->job, "devices.kind"));
  set_bool(arena, value, "evaluation_random", modules->evaluation_random);
  jinja_set(arena, value, "pieces", pieces_value(arena, modules->main));
  if (modules->second != NULL) jinja_set(arena, value, "second", pieces_value(arena, modules->second));
  if (program->kind == PROGRAM_GENERATE) set_text_modules(program, value);
  jinja_set(arena, context, "module", value);
}

static bool make_modules(struct program *program, const struct templates *templates, struct jinja_value context,
                         struct step_modules *modules, struct diagnostics *diags) {
  struct jinja_output rule;
  struct jinja_error error;
  const char *name = templates_of_device(templates, "rule.c.j2");
  if (program->kind == PROGRAM_GENERATE) return text_modules_make(program, modules, diags);
  if (program->kind != PROGRAM_TRAIN) return forward_module_make(program, modules, diags);
  if (jinja_render(templates->env, name, context, false, &rule, &error))
    return step_modules_make(program, rule.text, modules, diags);
  report(&error, diags);
  return false;
}

bool emit_modules(struct program *program, const struct emit_options *options, struct step_modules *made,
                  struct diagnostics *diags) {
  *made = (struct step_modules){0};
  options->templates->devices = program->target->texts.templates;
  const struct jinja_value context = context_value(program, options);
  if (make_modules(program, options->templates, context, made, diags)) return true;
  *made = (struct step_modules){0};
  return false;
}

const char *emit_program(struct program *program, int index, const struct emit_options *options,
                         struct origins *origins, struct diagnostics *diags) {
  struct jinja_output output;
  struct jinja_error error;
  const struct target *target = program->target;
  options->templates->devices = target->texts.templates;
  const char *kind = program_kind_name(program->kind);
  const char *file = arena_printf(program->arena, "%s%s.c.j2", kind, index == 0 ? "" : "_kernels");
  const char *name = templates_of_device(options->templates, file);
  if (name == NULL) name = arena_printf(program->arena, "program/%s", file); /* all devices share it */
  if (!check_kernels(program, options->templates, diags) || !check_inputs(program, diags)) return NULL;
  const struct jinja_value context = context_value(program, options);
  if (target->module != NULL) set_module(program, context, options->modules);
  if (!jinja_render(options->templates->env, name, context, origins != NULL, &output, &error)) {
    report(&error, diags);
    return NULL;
  }
  const struct format_output formatted = format_program(program->arena, output.text, output.length, origins != NULL);
  if (origins != NULL) find_origins(program->arena, &output, &formatted, origins);
  if (origins != NULL) origins->templates = options->templates;
  return formatted.text;
}
