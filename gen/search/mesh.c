#include "gen/search/mesh.h"

#include <math.h>

#include "gen/program/target.h"

const char *const order_names[ORDERS] = {"", "gpipe", "1f1b", "interleaved", "zero_bubble"};
const char *const cause_names[CAUSES] = {"matmuls", "memory", "update", "bubble", "dp", "pp", "cp", "sp", "tp", "ep"};

/* Of gradients and weights on their way, without a comm_hook. */
enum { WORD = 4 };

/* Layers that are whole on a rank at a time where ranks divide weights or gradients. */
enum { WHOLE_LAYERS = 2 };

struct sum {
  const struct mesh *mesh;
  const struct division *division;
  const struct job *job;
  const struct hardware *hardware;
  struct estimate estimate;
  double forward, backward; /* seconds of a layer and a micro-batch, with its exchange */
  double deferred;          /* of the backward: those of gradients of weights */
  double first, last;       /* the same around the layers */
  double exchanged[CAUSES]; /* of those, in a layer */
  double around[CAUSES];    /* the same around the layers */
  double layers;            /* of a stage */
};

struct timing timing_of(const struct division *division, const struct hardware *hardware, int64_t samples) {
  struct timing timing = {0};
  double speed = hardware->peak * hardware->efficiency;
  for (int i = 0; i < division->kernels.count; i++) {
    const struct kernel_work *kernel = &division->kernels.items[i];
    double flops = kernel->flops * (double)samples / speed;
    double bytes = (kernel->bytes * (double)samples + kernel->fixed) / hardware->memory_bandwidth;
    for (int part = 0; part < PARTS; part++) {
      timing.seconds[part] += kernel->runs[part] * fmax(flops, bytes);
      if (flops >= bytes) timing.matmuls[part] += kernel->runs[part] * flops;
    }
  }
  return timing;
}

/* ---- Exchange ---- */

/* What a rank sends. */
static double sent_bytes(enum collective_kind kind, double ranks, double bytes) {
  if (kind == COLLECTIVE_SEND || ranks <= 1) return ranks <= 1 ? 0 : bytes;
  return (kind == COLLECTIVE_ALL_REDUCE ? 2 : 1) * (ranks - 1) * bytes / ranks;
}

/* In so many collectives, one after the other. */
static double exchange_seconds(enum collective_kind kind, struct link link, double ranks, double bytes,
                               double collectives) {
  if (ranks <= 1) return 0;
  double rounds = kind == COLLECTIVE_SEND         ? 1
                  : kind == COLLECTIVE_ALL_TO_ALL ? ranks - 1
                                                  : (kind == COLLECTIVE_ALL_REDUCE ? 2 : 1) * ceil(log2(ranks));
  return collectives * rounds * link.latency + sent_bytes(kind, ranks, bytes) / link.bandwidth;
}

/* Ranks along an axis, and how far apart they are: neighbours along ep, then tp, sp, cp, pp, dp_shard, dp_replicate. */
static int64_t length_of(const struct mesh *mesh, enum axis axis) {
  const struct cut *cut = &mesh->division->cut;
  const int64_t lengths[AXES] = {mesh->replicas, mesh->shards, cut->cp, cut->sp, mesh->stages, cut->tp, cut->ep};
  return lengths[axis];
}

static int64_t stride_of(const struct mesh *mesh, enum axis axis) {
  int64_t stride = 1;
  for (int i = AXES - 1; i > (int)axis; i--) stride *= length_of(mesh, (enum axis)i);
  return stride;
}

static enum cause cause_of(enum axis axis) {
  static const enum cause causes[AXES] = {CAUSE_DP, CAUSE_DP, CAUSE_CP, CAUSE_SP, CAUSE_PP, CAUSE_TP, CAUSE_EP};
  return causes[axis];
}

/* What ranks that divide a layer exchange of a micro-batch. */
static void add_exchange(struct sum *sum) {
  const struct mesh *mesh = sum->mesh;
  double micro_batches = (double)mesh->steps;
  for (int i = 0; i < sum->division->exchanges.count; i++) {
    const struct exchange *exchange = &sum->division->exchanges.items[i];
    double ranks = (double)length_of(mesh, exchange->axis), bytes = exchange->bytes * (double)mesh->batch;
    struct link link = link_along(sum->hardware, (int64_t)ranks, stride_of(mesh, exchange->axis));
    double seconds = exchange_seconds(exchange->kind, link, ranks, bytes, 1);
    double times = sum->layers * (double)exchange->per_layer + (double)exchange->around;
    enum cause cause = cause_of(exchange->axis);
    sum->exchanged[cause] += seconds * (double)exchange->per_layer;
    sum->around[cause] += seconds * (double)exchange->around;
    sum->estimate.traffic[cause] += micro_batches * times * sent_bytes(exchange->kind, ranks, bytes);
  }
}

/* ---- Stages ---- */

static double total(const double parts[CAUSES]) {
  double sum = 0;
  for (int i = 0; i < CAUSES; i++) sum += parts[i];
  return sum;
}

/* Of a stage: the first and the last one have more. */
static double stage_seconds(const struct sum *sum, bool first, bool last) {
  double layers = sum->layers * (sum->forward + sum->backward + total(sum->exchanged));
  double send = sum->estimate.parts[CAUSE_PP]; /* of one micro-batch, so far */
  return layers + send + (first ? sum->first : 0) + (last ? sum->last + total(sum->around) : 0);
}

/* What of a stage's micro-batch another stage waits for: all of it; with zero_bubble without gradients of weights,
 * which then fill as much of what is left. */
static double waited_for(const struct sum *sum, double seconds) {
  if (sum->mesh->order != ORDER_ZERO_BUBBLE) return seconds / (double)sum->mesh->chunks;
  return fmax(0, seconds - 2 * sum->layers * sum->deferred);
}

static void add_send(struct sum *sum) {
  const struct mesh *mesh = sum->mesh;
  if (mesh->stages == 1) return;
  struct link link = link_along(sum->hardware, mesh->stages, stride_of(mesh, AXIS_PP));
  double bytes = sum->division->crossing * (double)mesh->batch, times = 2 * (double)mesh->chunks;
  sum->estimate.parts[CAUSE_PP] = times * exchange_seconds(COLLECTIVE_SEND, link, 2, bytes, 1);
  sum->estimate.traffic[CAUSE_PP] = (double)mesh->steps * times * bytes;
}

/* All micro-batches of a step. */
static void add_micro_batches(struct sum *sum) {
  const struct mesh *mesh = sum->mesh;
  const struct division *division = sum->division;
  const double *flops = mesh->timing->matmuls, *seconds = mesh->timing->seconds, m = (double)mesh->steps;
  sum->layers = division->layers > 0 ? (double)division->layers / (double)mesh->stages : 0;
  sum->forward = seconds[PART_FORWARD];
  sum->backward = seconds[PART_BACKWARD];
  sum->deferred = seconds[PART_DEFERRED];
  sum->first = seconds[PART_FIRST];
  sum->last = seconds[PART_LAST];
  add_exchange(sum);
  add_send(sum);
  bool one = mesh->stages == 1;
  double first = stage_seconds(sum, true, one), last = stage_seconds(sum, one, true);
  double middle = stage_seconds(sum, false, false), slowest = fmax(first, last);
  double others = one ? 0
                      : waited_for(sum, first) + waited_for(sum, last) +
                            (double)(mesh->stages - 2) * waited_for(sum, middle) - waited_for(sum, slowest);
  bool ends = last >= first; /* the slowest stage, whose time is divided into its causes */
  struct estimate *estimate = &sum->estimate;
  estimate->parts[CAUSE_BUBBLE] = others;
  estimate->parts[CAUSE_PP] *= m;
  double matmuls = sum->layers * (flops[PART_FORWARD] + flops[PART_BACKWARD]);
  double kernels = sum->layers * (sum->forward + sum->backward);
  if (one || !ends) matmuls += flops[PART_FIRST], kernels += sum->first;
  if (one || ends) matmuls += flops[PART_LAST], kernels += sum->last;
  estimate->parts[CAUSE_MATMULS] = m * matmuls;
  estimate->parts[CAUSE_MEMORY] = m * (kernels - matmuls);
  for (int i = CAUSE_CP; i <= CAUSE_EP; i++)
    estimate->parts[i] += m * (sum->layers * sum->exchanged[i] + (one || ends ? sum->around[i] : 0));
  estimate->seconds = m * slowest + others;
}

/* ---- Parameters ---- */

/* Elements of a stage: of its layers, and of what is around them. */
static void elements_of(const struct sum *sum, int64_t stage, double *layers, double *around) {
  const struct division *division = sum->division;
  int64_t stages = sum->mesh->stages;
  *layers = sum->layers * (double)division->layer;
  *around = (stage == 0 ? (double)division->first : 0) + (stage == stages - 1 ? (double)division->last : 0);
  if (stages == 1) *around = (double)(division->all - division->layers * division->layer);
}

/* Of the stage with the most. */
static double most_elements(const struct sum *sum) {
  double most = 0, layers, around;
  for (int64_t s = 0; s < sum->mesh->stages; s += sum->mesh->stages > 1 ? sum->mesh->stages - 1 : 1) {
    elements_of(sum, s, &layers, &around);
    most = fmax(most, layers + around);
  }
  return most;
}

static double excess(double seconds, double hidden) {
  return seconds > hidden ? seconds - hidden : 0;
}

/* Buckets of a stage's gradients: of bucket_cap_mb, or of one parameter that is larger. */
static double buckets_of(const struct sum *sum, double elements) {
  double parameters = (double)sum->division->parameters * elements / (double)sum->division->all;
  double full = ceil(elements * WORD / (double)sum->job->parallelism.bucket_bytes);
  return fmax(1, fmin(parameters, full));
}

/* Gradients, weights after the update, with zero_stage 3 before each use. */
static void add_data_parallel(struct sum *sum, double elements) {
  const struct mesh *mesh = sum->mesh;
  const struct cut *cut = &mesh->division->cut;
  int64_t replicas = mesh->replicas * cut->cp * cut->sp * cut->ep, inner = mesh->stages * cut->tp;
  struct link over = link_along(sum->hardware, replicas, inner * mesh->shards);
  struct link within = link_along(sum->hardware, mesh->shards, inner);
  double gradients = elements * (sum->job->parallelism.wire != PRECISION_NO ? 2 : WORD), weights = elements * WORD;
  double r = (double)replicas, g = (double)mesh->shards, m = (double)mesh->steps, buckets = buckets_of(sum, elements);
  double backward = sum->layers * sum->backward + sum->last, forward = sum->layers * sum->forward + sum->first;
  double hidden_forward = mesh->stages == 1 ? forward : 0, hidden = mesh->stages == 1 ? backward : 0;
  double reduce = exchange_seconds(COLLECTIVE_ALL_REDUCE, over, r, gradients / g, buckets);
  double scatter = exchange_seconds(COLLECTIVE_REDUCE_SCATTER, within, g, gradients, buckets);
  double gather = exchange_seconds(COLLECTIVE_ALL_GATHER, within, g, weights, buckets);
  double scattered = sent_bytes(COLLECTIVE_REDUCE_SCATTER, g, gradients);
  double gathered = sent_bytes(COLLECTIVE_ALL_GATHER, g, weights);
  double seconds = 0, traffic = sent_bytes(COLLECTIVE_ALL_REDUCE, r, gradients / g);
  if (mesh->zero_stage <= 1) {
    seconds = excess(reduce + scatter, hidden) + gather;
    traffic += scattered + gathered;
  } else if (mesh->zero_stage == 2) {
    seconds = excess(reduce, hidden) + m * excess(scatter, hidden) + gather;
    traffic += m * scattered + gathered;
  } else {
    seconds = excess(reduce, hidden) + m * (excess(gather, hidden_forward) + excess(gather + scatter, hidden));
    traffic += m * (scattered + 2 * gathered);
  }
  sum->estimate.traffic[CAUSE_DP] = traffic;
  sum->estimate.parts[CAUSE_DP] = seconds;
  sum->estimate.seconds += seconds;
}

static void add_update(struct sum *sum, double elements) {
  const struct division *division = sum->division;
  double own = elements / (sum->mesh->zero_stage > 0 ? (double)sum->mesh->shards : 1);
  double moved = 2 * division->weights + division->gradients + 2 * division->optimizer;
  sum->estimate.parts[CAUSE_UPDATE] = own * moved / sum->hardware->memory_bandwidth;
  sum->estimate.seconds += sum->estimate.parts[CAUSE_UPDATE];
}

/* ---- Memory ---- */

/* Micro-batches in flight: those whose activations a stage stores. */
static double in_flight(const struct mesh *mesh, int64_t stage) {
  double p = (double)mesh->stages, m = (double)mesh->steps, until = p - (double)stage;
  if (mesh->stages == 1) return 1;
  if (mesh->order == ORDER_GPIPE) return m;
  if (mesh->order == ORDER_ZERO_BUBBLE) return fmin(m, p);
  if (mesh->order == ORDER_INTERLEAVED) until += (p - 1) / (double)mesh->chunks;
  return fmin(m, until);
}

static double stage_bytes(const struct sum *sum, int64_t stage) {
  const struct mesh *mesh = sum->mesh;
  const struct division *division = sum->division;
  double layers, around, g = (double)mesh->shards, b = (double)mesh->batch;
  elements_of(sum, stage, &layers, &around);
  double own = (layers + around) / g;
  double whole = around + fmin(layers, WHOLE_LAYERS * (double)division->layer);
  double weights = division->weights * (layers + around), gradients = division->gradients * (layers + around);
  if (mesh->zero_stage >= 2) gradients = division->gradients * whole;
  if (mesh->zero_stage >= 1) gradients += WORD * own;
  if (mesh->zero_stage >= 2 && mesh->steps > 1 && target_of(sum->job)->ranks.receives_separately)
    gradients += WORD * own;
  if (mesh->zero_stage == 3) weights = division->weights * whole + WORD * own;
  double optimizer = division->optimizer * (mesh->zero_stage > 0 ? own : layers + around);
  double saved = sum->layers * division->saved + (stage == mesh->stages - 1 ? division->saved_around : 0);
  if (mesh->order == ORDER_ZERO_BUBBLE)
    saved += sum->layers * division->deferred + (stage == mesh->stages - 1 ? division->deferred_around : 0);
  return weights + gradients + optimizer + b * (in_flight(mesh, stage) * saved + division->scratch + division->batch);
}

struct estimate estimate_mesh(const struct mesh *mesh, const struct job *job, const struct hardware *hardware,
                              double model_flops) {
  struct sum sum = {.mesh = mesh, .division = mesh->division, .job = job, .hardware = hardware};
  add_micro_batches(&sum);
  double elements = most_elements(&sum);
  add_data_parallel(&sum, elements);
  add_update(&sum, elements);
  sum.estimate.bytes = fmax(stage_bytes(&sum, 0), stage_bytes(&sum, mesh->stages - 1));
  double samples = (double)(mesh->batch * mesh->steps * mesh->replicas * mesh->shards * mesh->division->cut.ep);
  sum.estimate.mfu = model_flops * samples / (sum.estimate.seconds * hardware->peak * (double)hardware->ranks);
  return sum.estimate;
}
