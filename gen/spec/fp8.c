#include "gen/spec/fp8.h"

#include <string.h>

#include "gen/spec/refusals.h"

static const char untried[] = "no program with both has been measured against the recipe";
static const char conflict[] = "precision.mixed_precision 'fp8'";
static const char otherwise[] = "precision.mixed_precision: bf16";

/* Axes of which ranks have parts of a tensor with one scale: with backend: te they compare sizes when a batch is over.
 */
static const char parts[] =
    "a scale is of a whole tensor, and ranks with parts of it would have to compare their sizes before they round";
static const char experts[] = "products of experts by groups of rows are not in 8 bits";
static const struct {
  const char *key, *of_ao, *of_te; /* why it does not go with a backend; NULL: it does */
} axes[] = {
    {"dp_replicate", NULL, NULL},
    {"dp_shard", NULL, NULL},
    {"zero_stage", NULL, NULL},
    {"tp", parts, NULL},
    {"sp", parts, NULL},
    {"cp", parts, NULL},
    {"ep", experts, experts},
    {"pp", NULL, "stages take micro-batches in an order of their own, which scales would follow"},
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

/* The stage of ZeRO that a job names. */
static int64_t zero_stage(const struct spec_node *job) {
  const struct spec_node *stage = spec_find(job, "parallelism.zero_stage");
  return stage != NULL && stage->kind == SPEC_INT ? stage->integer : 0;
}

/* Why a key of parallelism does not go; NULL: it does. */
static const char *why_not(const char *key, bool te) {
  for (size_t i = 0; i < COUNT(axes); i++)
    if (strcmp(axes[i].key, key) == 0) return te ? axes[i].of_te : axes[i].of_ao;
  return untried;
}

/* Scales are of what a rank has (torchao in PyTorch's DDP and FSDP2), or of the tensors of all ranks (Transformer
 * Engine). */
static void check_ranks(const struct spec_node *job, const struct spec_node *cause, struct diagnostics *diags) {
  const struct spec_node *nodes = spec_find(job, "devices.nodes"), *stage = spec_find(job, "parallelism.zero_stage");
  const struct spec_node *mesh = spec_find(job, "parallelism"), *backend = spec_find(job, "precision.fp8.backend");
  if (nodes->integer != 1) refuse(nodes, "devices.nodes", untried, "devices.nodes: 1", cause, diags);
  const bool te = backend != NULL && spec_is(backend, "te");
  if (zero_stage(job) >= 2 && te)
    refuse(stage, "parallelism.zero_stage", "scales are not trained, so no update would gather their shards",
           "parallelism.zero_stage: 1", cause, diags);
  if (mesh != NULL && mesh->kind != SPEC_MAP)
    refuse(mesh, "parallelism", untried, "parallelism.dp_replicate", cause, diags);
  for (int i = 0; mesh != NULL && mesh->kind == SPEC_MAP && i < mesh->count; i++) {
    const struct spec_entry *entry = &mesh->entries[i];
    const char *why = why_not(entry->key, te);
    if (why != NULL && is_given(entry->value))
      refuse(entry->value, entry->key, why,
             te ? "parallelism.dp_replicate, dp_shard, zero_stage, tp, sp or cp alone"
                : "parallelism.dp_replicate, dp_shard, zero_stage or pp alone",
             cause, diags);
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

static bool is_along(const struct spec_entry *entry) {
  const bool counts = strcmp(entry->key, "dp_replicate") == 0 || strcmp(entry->key, "dp_shard") == 0;
  return counts && entry->value->kind == SPEC_INT && entry->value->integer > 1;
}

static void check_mesh(const struct spec_node *job, const struct spec_node *cause, struct diagnostics *diags) {
  const struct spec_node *mesh = spec_find(job, "parallelism");
  const bool on_gpu = spec_is(spec_find(job, "devices.kind"), "cuda");
  const struct spec_node *first = NULL;
  int along = 0;
  for (int i = 0; mesh != NULL && mesh->kind == SPEC_MAP && i < mesh->count; i++) {
    const bool divides = divides_model(job, mesh->entries[i].key);
    if (divides && first == NULL) first = mesh->entries[i].value;
    along += divides || is_along(&mesh->entries[i]);
  }
  if (first == NULL || (along < 2 && !on_gpu)) return;
  diag_error(diags, first->where, "ranks that divide a model do not go with %s %s: %s", conflict,
             on_gpu ? "on GPUs" : "along other axes too", untried);
  diag_note(diags, cause->where, "%s by this", conflict);
  diag_help(diags, "use one of parallelism.tp, sp, cp and pp alone, on processors; or %s", otherwise);
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
  if (diags->errors == 0) check_mesh(job, mixed, diags);
}
