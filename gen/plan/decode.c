#include "gen/plan/decode.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/ir/copy.h"
#include "gen/ir/names.h"
#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/weight_walk.h"

/* Places that the beginning of a text is run over at once. */
enum { WIDE = 32 };

/* A region over `width` places, made for callers whose inputs lie along these axes. */
struct form {
  const struct region *of;
  const int *input_axes;
  int64_t width;
  struct region *region;
  int *result_axes;
};

struct pass {
  struct graph *graph;
  struct builder *builder;
  struct arena *arena;
  int64_t length, width;
  const char *suffix; /* of the regions that are made; NULL: none */
  int *axes; /* by id of a value: along which axis its places lie; AXIS_WHOLE: it does not depend on the tokens;
                AXIS_MIXED: each place of it depends on others in a way that cannot be kept */
  struct value **now;  /* by id of a value: what stands for it */
  struct value **cuts; /* by id of a value that is whole: its places at hand, along cut_axes */
  int *cut_axes;
  struct {
    struct form *items;
    int count, capacity;
  } forms;
  const struct node *cause; /* the first that mixes places */
};

/* The region that is being made. */
struct making {
  struct region *to;
  struct value *at;
  int n_resumed;
};

/* ---- Nodes over fewer places ---- */

/* The node over other inputs, whose places at hand lie along `axis` of its output 0. Its results have the types that
 * casting gave them. */
static struct node *make_again(struct pass *pass, const struct node *node, struct value *const *inputs, int axis) {
  struct attribute attributes[MAX_ATTRIBUTES];
  for (int i = 0; i < node->n_attributes; i++) {
    attributes[i] = node->attributes[i];
    if (node->kind->extents != NULL && strcmp(attributes[i].name, node->kind->extents) == 0)
      attributes[i].ints.dim[axis] = pass->width;
  }
  builder_at(pass->builder, node->where);
  struct node *made =
      builder_node(pass->builder, node->kind->name, inputs, node->n_inputs, attributes, node->n_attributes);
  for (int i = 0; made != NULL && i < made->n_outputs; i++) made->outputs[i]->dtype = node->outputs[i]->dtype;
  return made;
}

static struct value *cut(struct pass *pass, struct making *making, struct value *value, int axis);

/* What makes a whole value, over the places at hand alone; NULL where it cannot. */
static struct value *cut_producer(struct pass *pass, struct making *making, const struct value *value, int axis) {
  const struct node *node = value->producer;
  struct value *inputs[16];
  bool some = false;
  if (node == NULL || node->call != NULL || node->n_outputs > 1 || node->n_inputs > 16) return NULL;
  for (int i = 0; i < node->n_inputs; i++) {
    int own = op_along(node, axis, i);
    if (own == AXIS_MIXED) return NULL;
    some |= own >= 0;
  }
  for (int i = 0; i < node->n_inputs && some; i++) {
    int own = op_along(node, axis, i);
    inputs[i] = own >= 0 ? cut(pass, making, node->inputs[i], own) : pass->now[node->inputs[i]->id];
  }
  const struct node *made = some ? make_again(pass, node, inputs, axis) : NULL;
  return made != NULL ? made->outputs[0] : NULL;
}

/* The places at hand of a value that does not depend on the tokens. */
static struct value *cut(struct pass *pass, struct making *making, struct value *value, int axis) {
  if (pass->cuts[value->id] != NULL && pass->cut_axes[value->id] == axis) return pass->cuts[value->id];
  struct value *made = cut_producer(pass, making, value, axis);
  if (made == NULL) made = op_dynamic_slice(pass->builder, pass->now[value->id], making->at, axis, pass->width);
  pass->cuts[value->id] = made;
  pass->cut_axes[value->id] = axis;
  return made;
}

/* Whether places along `axis` of output 0 need no others. */
static bool is_alike(const struct pass *pass, const struct node *node, int axis) {
  for (int i = 0; i < node->n_inputs; i++) {
    int own = op_along(node, axis, i), has = pass->axes[node->inputs[i]->id];
    if (own == AXIS_MIXED || (has >= 0 && own != has)) return false;
  }
  return true;
}

static void set(struct pass *pass, const struct value *value, struct value *now, int axis) {
  pass->now[value->id] = now;
  pass->axes[value->id] = axis;
}

static void set_all(struct pass *pass, const struct node *node, int axis) {
  for (int i = 0; i < node->n_outputs; i++) set(pass, node->outputs[i], NULL, axis);
}

static bool set_alike(struct pass *pass, struct making *making, const struct node *node) {
  int axis = 0, rank = node->outputs[0]->shape.rank;
  while (axis < rank && !is_alike(pass, node, axis)) axis++;
  if (axis == rank) return false;
  struct value **inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) {
    struct value *input = node->inputs[i];
    int own = op_along(node, axis, i);
    inputs[i] = pass->axes[input->id] < 0 && own >= 0 ? cut(pass, making, input, own) : pass->now[input->id];
  }
  struct node *made = make_again(pass, node, inputs, axis);
  if (made == NULL) return false;
  set(pass, node->outputs[0], made->outputs[0], axis);
  builder_name(pass->builder, made->outputs[0], node->outputs[0]->name);
  return true;
}

static bool set_resumed(struct pass *pass, struct making *making, const struct node *node) {
  if (node->kind->resumed == NULL || making->to->n_scopes == 0) return false;
  struct value **inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  int *axes = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *axes);
  for (int i = 0; i < node->n_inputs; i++) {
    inputs[i] = pass->now[node->inputs[i]->id];
    axes[i] = pass->axes[node->inputs[i]->id];
  }
  const struct scope scope = {.region = making->to, .path = ""};
  struct new_places new = {.inputs = inputs,
                           .axes = axes,
                           .at = making->at,
                           .most = pass->length,
                           .scope = &scope,
                           .number = making->n_resumed};
  builder_at(pass->builder, node->where);
  struct value *made = node->kind->resumed(pass->builder, node, &new);
  if (made == NULL) return false;
  made->dtype = node->outputs[0]->dtype;
  making->n_resumed++;
  set(pass, node->outputs[0], made, new.axis);
  builder_name(pass->builder, made, node->outputs[0]->name);
  return true;
}

static void set_node(struct pass *pass, struct making *making, const struct node *node) {
  bool moves = false, mixed = false;
  for (int i = 0; i < node->n_inputs; i++) {
    moves |= pass->axes[node->inputs[i]->id] >= 0;
    mixed |= pass->axes[node->inputs[i]->id] == AXIS_MIXED;
  }
  set_all(pass, node, mixed || moves ? AXIS_MIXED : AXIS_WHOLE);
  if (mixed) return;
  if (!moves)
    node_copy(pass->graph, node, making->to, pass->now);
  else if (!set_alike(pass, making, node) && !set_resumed(pass, making, node) && pass->cause == NULL)
    pass->cause = node;
}

/* ---- Regions over fewer places ---- */

static struct form *form_of(struct pass *pass, const struct region *region, const int *axes);

/* Of a loop: what it carries must lie as it lay the time before, or it mixes places. */
static bool carries_alike(const struct call *call, int *axes, const int *result_axes) {
  bool alike = true;
  for (int i = 0; i < call->callee->inputs.count && call->count > 1; i++) {
    int result = call->carry[i];
    if (result < 0 || axes[i] == AXIS_MIXED || result_axes[result] == axes[i]) continue;
    axes[i] = AXIS_MIXED;
    alike = false;
  }
  return alike;
}

static void set_call(struct pass *pass, struct making *making, const struct node *node) {
  const struct call *call = node->call;
  const struct region *callee = call->callee;
  size_t room = (size_t)callee->inputs.count + 2;
  int *axes = arena_alloc(pass->arena, room * sizeof *axes), n = 0, kept = 0;
  for (int i = 0; i < callee->inputs.count; i++) axes[i] = pass->axes[node->inputs[i]->id];
  const struct form *form = form_of(pass, callee, axes);
  while (!carries_alike(call, axes, form->result_axes)) form = form_of(pass, callee, axes);
  int *results = arena_alloc(pass->arena, ((size_t)callee->results.count + 1) * sizeof *results);
  for (int i = 0; i < callee->results.count; i++) results[i] = form->result_axes[i] == AXIS_MIXED ? -1 : kept++;
  struct value **inputs = arena_alloc(pass->arena, room * sizeof *inputs);
  int *carry = arena_alloc(pass->arena, room * sizeof *carry);
  for (int i = 0; i < callee->inputs.count; i++) {
    if (axes[i] == AXIS_MIXED) continue;
    carry[n] = call->carry[i] < 0 ? -1 : results[call->carry[i]];
    inputs[n++] = pass->now[node->inputs[i]->id];
  }
  carry[n] = -1;
  inputs[n++] = making->at;
  struct node *made = node_new(pass->graph, &op_call, inputs, n, node->where);
  made->call = arena_alloc(pass->arena, sizeof *made->call);
  *made->call = *call;
  made->call->callee = form->region;
  made->call->carry = carry;
  region_append(pass->graph, making->to, made);
  set_all(pass, node, AXIS_MIXED);
  for (int i = 0; i < callee->results.count; i++) {
    if (results[i] < 0) continue;
    const struct value *result = form->region->results.items[results[i]];
    struct value *output = node_output(pass->graph, made, result->shape, result->dtype);
    output->name = node->outputs[i]->name;
    set(pass, node->outputs[i], output, form->result_axes[i]);
  }
}

/* Inputs and parameters of the region that is made. */
static void begin(struct pass *pass, struct making *making, const struct region *region, const int *axes) {
  for (int i = 0; i < region->inputs.count; i++) {
    const struct value *input = region->inputs.items[i];
    struct shape shape = input->shape;
    set(pass, input, NULL, axes[i]);
    if (axes[i] == AXIS_MIXED) continue;
    if (axes[i] >= 0) shape.dim[axes[i]] = pass->width;
    struct value *made = region_input(pass->graph, making->to, shape, input->dtype);
    made->name = input->name;
    set(pass, input, made, axes[i]);
  }
  making->at = region_input(pass->graph, making->to, shape_of(1, INT64_C(1)), DTYPE_INT32);
  making->at->name = "at";
  struct copying copying = {.graph = pass->graph, .values = pass->now};
  copy_parameters(&copying, region, making->to);
  for (int i = 0; i < region->parameters.count; i++) {
    pass->axes[region->parameters.items[i].value->id] = AXIS_WHOLE;
    if (region->parameters.items[i].low != NULL) pass->axes[region->parameters.items[i].low->id] = AXIS_WHOLE;
  }
}

static struct form *make_form(struct pass *pass, const struct region *region, const int *axes) {
  struct form form = {.of = region, .input_axes = axes, .width = pass->width};
  struct making making = {.to = region_new(pass->arena, region->function, region->where, region->n_scopes)};
  making.to->name =
      pass->suffix == NULL ? region->name : arena_printf(pass->arena, "%s_%s", region->name, pass->suffix);
  begin(pass, &making, region, axes);
  for (int i = 0; i < region->nodes.count; i++)
    for (int k = 0; k < region->nodes.items[i]->n_outputs; k++)
      pass->cuts[region->nodes.items[i]->outputs[k]->id] = NULL;
  for (int i = 0; i < region->inputs.count; i++) pass->cuts[region->inputs.items[i]->id] = NULL;
  for (int i = 0; i < region->parameters.count; i++) pass->cuts[region->parameters.items[i].value->id] = NULL;
  builder_enter(pass->builder, making.to);
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    (node->call != NULL ? set_call : set_node)(pass, &making, node);
  }
  builder_leave(pass->builder);
  form.result_axes = arena_alloc(pass->arena, ((size_t)region->results.count + 1) * sizeof(int));
  for (int i = 0; i < region->results.count; i++) {
    const struct value *result = region->results.items[i];
    form.result_axes[i] = pass->axes[result->id];
    if (form.result_axes[i] != AXIS_MIXED) ARENA_PUSH(pass->arena, making.to->results, pass->now[result->id]);
  }
  name_values(pass->arena, making.to);
  graph_add(pass->graph, making.to);
  form.region = making.to;
  ARENA_PUSH(pass->arena, pass->forms, form);
  return &pass->forms.items[pass->forms.count - 1];
}

/* `axes` is copied. */
static struct form *form_of(struct pass *pass, const struct region *region, const int *axes) {
  size_t size = (size_t)region->inputs.count * sizeof *axes;
  for (int i = 0; i < pass->forms.count; i++) {
    struct form *form = &pass->forms.items[i];
    if (form->of == region && form->width == pass->width && memcmp(form->input_axes, axes, size) == 0) return form;
  }
  int *own = arena_alloc(pass->arena, size + sizeof *own);
  memcpy(own, axes, size);
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

/* Two calls of a function over the same scope would keep what they see in the same buffers. */
struct kept_names {
  const char **items;
  int count, capacity;
  bool twice;
};

static void note_kept(struct weight_walk *walk, const struct region *region, const struct node *after,
                      const char *const *prefixes) {
  struct kept_names *names = walk->context;
  for (int i = 0; i < region->parameters.count && after == NULL; i++) {
    const struct parameter *parameter = &region->parameters.items[i];
    if (!parameter->passing) continue;
    const char *path = weight_path(walk->program->arena, prefixes[parameter->scope], parameter->path);
    for (int k = 0; k < names->count; k++) names->twice |= strcmp(names->items[k], path) == 0;
    ARENA_PUSH(walk->program->arena, *names, path);
  }
}

static bool keeps_twice(struct program *program, const struct region *entry) {
  struct kept_names names = {0};
  struct weight_walk walk = {.program = program, .visit = note_kept, .context = &names};
  weight_walk_from(&walk, entry);
  return names.twice;
}

/* The entry over `width` places; NULL where its logits mix them. */
static struct region *entry_over(struct pass *pass, const struct region *entry, int64_t width, const char *suffix) {
  const int along = 1; /* of tokens [1][places], and of logits [1][places][vocabulary] */
  pass->width = width;
  pass->suffix = suffix;
  const struct form *form = form_of(pass, entry, &along);
  return form->result_axes[0] == along ? form->region : NULL;
}

/* Why the program runs all places again for each token. */
static const char *reason(const struct program *program, const struct pass *pass, bool twice) {
  const char *name = name_in_folder(program->job->model.source);
  if (twice) return "a function of the model is called twice over one scope";
  if (pass->cause == NULL) return "its logits are not [1][places][vocabulary]";
  return arena_printf(pass->arena, "%s in %s:%d mixes places", pass->cause->kind->name, name, pass->cause->where.line);
}

bool plan_decoding(struct program *program, struct builder *builder, struct diagnostics *diags) {
  struct graph *graph = program->graph, before = *graph;
  struct region *entry = graph->entry;
  int64_t length = entry->inputs.items[0]->shape.dim[1];
  size_t values = (size_t)graph->next_value;
  struct pass pass = {.graph = graph, .builder = builder, .arena = program->arena, .length = length};
  pass.axes = arena_alloc(pass.arena, values * sizeof *pass.axes);
  pass.now = arena_alloc(pass.arena, values * sizeof(struct value *));
  pass.cuts = arena_alloc(pass.arena, values * sizeof(struct value *));
  pass.cut_axes = arena_alloc(pass.arena, values * sizeof *pass.cut_axes);
  graph->regions = NULL;
  graph->n_regions = graph->regions_capacity = 0;
  struct region *wide = entry_over(&pass, entry, length < WIDE ? length : WIDE, NULL);
  struct region *one = wide != NULL ? entry_over(&pass, entry, 1, "step") : NULL;
  bool twice = one != NULL && keeps_twice(program, wide);
  if (diags->errors > 0) return false;
  if (one == NULL || twice) {
    graph->regions = before.regions;
    graph->n_regions = before.n_regions;
    graph->regions_capacity = before.regions_capacity;
    program->recomputed = reason(program, &pass, twice);
    return true;
  }
  graph->n_regions = 0;
  collect(graph, wide);
  collect(graph, one);
  graph->entry = wide;
  program->second_entry = one;
  return true;
}
