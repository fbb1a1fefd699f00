/* accel-gen init: a job from the name of a model, a model in C, or a folder of Hugging Face. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gen/base/file.h"
#include "gen/base/path.h"
#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/generate/compilation.h"
#include "gen/commands/generate/targets.h"
#include "gen/commands/start/dialog.h"
#include "gen/commands/start/family.h"
#include "gen/commands/start/masking.h"
#include "gen/commands/start/samples.h"
#include "gen/commands/start/tensors.h"
#include "gen/model/fields.h"
#include "gen/plan/report/report.h"
#include "gen/spec/override.h"
#include "runtime/base/terminal.h"

struct init {
  const struct options *options;
  struct dialog dialog;
  struct diagnostics diags;
  const char *output;
  const char *name;   /* of the model: "gpt2" */
  const char *source; /* its C */
  struct tree *model;
  const char *folder;    /* of published weights; NULL: there are none */
  const char *tokenizer; /* the folder's; NULL: it has none */
  struct family family;  /* of a config.json */
  bool is_published;
};

static const char *whole(const struct init *init, int64_t number) {
  return arena_printf(init->options->arena, "%lld", (long long)number);
}

/* In quotes, as YAML has them. */
static const char *quoted(const struct init *init, const char *word) {
  const struct spec_node node = {.kind = SPEC_STRING, .text = word, .length = strlen(word)};
  struct text out = text_in(init->options->arena);
  spec_write_value(&out, &node);
  return text_string(&out);
}

static bool fail(struct init *init, const char *message, const char *help) {
  diag_error(&init->diags, (struct location){0}, "%s", message);
  if (help != NULL) diag_help(&init->diags, "%s", help);
  return false;
}

/* ---- The model ---- */

/* A name, a file in C, or a folder; requested where none is given. */
static bool find_source(struct init *init) {
  const struct options *options = init->options;
  struct arena *arena = options->arena;
  const char *what = options->model != NULL ? options->model : options->argument;
  const char *names = family_names(options);
  if (what == NULL) what = dialog_word(&init->dialog, "Model", names, NULL);
  if (what == NULL)
    return fail(init, "no model is named", "give --model NAME, a model in C, or a folder of Hugging Face");
  const bool is_name = options->argument == NULL && family_source(options, what) != NULL; /* not a folder called so */
  init->is_published = !is_name && (is_folder(what) || has_ending(what, ".json"));
  if (init->is_published) {
    if (!family_read(options, what, &init->family, &init->diags)) return false;
    init->folder = is_folder(what) ? what : folder_of(arena, what);
    init->source = init->family.source;
    init->model = init->family.model;
  } else {
    init->source = has_ending(what, ".c") ? what : family_source(options, what);
    if (init->source == NULL)
      return fail(
          init,
          arena_printf(
              arena, strchr(what, '/') != NULL ? "there is no folder of a model '%s'" : "there is no model '%s'", what),
          arena_printf(arena, "the models are%s; a file of your own ends with .c", names));
    init->model = model_parse(arena, init->source, &init->diags);
  }
  init->name = without_ending(arena, name_in_folder(init->source), ".c");
  return init->model != NULL;
}

/* Sizes of a small model for what has no default, by the names that models call it. */
static const char *small_size(const char *field) {
  static const char *const sizes[][2] = {{"n_layer", "4"},
                                         {"num_hidden_layers", "4"},
                                         {"num_layers", "4"},
                                         {"num_decoder_layers", "4"},
                                         {"n_layers", "4"},
                                         {"n_head", "4"},
                                         {"num_attention_heads", "4"},
                                         {"num_heads", "4"},
                                         {"n_heads", "4"},
                                         {"num_key_value_heads", "2"},
                                         {"n_embd", "128"},
                                         {"hidden_size", "128"},
                                         {"d_model", "128"},
                                         {"dim", "128"},
                                         {"head_dim", "32"},
                                         {"d_kv", "32"},
                                         {"intermediate_size", "512"},
                                         {"d_ff", "512"},
                                         {"hidden_dim", "512"},
                                         {"moe_intermediate_size", "256"},
                                         {"vocab_size", "256"},
                                         {"block_size", "128"},
                                         {"num_experts", "4"},
                                         {"num_local_experts", "4"},
                                         {"num_experts_per_tok", "2"},
                                         {"width", "128"},
                                         {"num_labels", "2"},
                                         {"n_classes", "2"},
                                         {"max_position_embeddings", "512"}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (strcmp(sizes[i][0], field) == 0) return sizes[i][1];
  return NULL;
}

static const char *set_value(const struct options *options, const char *field) {
  const char *key = arena_printf(options->arena, "model.config.%s", field), *value = NULL;
  for (int i = 0; i < options->n_overrides; i++)
    if (strcmp(options->overrides[i].key, key) == 0) value = options->overrides[i].value;
  return value;
}

/* The config of a model in C: what --set says, its defaults, and what is requested. */
static const char *own_config(struct init *init) {
  struct arena *arena = init->options->arena;
  struct text out = text_in(arena);
  struct model_field *fields;
  const int count = model_fields(arena, init->model, "model", &fields);
  text_puts(&out, "{");
  for (int i = 0; i < count; i++) {
    const char *value = set_value(init->options, fields[i].name);
    if (value == NULL) value = fields[i].value;
    if (value == NULL)
      value = dialog_word(&init->dialog, arena_printf(arena, "The model's %s", fields[i].name), NULL,
                          small_size(fields[i].name));
    if (value == NULL) {
      fail(init, arena_printf(arena, "the model's '%s' has no default, and is not given", fields[i].name),
           arena_printf(arena, "--set model.config.%s=VALUE gives it", fields[i].name));
      return NULL;
    }
    text_printf(&out, "%s\"%s\": %s", i > 0 ? ", " : "", fields[i].name, value);
  }
  text_puts(&out, "}");
  return text_string(&out);
}

static bool add_model(struct init *init) {
  struct arena *arena = init->options->arena;
  const char *config = init->is_published ? family_config(arena, &init->family) : own_config(init);
  if (config == NULL) return false;
  dialog_set(&init->dialog, "model.source",
             quoted(init, name_from(arena, folder_of(arena, init->output), init->source)));
  dialog_set(&init->dialog, "model.config", config);
  return true;
}

/* ---- A folder ---- */

static bool has_file(const struct init *init, const char *name) {
  return access(arena_printf(init->options->arena, "%s/%s", init->folder, name), R_OK) == 0;
}

/* Weights that the trainer reads. */
static bool add_weights(struct init *init) {
  if (init->folder == NULL) return true;
  if (has_file(init, "tokenizer.json"))
    init->tokenizer = arena_printf(init->options->arena, "%s/tokenizer.json", init->folder);
  if (tensors_are_in(init->folder)) {
    dialog_set(&init->dialog, "model.weights", quoted(init, init->folder));
    const char *map = tensors_map(init->folder);
    if (map != NULL) dialog_set(&init->dialog, "model.weights_map", map);
    return true;
  }
  rt_print(stderr, "accel-gen init: %s has no weights; the model starts from its initialization\n", init->folder);
  return true;
}

/* ---- The data ---- */

/* Tensors of other names, which an archive has as arrays. */
static bool add_inputs(struct init *init, const struct samples *samples) {
  const char *inputs = NULL;
  struct problem problem = {0};
  if (options_set(init->options, "data.inputs")) return true;
  if (strcmp(samples->format, "npz") != 0)
    return fail(init, "this model reads tensors of names of its own",
                "give it --data FILE.npz with an array for each, or --set 'data.inputs={NAME: {shape: [3, 8]}}'");
  if (!samples_inputs(init->options->arena, init->options->data, init->model, &init->family.takes, &inputs, &problem))
    return fail(init, problem.what, problem.help);
  dialog_set(&init->dialog, "data.inputs", inputs);
  return true;
}

static bool add_sizes(struct init *init, const struct samples *samples) {
  enum { LENGTH = 512 };
  const struct spec_node *config = spec_find(init->dialog.document, "model.config");
  if (model_takes(init->model, "model", "features")) {
    if (samples->features == 0)
      return fail(init, "this model reads rows of numbers", "give it --data FILE.csv, a row a sample, the label last");
    if (init->family.features > 0 && samples->features != init->family.features)
      return fail(init,
                  arena_printf(init->options->arena,
                               "a row of the data has %s numbers before the label, and the model's is of %s",
                               whole(init, samples->features), whole(init, init->family.features)),
                  "an image is its channels, rows and columns one after the other, as config.json gives their numbers");
    dialog_set(&init->dialog, "data.features", whole(init, samples->features));
    return true;
  }
  if (!model_takes(init->model, "model", "tokens")) return add_inputs(init, samples);
  if (samples->features > 0) return fail(init, "this model reads tokens, and the data has rows of numbers", NULL);
  if (spec_entry(config, "block_size") != NULL) return true; /* the length of its windows */
  const int64_t most = init->family.positions > 0 && init->family.positions < LENGTH ? init->family.positions : LENGTH;
  dialog_set(&init->dialog, "data.sequence_length", whole(init, init->is_published ? most : 128));
  return true;
}

/* The command that writes the tokens of texts or chats, which the job then reads. */
static const char *tell_tokens(struct init *init, const char *path, const struct samples *samples) {
  struct arena *arena = init->options->arena;
  const char *tokens = arena_printf(arena, "%s.tok", path), *how = "";
  if (samples->chats)
    how = arena_printf(arena, " --chat %s", shell_word(arena, init->folder));
  else if (init->tokenizer != NULL)
    how = arena_printf(arena, " --tokenizer %s", shell_word(arena, init->tokenizer));
  rt_print(stderr, "accel-gen init: before training, write its tokens: accel-gen data %s -o %s%s%s\n",
           shell_word(arena, path), shell_word(arena, tokens), how, samples->texts ? " --text-field text" : "");
  return tokens;
}

/* A conversation is a sample, and what is trained on of it counts. */
static void add_chats(struct init *init) {
  dialog_set(&init->dialog, "data.packing", "pad");
  dialog_set(&init->dialog, "accumulation", "{normalize: tokens}");
}

/* A class of this kind predicts hidden tokens: it sees all others, the next one, too. */
static bool add_masking(struct init *init) {
  struct arena *arena = init->options->arena;
  const bool masked = init->is_published && has_ending(init->family.architecture, "ForMaskedLM");
  if (!masked || options_set(init->options, "data.masking")) return true;
  const int64_t token = masking_token(arena, init->folder);
  if (token < 0)
    return fail(init, "this model predicts hidden tokens, and the folder names no token that hides them",
                "--set data.masking.mask_token=NUMBER gives it");
  dialog_set(&init->dialog, "data.masking", arena_printf(arena, "{mask_token: %s}", whole(init, token)));
  return true;
}

/* In a file of its own, or as a key of the tokenizer's. */
static bool has_template(const struct init *init) {
  size_t length;
  const char *path = arena_printf(init->options->arena, "%s/tokenizer_config.json", init->folder);
  const char *text = read_bytes(init->options->arena, path, &length);
  return has_file(init, "chat_template.jinja") || has_file(init, "chat_template.json") ||
         (text != NULL && strstr(text, "\"chat_template\"") != NULL);
}

static bool add_data(struct init *init) {
  struct arena *arena = init->options->arena;
  const char *path = init->options->data;
  struct samples samples;
  if (path == NULL) path = dialog_word(&init->dialog, "File to train on", NULL, NULL);
  if (path == NULL) return fail(init, "no data is named", "give --data FILE");
  if (!samples_look(arena, path, &samples))
    return fail(init, arena_printf(arena, "cannot read the data '%s': %s", path, strerror(errno)), NULL);
  if (samples.compressed)
    return fail(init, arena_printf(arena, "the data '%s' is compressed, and a job does not unpack it", path),
                "unpack it (gzip -dk, zstd -d), or give the .tok that `accel-gen data` makes of it");
  if (samples.chats && init->tokenizer == NULL)
    return fail(init, "chats need a tokenizer and a chat template, and this model has none",
                "give the folder of a chat model, with tokenizer.json");
  if (samples.chats && !has_template(init))
    return fail(init, arena_printf(arena, "%s has no chat template for the messages", init->folder),
                "give the folder of a chat model, or write the tokens first: accel-gen data CHATS -o FILE.tok --chat "
                "FOLDER --chat-template FILE");
  if ((init->tokenizer != NULL || samples.texts) && strcmp(samples.format, "bytes") == 0) {
    path = tell_tokens(init, path, &samples);
    samples.format = "tokens";
  }
  dialog_set(&init->dialog, "data.train",
             arena_printf(arena, "{path: %s, format: %s}", quoted(init, path), samples.format));
  if (samples.chats) add_chats(init);
  return add_masking(init) && add_sizes(init, &samples);
}

/* ---- Adapters ---- */

static bool add_lora(struct init *init) {
  struct arena *arena = init->options->arena;
  if (!init->options->lora) return true;
  const char *targets = usual_targets(arena, init->source);
  if (targets == NULL)
    return fail(init, "it is not known which matrices of this model are the attention's",
                "leave --lora out, and name them in the job: model.lora.targets");
  dialog_set(&init->dialog, "model.lora", arena_printf(arena, "{targets: [%s], rank: 8, alpha: 16}", targets));
  return true;
}

/* ---- The rest ---- */

static bool add_rest(struct init *init) {
  struct dialog *dialog = &init->dialog;
  const bool tunes = spec_find(dialog->document, "model.weights") != NULL;
  dialog_set(dialog, "data.batch_size", "8");
  dialog_set(dialog, "optimizer",
             arena_printf(init->options->arena, "{name: adamw, lr: %s, weight_decay: 0.1, clip_grad_norm: 1.0}",
                          init->options->lora ? "0.0002"
                          : tunes             ? "2.0e-05"
                                              : "0.001"));
  dialog_set(dialog, "schedule", "{name: cosine, warmup_fraction: 0.1}");
  dialog_set(dialog, "training", "{steps: 1000, seed: 1337}");
  dialog_set(dialog, "checkpoint.project_dir", quoted(init, arena_printf(init->options->arena, "runs/%s", init->name)));
  if (init->folder != NULL) dialog_set(dialog, "checkpoint.folder_of", quoted(init, init->folder));
  return dialog_confirm(dialog, "data.batch_size", "Samples of a step") &&
         dialog_confirm(dialog, "training.steps", "Steps") && dialog_confirm(dialog, "optimizer.lr", "Learning rate");
}

static void override_all(struct init *init) {
  const struct options *options = init->options;
  for (int i = 0; i < options->n_overrides; i++)
    if (strncmp(options->overrides[i].key, "model.config.", 13) != 0)
      init->dialog.document =
          override_apply(options->arena, init->dialog.document, &options->overrides[i], &init->diags);
}

/* The program of the document, whose text becomes *out; NULL with errors. */
static struct program *plan_job(struct init *init, struct text *out) {
  struct arena *arena = init->options->arena;
  struct options *options = arena_alloc(arena, sizeof *options);
  *options = (struct options){.arena = arena, .binary = init->options->binary, .argument = init->output};
  *out = text_in(arena);
  spec_write(out, init->dialog.document);
  struct compilation compilation = {
      .options = options, .arena = arena, .diags = init->diags, .kind = PROGRAM_TRAIN, .text = text_string(out)};
  const int status = compile_to_program(&compilation);
  init->diags = compilation.diags;
  return status == STATUS_OK ? compilation.program : NULL;
}

/* Adds to model.ignore what nobody needs of the weights, and refuses what the trainer would refuse. */
static bool check_weights(struct init *init, const struct program *program) {
  struct arena *arena = init->options->arena;
  const struct job *job = program->job;
  const struct model_texts heads = model_other_heads(arena, init->model);
  struct tensor_table table;
  struct text list = text_in(arena);
  int count;
  if (job->model.weights == NULL) return true;
  if (!tensors_compare(program, &heads, &table, &init->diags) || !tensors_check(program, &table, &init->diags))
    return false;
  if (!init->options->quiet)
    rt_print(stderr, "accel-gen init: the tensors of %s: %s\n", job->model.weights, tensors_summary(arena, &table));
  const char **patterns = tensors_ignorable(arena, &table, &count);
  if (count == 0) return true;
  text_puts(&list, "[");
  for (int i = 0; i < job->model.n_ignore; i++) text_printf(&list, "%s, ", quoted(init, job->model.ignore[i].name));
  for (int i = 0; i < count; i++) text_printf(&list, "%s%s", i > 0 ? ", " : "", quoted(init, patterns[i]));
  text_puts(&list, "]");
  dialog_set(&init->dialog, "model.ignore", text_string(&list));
  return true;
}

/* Plans the job: only one that has a program, and weights for it, is written. */
static int write_job(struct init *init) {
  struct arena *arena = init->options->arena;
  struct text out;
  struct program *program = plan_job(init, &out);
  if (program == NULL || !check_weights(init, program)) return STATUS_BAD_JOB;
  program = plan_job(init, &out); /* with what the check has added */
  if (program == NULL) return STATUS_BAD_JOB;
  struct inputs inputs = inputs_in(arena);
  inputs_add(&inputs, "the model", init->source);
  inputs_add(&inputs, "the data", init->options->data);
  if (!write_file(&inputs, init->output, out.bytes, out.length)) return STATUS_CANNOT;
  if (!init->options->quiet)
    rt_print(stderr, "%s: %s; accel-gen build %s -o trainer compiles its program\n", init->output,
             report_summary(program), shell_word(arena, init->output));
  return STATUS_OK;
}

static int make_job(struct init *init) {
  const bool to_file = strcmp(init->output, "-") != 0;
  if (to_file && access(init->output, F_OK) == 0) {
    fail(init, arena_printf(init->options->arena, "%s is there", init->output), "-o names another file");
    return STATUS_CANNOT;
  }
  if (!find_source(init) || !add_model(init) || !add_weights(init) || !add_lora(init) || !add_data(init) ||
      !add_rest(init))
    return STATUS_BAD_JOB;
  override_all(init);
  return init->diags.errors > 0 ? STATUS_BAD_JOB : write_job(init);
}

int command_init(const struct options *options) {
  if (options->model != NULL && options->argument != NULL) {
    options_refuse(options, "--model replaces the argument: give one of them", "");
    return STATUS_BAD_JOB;
  }
  struct init init = {.options = options, .output = options->output != NULL ? options->output : "job.yaml"};
  init.diags = diagnostics_in(options->arena);
  init.dialog = dialog_open(options->arena, "{}", !options->takes_defaults && dialog_has_person());
  const int status = make_job(&init);
  dialog_close(&init.dialog);
  if (init.diags.count > 0) diag_print(&init.diags, stderr, options->colour);
  return status;
}
