#include "gen/spec/fp8.h"

#include "gen/spec/refusals.h"

static const char untried[] = "no program with both has been measured against the recipe";
static const char on_gpus[] = "programs for GPUs have no products of 8 bits so far";
static const char twice[] = "layers that run again would meet another scale";
static const char scales[] = "scales of layers stay in float32";
static const char conflict[] = "precision.mixed_precision 'fp8'";
static const char otherwise[] = "precision.mixed_precision: bf16";

static const struct refusal refusals[] = {
    {"devices.kind", "cuda", on_gpus, "devices.kind: cpu"},
    {"devices.kind", "hip", on_gpus, "devices.kind: cpu"},
    {"precision.keep_in_fp32", NULL, untried, "no precision.keep_in_fp32"},
    {"model.lora", NULL, untried, "no model.lora"},
    {"model.quantize.load_in_4bit", "true", "a weight of 4-bit codes is not rounded again", "no model.quantize"},
    {"memory.activation_checkpointing", "all", twice, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "every", twice, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "layers", twice, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "functions", twice, "memory.activation_checkpointing: none"},
    {"memory.activation_checkpointing", "auto", twice, "memory.activation_checkpointing: none"},
    {"data.eval_batch_size", NULL, untried, "no data.eval_batch_size"},
    {"training.ema", NULL, untried, "no training.ema"},
    {"checkpoint.dtype", "bf16", scales, "no checkpoint.dtype"},
    {"checkpoint.dtype", "fp16", scales, "no checkpoint.dtype"},
    {"checkpoint.folder_of", NULL, "transformers knows no scales of layers", "no checkpoint.folder_of"},
    {"optimizer.name", "schedule_free_adamw", untried, "optimizer.name: adamw"},
    {"optimizer.name", "lomo", untried, "optimizer.name: sgd"},
    {"optimizer.name", "adalomo", untried, "optimizer.name: adamw"},
};

/* Scales of Transformer Engine are of all ranks' tensors, and no exchange of these is here. */
static void check_ranks(const struct spec_node *job, const struct spec_node *cause, struct diagnostics *diags) {
  static const char *const keys[] = {"devices.nodes", "devices.per_node"};
  for (size_t i = 0; i < COUNT(keys); i++) {
    const struct spec_node *count = spec_find(job, keys[i]);
    if (count->integer == 1) continue;
    diag_error(diags, count->where, "'%s' does not go with %s: one process alone has scales of tensors so far", keys[i],
               conflict);
    diag_note(diags, cause->where, "%s by this", conflict);
    diag_help(diags, "use %s: 1, or %s", keys[i], otherwise);
  }
}

void fp8_check(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *mixed = spec_find(job, "precision.mixed_precision");
  if (mixed == NULL || !spec_is(mixed, "fp8")) return;
  check_refusals(job, refusals, COUNT(refusals), conflict, mixed, otherwise, diags);
  check_ranks(job, mixed, diags);
}
