#include "gen/search/division.h"

#include <string.h>

#include "gen/ir/op.h"
#include "gen/plan/plan.h"
#include "gen/program/kernels.h"
#include "gen/program/storage.h"
#include "gen/program/weights.h"

/* Two, so that gradients add up over micro-batches and none is planned as the only one. */
enum { MICRO_BATCHES = 2 };

struct reader {
  struct arena *arena;
  const struct program *program;
  const struct function *home; /* that calls the layers: the forward, or one that it calls once */
  const struct step *loop;     /* that call; NULL: there is none */
  struct division *division;
};

/* ---- Layers ---- */

/* The loop of the most iterations, in a function or in those that it calls once. */
static void find_loop(struct reader *reader, const struct function *function) {
  for (int i = 0; i < function->n_steps; i++) {
    const struct step *step = &function->steps[i];
    int count = step->callee != NULL ? step->node->call->count : 0;
    if (count == 1) find_loop(reader, step->callee);
    if (count <= (reader->loop != NULL ? reader->loop->node->call->count : 1)) continue;
    reader->home = function;
    reader->loop = step;
  }
}

/* ---- Work ---- */

/* Bytes of an operand that do not grow with samples: weights and what is added to their gradients. */
static double fixed_bytes(const struct kernel *kernel) {
  const struct node *node = kernel->node;
  double bytes = 0;
  for (int i = 0; i < node->n_inputs; i++)
    if (node->inputs[i]->kind == VALUE_PARAMETER)
      bytes += (double)(shape_count(kernel->inputs[i].shape) * dtype_size(kernel->inputs[i].dtype));
  for (int i = 0; i < node->n_outputs; i++)
    if (kernel->outputs[i].accumulate)
      bytes += 2 * (double)(shape_count(kernel->outputs[i].shape) * dtype_size(kernel->outputs[i].dtype));
  return bytes;
}

/* Whether zero_bubble defers a kernel: it makes gradients of parameters, and nothing else. */
static bool is_deferred_kernel(const struct step *step) {
  if (step->callee != NULL || step->node->n_outputs == 0) return false;
  for (int i = 0; i < step->node->n_outputs; i++)
    if (step->outputs[i].storage == NULL || step->outputs[i].storage->kind != STORAGE_GRADIENT) return false;
  return true;
}

static void add_runs(struct reader *reader, const struct function *function, double times, enum part part);

static void add_step(struct reader *reader, const struct step *step, double times, enum part part) {
  if (step->callee != NULL) add_runs(reader, step->callee, times * step->node->call->count, part);
  int kernel = kernel_index(reader->program, step->kernel);
  if (step->callee != NULL || kernel < 0) return;
  double *runs = reader->division->kernels.items[kernel].runs;
  runs[part] += times;
  if (part == PART_BACKWARD && is_deferred_kernel(step)) runs[PART_DEFERRED] += times;
}

static void add_runs(struct reader *reader, const struct function *function, double times, enum part part) {
  for (int i = 0; i < function->n_steps; i++) add_step(reader, &function->steps[i], times, part);
}

/* The steps of an entry: those of the layers, those before them and those after them. `part`: of what comes next. */
static void add_entry(struct reader *reader, const struct function *entry, enum part within, enum part after,
                      enum part *part) {
  const struct node *loop = reader->loop != NULL ? reader->loop->node : NULL;
  for (int i = 0; entry != NULL && i < entry->n_steps; i++) {
    const struct step *step = &entry->steps[i];
    const struct call *call = step->callee != NULL ? step->node->call : NULL;
    if (loop != NULL && call != NULL && (step->node == loop || call->forward == loop)) {
      add_runs(reader, step->callee, 1, within);
      *part = after;
    } else if (call != NULL && call->count == 1) {
      add_entry(reader, step->callee, within, after, part);
    } else {
      add_step(reader, step, 1, *part);
    }
  }
}

static void read_work(struct reader *reader) {
  const struct program *program = reader->program;
  struct division *division = reader->division;
  for (int i = 0; i < program->kernels.count; i++) {
    const struct kernel *kernel = program->kernels.items[i];
    double fixed = fixed_bytes(kernel), bytes = kernel_bytes(kernel) - fixed;
    ARENA_PUSH(
        reader->arena, division->kernels,
        ((struct kernel_work){.flops = op_matmul_flops(kernel->node), .bytes = bytes > 0 ? bytes : 0, .fixed = fixed}));
  }
  enum part part = reader->loop != NULL ? PART_FIRST : PART_LAST;
  add_entry(reader, program->entry.forward, PART_FORWARD, PART_LAST, &part);
  part = PART_LAST;
  add_entry(reader, program->entry.backward, PART_BACKWARD, PART_FIRST, &part);
  division->matmul_flops = program->figures.matmul_flops_per_step / MICRO_BATCHES;
}

/* ---- Parameters ---- */

static bool is_below(const char *path, const char *scope) {
  size_t length = strlen(scope);
  return length > 0 && strncmp(path, scope, length) == 0 && (path[length] == '.' || path[length] == '\0');
}

/* Whether a parameter is one of the first layer alone. */
static bool is_of_layer(const struct call *call, const char *path) {
  for (int k = 0; k < call->callee->n_scopes; k++) {
    const char *first = call->scopes[k][0].path;
    if (strcmp(first, call->scopes[k][1].path) != 0 && is_below(path, first)) return true;
  }
  return false;
}

/* Whether steps of a function use one of its parameters. */
static bool is_used(const struct function *function, int from, int until, const struct value *value) {
  for (int i = from; i < until; i++)
    for (int k = 0; k < function->steps[i].node->n_inputs; k++)
      if (function->steps[i].node->inputs[k] == value) return true;
  return false;
}

/* What is before and after the layers is named there, or else taken to be after them. */
static void read_around(struct reader *reader) {
  struct division *division = reader->division;
  const struct function *home = reader->home;
  int64_t around = division->all - division->layers * division->layer;
  int at = home != NULL ? (int)(reader->loop - home->steps) : 0;
  for (int i = 0; home != NULL && i < home->region->parameters.count; i++) {
    const struct parameter *parameter = &home->region->parameters.items[i];
    if (is_used(home, 0, at, parameter->value)) division->first += shape_count(parameter->shape);
    if (is_used(home, at + 1, home->n_steps, parameter->value)) division->last += shape_count(parameter->shape);
  }
  if (division->first > around) division->first = around;
  if (division->first + division->last < around) division->last = around - division->first;
}

static void read_parameters(struct reader *reader) {
  const struct program *program = reader->program;
  struct division *division = reader->division;
  for (int i = 0; i < program->weights->count; i++) {
    const struct weight *weight = &program->weights->items[i];
    int64_t elements = shape_count(weight->parameter->shape);
    division->all += elements;
    if (reader->loop != NULL && is_of_layer(reader->loop->node->call, weight->path)) division->layer += elements;
  }
  division->parameters = program->weights->count;
  read_around(reader);
  const struct memory_bytes *bytes = &program->figures.bytes;
  double all = division->all > 0 ? (double)division->all : 1;
  division->weights = (double)bytes->weights / all;
  division->gradients = (double)bytes->gradients / all;
  division->optimizer = (double)(bytes->optimizer + bytes->averages + bytes->checkpoint) / all;
}

/* ---- Memory of a micro-batch ---- */

/* Whether it is a value of the backward: its own, or the gradient of a result, which its first inputs are. */
static bool is_gradient(const struct function *backward, const struct storage *storage) {
  int gradients = 0;
  for (int i = 0; i < backward->region->forward->results.count; i++)
    gradients += backward->region->forward->results.items[i]->differentiable;
  return storage->kind == STORAGE_SCRATCH || (storage->kind == STORAGE_INPUT && storage->index < gradients);
}

static bool is_listed(const struct storage_list *list, const struct storage *storage) {
  for (int i = 0; i < list->count; i++)
    if (list->items[i] == storage) return true;
  return false;
}

/* Bytes of gradients that deferred kernels of a function read, and of what it calls but for `loop`. */
static double deferred_bytes(struct reader *reader, const struct function *backward, const struct node *loop) {
  struct storage_list seen = {0};
  double bytes = 0;
  for (int s = 0; s < backward->n_steps; s++) {
    const struct step *step = &backward->steps[s];
    const struct call *call = step->node->call;
    if (call != NULL && call->forward != NULL && call->forward != loop)
      bytes += call->count * deferred_bytes(reader, step->callee, loop);
    for (int i = 0; i < step->node->n_inputs && is_deferred_kernel(step); i++) {
      struct storage *storage = step->inputs[i].storage;
      if (storage == NULL || !is_gradient(backward, storage_root(storage)) || is_listed(&seen, storage_root(storage)))
        continue;
      ARENA_PUSH(reader->arena, seen, storage_root(storage));
      bytes += (double)arena_aligned(storage_bytes(storage));
    }
  }
  return bytes;
}

static void read_deferred(struct reader *reader) {
  const struct node *loop = reader->loop != NULL ? reader->loop->node : NULL;
  const struct function *layer = reader->loop != NULL ? reader->loop->callee->backward : NULL;
  struct division *division = reader->division;
  if (layer == NULL || reader->program->entry.backward == NULL) return;
  division->deferred = deferred_bytes(reader, layer, NULL);
  division->deferred_around = deferred_bytes(reader, reader->program->entry.backward, loop);
}

static void read_memory(struct reader *reader) {
  const struct program *program = reader->program;
  struct division *division = reader->division;
  const struct node *loop = reader->loop != NULL ? reader->loop->node : NULL;
  double saved = 0;
  for (int i = 0; loop != NULL && i < reader->home->storages.count; i++) {
    const struct storage *storage = reader->home->storages.items[i];
    if (storage->kind == STORAGE_SAVED && (storage->call == loop || storage->carrier == loop))
      saved += (double)arena_aligned(storage_bytes(storage));
  }
  division->saved = loop != NULL ? saved / (double)division->layers : 0;
  division->saved_around = (double)program->entry.forward->saved_bytes - saved;
  division->scratch = (double)program->figures.bytes.scratch;
  division->batch = (double)program->figures.bytes.batch;
  for (int i = 0; loop != NULL && i < loop->n_inputs; i++) {
    const struct value *input = loop->inputs[i];
    if (loop->call->carry[i] >= 0) division->crossing += (double)(shape_count(input->shape) * dtype_size(input->dtype));
  }
}

/* ---- Exchange ---- */

static struct exchange *exchange_like(struct reader *reader, const struct collective *collective) {
  struct division *division = reader->division;
  double bytes = (double)(collective->count * collective->width);
  for (int i = 0; i < division->exchanges.count; i++) {
    struct exchange *exchange = &division->exchanges.items[i];
    if (exchange->kind == collective->kind && exchange->axis == collective->axis && exchange->bytes == bytes)
      return exchange;
  }
  ARENA_PUSH(reader->arena, division->exchanges,
             ((struct exchange){.kind = collective->kind, .axis = collective->axis, .bytes = bytes}));
  return &division->exchanges.items[division->exchanges.count - 1];
}

/* Those of every micro-batch, among ranks that divide a layer. As many in each layer are the layers'. */
static void read_exchange(struct reader *reader) {
  const struct program *program = reader->program;
  struct division *division = reader->division;
  for (int i = 0; i < program->ranks.collectives.count; i++) {
    const struct collective *collective = &program->ranks.collectives.items[i];
    bool of_data = collective->axis == AXIS_DP_REPLICATE || collective->axis == AXIS_DP_SHARD;
    if (!of_data && collective->times >= MICRO_BATCHES)
      exchange_like(reader, collective)->around += collective->times / MICRO_BATCHES;
  }
  for (int i = 0; i < division->exchanges.count && division->layers > 0; i++) {
    struct exchange *exchange = &division->exchanges.items[i];
    exchange->per_layer = exchange->around / division->layers;
    exchange->around %= division->layers;
  }
}

/* ---- Planning ---- */

/* The job with the axes of a cut: its ranks are those alone. */
static struct job job_with(const struct job *job, struct cut cut) {
  struct job with = *job;
  with.data.batch_size = 1;
  with.data.eval_batch_size = 0;
  with.data.split_batches = false;
  with.accumulation.num_steps = MICRO_BATCHES;
  with.memory.activation_checkpointing = cut.checkpointing;
  for (int i = 0; i < AXES; i++) with.parallelism.axes[i] = 1;
  with.parallelism.axes[AXIS_TP] = cut.tp;
  with.parallelism.axes[AXIS_CP] = cut.cp;
  with.parallelism.axes[AXIS_SP] = cut.sp;
  with.parallelism.axes[AXIS_EP] = cut.ep;
  with.parallelism.axes[AXIS_DP_REPLICATE] = cut.cp * cut.sp;
  with.parallelism.splits_sequence = cut.splits_sequence;
  with.parallelism.zero_stage = 0;
  with.devices.ranks = cut.tp * cut.cp * cut.sp * cut.ep;
  with.devices.nodes = 1;
  return with;
}

static struct division *read_division(struct arena *arena, const struct program *program, struct cut cut) {
  struct division *division = arena_alloc(arena, sizeof *division);
  struct reader reader = {.arena = arena, .program = program, .division = division};
  find_loop(&reader, program->entry.forward);
  division->cut = cut;
  division->layers = reader.loop != NULL ? reader.loop->node->call->count : 0;
  read_work(&reader);
  read_parameters(&reader);
  read_memory(&reader);
  read_deferred(&reader);
  read_exchange(&reader);
  return division;
}

const struct division *divide_job(struct arena *arena, const struct planner *planner, const struct job *job,
                                  struct cut cut, const char **why) {
  struct arena *own = arena_new();
  struct diagnostics diags = diagnostics_in(own);
  const struct job with = job_with(job, cut);
  const struct plan_request request = {.kind = planner->request.kind, .tuning = planner->request.tuning};
  struct graph *graph = planner->read(planner->context, own, &with, &diags);
  const struct program *program =
      graph == NULL ? NULL : plan(builder_on(graph, &diags), &with, &request, &diags, NULL, NULL);
  struct division *division = program != NULL ? read_division(arena, program, cut) : NULL;
  if (division == NULL) *why = diag_first_error(arena, &diags);
  arena_free(own);
  return division;
}
