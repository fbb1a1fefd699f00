#include "gen/plan/ranks/cost.h"

#include <math.h>

#include "gen/base/text.h"
#include "gen/program/sending.h"

/* Above so many bytes a message is announced and requested before it is sent: three latencies (rendezvous protocol).
 * Open MPI's for TCP. */
enum { EAGER_BYTES = 64 << 10 };

/* Up to so many bytes of an all-reduce its latency counts, above them its bytes: runtime/mpi/algorithm.c. */
enum { SHORT_BYTES = 16 << 10 };

static const char *const method_names[] = {
    [METHOD_NONE] = "nothing",
    [METHOD_DOUBLING] = "recursive doubling",
    [METHOD_HALVING] = "halving and doubling",
    [METHOD_RING] = "ring",
    [METHOD_TREE_LINEAR] = "tree, then linear",
    [METHOD_LINEAR] = "linear",
    [METHOD_MESSAGE] = "a message",
};

/* ---- One collective ---- */

/* A group along an axis: its ranks, and how many ranks of a machine send over its link at the same time. */
struct group {
  int64_t ranks;
  double sharing;      /* where each rank of a machine sends to another machine */
  double sharing_ring; /* where the last one of a machine in each group does */
  bool local;          /* all on one machine, whose memory is taken to cost nothing */
};

static struct group group_of(const struct program *program, enum axis axis) {
  const struct job *job = program->job;
  int64_t each = job->devices.ranks / job->devices.nodes, stride = job_axis_stride(job, axis);
  int64_t ranks = ranks_along(program, axis);
  int64_t together = each / stride < 1 ? 1 : each / stride; /* of a group on a machine */
  return (struct group){.ranks = ranks,
                        .sharing = (double)each,
                        .sharing_ring = (double)each / (double)together,
                        .local = is_within_machine(job, axis)};
}

static double message(const struct network *network, double bytes, double sharing) {
  double latency = bytes > EAGER_BYTES ? 3 * network->latency : network->latency;
  return latency + bytes * sharing / network->bandwidth;
}

/* Their latencies overlap. */
static double at_a_time(const struct network *network, double bytes, double sharing, double times) {
  return message(network, bytes, sharing) + (times - 1) * bytes * sharing / network->bandwidth;
}

static bool is_by_tree(enum collective_kind kind) {
  return kind == COLLECTIVE_TREE_ALL_REDUCE || kind == COLLECTIVE_TREE_REDUCE_SCATTER;
}

static enum cost_method method_of(const struct collective *collective, int64_t ranks) {
  enum collective_kind kind = collective->kind;
  int64_t bytes = collective->count * collective->width;
  if (kind == COLLECTIVE_REDUCE_SCATTER) return collective->direct ? METHOD_LINEAR : METHOD_TREE_LINEAR;
  if (kind == COLLECTIVE_SEND) return METHOD_MESSAGE;
  if (kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_ALL_TO_ALL) return METHOD_LINEAR;
  if (bytes <= SHORT_BYTES) return METHOD_DOUBLING;
  return (ranks & (ranks - 1)) == 0 ? METHOD_HALVING : METHOD_RING;
}

/* The bytes of all values, of those that a rank gives where ranks exchange in the order of a tree. */
static double bytes_of(const struct collective *collective, enum cost_method method, double ranks, double rounds) {
  double bytes = (double)(collective->count * collective->width);
  if (!is_by_tree(collective->kind)) return bytes;
  if (method == METHOD_DOUBLING) return bytes / rounds;
  return bytes * ranks / (ranks - 1) / (collective->kind == COLLECTIVE_TREE_ALL_REDUCE ? 2 : 1);
}

struct cost collective_cost(const struct program *program, const struct collective *collective,
                            const struct network *network) {
  const struct group group = group_of(program, collective->axis);
  double p = (double)group.ranks, rounds = ceil(log2(p)), seconds = 0;
  if (group.ranks <= 1 || group.local) return (struct cost){METHOD_NONE, 0};
  enum cost_method method = method_of(collective, group.ranks);
  double n = bytes_of(collective, method, p, rounds),
         passes = collective->kind == COLLECTIVE_TREE_REDUCE_SCATTER ? 1 : 2;
  switch (method) {
  case METHOD_NONE:
    break;
  case METHOD_MESSAGE:
    seconds = message(network, n, group.sharing);
    break;
  case METHOD_DOUBLING:
    seconds = rounds * message(network, n, group.sharing);
    break;
  case METHOD_HALVING:
    for (double part = n / 2; part >= n / p; part /= 2) seconds += passes * message(network, part, group.sharing);
    break;
  case METHOD_RING:
    seconds = 2 * (p - 1) * message(network, n / p, group.sharing_ring);
    break;
  case METHOD_TREE_LINEAR:
    seconds = rounds * message(network, n, group.sharing) + at_a_time(network, n / p, group.sharing, p - 1);
    break;
  case METHOD_LINEAR:
    seconds = at_a_time(network, n / p, group.sharing, p - 1);
    break;
  }
  return (struct cost){method, seconds};
}

/* ---- A step ---- */

struct step_cost step_cost(const struct program *program, const struct exposure *exposures) {
  struct step_cost cost = {0};
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    cost.communication += exposures[i].seconds;
    cost.exposed += exposures[i].waited;
  }
  return cost;
}

/* ---- For people and programs ---- */

const char *cost_text(const struct program *program, const struct network *network) {
  struct text text = text_in(program->arena);
  const struct exposure *exposures = exposures_of(program, network);
  const struct step_cost step = step_cost(program, exposures);
  text_printf(&text, "network   %lld machines, %.4g us, %.6g MB/s", (long long)program->job->devices.nodes,
              1e6 * network->latency, 1e-6 * network->bandwidth);
  if (program->ranks.pipeline.ranks > 0)
    text_printf(&text, ", collectives of rank %d along %s, which gives most bytes", program->ranks.pipeline.busiest,
                job_axis_names[axis_sharding(program, SHARDED_LAYERS)]);
  text_puts(&text, "\n");
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct cost cost = collective_cost(program, &program->ranks.collectives.items[i], network);
    if (cost.method == METHOD_NONE) continue;
    text_printf(&text, "  %3d  %.3f ms by %s", i + 1, 1e3 * cost.seconds, method_names[cost.method]);
    if (network->step > 0) text_printf(&text, "; a step waits %.3f ms for it", 1e3 * exposures[i].waited);
    text_puts(&text, "\n");
  }
  text_printf(&text, "predicted %.3f ms a step in collectives", 1e3 * step.communication);
  if (network->step > 0)
    text_printf(&text, "; a step of %.3f ms takes %.3f ms, %.1f %% of it waiting", 1e3 * network->step,
                1e3 * (network->step + step.exposed), 100 * step.exposed / (network->step + step.exposed));
  text_puts(&text, "\n");
  return text_string(&text);
}

json_t *cost_json(const struct program *program, const struct network *network) {
  const struct exposure *exposures = exposures_of(program, network);
  const struct step_cost step = step_cost(program, exposures);
  json_t *list = json_array();
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct cost cost = collective_cost(program, &program->ranks.collectives.items[i], network);
    json_array_append_new(list, json_pack("{s:s, s:f, s:f}", "method", method_names[cost.method], "seconds",
                                          cost.seconds, "exposed", exposures[i].waited));
  }
  return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o}", "latency", network->latency, "bandwidth", network->bandwidth,
                   "step", network->step, "communication", step.communication, "exposed", step.exposed, "collectives",
                   list);
}
