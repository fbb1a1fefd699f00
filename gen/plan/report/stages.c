#include "gen/plan/report/stages.h"

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/plan/ranks/sharing.h"
#include "gen/plan/ranks/stage_bytes.h"
#include "gen/plan/ranks/stage_memory.h"
#include "gen/plan/ranks/stage_traffic.h"
#include "gen/plan/report/traffic.h"
#include "gen/program/target.h"

/* Of stages that take equally long. ZB-H1 (arXiv:2401.10241, section 2.3) with a forward, gradients of inputs and
 * gradients of weights that take a third each: of (N - 1) (F + B - W), and of what fewer micro-batches than stages
 * leave of it unfilled. */
static double bubble(const struct program *program) {
  const struct schedule *schedule = &program->ranks.pipeline.schedule;
  double ranks = (double)schedule->ranks, actions = (double)(schedule->chunks * schedule->micro_batches);
  if (schedule->defers) {
    double waits = ranks - 1 + (actions < ranks ? ranks - actions : 0);
    return waits / (3 * actions + waits);
  }
  return (ranks - 1) / (actions + ranks - 1);
}

static const char *const schedules[] = {[SCHEDULE_1F1B] = "1f1b",
                                        [SCHEDULE_GPIPE] = "gpipe",
                                        [SCHEDULE_INTERLEAVED] = "interleaved",
                                        [SCHEDULE_ZERO_BUBBLE] = "zero_bubble"};

/* "2" of its stage; "7 and 3" of its stages. */
static const char *slots_text(const struct program *program, int rank) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct text text = text_in(program->arena);
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks)
    text_printf(&text, "%s%lld",
                s == rank                                ? ""
                : s + pipeline->ranks < pipeline->stages ? ", "
                                                         : " and ",
                (long long)pipeline->slots[s]);
  return text_string(&text);
}

static int layers_of(const struct pipeline *pipeline, int rank) {
  int layers = 0;
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks) layers += pipeline->layers[s]->call->count;
  return layers;
}

/* "2 of 4 layers each"; "3 of 1, 2 and 1 layers". */
static const char *layers_text(const struct program *program, bool each) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct text text = text_in(program->arena);
  const int first = pipeline->layers[0]->call->count, last = pipeline->stages - 1;
  bool equal = true;
  for (int k = 1; k <= last; k++) equal = equal && pipeline->layers[k]->call->count == first;
  text_printf(&text, "%d of %d", pipeline->stages, first);
  for (int k = 1; k <= last && !equal; k++)
    text_printf(&text, "%s%d", k < last ? ", " : " and ", pipeline->layers[k]->call->count);
  text_printf(&text, " layers%s", each && equal ? " each" : "");
  return text_string(&text);
}

/* Of a device that maps memory, between two texts. */
static const char *mapped_text(const struct program *program, int rank, const char *before, const char *after) {
  if (!program->target->memory.separate) return "";
  return arena_printf(program->arena, "%sin all %s of the arena%s", before,
                      bytes_text(program->arena, stage_mapped_bytes(program, rank)), after);
}

/* Of a program that does not train. */
static const char *forward_text(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  struct text text = text_in(program->arena);
  text_printf(&text, "stages    %s (pp), one after the other\n", layers_text(program, true));
  for (int k = 0; k < pipeline->stages; k++)
    text_printf(&text, "stage %-3d uses weights %s%s\n", k, bytes_text(program->arena, stage_bytes(program, k).weights),
                mapped_text(program, k, ", ", ""));
  return text_string(&text);
}

static const char *averages_text(const struct program *program, int64_t bytes) {
  return bytes > 0 ? arena_printf(program->arena, "averages %s; ", bytes_text(program->arena, bytes)) : "";
}

/* Of exchanges within a machine, which are no part of the arena. */
static const char *shared_text(const struct program *program, int rank) {
  const int64_t bytes = shared_bytes(program, rank).touched;
  if (bytes == 0) return "";
  return arena_printf(program->arena, "; exchanges within a machine use %s", bytes_text(program->arena, bytes));
}

const char *stages_text(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  const bool several = pipeline->stages > pipeline->ranks;
  struct text text = text_in(program->arena);
  if (pipeline->stages == 0) return "";
  if (program->kind != PROGRAM_TRAIN) return forward_text(program);
  text_printf(&text, "stages    %s (pp), ", layers_text(program, !several));
  if (several) text_printf(&text, "%lld a rank, ", (long long)pipeline->schedule.chunks);
  text_printf(&text, "%lld micro-batches (%s): each waits%s %.1f %% of a step\n",
              (long long)program->job->accumulation.num_steps, schedules[program->job->parallelism.pp_schedule],
              several ? "" : " for others", 100 * bubble(program));
  for (int k = 0; k < pipeline->ranks; k++) {
    const struct stage_bytes bytes = stage_bytes(program, k);
    text_printf(&text,
                "%-5s %-3d uses weights %s, gradients %s, optimizer %s, activations %s (of %s)\n"
                "          %s%ssends %s%s\n",
                several ? "rank" : "stage", k, bytes_text(program->arena, bytes.weights),
                bytes_text(program->arena, bytes.gradients), bytes_text(program->arena, bytes.optimizer),
                bytes_text(program->arena, bytes.activations), slots_text(program, k),
                averages_text(program, bytes.averages), mapped_text(program, k, "", "; "),
                bytes_text(program->arena, stage_sent_bytes(program, k)), shared_text(program, k));
  }
  return text_string(&text);
}

/* By the stages of a rank. */
static json_t *slots_json(const struct pipeline *pipeline, int rank) {
  json_t *list = json_array();
  for (int s = rank; s < pipeline->stages; s += pipeline->ranks)
    json_array_append_new(list, json_integer((json_int_t)pipeline->slots[s]));
  return list;
}

json_t *stages_json(const struct program *program) {
  const struct pipeline *pipeline = &program->ranks.pipeline;
  json_t *list = json_array();
  for (int k = 0; k < pipeline->ranks; k++) {
    const struct stage_bytes bytes = stage_bytes(program, k);
    json_t *stage =
        json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "layers", layers_of(pipeline, k), "weights",
                  (json_int_t)bytes.weights, "gradients", (json_int_t)bytes.gradients, "optimizer",
                  (json_int_t)bytes.optimizer, "averages", (json_int_t)bytes.averages, "activations",
                  (json_int_t)bytes.activations, "shared", (json_int_t)shared_bytes(program, k).touched,
                  "micro_batches", (json_int_t)pipeline->slots[k], "chunks", slots_json(pipeline, k));
    if (program->target->memory.separate)
      json_object_set_new(stage, "mapped", json_integer((json_int_t)stage_mapped_bytes(program, k)));
    if (program->kind == PROGRAM_TRAIN)
      json_object_set_new(stage, "sends", json_integer((json_int_t)stage_sent_bytes(program, k)));
    json_object_set_new(stage, "collectives", traffic_json(program, &pipeline->collectives[k]));
    json_array_append_new(list, stage);
  }
  return json_pack("{s:s, s:I, s:f, s:i, s:o}", "schedule", schedules[program->job->parallelism.pp_schedule],
                   "micro_batches", (json_int_t)program->job->accumulation.num_steps, "bubble", bubble(program),
                   "busiest", pipeline->busiest, "stages", list);
}
