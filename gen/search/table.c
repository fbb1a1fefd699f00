#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/plan/ranks/collectives.h"
#include "gen/search/search.h"

const char *mesh_text(struct arena *arena, const struct mesh *mesh) {
  struct text text = text_in(arena);
  const struct cut *cut = &mesh->division->cut;
  const int64_t lengths[AXES] = {mesh->replicas, mesh->shards, cut->cp, cut->sp, mesh->stages, cut->tp, cut->ep};
  for (int i = AXES - 1; i >= 0; i--) {
    if (lengths[i] == 1) continue;
    text_printf(&text, "%s%s %lld", text.length > 0 ? ", " : "", job_axis_names[i], (long long)lengths[i]);
    if (i == AXIS_TP && cut->splits_sequence) text_puts(&text, " + sequence");
    if (i == AXIS_PP) text_printf(&text, " (%s", order_names[mesh->order]);
    if (i == AXIS_PP && mesh->chunks > 1) text_printf(&text, " of %lld chunks", (long long)mesh->chunks);
    if (i == AXIS_PP) text_puts(&text, ")");
    if (i == AXIS_DP_SHARD) text_printf(&text, " (zero_stage %d)", mesh->zero_stage);
  }
  return text.length > 0 ? text_string(&text) : "one rank";
}

/* The largest part of a step's time. */
static enum cause bound_of(const struct estimate *estimate) {
  int most = 0;
  for (int i = 1; i < CAUSES; i++)
    if (estimate->parts[i] > estimate->parts[most]) most = i;
  return (enum cause)most;
}

/* Exchange that is waited for, by axis. */
static void put_waits(struct text *text, const struct estimate *estimate) {
  for (int i = CAUSE_BUBBLE; i < CAUSES; i++)
    if (estimate->parts[i] >= 0.0005 * estimate->seconds)
      text_printf(text, ", %s %.1f %%", cause_names[i], 100 * estimate->parts[i] / estimate->seconds);
}

static void put_traffic(struct text *text, const struct estimate *estimate) {
  bool any = false;
  for (int i = 0; i < CAUSES; i++) {
    if (estimate->traffic[i] <= 0) continue;
    text_printf(text, "%s%s %s", any ? ", " : "", cause_names[i],
                bytes_text(text->arena, (int64_t)estimate->traffic[i]));
    any = true;
  }
  if (!any) text_puts(text, "none");
}

static void put_candidate(struct text *text, int number, const struct candidate *candidate, bool chosen) {
  const struct mesh *mesh = &candidate->mesh;
  const struct estimate *estimate = &candidate->estimate;
  text_printf(text, "  %3d  %s; %lld x %lld samples%s\n", number, mesh_text(text->arena, mesh), (long long)mesh->steps,
              (long long)mesh->batch,
              mesh->division->cut.checkpointing == CHECKPOINTING_ALL ? ", recomputes all layers" : "");
  text_printf(text, "       %.4g ms a step, MFU %.1f %%, %s; bound by %s: matmuls %.1f %%, memory %.1f %%",
              1e3 * estimate->seconds, 100 * estimate->mfu, bytes_text(text->arena, (int64_t)estimate->bytes),
              cause_names[bound_of(estimate)], 100 * estimate->parts[CAUSE_MATMULS] / estimate->seconds,
              100 * estimate->parts[CAUSE_MEMORY] / estimate->seconds);
  if (estimate->parts[CAUSE_UPDATE] >= 0.0005 * estimate->seconds)
    text_printf(text, ", update %.1f %%", 100 * estimate->parts[CAUSE_UPDATE] / estimate->seconds);
  put_waits(text, estimate);
  text_puts(text, "\n       traffic ");
  put_traffic(text, estimate);
  if (candidate->refused != NULL)
    text_printf(text, "\n       only predicted: %s\n", candidate->refused);
  else
    text_printf(text, "\n       can be generated: its plan takes %s%s\n", bytes_text(text->arena, candidate->bytes),
                chosen ? "; chosen" : "");
}

const char *search_text(struct arena *arena, const struct search_result *result) {
  struct text text = text_in(arena);
  const struct hardware *hardware = &result->hardware;
  bool shown = false;
  text_printf(&text, "search    %s meshes of %lld ranks, of which %s fit in %s\n", count_text(arena, result->n_meshes),
              (long long)hardware->ranks, count_text(arena, result->n_fitting), bytes_text(arena, hardware->memory));
  text_printf(&text, "          %s: matmuls at %.4g of %.4g TFLOP/s, memory %.4g GB/s",
              hardware->name != NULL ? hardware->name : "devices", 1e-12 * hardware->peak * hardware->efficiency,
              1e-12 * hardware->peak, 1e-9 * hardware->memory_bandwidth);
  if (hardware->per_node > 1)
    text_printf(&text, "; a rank's link within a machine %.4g GB/s, %.3g us", 1e-9 * hardware->within.bandwidth,
                1e6 * hardware->within.latency);
  if (hardware->ranks > hardware->per_node)
    text_printf(&text, "; a machine's link %.4g GB/s, %.3g us", 1e-9 * hardware->between.bandwidth,
                1e6 * hardware->between.latency);
  text_puts(&text, "\n");
  for (int i = 0; i < result->n_best; i++) {
    put_candidate(&text, i + 1, result->best[i], result->best[i] == result->chosen);
    shown |= result->best[i] == result->chosen;
  }
  if (result->chosen == NULL || shown) return text_string(&text);
  text_puts(&text, "the fastest that can be generated:\n");
  put_candidate(&text, (int)(result->chosen - result->candidates) + 1, result->chosen, true);
  return text_string(&text);
}

/* ---- As an object ---- */

static json_t *parts_json(const double parts[CAUSES]) {
  json_t *object = json_object();
  for (int i = 0; i < CAUSES; i++)
    if (parts[i] > 0) json_object_set_new(object, cause_names[i], json_real(parts[i]));
  return object;
}

static json_t *candidate_json(const struct candidate *candidate) {
  const struct mesh *mesh = &candidate->mesh;
  const struct cut *cut = &mesh->division->cut;
  const struct estimate *estimate = &candidate->estimate;
  json_t *axes =
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "dp_replicate", (json_int_t)mesh->replicas, "dp_shard",
                (json_int_t)mesh->shards, "pp", (json_int_t)mesh->stages, "cp", (json_int_t)cut->cp, "sp",
                (json_int_t)cut->sp, "tp", (json_int_t)cut->tp, "ep", (json_int_t)cut->ep);
  json_t *object = json_pack("{s:o, s:i, s:b, s:s, s:I, s:I, s:I, s:b, s:f, s:f, s:f, s:s, s:o, s:o}", "axes", axes,
                             "zero_stage", mesh->zero_stage, "sequence_parallelism", (int)cut->splits_sequence, "order",
                             order_names[mesh->order], "chunks", (json_int_t)mesh->chunks, "batch_size",
                             (json_int_t)mesh->batch, "num_steps", (json_int_t)mesh->steps, "recomputes",
                             (int)(cut->checkpointing != CHECKPOINTING_NONE), "seconds", estimate->seconds, "bytes",
                             estimate->bytes, "mfu", estimate->mfu, "bound", cause_names[bound_of(estimate)], "parts",
                             parts_json(estimate->parts), "traffic", parts_json(estimate->traffic));
  if (candidate->bytes > 0) json_object_set_new(object, "planned_bytes", json_integer((json_int_t)candidate->bytes));
  if (candidate->refused != NULL) json_object_set_new(object, "refused", json_string(candidate->refused));
  return object;
}

static json_t *kernels_json(const struct division *division) {
  json_t *list = json_array();
  for (int i = 0; i < division->kernels.count; i++) {
    const struct kernel_work *kernel = &division->kernels.items[i];
    json_array_append_new(list, json_pack("{s:[f,f,f,f,f], s:f, s:f, s:f}", "runs", kernel->runs[PART_FORWARD],
                                          kernel->runs[PART_BACKWARD], kernel->runs[PART_FIRST],
                                          kernel->runs[PART_LAST], kernel->runs[PART_DEFERRED], "flops", kernel->flops,
                                          "bytes", kernel->bytes, "fixed", kernel->fixed));
  }
  return list;
}

static json_t *exchanges_json(const struct division *division) {
  json_t *list = json_array();
  for (int i = 0; i < division->exchanges.count; i++) {
    const struct exchange *exchange = &division->exchanges.items[i];
    json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:I, s:I}", "kind", collective_name(exchange->kind), "axis",
                                          job_axis_names[exchange->axis], "bytes", exchange->bytes, "per_layer",
                                          (json_int_t)exchange->per_layer, "around", (json_int_t)exchange->around));
  }
  return list;
}

static json_t *division_json(const struct division *division) {
  const struct cut *cut = &division->cut;
  json_t *object =
      json_pack("{s:I, s:I, s:I, s:I, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I}", "tp", (json_int_t)cut->tp, "cp",
                (json_int_t)cut->cp, "sp", (json_int_t)cut->sp, "ep", (json_int_t)cut->ep, "sequence_parallelism",
                (int)cut->splits_sequence, "recomputes", (int)(cut->checkpointing != CHECKPOINTING_NONE), "layers",
                (json_int_t)division->layers, "parameters", (json_int_t)division->parameters, "layer",
                (json_int_t)division->layer, "first", (json_int_t)division->first, "last", (json_int_t)division->last,
                "all", (json_int_t)division->all);
  json_t *bytes =
      json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "weights", division->weights, "gradients",
                division->gradients, "optimizer", division->optimizer, "saved", division->saved, "saved_around",
                division->saved_around, "deferred", division->deferred, "deferred_around", division->deferred_around,
                "scratch", division->scratch, "batch", division->batch, "crossing", division->crossing);
  json_object_set_new(object, "bytes", bytes);
  json_object_set_new(object, "matmul_flops", json_real(division->matmul_flops));
  json_object_set_new(object, "kernels", kernels_json(division));
  json_object_set_new(object, "exchanges", exchanges_json(division));
  return object;
}

json_t *search_json(const struct search_result *result) {
  const struct hardware *hardware = &result->hardware;
  json_t *divisions = json_array(), *best = json_array();
  for (int i = 0; i < result->n_divisions; i++) json_array_append_new(divisions, division_json(result->divisions[i]));
  for (int i = 0; i < result->n_best; i++) json_array_append_new(best, candidate_json(result->best[i]));
  json_t *links = json_pack("{s:[f,f], s:[f,f]}", "within", hardware->within.latency, hardware->within.bandwidth,
                            "between", hardware->between.latency, hardware->between.bandwidth);
  json_t *object = json_pack("{s:I, s:I, s:f, s:f, s:f, s:o, s:f, s:o, s:o}", "meshes", (json_int_t)result->n_meshes,
                             "fitting", (json_int_t)result->n_fitting, "peak", hardware->peak, "efficiency",
                             hardware->efficiency, "memory_bandwidth", hardware->memory_bandwidth, "links", links,
                             "model_flops", result->model_flops, "divisions", divisions, "best", best);
  if (result->chosen != NULL) json_object_set_new(object, "chosen", candidate_json(result->chosen));
  return object;
}
