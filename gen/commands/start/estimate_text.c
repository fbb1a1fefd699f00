#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/commands/start/estimate.h"

/* As what a model can be loaded, and the precision in which it then is trained; NULL: not at all. */
static const struct {
  const char *dtype, *precision;
  int bits;
} loads[] = {
    {"float32", "no", 32}, {"bfloat16", "bf16", 16}, {"float16", "fp16", 16}, {"int8", NULL, 8}, {"int4", NULL, 4}};
enum { LOADS = sizeof loads / sizeof *loads };

const struct training *estimate_find(const struct estimate *estimate, const char *optimizer, const char *precision,
                                     int64_t ranks, int zero_stage) {
  for (int i = 0; i < estimate->setups.count && precision != NULL; i++) {
    const struct training *setup = &estimate->setups.items[i];
    if (strcmp(setup->optimizer, optimizer) == 0 && strcmp(setup->precision, precision) == 0 && setup->ranks == ranks &&
        setup->zero_stage == zero_stage)
      return setup;
  }
  return NULL;
}

int64_t training_bytes(const struct training *setup) {
  return setup->bytes.weights + setup->bytes.gradients + setup->bytes.optimizer;
}

/* ---- For people ---- */

static const char *way_text(struct arena *arena, const struct training *setup) {
  return setup != NULL && setup->refused == NULL ? bytes_text(arena, training_bytes(setup)) : "-";
}

static void add_loads(struct text *out, const struct estimate *estimate) {
  struct arena *arena = out->arena;
  text_printf(out, "%-10s  %14s  %14s  %20s\n", "dtype", "largest layer", "total size", "training using Adam");
  for (int i = 0; i < LOADS; i++)
    text_printf(out, "%-10s  %14s  %14s  %20s\n", loads[i].dtype,
                bytes_text(arena, estimate->largest * loads[i].bits / 32),
                bytes_text(arena, estimate->bytes * loads[i].bits / 32),
                way_text(arena, estimate_find(estimate, "adam", loads[i].precision, 1, 0)));
}

static void add_row(struct text *out, const struct estimate *estimate, const char *name, const char *optimizer,
                    int64_t ranks, int stage) {
  static const char *const precisions[] = {"no", "bf16"};
  text_printf(out, "%-20s", name);
  for (int p = 0; p < 2; p++)
    text_printf(out, "  %14s", way_text(out->arena, estimate_find(estimate, optimizer, precisions[p], ranks, stage)));
  text_puts(out, "\n");
}

static void add_head(struct text *out, const char *name) {
  text_printf(out, "\n%-20s  %14s  %14s\n", name, "float32", "bf16");
}

static void add_optimizers(struct text *out, const struct estimate *estimate) {
  add_head(out, "optimizer, 1 rank");
  for (int i = 0; i < estimate->setups.count; i++) {
    const struct training *setup = &estimate->setups.items[i];
    if (setup->ranks == 1 && strcmp(setup->precision, "no") == 0)
      add_row(out, estimate, setup->optimizer, setup->optimizer, 1, 0);
  }
}

static void add_stages(struct text *out, const struct estimate *estimate) {
  struct arena *arena = out->arena;
  add_head(out, arena_printf(arena, "%s, %lld ranks", estimate->optimizer, (long long)estimate->ranks));
  for (int stage = 0; stage < 4; stage++)
    add_row(out, estimate, arena_printf(arena, "zero_stage %d", stage), estimate->optimizer, estimate->ranks, stage);
}

static void add_batch(struct text *out, const struct estimate *estimate) {
  const struct training *setup = estimate_find(estimate, estimate->optimizer, "no", 1, 0);
  text_puts(out, "\nWeights, gradients and states of the optimizer, of one rank");
  if (setup != NULL && setup->refused == NULL) {
    text_printf(out, "; activations and scratch of a batch of %lld", (long long)estimate->batch);
    if (estimate->tokens > 0) text_printf(out, " x %lld", (long long)estimate->tokens);
    text_printf(out, " take %s more in float32",
                bytes_text(out->arena, setup->bytes.activations + setup->bytes.scratch));
  }
  text_puts(out, ".\n");
}

const char *estimate_text(struct arena *arena, const struct estimate *estimate) {
  struct text out = text_in(arena);
  text_printf(&out, "%s, by %s: %s parameters in %d tensors; the largest layer is %s\n\n", estimate->name,
              estimate->source, count_text(arena, estimate->elements), estimate->tensors, estimate->layer);
  add_loads(&out, estimate);
  add_optimizers(&out, estimate);
  add_stages(&out, estimate);
  add_batch(&out, estimate);
  return text_string(&out);
}

/* ---- For programs ---- */

static json_t *load_json(const struct estimate *estimate, int i) {
  const struct training *adam = estimate_find(estimate, "adam", loads[i].precision, 1, 0);
  json_t *object = json_pack("{s:s, s:I, s:I}", "dtype", loads[i].dtype, "largest_layer",
                             (json_int_t)(estimate->largest * loads[i].bits / 32), "total",
                             (json_int_t)(estimate->bytes * loads[i].bits / 32));
  const bool trains = adam != NULL && adam->refused == NULL;
  json_object_set_new(object, "training_adam", trains ? json_integer(training_bytes(adam)) : json_null());
  return object;
}

static json_t *setup_json(const struct training *setup) {
  json_t *object = json_pack("{s:s, s:s, s:I, s:i}", "optimizer", setup->optimizer, "precision", setup->precision,
                             "ranks", (json_int_t)setup->ranks, "zero_stage", setup->zero_stage);
  const struct memory_bytes *bytes = &setup->bytes;
  if (setup->refused != NULL)
    json_object_set_new(object, "refused", json_string(setup->refused));
  else
    json_object_set_new(object, "bytes",
                        json_pack("{s:I, s:I, s:I, s:I, s:I}", "weights", (json_int_t)bytes->weights, "gradients",
                                  (json_int_t)bytes->gradients, "optimizer", (json_int_t)bytes->optimizer,
                                  "activations", (json_int_t)bytes->activations, "total", (json_int_t)bytes->total));
  return object;
}

const char *estimate_json(struct arena *arena, const struct estimate *estimate) {
  json_t *root =
      json_pack("{s:s, s:s, s:I, s:i, s:s, s:I, s:I}", "name", estimate->name, "model", estimate->source, "parameters",
                (json_int_t)estimate->elements, "tensors", estimate->tensors, "largest_layer", estimate->layer,
                "batch_size", (json_int_t)estimate->batch, "sequence_length", (json_int_t)estimate->tokens);
  json_t *load = json_array(), *training = json_array();
  for (int i = 0; i < LOADS; i++) json_array_append_new(load, load_json(estimate, i));
  for (int i = 0; i < estimate->setups.count; i++)
    json_array_append_new(training, setup_json(&estimate->setups.items[i]));
  json_object_set_new(root, "load", load);
  json_object_set_new(root, "training", training);
  char *text = json_dumps(root, JSON_INDENT(2));
  const char *copy = arena_printf(arena, "%s\n", text != NULL ? text : "{}");
  free(text);
  json_decref(root);
  return copy;
}
