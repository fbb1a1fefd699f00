#include "gen/model/hooks.h"

#include <string.h>
#include <unistd.h>

#include "gen/base/embedded.h"
#include "gen/c/parse.h"

/* Of what type a hook is, and its parameters as people write them. */
static const struct hook_type {
  const char *type, *parameters;
} of_progress = {"void (struct accel_run *, const struct accel_progress *)",
                 "struct accel_run *run, const struct accel_progress *progress"},
  of_batches = {"void (struct accel_run *, struct accel_batch *)", "struct accel_run *run, struct accel_batch *batch"},
  of_buckets = {"void (struct accel_run *, struct accel_bucket *)",
                "struct accel_run *run, struct accel_bucket *bucket"},
  of_orders = {"void (struct accel_order *)", "struct accel_order *order"};

static const struct hook_type *type_of(int hook) {
  if (hook == HOOK_BATCH) return &of_batches;
  if (hook == HOOK_BUCKET) return &of_buckets;
  return hook == HOOK_ORDER ? &of_orders : &of_progress;
}

static void check_function(const struct job *job, const struct tree *tree, int hook, struct diagnostics *diags) {
  const char *name = job->hooks.names[hook], *key = job_hook_keys[hook];
  struct location asked = job_where(job, arena_printf(diags->arena, "hooks.%s", key));
  const struct hook_type *type = type_of(hook);
  const struct function *function = tree_function(tree, name);
  if (function == NULL || !function->is_defined) {
    diag_error(diags, asked, "%s defines no function '%s'", job->hooks.source, name);
    diag_help(diags, "write 'void %s(%s) { ... }'", name, type->parameters);
    return;
  }
  if (strcmp(function->type_name, type->type) != 0)
    diag_error(diags, function->where, "'%s' is of type '%s', a hook of type '%s'", name, function->type_name,
               type->type);
  else if (function->is_static)
    diag_error(diags, function->where, "'%s' is static, so the trainer cannot call it", name);
  else
    return;
  diag_note(diags, asked, "'hooks.%s' names it here", key);
}

/* What the file includes in addition to our header may be missing here; the compiler will find it. */
static struct tree *parse(struct arena *arena, const char *file, struct diagnostics *diags) {
  static const char *const flags[] = {"-std=c17"};
  struct header headers[] = {{"accel/hooks.h", embedded_source("include/accel/hooks.h")},
                             {"accel/batch.h", embedded_source("include/accel/batch.h")},
                             {"accel/bucket.h", embedded_source("include/accel/bucket.h")},
                             {"accel/order.h", embedded_source("include/accel/order.h")}};
  struct parse_request request = {.file = file,
                                  .flags = flags,
                                  .n_flags = 1,
                                  .headers = headers,
                                  .n_headers = sizeof headers / sizeof *headers,
                                  .outline = true};
  return tree_parse(arena, &request, diags);
}

bool hooks_check(struct arena *arena, const struct job *job, struct diagnostics *diags) {
  struct location where = job_where(job, "hooks.source");
  int before = diags->errors, named = 0;
  if (job->hooks.source == NULL) return true;
  for (int i = 0; i < HOOKS; i++) named += job->hooks.names[i] != NULL;
  if (named == 0)
    diag_error(
        diags, where,
        "'hooks' names no function to call: on_pre_load, on_start, on_step, on_eval, on_pre_save, on_save, on_end, "
        "on_step_begin, on_epoch, on_batch, on_bucket, on_order");
  if (access(job->hooks.source, R_OK) != 0) diag_error(diags, where, "cannot read the hooks %s", job->hooks.source);
  if (diags->errors > before) return false;
  const struct tree *tree = parse(arena, job->hooks.source, diags);
  for (int i = 0; tree != NULL && i < HOOKS; i++)
    if (job->hooks.names[i] != NULL) check_function(job, tree, i, diags);
  return diags->errors == before;
}
