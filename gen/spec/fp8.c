#include "gen/spec/fp8.h"

#include <string.h>

#include "gen/spec/choices.h"
#include "gen/spec/refusals.h"

static const char untried[] = "no program with both has been measured against the recipe";
static const char conflict[] = "precision.mixed_precision 'fp8'";
static const char otherwise[] = "precision.mixed_precision: bf16";

/* Axes of which ranks have parts of a tensor with one scale: with backend: te they compare sizes when a batch is over.
 */
static const char parts[] =
    "a scale is of a whole tensor, and ranks with parts of it would have to compare their sizes before they round";
static const char experts[] = "products of experts by groups of rows are not in 8 bits";
static const char shards[] = "a scale is of a whole gradient, weight or moment, and ranks would have parts of them";
static const char stages[] = "gradients of 8 bits between ranks are those of a whole model";
enum { BACKENDS = 3 };
static const char *const backends[BACKENDS] = {"ao", "te", "msamp"};
static const char *const alternatives[BACKENDS] = {"parallelism.dp_replicate, dp_shard, zero_stage, sp, cp or pp",
                                                   "parallelism.dp_replicate, dp_shard, zero_stage, tp, sp, cp or pp",
                                                   "parallelism.dp_replicate"};
static const struct {
  const char *key, *why[BACKENDS]; /* why it does not go with a backend; NULL: it does */
} axes[] = {
    {"dp_replicate", {NULL, NULL, NULL}}, {"dp_shard", {NULL, NULL, shards}}, {"zero_stage", {NULL, NULL, shards}},
    {"tp", {parts, NULL, parts}},         {"sp", {NULL, NULL, parts}},        {"cp", {NULL, NULL, parts}},
    {"ep", {experts, experts, experts}},  {"pp", {NULL, NULL, stages}},
};

static const struct refusal refusals[] = {
    {"precision.keep_in_fp32", NULL, untried, "no precision.keep_in_fp32"},
    {"model.lora", NULL, untried, "no model.lora"},
    {"model.quantize.load_in_4bit", "true", "a weight of 4-bit codes is not rounded again", "no model.quantize"},
    {"model.quantize.load_in_8bit", "true", "a weight of 8-bit codes is not rounded again", "no model.quantize"},
    {"data.eval_batch_size", NULL, untried, "no data.eval_batch_size"},
    {"data.join_uneven_inputs", "true", "a rank without samples would give sizes of none",
     "data.join_uneven_inputs: false"},
    {"training.ema", NULL, untried, "no training.ema"},
    {"checkpoint.dtype", "!fp32", "scales of layers stay in float32", "no checkpoint.dtype"},
    {"checkpoint.folder_of", NULL, "transformers knows no scales of layers", "no checkpoint.folder_of"},
    {"optimizer.name", "schedule_free_adamw", untried, "optimizer.name: adamw"},
    {"optimizer.name", "lomo", untried, "optimizer.name: sgd"},
    {"optimizer.name", "adalomo", untried, "optimizer.name: adamw"},
};

static void refuse(const struct spec_node *where, const char *key, const char *why, const char *remedy,
                   const struct spec_node *cause, struct diagnostics *diags) {
  diag_error(diags, where->where, "'%s' does not go with %s: %s", key, conflict, why);
  diag_note(diags, cause->where, "%s by this", conflict);
  diag_help(diags, "use %s, or %s", remedy, otherwise);
}

/* Whether the job has a key, or one below it. */
static bool is_given(const struct spec_node *node) {
  if (node->kind != SPEC_MAP) return !node->is_default;
  for (int i = 0; i < node->count; i++)
    if (is_given(node->entries[i].value)) return true;
  return false;
}

/* Why a key of parallelism does not go; NULL: it does. */
static const char *why_not(const char *key, int backend) {
  for (size_t i = 0; i < COUNT(axes); i++)
    if (strcmp(axes[i].key, key) == 0) return axes[i].why[backend];
  return untried;
}

static int backend_of(const struct spec_node *job) {
  const struct spec_node *backend = spec_find(job, "precision.fp8.backend");
  int found = 0;
  for (int i = 0; i < BACKENDS && backend != NULL; i++)
    if (spec_is(backend, backends[i])) found = i;
  return found;
}

static int64_t number_of(const struct spec_node *job, const char *key) {
  const struct spec_node *number = spec_find(job, key);
  return number != NULL && number->kind == SPEC_INT ? number->integer : 0;
}

/* Layers of one rank are gathered into memory that the next ones take, and with them their scales. */
static void check_te(const struct spec_node *job, const struct spec_node *cause, struct diagnostics *diags) {
  const struct spec_node *stage = spec_find(job, "parallelism.zero_stage");
  const struct spec_node *again = spec_find(job, "memory.activation_checkpointing");
  const int64_t ranks = number_of(job, "parallelism.pp");
  if (number_of(job, "parallelism.zero_stage") == 3)
    refuse(stage, "parallelism.zero_stage",
           "layers are gathered into memory that the next layers take, and with them their scales and sizes",
           "parallelism.zero_stage: 2", cause, diags);
  if (ranks > 1 && again != NULL && !spec_is(again, "none"))
    refuse(again, "memory.activation_checkpointing",
           "layers of a stage that run again would meet scales that other micro-batches have moved",
           "memory.activation_checkpointing: none", cause, diags);
}

/* Nobody has measured stages of several replicas. */
static void check_stages(const struct spec_node *job, const struct spec_node *cause, struct diagnostics *diags) {
  const int64_t replicas = number_of(job, "parallelism.dp_replicate"), shards = number_of(job, "parallelism.dp_shard");
  if (number_of(job, "parallelism.pp") > 1 && (replicas > 1 || shards > 1))
    refuse(spec_find(job, "parallelism.pp"), "parallelism.pp", untried, "parallelism.pp alone", cause, diags);
}

/* MS-AMP is a layer, a reducer of gradients and an optimizer. */
static void check_msamp(const struct spec_node *job, const struct spec_node *cause, struct diagnostics *diags) {
  static const struct refusal of_msamp[] = {
      {"devices.kind", "cuda", untried, "devices.kind: cpu"},
      {"optimizer.name", "!adamw", "MS-AMP has its own AdamW, and no program with another has been measured",
       "optimizer.name: adamw"},
      {"optimizer.state_dtype", "!float32", "moments are rounded as precision.fp8.opt_level says",
       "no optimizer.state_dtype"},
      {"accumulation.num_steps", "!1", untried, "accumulation.num_steps: 1"},
      {"hooks.on_bucket", NULL, "gradients are exchanged as numbers of 8 bits", "no hooks.on_bucket"},
      {"memory.device_map", NULL, untried, "no memory.device_map"},
  };
  check_refusals(job, of_msamp, COUNT(of_msamp), "precision.fp8.backend 'msamp'", cause, "precision.fp8.backend: te",
                 diags);
}

/* Scales are of what a rank has (torchao in PyTorch's DDP and FSDP2), or of the tensors of all ranks (Transformer
 * Engine). */
static void check_ranks(const struct spec_node *job, const struct spec_node *cause, struct diagnostics *diags) {
  const struct spec_node *nodes = spec_find(job, "devices.nodes");
  const struct spec_node *mesh = spec_find(job, "parallelism");
  if (nodes->integer != 1) refuse(nodes, "devices.nodes", untried, "devices.nodes: 1", cause, diags);
  const int backend = backend_of(job);
  if (mesh != NULL && mesh->kind != SPEC_MAP)
    refuse(mesh, "parallelism", untried, "parallelism.dp_replicate", cause, diags);
  for (int i = 0; mesh != NULL && mesh->kind == SPEC_MAP && i < mesh->count; i++) {
    const struct spec_entry *entry = &mesh->entries[i];
    const char *why = why_not(entry->key, backend);
    if (why != NULL && is_given(entry->value))
      refuse(entry->value, entry->key, why, alternatives[backend], cause, diags);
  }
}

/* Whether ranks are along an axis of a model's own, of which one at a time has been measured, on processors. */
static bool divides_model(const struct spec_node *job, const char *key) {
  static const char *const keys[] = {"tp", "sp", "cp", "pp"};
  const struct spec_node *ranks = spec_find(spec_find(job, "parallelism"), key);
  for (size_t i = 0; i < COUNT(keys); i++)
    if (strcmp(keys[i], key) == 0) return ranks != NULL && ranks->kind == SPEC_INT && ranks->integer > 1;
  return false;
}

static void check_mesh(const struct spec_node *job, const struct spec_node *cause, struct diagnostics *diags) {
  const struct spec_node *mesh = spec_find(job, "parallelism");
  const bool on_gpu = spec_is(spec_find(job, "devices.kind"), "cuda");
  const struct spec_node *first = NULL;
  int along = 0; /* such axes */
  for (int i = 0; mesh != NULL && mesh->kind == SPEC_MAP && i < mesh->count; i++) {
    const bool divides = divides_model(job, mesh->entries[i].key);
    if (divides && first == NULL) first = mesh->entries[i].value;
    along += divides;
  }
  if (first == NULL || (along < 2 && !on_gpu)) return;
  diag_error(diags, first->where, "ranks that divide a model do not go with %s %s: %s", conflict,
             on_gpu ? "on GPUs" : "along two axes", untried);
  diag_note(diags, cause->where, "%s by this", conflict);
  diag_help(diags, "use one of parallelism.tp, sp, cp and pp, on processors; or %s", otherwise);
}

/* A recipe of which no program for GPUs has the product multiplies what was rounded, if the job says so. */
static void check_recipe(const struct spec_node *job, const struct spec_node *cause, struct diagnostics *diags) {
  const struct spec_node *kind = spec_find(job, "devices.kind"), *recipe = spec_find(job, "precision.fp8.recipe");
  const struct spec_node *emulate = spec_find(job, "precision.fp8.emulate");
  if (!spec_is(kind, "cuda") || recipe == NULL || spec_is(recipe, "tensorwise") || emulate->integer != 0) return;
  diag_error(diags, recipe->where,
             "programs for GPUs have no product of 8 bits with scales of rows or of blocks so far");
  diag_note(diags, cause->where, "%s by this", conflict);
  diag_help(
      diags,
      "add precision.fp8.emulate: true, which multiplies what was rounded in bfloat16; or use recipe: tensorwise");
}

void fp8_check(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *mixed = spec_find(job, "precision.mixed_precision");
  if (mixed == NULL || !spec_is(mixed, "fp8")) return;
  check_refusals(job, refusals, COUNT(refusals), conflict, mixed, otherwise, diags);
  check_recipe(job, mixed, diags);
  check_ranks(job, mixed, diags);
  check_stages(job, mixed, diags);
  if (backend_of(job) == FP8_TE) check_te(job, mixed, diags);
  if (backend_of(job) == FP8_MSAMP) check_msamp(job, mixed, diags);
  if (diags->errors == 0) check_mesh(job, mixed, diags);
}
