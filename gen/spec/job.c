#include "gen/spec/job.h"

#include <string.h>

#include "gen/base/sha256.h"
#include "gen/spec/bind.h"
#include "gen/spec/extends.h"
#include "gen/spec/override.h"
#include "gen/spec/requires.h"
#include "gen/spec/resolve.h"
#include "gen/spec/rules.h"
#include "gen/spec/schema.h"
#include "gen/spec/yaml.h"

bool job_has_rows(const struct job *job) {
  const enum data_format format = job->data.train.format;
  return format == DATA_CSV || format == DATA_NPY || format == DATA_NPZ;
}

bool job_evaluates(const struct job *job) {
  return job->training.eval_interval > 0 || job->training.eval_epochs.count > 0;
}

int64_t job_eval_batch(const struct job *job) {
  return job->data.eval_batch_size > 0 ? job->data.eval_batch_size : job->data.batch_size;
}

bool job_evaluates_other_batches(const struct job *job) {
  return job_evaluates(job) && job_eval_batch(job) != job->data.batch_size;
}

struct job job_of_evaluation(const struct job *job) {
  struct job evaluated = *job;
  evaluated.data.batch_size = (int)job_eval_batch(job);
  return evaluated;
}

bool job_saves(const struct job *job) {
  return job->checkpoint.every > 0 || job->checkpoint.minutes > 0 || job->checkpoint.epochs.count > 0;
}

const char *job_digest(struct arena *arena, const struct job *job) {
  const char *text = job_resolved(arena, job);
  char hex[65];
  sha256_of(text, strlen(text), hex);
  return arena_string(arena, hex);
}

/* The document over the files that it extends, with the overrides; NULL when there is none to validate. */
static const struct spec_node *read_document(struct arena *arena, const struct spec_source *source,
                                             const struct job_override *overrides, int n_overrides,
                                             struct extended_files *files, struct diagnostics *diags) {
  const struct spec_node *document = source == NULL ? NULL : yaml_parse(arena, source, diags);
  if (document != NULL) document = extends_apply(arena, source->name, document, files, diags);
  for (int i = 0; document != NULL && i < n_overrides; i++)
    document = override_apply(arena, document, &overrides[i], diags);
  return document;
}

/* The document as if it did not write `parallelism: auto`; whether it does. */
static const struct spec_node *without_auto(struct arena *arena, const struct spec_node *document, bool *automatic) {
  const struct spec_node *parallelism = spec_find(document, "parallelism");
  *automatic = parallelism != NULL && spec_is(parallelism, "auto");
  if (!*automatic) return document;
  struct spec_node *without = spec_copy_map(arena, document, 0), *none = arena_alloc(arena, sizeof *none);
  *none = (struct spec_node){.kind = SPEC_MAP, .where = parallelism->where, .text = ""};
  spec_entry(without, "parallelism")->value = none;
  return without;
}

struct job *job_of_document(struct arena *arena, struct json_t *schema, const char *file,
                            const struct spec_node *document, struct diagnostics *diags) {
  const int before = diags->errors;
  if (!schema_validate(arena, schema, document, diags)) return NULL;
  bool automatic;
  const struct spec_node *written = without_auto(arena, document, &automatic);
  const struct spec_node *resolved = spec_resolve(arena, schema, written);
  rules_check(arena, resolved, diags);
  struct job *job = job_bind(arena, file, resolved, diags);
  job->parallelism.automatic = automatic;
  job->digest = job_digest(arena, job);
  job->schema = schema;
  return diags->errors > before ? NULL : job;
}

struct job *job_parse(struct arena *arena, const char *file, const char *text, size_t length,
                      const struct job_override *overrides, int n_overrides, struct diagnostics *diags) {
  json_t *schema = schema_of_job();
  struct job *job = job_parse_by(arena, schema, file, text, length, overrides, n_overrides, diags);
  if (job != NULL) job->schema = NULL;
  json_decref(schema);
  return job;
}

struct job *job_parse_by(struct arena *arena, struct json_t *schema, const char *file, const char *text, size_t length,
                         const struct job_override *overrides, int n_overrides, struct diagnostics *diags) {
  int before = diags->errors;
  file = arena_string(arena, file);
  diag_add_source(diags, file, text);
  const struct spec_source *source = source_of(arena, file, text, length, false, diags);
  struct extended_files files = {0};
  const struct spec_node *document = read_document(arena, source, overrides, n_overrides, &files, diags);
  if (document == NULL || !requires_is_met(arena, document, diags)) return NULL;
  if (diags->errors == before) {
    struct job *job = job_of_document(arena, schema, file, document, diags);
    if (job != NULL) job->extends = files.items;
    if (job != NULL) job->n_extends = files.count;
    return job;
  }
  schema_validate(arena, schema, document, diags);
  return NULL;
}

struct job *job_read(struct arena *arena, const char *file, const struct job_override *overrides, int n_overrides,
                     struct diagnostics *diags) {
  size_t length = 0;
  const char *text = source_read(arena, file, (struct location){0}, &length, diags);
  return text == NULL ? NULL : job_parse(arena, file, text, length, overrides, n_overrides, diags);
}

struct location job_where(const struct job *job, const char *key) {
  const struct spec_node *node = job->tree;
  struct location where = {.file = job->file};
  if (node != NULL) where = node->where;
  while (node != NULL && *key != '\0') {
    size_t length = strcspn(key, ".");
    char name[64];
    if (length >= sizeof name) break;
    memcpy(name, key, length);
    name[length] = '\0';
    node = spec_find(node, name);
    if (node != NULL) where = node->where;
    key += length;
    if (*key == '.') key++;
  }
  return where;
}

const char *job_resolved(struct arena *arena, const struct job *job) {
  struct text out = text_in(arena);
  spec_write(&out, job->tree);
  return text_string(&out);
}

bool job_compares_evaluations(const struct job *job) {
  return job->training.early_stopping.patience > 0 || job->training.early_stopping.restore_best;
}
