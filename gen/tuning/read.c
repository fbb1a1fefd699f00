/* A table, or what a trainer has measured, from its JSON, which is read as the YAML that it also is: each value has its
 * location. */
#include <errno.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/version.h"
#include "gen/spec/schema.h"
#include "gen/spec/yaml.h"
#include "gen/tuning/tuning.h"

static const char remedy[] = "measure again: accel-gen tune JOB";

static const char *text_at(const struct spec_node *node, const char *key) {
  return spec_find(node, key)->text;
}

/* Of another version or another machine. */
static void check_origin(const struct spec_node *document, const struct tuned_machine *machine,
                         struct diagnostics *diags) {
  const struct spec_node *generator = spec_find(document, "generator");
  const struct spec_node *processor = spec_find(document, "machine.processor");
  const struct spec_node *cores = spec_find(document, "machine.cores");
  if (strcmp(generator->text, ACCEL_VERSION) != 0) {
    diag_error(diags, generator->where, "measured by version %s, whose kernels are others than those of " ACCEL_VERSION,
               generator->text);
    diag_help(diags, "%s", remedy);
  }
  if (machine == NULL) return;
  if (strcmp(processor->text, machine->processor) != 0) {
    diag_error(diags, processor->where, "measured on another machine: this one is %s", machine->processor);
    diag_help(diags, "%s", remedy);
  } else if ((int64_t)cores->real != machine->cores) {
    diag_error(diags, cores->where, "measured on another machine: this one has %lld processors",
               (long long)machine->cores);
    diag_help(diags, "%s", remedy);
  }
}

static void read_entry(struct tuning *tuning, const struct spec_node *node, struct diagnostics *diags) {
  const struct spec_node *variants = spec_find(node, "variants");
  struct tuned entry = {.subject = text_at(node, "subject"),
                        .threads = (int64_t)spec_find(node, "threads")->real,
                        .flops = spec_find(node, "flops")->real,
                        .bytes = spec_find(node, "bytes")->real};
  const struct tuned *before = tuning_find(tuning, entry.subject, entry.threads, entry.bytes);
  if (before != NULL && before->bytes == entry.bytes) {
    diag_error(diags, spec_find(node, "subject")->where, "there is an entry before for this subject and %lld threads",
               (long long)entry.threads);
    return;
  }
  for (int i = 0; i < variants->count; i++) {
    const struct spec_node *variant = variants->entries[i].value;
    for (int k = 0; k < i; k++)
      if (strcmp(text_at(variants->entries[k].value, "variant"), text_at(variant, "variant")) == 0)
        diag_error(diags, variant->where, "the variant '%s' is here twice", text_at(variant, "variant"));
    tuning_put(tuning, &entry, text_at(variant, "variant"), spec_find(variant, "seconds")->real);
  }
}

static struct tuning *bind(struct arena *arena, const struct spec_node *document, struct diagnostics *diags) {
  struct tuning *tuning = tuning_new(arena);
  const struct spec_node *entries = spec_find(document, "entries");
  tuning->generator = text_at(document, "generator");
  tuning->machine.processor = text_at(document, "machine.processor");
  tuning->machine.cores = (int64_t)spec_find(document, "machine.cores")->real;
  tuning->compiler = text_at(document, "compiler");
  tuning->flags = text_at(document, "flags");
  tuning->library = text_at(document, "library");
  for (int i = 0; i < entries->count; i++) read_entry(tuning, entries->entries[i].value, diags);
  return tuning;
}

/* A table of an earlier version has `ways` where it has variants: one error says so, not one for each entry. */
static bool is_earlier(const struct spec_node *document, struct diagnostics *diags) {
  const struct spec_node *entries = spec_find(document, "entries");
  if (entries == NULL || entries->kind != SPEC_LIST || entries->count == 0) return false;
  const struct spec_entry *ways = spec_entry(entries->entries[0].value, "ways");
  if (ways == NULL) return false;
  diag_error(diags, ways->key_where, "a table of an earlier version, whose 'ways' are 'variants' now");
  diag_help(diags, "%s", remedy);
  return true;
}

/* A text that is what the schema says, which is given back; NULL with errors. */
static const struct spec_node *read_document(struct arena *arena, const char *file, const char *text, size_t length,
                                             json_t *schema, struct diagnostics *diags) {
  int before = diags->errors;
  diag_add_source(diags, file, text);
  const struct spec_source *source = source_of(arena, file, text, length, false, diags);
  const struct spec_node *document = source == NULL ? NULL : yaml_parse(arena, source, diags);
  bool good = document != NULL && diags->errors == before && !is_earlier(document, diags) &&
              schema_validate(arena, schema, document, diags);
  json_decref(schema);
  return good && diags->errors == before ? document : NULL;
}

struct tuning *tuning_parse(struct arena *arena, const char *file, const char *text, size_t length,
                            const struct tuned_machine *machine, struct diagnostics *diags) {
  int before = diags->errors;
  const struct spec_node *document = read_document(arena, file, text, length, schema_of_tuning(), diags);
  if (document == NULL) return NULL;
  check_origin(document, machine, diags);
  struct tuning *tuning = diags->errors > before ? NULL : bind(arena, document, diags);
  if (tuning != NULL) tuning->file = file;
  return diags->errors > before ? NULL : tuning;
}

struct tuning *tuning_measured(struct arena *arena, const char *file, const char *text, size_t length,
                               struct diagnostics *diags) {
  const struct spec_node *document = read_document(arena, file, text, length, schema_of_measured(), diags);
  if (document == NULL) return NULL;
  struct tuning *tuning = tuning_new(arena);
  const struct spec_node *gemms = spec_find(document, "matmuls");
  tuning->machine.processor = text_at(document, "device");
  tuning->machine.cores = (int64_t)spec_find(document, "cores")->real;
  tuning->library = text_at(document, "library");
  for (int i = 0; i < gemms->count; i++) {
    const struct spec_node *variants = gemms->entries[i].value;
    const struct tuned entry = {.subject = gemms->entries[i].key, .threads = 1};
    for (int k = 0; k < variants->count; k++) {
      const struct spec_node *variant = variants->entries[k].value;
      tuning_put(tuning, &entry, text_at(variant, "variant"), spec_find(variant, "seconds")->real);
    }
  }
  return tuning;
}

struct tuning *tuning_read(struct arena *arena, const char *file, const struct tuned_machine *machine,
                           struct location where, struct diagnostics *diags) {
  size_t length = 0;
  const char *text = read_bytes(arena, file, &length);
  if (text != NULL) return tuning_parse(arena, file, text, length, machine, diags);
  bool missing = errno == ENOENT;
  diag_error(diags, where, "cannot read the table of measurements '%s': %s", file, strerror(errno));
  if (missing) diag_help(diags, "accel-gen tune JOB -o %s writes it", file);
  return NULL;
}
