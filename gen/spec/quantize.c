#include "gen/spec/quantize.h"

#include <string.h>

#include "gen/spec/refusals.h"

static const char conflict[] = "model.quantize";
static const char otherwise[] = "no model.quantize";
static const char replicas[] = "dp_replicate, or zero_stage: 1";

static const struct refusal refusals[] = {
    {"devices.kind", "!cpu", "GPUs have no product with codes", "devices.kind: cpu"},
    {"parallelism.tp", "!1", "each rank has all of a matrix", replicas},
    {"parallelism.cp", "!1", "ranks have batches of their own", replicas},
    {"parallelism.sp", "!1", "ranks have batches of their own", replicas},
    {"parallelism.ep", "!1", "each rank has all of a matrix", replicas},
    {"parallelism.pp", "!1", "each rank has all layers", replicas},
    {"parallelism.local_sgd_steps", NULL, "codes have no mean over ranks", "no parallelism.local_sgd_steps"},
    {"training.ema.decay", NULL, "codes have no average", "no training.ema"},
};

/* A program has one type of 16 bits. */
static void check_types(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *compute = spec_find(job, "model.quantize.bnb_4bit_compute_dtype");
  const struct spec_node *param = spec_find(job, "precision.param_dtype");
  if (compute == NULL || param == NULL || spec_is(compute, "fp32") || spec_is(param, "fp32") ||
      strcmp(compute->text, param->text) == 0)
    return;
  diag_error(diags, compute->where, "'model.quantize.bnb_4bit_compute_dtype' is %s, and 'precision.param_dtype' %s",
             compute->text, param->text);
  diag_note(diags, param->where, "'precision.param_dtype' is %s here", param->text);
  diag_help(diags, "use the same type for both, or fp32 for one of them");
}

/* What stays in float32 of a model in 16 bits is another key's. */
static void check_kept(const struct spec_node *job, struct diagnostics *diags) {
  const struct spec_node *keep = spec_find(job, "model.quantize.keep_in_fp32_modules");
  const struct spec_node *param = spec_find(job, "precision.param_dtype");
  if (keep == NULL || keep->count == 0 || param == NULL || spec_is(param, "fp32")) return;
  diag_error(diags, keep->where, "'model.quantize.keep_in_fp32_modules' does not go with 'precision.param_dtype' %s",
             param->text);
  diag_note(diags, param->where, "'precision.param_dtype' is %s here", param->text);
  diag_help(diags, "name the modules in model.quantize.skip_modules, and their parameters in precision.keep_in_fp32");
}

/* The run's config.json would be the folder's, which says nothing of codes, and of theirs transformers has no class.
 * Merged with adapters, weights are left in floats. */
static void check_folder(const struct spec_node *job, const char *key, const struct spec_node *cause,
                         struct diagnostics *diags) {
  const struct spec_node *folder = spec_find(job, "checkpoint.folder_of");
  const struct spec_node *merge = spec_find(job, "model.lora.merge");
  const bool even = cause->kind == SPEC_STRING, adapts = spec_find(job, "model.lora") != NULL;
  if (folder == NULL || folder->kind == SPEC_NULL || (merge != NULL && spec_is(merge, "true"))) return;
  diag_error(diags, folder->where, "'checkpoint.folder_of' does not go with model.quantize: %s",
             even ? "transformers has no class for these codes" : "the folder's config.json says nothing of codes");
  diag_note(diags, cause->where, "'%s' is %s here", key, even ? cause->text : "true");
  if (even || adapts)
    diag_help(diags, "use adapters with model.lora.merge: true, which leaves weights in floats, or leave it out");
  else
    diag_help(diags, "leave it out, and the run makes a config.json that names the codes for transformers");
}

/* Whether a key chooses codes. */
static bool is_set(const struct spec_node *node) {
  return node != NULL && (node->kind == SPEC_STRING || node->integer != 0);
}

void quantize_check(const struct spec_node *job, struct diagnostics *diags) {
  static const char *const keys[] = {"model.quantize.load_in_4bit", "model.quantize.load_in_8bit",
                                     "model.quantize.quant_type"};
  const struct spec_node *cause = NULL;
  int i = 0;
  while (i < (int)COUNT(keys) && !is_set(cause = spec_find(job, keys[i]))) i++;
  if (i == (int)COUNT(keys)) return;
  check_types(job, diags);
  check_kept(job, diags);
  check_folder(job, keys[i], cause, diags);
  check_refusals(job, refusals, COUNT(refusals), conflict, cause, otherwise, diags);
}
