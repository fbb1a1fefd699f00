/* accel-gen config: a file of defaults for a machine, which jobs extend. */
#include <stdio.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/cli/files.h"
#include "gen/commands/cli/machine.h"
#include "gen/commands/start/dialog.h"
#include "gen/spec/extends.h"
#include "gen/spec/override.h"
#include "gen/spec/source.h"
#include "gen/spec/yaml.h"
#include "runtime/base/terminal.h"

/* What a job has in addition to, for the check of what a machine's file says. */
static const char rest_of_job[] = "{model: {source: model.c}, data: {train: {path: a, format: tokens}, batch_size: 1}, "
                                  "training: {steps: 1000000000}}";

struct configuration {
  const struct options *options;
  struct machine machine;
  struct dialog dialog;
};

/* ---- What the machine has ---- */

static const char *whole(const struct configuration *c, int64_t number) {
  return arena_printf(c->options->arena, "%lld", (long long)number);
}

/* Nine tenths, in whole GiB, below one in MiB; the rest is for the system. */
static const char *most_memory(const struct configuration *c, int64_t bytes) {
  const int64_t some = bytes / 10 * 9, gib = some >> 30;
  if (bytes == 0) return NULL;
  return gib > 0 ? arena_printf(c->options->arena, "%lldGiB", (long long)gib)
                 : arena_printf(c->options->arena, "%lldMiB", (long long)(some >> 20));
}

/* The product of devices.hardware that the GPUs are; NULL for another. */
static const char *product(const char *name) {
  if (strstr(name, "A100-SXM") != NULL && strstr(name, "80GB") != NULL) return "a100-sxm-80gb";
  if (strstr(name, "H100 80GB HBM3") != NULL) return "h100-sxm-80gb";
  return NULL;
}

static int64_t number_at(const struct configuration *c, const char *key, int64_t otherwise) {
  const struct spec_node *node = spec_find(c->dialog.document, key);
  return node != NULL && node->kind == SPEC_INT && node->integer > 0 ? node->integer : otherwise;
}

static bool has_gpus(const struct configuration *c) {
  const struct spec_node *kind = spec_find(c->dialog.document, "devices.kind");
  return kind != NULL && !spec_is(kind, "cpu");
}

/* ---- Questions ---- */

static bool ask(struct configuration *c, const char *key, const char *question, const char *preset) {
  return dialog_ask(&c->dialog, key, question, preset);
}

static bool ask_ranks(struct configuration *c) {
  const bool gpus = c->machine.gpus.count > 0;
  return ask(c, "devices.kind", "Devices", gpus ? "cuda" : "cpu") && ask(c, "devices.nodes", "Machines", "1") &&
         ask(c, "devices.per_node", has_gpus(c) ? "GPUs of each machine, a process each" : "Processes on each machine",
             has_gpus(c) && gpus ? whole(c, c->machine.gpus.count) : "1");
}

/* A process has an equal part of the processors, or one GPU. */
static bool ask_resources(struct configuration *c) {
  const int64_t ranks = number_at(c, "devices.per_node", 1), threads = c->machine.processors / ranks;
  if (has_gpus(c)) {
    const char *name = c->machine.gpus.name != NULL ? product(c->machine.gpus.name) : NULL;
    return ask(c, "devices.memory", "The most memory that a program may take of a GPU",
               most_memory(c, c->machine.gpus.memory)) &&
           (name == NULL || ask(c, "devices.hardware", "Product, for predictions", name));
  }
  return ask(c, "devices.threads", "Threads of a process", whole(c, threads > 0 ? threads : 1)) &&
         ask(c, "devices.memory", "The most memory that a process may take", most_memory(c, c->machine.memory / ranks));
}

/* A job has both figures or none. */
static bool ask_network(struct configuration *c) {
  struct arena *arena = c->options->arena;
  const char *speed = arena_printf(arena, "%.10g", c->machine.network > 0 ? c->machine.network : 1250);
  if (number_at(c, "devices.nodes", 1) < 2 || spec_find(c->dialog.document, "devices.network") != NULL) return true;
  for (;;) {
    const char *latency = dialog_word(&c->dialog, "Microseconds from a machine to another", NULL, "20");
    const char *bandwidth =
        latency == NULL ? NULL : dialog_word(&c->dialog, "Megabytes a second between them", NULL, speed);
    if (bandwidth == NULL) return false;
    const char *both = arena_printf(arena, "{latency: %s, bandwidth: %s}", latency, bandwidth);
    if (dialog_take(&c->dialog, "devices.network", both)) return true;
  }
}

static bool ask_precision(struct configuration *c) {
  const bool bf16 = has_gpus(c) ? c->machine.gpus.bf16 : c->machine.bf16;
  return ask(c, "precision.mixed_precision", "Number format of matrix products", bf16 ? "bf16" : "no");
}

/* ---- update ---- */

/* What of the machine's keys neither the file nor one that it extends has. */
static const struct spec_node *lacking(struct arena *arena, const struct spec_node *machine,
                                       const struct spec_node *there) {
  struct spec_node *groups = spec_copy_map(arena, machine, 0);
  groups->count = 0;
  for (int i = 0; i < machine->count; i++) {
    struct spec_entry group = machine->entries[i];
    if (group.value->kind != SPEC_MAP) continue;
    struct spec_node *keys = spec_copy_map(arena, group.value, 0);
    const struct spec_node *own = spec_find(there, group.key);
    keys->count = 0;
    for (int k = 0; k < group.value->count; k++)
      if (spec_find(own, group.value->entries[k].key) == NULL) keys->entries[keys->count++] = group.value->entries[k];
    group.value = keys;
    if (keys->count > 0) groups->entries[groups->count++] = group;
  }
  return groups;
}

/* The file's own document, and what it says with the files that it extends; NULL with errors. */
static const struct spec_node *read_file(struct arena *arena, const char *file, const struct spec_node **all,
                                         struct diagnostics *diags) {
  struct extended_files files = {0};
  size_t length;
  const char *text = source_read(arena, file, (struct location){0}, &length, diags);
  if (text == NULL) return NULL;
  diag_add_source(diags, file, text);
  const struct spec_source *source = source_of(arena, file, text, length, false, diags);
  const struct spec_node *document = source != NULL ? yaml_parse(arena, source, diags) : NULL;
  if (document == NULL || diags->errors > 0) return NULL;
  if (document->kind != SPEC_MAP) diag_error(diags, document->where, "a machine's file is a group of keys");
  *all = document->kind == SPEC_MAP ? extends_apply(arena, file, document, &files, diags) : NULL;
  return *all != NULL && diags->errors == 0 ? document : NULL;
}

/* ---- The command ---- */

static const struct spec_node *override_all(const struct configuration *c, const struct spec_node *document,
                                            struct diagnostics *diags) {
  for (int i = 0; i < c->options->n_overrides; i++)
    document = override_apply(c->options->arena, document, &c->options->overrides[i], diags);
  return document;
}

/* Asks for what the document lacks, and checks all of it. A status. */
static int complete(struct configuration *c, struct diagnostics *diags) {
  c->dialog.document = override_all(c, c->dialog.document, diags);
  if (diags->errors > 0) return STATUS_BAD_JOB;
  if (ask_ranks(c) && ask_resources(c) && ask_network(c) && ask_precision(c))
    return dialog_check(&c->dialog, "config", diags) ? STATUS_OK : STATUS_BAD_JOB;
  rt_print(stderr, "\naccel-gen config: the answers end; nothing is written\n");
  return STATUS_CANNOT;
}

static int write_document(const struct configuration *c, const struct spec_node *document, const char *output) {
  struct inputs inputs = inputs_in(c->options->arena);
  struct text out = text_in(c->options->arena);
  text_puts(
      &out,
      "# Defaults of a machine, by accel-gen config. A job takes them with `extends:`\n# and this file's path.\n");
  spec_write(&out, document);
  return write_file(&inputs, output != NULL ? output : "-", out.bytes, out.length) ? STATUS_OK : STATUS_CANNOT;
}

static int create(struct configuration *c, struct diagnostics *diags) {
  const int status = complete(c, diags);
  return status == STATUS_OK ? write_document(c, c->dialog.document, c->options->output) : status;
}

/* Writes the file with the keys that it lacks; what it says stays. */
static int update(struct configuration *c, struct diagnostics *diags) {
  struct arena *arena = c->options->arena;
  const struct options *options = c->options;
  const struct spec_node *all = NULL, *own = read_file(arena, options->second, &all, diags);
  if (own == NULL) return STATUS_BAD_JOB;
  c->dialog.document = all;
  const int status = complete(c, diags);
  if (status != STATUS_OK) return status;
  const struct spec_node *more = lacking(arena, c->dialog.document, all);
  const struct spec_node *written = extends_merge(arena, more, override_all(c, own, diags), diags);
  return written != NULL ? write_document(c, written, options->output != NULL ? options->output : options->second)
                         : STATUS_BAD_JOB;
}

int command_config(const struct options *options) {
  const bool updates = options->argument != NULL;
  if (updates && options->second == NULL) {
    options_refuse(options, "the file to update is missing", "");
    return STATUS_BAD_JOB;
  }
  if (!updates && !options->takes_defaults && !dialog_has_person()) {
    options_refuse(options, "there is no terminal in which to ask: --default takes what this machine has", "");
    return STATUS_BAD_JOB;
  }
  struct diagnostics diags = diagnostics_in(options->arena);
  struct configuration c = {.options = options, .machine = machine_at_hand(options->arena)};
  c.dialog = dialog_open(options->arena, rest_of_job, !updates && !options->takes_defaults);
  const int status = updates ? update(&c, &diags) : create(&c, &diags);
  dialog_close(&c.dialog);
  if (diags.count > 0) diag_print(&diags, stderr, options->colour);
  return status;
}
