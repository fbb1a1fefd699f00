#include "gen/plan/graph/decode.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/ir/copy.h"
#include "gen/ir/names.h"
#include "gen/ir/region.h"
#include "gen/plan/graph/decode_pass.h"
#include "gen/plan/graph/weight_visitor.h"
#include "gen/program/target.h"

/* Positions that the beginning of a text is run over at once. */
enum { WIDE = 32 };

static const struct timeline whole = {.axis = AXIS_WHOLE}, mixed = {.axis = AXIS_MIXED}, once = {.axis = AXIS_ONCE};

/* ---- Regions over fewer positions ---- */

static struct form *form_of(struct pass *pass, const struct region *region, const struct timeline *timelines);

/* Of a loop: what it carries must be where it was the time before, or it mixes positions. */
static bool carries_alike(const struct call *call, struct timeline *timelines, const struct timeline *results) {
  bool alike = true;
  for (int i = 0; i < call->callee->inputs.count && call->count > 1; i++) {
    int result = call->carry[i];
    if (result < 0 || timelines[i].axis == AXIS_MIXED || same_timeline(results[result], timelines[i])) continue;
    timelines[i] = timelines[i].axis == AXIS_WHOLE && results[result].axis == AXIS_ONCE ? once : mixed;
    alike = false;
  }
  return alike;
}

static void set_call(struct pass *pass, struct making *making, const struct node *node) {
  const struct call *call = node->call;
  const struct region *callee = call->callee;
  size_t capacity = (size_t)callee->inputs.count + 3;
  struct timeline *timelines = arena_alloc(pass->arena, capacity * sizeof *timelines);
  int n = 0, kept = 0;
  for (int i = 0; i < callee->inputs.count; i++) timelines[i] = timeline_of(pass, node->inputs[i]);
  const struct form *form = form_of(pass, callee, timelines);
  while (!carries_alike(call, timelines, form->results)) form = form_of(pass, callee, timelines);
  int *results = arena_alloc(pass->arena, ((size_t)callee->results.count + 1) * sizeof *results);
  for (int i = 0; i < callee->results.count; i++) results[i] = decode_leaves_out(pass, form->results[i]) ? -1 : kept++;
  struct value **inputs = arena_alloc(pass->arena, capacity * sizeof *inputs);
  int *carry = arena_alloc(pass->arena, capacity * sizeof *carry);
  for (int i = 0; i < callee->inputs.count; i++) {
    if (decode_leaves_out(pass, timelines[i])) continue;
    carry[n] = call->carry[i] < 0 ? -1 : results[call->carry[i]];
    inputs[n++] = pass->now[node->inputs[i]->id];
  }
  carry[n] = carry[n + 1] = -1;
  inputs[n++] = making->at;
  if (form->partial) inputs[n++] = making->valid;
  struct node *made = node_new(pass->graph, &op_call, inputs, n, node->where);
  made->call = arena_alloc(pass->arena, sizeof *made->call);
  *made->call = *call;
  made->call->callee = form->region;
  made->call->carry = carry;
  region_append(pass->graph, making->to, made);
  for (int i = 0; i < callee->results.count; i++) {
    decode_set(pass, node->outputs[i], NULL, form->results[i]);
    if (results[i] < 0) continue;
    const struct value *result = form->region->results.items[results[i]];
    struct value *output = node_output(pass->graph, made, result->shape, result->dtype);
    output->name = node->outputs[i]->name;
    decode_set(pass, node->outputs[i], output, form->results[i]);
  }
}

static struct value *number_input(struct pass *pass, struct making *making, const char *name) {
  struct value *value = region_input(pass->graph, making->to, shape_of(1, INT64_C(1)), DTYPE_INT32);
  value->name = name;
  return value;
}

/* Inputs and parameters of the region that is made. */
static void begin(struct pass *pass, struct making *making, const struct region *region,
                  const struct timeline *timelines) {
  for (int i = 0; i < region->inputs.count; i++) {
    const struct value *input = region->inputs.items[i];
    struct shape shape = input->shape;
    decode_set(pass, input, NULL, timelines[i]);
    if (decode_leaves_out(pass, timelines[i])) continue;
    int axis = timelines[i].axis == AXIS_SORTED && timelines[i].more >= 0 ? 0 : timelines[i].axis;
    if (axis >= 0) shape.dim[axis] = timeline_extent(timelines[i], pass->width);
    struct value *made = region_input(pass->graph, making->to, shape, input->dtype);
    made->name = input->name;
    decode_set(pass, input, made, timelines[i]);
  }
  making->at = number_input(pass, making, "at");
  making->valid = number_input(pass, making, "valid");
  struct copying copying = {.graph = pass->graph, .values = pass->now};
  copy_parameters(&copying, region, making->to);
  for (int i = 0; i < region->parameters.count; i++) {
    pass->timelines[region->parameters.items[i].value->id] = whole;
    if (region->parameters.items[i].bits16 != NULL) pass->timelines[region->parameters.items[i].bits16->id] = whole;
  }
}

static bool uses(const struct region *region, const struct value *value) {
  for (int i = 0; i < region->nodes.count; i++)
    for (int k = 0; k < region->nodes.items[i]->n_inputs; k++)
      if (region->nodes.items[i]->inputs[k] == value) return true;
  return false;
}

static void forget(struct pass *pass, const struct value *value) {
  pass->cuts[value->id] = pass->kept[value->id] = NULL;
}

/* A region is made once for each width: what is cut or kept belongs to the region that was made with it. */
static void forget_made(struct pass *pass, const struct region *region) {
  for (int i = 0; i < region->nodes.count; i++)
    for (int k = 0; k < region->nodes.items[i]->n_outputs; k++) forget(pass, region->nodes.items[i]->outputs[k]);
  for (int i = 0; i < region->inputs.count; i++) forget(pass, region->inputs.items[i]);
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *parameter = &region->parameters.items[i];
    forget(pass, parameter->value);
    if (parameter->bits16 != NULL) forget(pass, parameter->bits16);
  }
}

static struct form *make_form(struct pass *pass, const struct region *region, const struct timeline *timelines) {
  struct form form = {.of = region, .inputs = timelines, .width = pass->width, .first = pass->first};
  struct making making = {.to = region_new(pass->arena, region->function, region->where, region->n_scopes)};
  making.to->name =
      pass->suffix == NULL ? region->name : arena_printf(pass->arena, "%s_%s", region->name, pass->suffix);
  begin(pass, &making, region, timelines);
  forget_made(pass, region);
  builder_enter(pass->builder, making.to);
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    (node->call != NULL ? set_call : decode_node)(pass, &making, node);
  }
  builder_leave(pass->builder);
  form.partial = uses(making.to, making.valid);
  if (!form.partial) making.to->inputs.count--;
  form.results = arena_alloc(pass->arena, ((size_t)region->results.count + 1) * sizeof *form.results);
  for (int i = 0; i < region->results.count; i++) {
    const struct value *result = region->results.items[i];
    form.results[i] = timeline_of(pass, result);
    if (!decode_leaves_out(pass, form.results[i])) ARENA_PUSH(pass->arena, making.to->results, pass->now[result->id]);
  }
  name_values(pass->arena, making.to);
  graph_add(pass->graph, making.to);
  form.region = making.to;
  ARENA_PUSH(pass->arena, pass->forms, form);
  return &pass->forms.items[pass->forms.count - 1];
}

static bool is_form(const struct pass *pass, const struct form *form, const struct region *region,
                    const struct timeline *timelines) {
  if (form->of != region || form->width != pass->width || form->first != pass->first) return false;
  for (int i = 0; i < region->inputs.count; i++)
    if (!same_timeline(form->inputs[i], timelines[i])) return false;
  return true;
}

/* `timelines` is copied. */
static struct form *form_of(struct pass *pass, const struct region *region, const struct timeline *timelines) {
  for (int i = 0; i < pass->forms.count; i++)
    if (is_form(pass, &pass->forms.items[i], region, timelines)) return &pass->forms.items[i];
  size_t size = (size_t)region->inputs.count * sizeof *timelines;
  struct timeline *own = arena_alloc(pass->arena, size + sizeof *own);
  memcpy(own, timelines, size);
  return make_form(pass, region, own);
}

/* ---- The two entries ---- */

/* Regions that a region calls, and then itself, each once. */
static void collect(struct graph *graph, struct region *region) {
  for (int i = 0; i < graph->n_regions; i++)
    if (graph->regions[i] == region) return;
  for (int i = 0; i < region->nodes.count; i++)
    if (region->nodes.items[i]->call != NULL) collect(graph, region->nodes.items[i]->call->callee);
  region->id = graph->n_regions;
  graph->regions[graph->n_regions++] = region;
}

/* Two calls of a function over the same scope would cache what they see in the same buffers. */
struct cached_names {
  const char **items;
  int count, capacity;
  bool twice;
};

static void note_cached(struct weight_visitor *visitor, const struct region *region, const struct node *after,
                        const char *const *prefixes) {
  struct cached_names *names = visitor->context;
  for (int i = 0; i < region->parameters.count && after == NULL; i++) {
    const struct parameter *parameter = &region->parameters.items[i];
    if (!parameter->passing) continue;
    const char *path = weight_path(visitor->program->arena, prefixes[parameter->scope], parameter->path);
    for (int k = 0; k < names->count; k++) names->twice |= strcmp(names->items[k], path) == 0;
    ARENA_PUSH(visitor->program->arena, *names, path);
  }
}

static bool caches_twice(struct program *program, const struct region *entry) {
  struct cached_names names = {0};
  struct weight_visitor visitor = {.program = program, .visit = note_cached, .context = &names};
  weight_visit_from(&visitor, entry);
  return names.twice;
}

/* The entry over `width` positions; NULL where its logits mix them. */
static const struct form *entry_over(struct pass *pass, const struct region *entry, int64_t width, const char *suffix) {
  const struct timeline along = {.axis = 1}; /* of tokens [1][positions], and of logits [1][positions][vocabulary] */
  struct timeline *timelines = arena_alloc(pass->arena, (size_t)entry->inputs.count * sizeof *timelines);
  timelines[0] = along;
  for (int i = 1; i < entry->inputs.count; i++) timelines[i] = once;
  pass->width = width;
  pass->suffix = suffix;
  pass->first = suffix == NULL;
  const struct form *form = form_of(pass, entry, timelines);
  return same_timeline(form->results[0], along) ? form : NULL;
}

/* Why the program runs all positions again for each token. */
static const char *reason(const struct program *program, const struct pass *pass, bool twice) {
  const char *name = name_in_folder(program->job->model.source);
  if (twice) return "a function of the model is called twice over one scope";
  if (pass->cause == NULL) return "its logits are not [1][positions][vocabulary]";
  return arena_printf(pass->arena, "%s in %s:%d mixes positions", pass->cause->kind->name, name,
                      pass->cause->where.line);
}

/* What a text is written from comes with its first positions alone, and programs of several ranks or on devices have
 * not been run with it. */
static bool check_source(const struct program *program, const char *recomputed, struct diagnostics *diags) {
  const struct job *job = program->job;
  const struct location where = {.file = job->model.source};
  if (program->graph->entry->inputs.count < 2) return true;
  const char *name = program->graph->entry->inputs.items[1]->name;
  if (recomputed != NULL) {
    diag_error(diags, where, "a text from '%s' cannot be written token by token: %s", name, recomputed);
    diag_help(diags, "let each position of 'predict' depend on earlier ones alone");
  } else if (!program->target->is_host || job->devices.ranks > 1) {
    diag_error(diags, where, "a text from '%s' is written by one process, on processors", name);
    diag_help(diags, "set devices.kind: cpu, parallelism.tp: 1 and parallelism.pp: 1");
  } else if (job->data.sequence_length < 2) {
    diag_error(diags, where, "a text from '%s' has 1 token, and none can follow on the first", name);
    diag_help(diags, "let data.inputs.labels have more");
  } else {
    return true;
  }
  return false;
}

bool plan_decoding(struct program *program, struct builder *builder, struct diagnostics *diags) {
  struct graph *graph = program->graph, before = *graph;
  struct region *entry = graph->entry;
  int64_t length = entry->inputs.items[0]->shape.dim[1];
  size_t values = (size_t)graph->next_value;
  struct pass pass = {.graph = graph, .builder = builder, .arena = program->arena, .length = length};
  pass.timelines = arena_alloc(pass.arena, values * sizeof *pass.timelines);
  pass.now = arena_alloc(pass.arena, values * sizeof(struct value *));
  pass.cuts = arena_alloc(pass.arena, values * sizeof(struct value *));
  pass.kept = arena_alloc(pass.arena, values * sizeof(struct value *));
  pass.cut_timelines = arena_alloc(pass.arena, values * sizeof *pass.cut_timelines);
  graph->regions = NULL;
  graph->n_regions = graph->regions_capacity = 0;
  const struct form *wide = entry_over(&pass, entry, length < WIDE ? length : WIDE, NULL);
  const struct form *one = wide != NULL ? entry_over(&pass, entry, 1, "step") : NULL;
  bool twice = one != NULL && caches_twice(program, wide->region);
  if (diags->errors > 0) return false;
  if (one == NULL || twice) {
    graph->regions = before.regions;
    graph->n_regions = before.n_regions;
    graph->regions_capacity = before.regions_capacity;
    program->decode.recomputed = reason(program, &pass, twice);
    return check_source(program, program->decode.recomputed, diags);
  }
  if (!check_source(program, NULL, diags)) return false;
  graph->n_regions = 0;
  collect(graph, wide->region);
  collect(graph, one->region);
  graph->entry = wide->region;
  program->entry.second_region = one->region;
  program->decode.source = entry->inputs.count > 1 ? wide->region->inputs.items[1] : NULL;
  program->decode.partial = wide->partial;
  program->decode.endless = !pass.limited;
  return true;
}
