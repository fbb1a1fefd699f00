#include <string.h>

#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/decode_pass.h"

static const struct timeline whole = {AXIS_WHOLE, 0}, mixed = {AXIS_MIXED, 0};

bool same_timeline(struct timeline a, struct timeline b) {
  return a.axis == b.axis && a.before == b.before;
}

struct timeline timeline_of(const struct pass *pass, const struct value *value) {
  return pass->timelines[value->id];
}

/* The node over other inputs, whose places at hand lie in output 0 as `timeline` says. Its results have the types that
 * casting gave them. */
static struct node *make_again(struct pass *pass, const struct node *node, struct value *const *inputs,
                               struct timeline timeline) {
  struct attribute attributes[MAX_ATTRIBUTES];
  for (int i = 0; i < node->n_attributes; i++) {
    attributes[i] = node->attributes[i];
    if (node->kind->extents != NULL && strcmp(attributes[i].name, node->kind->extents) == 0)
      attributes[i].ints.dim[timeline.axis] = pass->width + timeline.before;
  }
  builder_at(pass->builder, node->where);
  struct node *made =
      builder_node(pass->builder, node->kind->name, inputs, node->n_inputs, attributes, node->n_attributes);
  for (int i = 0; made != NULL && i < made->n_outputs; i++) made->outputs[i]->dtype = node->outputs[i]->dtype;
  return made;
}

static struct value *cut(struct pass *pass, struct making *making, struct value *value, struct timeline timeline);

/* What makes a whole value, over the places at hand alone; NULL where it cannot. */
static struct value *cut_producer(struct pass *pass, struct making *making, const struct value *value,
                                  struct timeline timeline) {
  const struct node *node = value->producer;
  struct value *inputs[16];
  bool some = false;
  if (node == NULL || node->call != NULL || node->n_outputs > 1 || node->n_inputs > 16) return NULL;
  for (int i = 0; i < node->n_inputs; i++) {
    int own = op_along(node, timeline.axis, i);
    if (own == AXIS_MIXED) return NULL;
    some |= own >= 0;
  }
  for (int i = 0; i < node->n_inputs && some; i++) {
    int own = op_along(node, timeline.axis, i);
    inputs[i] = own >= 0 ? cut(pass, making, node->inputs[i], (struct timeline){own, timeline.before})
                         : pass->now[node->inputs[i]->id];
  }
  const struct node *made = some ? make_again(pass, node, inputs, timeline) : NULL;
  return made != NULL ? made->outputs[0] : NULL;
}

/* The places at hand of a value that does not depend on the tokens. */
static struct value *cut(struct pass *pass, struct making *making, struct value *value, struct timeline timeline) {
  if (pass->cuts[value->id] != NULL && same_timeline(pass->cut_timelines[value->id], timeline))
    return pass->cuts[value->id];
  struct value *made = cut_producer(pass, making, value, timeline);
  if (made == NULL) {
    made =
        op_dynamic_slice(pass->builder, pass->now[value->id], making->at, timeline.axis, pass->width + timeline.before);
    pass->limited = true;
  }
  pass->cuts[value->id] = made;
  pass->cut_timelines[value->id] = timeline;
  return made;
}

/* How places lie in output 0 if each of them needs no others of inputs that lie as they do; false where it needs some.
 */
static bool find_timeline(const struct pass *pass, const struct node *node, struct timeline *timeline) {
  int rank = node->outputs[0]->shape.rank;
  for (timeline->axis = 0; timeline->axis < rank; timeline->axis++) {
    bool alike = true;
    timeline->before = -1;
    for (int i = 0; i < node->n_inputs && alike; i++) {
      struct timeline has = timeline_of(pass, node->inputs[i]);
      int own = op_along(node, timeline->axis, i);
      alike = own != AXIS_MIXED &&
              (has.axis < 0 || (own == has.axis && (timeline->before < 0 || timeline->before == has.before)));
      if (has.axis >= 0) timeline->before = has.before;
    }
    if (alike) return true;
  }
  return false;
}

void decode_set(struct pass *pass, const struct value *value, struct value *now, struct timeline timeline) {
  pass->now[value->id] = now;
  pass->timelines[value->id] = timeline;
}

void decode_set_all(struct pass *pass, const struct node *node, struct timeline timeline) {
  for (int i = 0; i < node->n_outputs; i++) decode_set(pass, node->outputs[i], NULL, timeline);
}

static bool set_alike(struct pass *pass, struct making *making, const struct node *node) {
  struct timeline timeline;
  if (!find_timeline(pass, node, &timeline)) return false;
  struct value **inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  for (int i = 0; i < node->n_inputs; i++) {
    struct value *input = node->inputs[i];
    int own = op_along(node, timeline.axis, i);
    inputs[i] = timeline_of(pass, input).axis < 0 && own >= 0
                    ? cut(pass, making, input, (struct timeline){own, timeline.before})
                    : pass->now[input->id];
  }
  struct node *made = make_again(pass, node, inputs, timeline);
  if (made == NULL) return false;
  decode_set(pass, node->outputs[0], made->outputs[0], timeline);
  builder_name(pass->builder, made->outputs[0], node->outputs[0]->name);
  return true;
}

static bool set_resumed(struct pass *pass, struct making *making, const struct node *node) {
  if (node->kind->resumed == NULL || making->to->n_scopes == 0) return false;
  struct value **inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  struct timeline *timelines = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *timelines);
  for (int i = 0; i < node->n_inputs; i++) {
    inputs[i] = pass->now[node->inputs[i]->id];
    timelines[i] = timeline_of(pass, node->inputs[i]);
  }
  const struct scope scope = {.region = making->to, .path = ""};
  struct new_places new = {.inputs = inputs,
                           .timelines = timelines,
                           .at = making->at,
                           .valid = pass->width > 1 ? making->valid : NULL,
                           .most = pass->length,
                           .scope = &scope,
                           .number = making->n_resumed};
  builder_at(pass->builder, node->where);
  struct value *made = node->kind->resumed(pass->builder, node, &new);
  if (made == NULL) return false;
  made->dtype = node->outputs[0]->dtype;
  making->n_resumed++;
  pass->limited |= new.limited;
  decode_set(pass, node->outputs[0], made, new.timeline);
  builder_name(pass->builder, made, node->outputs[0]->name);
  return true;
}

void decode_node(struct pass *pass, struct making *making, const struct node *node) {
  bool moves = false, mixes = false;
  for (int i = 0; i < node->n_inputs; i++) {
    moves |= timeline_of(pass, node->inputs[i]).axis >= 0;
    mixes |= timeline_of(pass, node->inputs[i]).axis == AXIS_MIXED;
  }
  decode_set_all(pass, node, mixes || moves ? mixed : whole);
  if (mixes) return;
  if (!moves)
    node_copy(pass->graph, node, making->to, pass->now);
  else if (!set_alike(pass, making, node) && !set_resumed(pass, making, node) && pass->cause == NULL)
    pass->cause = node;
}
