/* accel-gen JOB -o FILE and accel-gen plan JOB: the line of travel, stage by stage. */
#include <stdio.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/base/version.h"
#include "gen/commands/commands.h"
#include "gen/commands/files.h"
#include "gen/emit/emit.h"
#include "gen/model/model.h"
#include "gen/plan/plan.h"
#include "gen/plan/report.h"

struct travel {
  const struct options *options;
  struct arena *arena;
  struct diagnostics diags;
  struct job *job;
  enum program_kind kind;
  struct program *program;
  const char *dumped;
};

/* ---- From the job to the model's inputs ---- */

/* Tokens of a window: the job's own word, else what the model's config calls its block size. */
static bool resolve_sequence_length(struct travel *travel) {
  struct job *job = travel->job;
  if (job->data.train.format == DATA_CSV || job->data.sequence_length > 0) return true;
  for (int i = 0; i < job->model.n_config; i++) {
    const struct config_value *value = &job->model.config[i];
    if (strcmp(value->name, "block_size") != 0 || value->kind != CONFIG_INT || value->integer < 1) continue;
    job->data.sequence_length = (int)value->integer;
    return true;
  }
  diag_error(&travel->diags, job_where(job, "data"), "the length of a sequence is not known");
  diag_help(&travel->diags, "set data.sequence_length, or a block_size in model.config");
  return false;
}

static int describe_inputs(const struct travel *travel, struct model_input inputs[2]) {
  const struct job *job = travel->job;
  int64_t batch = travel->kind == PROGRAM_TRAIN ? job->data.batch_size : 1;
  if (job->data.train.format == DATA_CSV) {
    inputs[0] = (struct model_input){"features", shape_of(2, batch, (int64_t)job->data.features), DTYPE_FLOAT32};
    inputs[1] = (struct model_input){"labels", shape_of(1, batch),
                                     job->data.label == LABEL_CLASS ? DTYPE_INT32 : DTYPE_FLOAT32};
    return 2;
  }
  inputs[0] = (struct model_input){"tokens", shape_of(2, batch, (int64_t)job->data.sequence_length), DTYPE_INT32};
  inputs[1] = inputs[0];
  inputs[1].name = "targets";
  return travel->kind == PROGRAM_TRAIN ? 2 : 1;
}

/* A generating program writes what follows a text; a row of a table has nothing behind it. */
static bool check_generate(struct travel *travel) {
  if (travel->kind == PROGRAM_TRAIN || travel->job->data.train.format != DATA_CSV) return true;
  diag_error(&travel->diags, job_where(travel->job, "data.train.format"),
             "a generating program needs a job over tokens; this one has a table");
  diag_help(&travel->diags, "--program train is what a table can have");
  return false;
}

static struct graph *read_graph(struct travel *travel) {
  const struct job *job = travel->job;
  struct model *model = model_parse(travel->arena, job->model.source, &travel->diags);
  if (model == NULL) return NULL;
  const char *entry = travel->kind == PROGRAM_TRAIN ? "model" : "predict";
  if (travel->kind != PROGRAM_TRAIN && !model_has(model, entry)) {
    diag_error(&travel->diags, (struct location){.file = job->model.source},
               "the model has no function 'predict', from which a generating program is made");
    diag_help(&travel->diags, "write 'tensor predict(scope s, struct config c, tensor tokens)' that returns logits");
    return NULL;
  }
  struct model_input inputs[2];
  struct model_request request = {.entry = entry,
                                  .loss = travel->kind == PROGRAM_TRAIN,
                                  .prediction = travel->kind == PROGRAM_TRAIN && job_wants_predictions(job),
                                  .config = job->model.config,
                                  .n_config = job->model.n_config,
                                  .config_where = job_where(job, "model.config"),
                                  .inputs = inputs,
                                  .n_inputs = describe_inputs(travel, inputs)};
  return model_graph(travel->arena, model, &request, &travel->diags);
}

/* ---- The stages in order ---- */

/* Reads and plans. A status; STATUS_OK leaves travel->program set. */
static int travel_to_program(struct travel *travel) {
  const struct options *options = travel->options;
  travel->job = job_read(travel->arena, options->argument, options->overrides, options->n_overrides, &travel->diags);
  if (travel->job == NULL) return STATUS_BAD_JOB;
  if (!check_generate(travel) || !resolve_sequence_length(travel)) return STATUS_BAD_JOB;
  struct graph *graph = read_graph(travel);
  if (graph == NULL) return STATUS_BAD_JOB;
  struct builder *builder = builder_on(graph, &travel->diags);
  travel->program = plan(builder, travel->job, travel->kind, &travel->diags, options->dump, &travel->dumped);
  return travel->program != NULL ? STATUS_OK : STATUS_BAD_JOB;
}

static bool is_pass(const char *name) {
  for (int i = 0; pass_name(i) != NULL; i++)
    if (strcmp(pass_name(i), name) == 0) return true;
  return false;
}

static int begin(struct travel *travel, const struct options *options) {
  *travel = (struct travel){.options = options, .arena = options->arena, .diags = diagnostics_in(options->arena)};
  if (options->program != NULL && strcmp(options->program, "generate") == 0)
    travel->kind = PROGRAM_GENERATE;
  else if (options->program != NULL && strcmp(options->program, "train") != 0) {
    diag_error(&travel->diags, (struct location){0}, "unknown program '%s'; there are train and generate",
               options->program);
    return STATUS_BAD_JOB;
  }
  if (options->dump == NULL || is_pass(options->dump)) return STATUS_OK;
  diag_error(&travel->diags, (struct location){0}, "unknown pass '%s'", options->dump);
  struct text names = text_in(options->arena);
  for (int i = 0; pass_name(i) != NULL; i++) text_printf(&names, "%s%s", i > 0 ? ", " : "", pass_name(i));
  diag_help(&travel->diags, "the passes are %s", text_string(&names));
  return STATUS_BAD_JOB;
}

static int finish(struct travel *travel, int status) {
  if (travel->diags.count > 0) diag_print(&travel->diags, stderr, travel->options->colour);
  return status;
}

int command_generate(const struct options *options) {
  struct travel travel;
  int status = begin(&travel, options);
  if (status == STATUS_OK) status = travel_to_program(&travel);
  if (status != STATUS_OK) return finish(&travel, status);
  const struct emit_options emit = {.templates = options->templates,
                                    .version = ACCEL_VERSION,
                                    .plan_text = report_text(travel.program),
                                    .summary = report_summary(travel.program)};
  const char *text = travel.dumped != NULL ? travel.dumped : emit_program(travel.program, &emit, &travel.diags);
  if (text == NULL) return finish(&travel, STATUS_CANNOT);
  const char *output = travel.dumped != NULL && options->output == NULL ? "-" : options->output;
  if (!write_file(options->arena, output, text, strlen(text))) return STATUS_CANNOT;
  return finish(&travel, STATUS_OK);
}

int command_plan(const struct options *options) {
  struct travel travel;
  int status = begin(&travel, options);
  if (status == STATUS_OK) status = travel_to_program(&travel);
  if (status != STATUS_OK) return finish(&travel, status);
  const char *text = options->json ? report_json(travel.program) : report_text(travel.program);
  fputs(travel.dumped != NULL ? travel.dumped : text, stdout);
  return finish(&travel, STATUS_OK);
}
