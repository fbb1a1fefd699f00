#include <string.h>

#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/decode_pass.h"

static const struct timeline whole = {.axis = AXIS_WHOLE}, mixed = {.axis = AXIS_MIXED}, once = {.axis = AXIS_ONCE};

bool same_timeline(struct timeline a, struct timeline b) {
  return a.axis == b.axis && a.before == b.before && a.more == b.more && a.order == b.order;
}

bool decode_leaves_out(const struct pass *pass, struct timeline timeline) {
  return timeline.axis == AXIS_MIXED || (timeline.axis == AXIS_ONCE && !pass->first);
}

int64_t timeline_extent(struct timeline timeline, int64_t width) {
  return width * (timeline.more + 1) + timeline.before;
}

struct timeline timeline_of(const struct pass *pass, const struct value *value) {
  const struct timeline timeline = pass->timelines[value->id];
  return pass->moving && timeline.axis == AXIS_ONCE ? whole : timeline;
}

/* The node over other inputs, whose current positions are in output 0 as `timeline` says. Its results have the types
 * that casting gave them. */
static struct node *make_again(struct pass *pass, const struct node *node, struct value *const *inputs,
                               struct timeline timeline) {
  struct attribute attributes[MAX_ATTRIBUTES];
  for (int i = 0; i < node->n_attributes; i++) {
    attributes[i] = node->attributes[i];
    if (node->kind->sequence.extents != NULL && strcmp(attributes[i].name, node->kind->sequence.extents) == 0)
      attributes[i].ints.dim[timeline.axis] = timeline_extent(timeline, pass->width);
  }
  builder_at(pass->builder, node->where);
  struct node *made =
      builder_node(pass->builder, node->kind->name, inputs, node->n_inputs, attributes, node->n_attributes);
  for (int i = 0; made != NULL && i < made->n_outputs; i++) made->outputs[i]->dtype = node->outputs[i]->dtype;
  return made;
}

static struct value *cut(struct pass *pass, struct making *making, struct value *value, struct timeline timeline);

/* What makes a whole value, over the current positions alone; NULL where it cannot. */
static struct value *cut_producer(struct pass *pass, struct making *making, const struct value *value,
                                  struct timeline timeline) {
  const struct node *node = value->producer;
  struct value *inputs[16];
  bool some = false;
  if (node == NULL || node->call != NULL || node->n_outputs > 1 || node->n_inputs > 16) return NULL;
  for (int i = 0; i < node->n_inputs; i++) {
    int own = op_along(node, timeline.axis, i);
    if (own == AXIS_MIXED || pass->timelines[node->inputs[i]->id].axis == AXIS_ONCE) return NULL;
    some |= own >= 0;
  }
  for (int i = 0; i < node->n_inputs && some; i++) {
    int own = op_along(node, timeline.axis, i);
    struct timeline there = timeline;
    there.axis = own;
    inputs[i] = own >= 0 ? cut(pass, making, node->inputs[i], there) : pass->now[node->inputs[i]->id];
  }
  const struct node *made = some ? make_again(pass, node, inputs, timeline) : NULL;
  return made != NULL ? made->outputs[0] : NULL;
}

/* The current positions of a value that does not depend on the tokens; NULL without an error where they cannot be cut.
 */
static struct value *cut(struct pass *pass, struct making *making, struct value *value, struct timeline timeline) {
  if (pass->cuts[value->id] != NULL && same_timeline(pass->cut_timelines[value->id], timeline))
    return pass->cuts[value->id];
  if (timeline.more > 0 || timeline.order != NULL) return NULL;
  struct value *made = cut_producer(pass, making, value, timeline);
  if (made == NULL) {
    int64_t count = timeline_extent(timeline, pass->width);
    made = op_dynamic_slice(pass->builder, pass->now[value->id], making->at, timeline.axis, count);
    pass->limited = true;
  }
  pass->cuts[value->id] = made;
  pass->cut_timelines[value->id] = timeline;
  return made;
}

/* Whether positions along an axis of output 0 need no others of inputs that are ordered as they are; *timeline is their
 * order.
 */
static bool is_alike(const struct pass *pass, const struct node *node, int axis, struct timeline *timeline) {
  bool found = false;
  for (int i = 0; i < node->n_inputs; i++) {
    struct timeline has = timeline_of(pass, node->inputs[i]);
    int own = op_along(node, axis, i);
    if (own == AXIS_MIXED) return false;
    if (has.axis == AXIS_WHOLE) continue;
    if (own != has.axis) return false;
    has.axis = axis;
    if (found && !same_timeline(has, *timeline)) return false;
    *timeline = has;
    found = true;
  }
  return found;
}

/* How positions are ordered in output 0 if it is alike along an axis; false where it is along none. */
static bool find_timeline(const struct pass *pass, const struct node *node, struct timeline *timeline) {
  for (int axis = 0; axis < node->outputs[0]->shape.rank; axis++)
    if (is_alike(pass, node, axis, timeline)) return true;
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
    struct timeline there = timeline;
    there.axis = own;
    bool cuts = timeline_of(pass, input).axis < 0 && own >= 0;
    inputs[i] = cuts ? cut(pass, making, input, there) : pass->now[input->id];
    if (inputs[i] == NULL) return false;
  }
  struct node *made = make_again(pass, node, inputs, timeline);
  if (made == NULL) return false;
  decode_set(pass, node->outputs[0], made->outputs[0], timeline);
  builder_name(pass->builder, made->outputs[0], node->outputs[0]->name);
  return true;
}

static bool set_incremental(struct pass *pass, struct making *making, const struct node *node) {
  if (node->kind->sequence.incremental == NULL || making->to->n_scopes == 0) return false;
  struct value **inputs = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *inputs);
  struct timeline *timelines = arena_alloc(pass->arena, ((size_t)node->n_inputs + 1) * sizeof *timelines);
  for (int i = 0; i < node->n_inputs; i++) {
    inputs[i] = pass->now[node->inputs[i]->id];
    timelines[i] = timeline_of(pass, node->inputs[i]);
  }
  const struct scope scope = {.region = making->to, .path = ""};
  struct new_positions new = {.inputs = inputs,
                              .timelines = timelines,
                              .at = making->at,
                              .valid = pass->width > 1 ? making->valid : NULL,
                              .most = pass->length,
                              .width = pass->width,
                              .scope = &scope,
                              .number = making->n_incremental};
  builder_at(pass->builder, node->where);
  struct value *made = node->kind->sequence.incremental(pass->builder, node, &new);
  if (made == NULL) return false;
  made->dtype = node->outputs[0]->dtype;
  making->n_incremental++;
  pass->limited |= new.limited;
  decode_set(pass, node->outputs[0], made, new.timeline);
  builder_name(pass->builder, made, node->outputs[0]->name);
  return true;
}

/* ---- What depends on the source alone ---- */

/* Has what later regions read of a value: the first one writes it. False where it cannot be kept. */
static bool keep(struct pass *pass, struct making *making, const struct value *value) {
  if (pass->kept[value->id] != NULL) return true;
  if (!dtype_is_float(value->dtype) || making->to->n_scopes == 0) return false;
  const struct scope scope = {.region = making->to, .path = ""};
  const char *name = arena_printf(pass->arena, "kept_%d", making->n_kept++);
  struct value *kept = builder_passing(pass->builder, &scope, name, value->shape);
  pass->kept[value->id] = kept;
  if (!pass->first) {
    pass->now[value->id] = builder_cast(pass->builder, kept, value->dtype);
    return true;
  }
  return op_keep(pass->builder, builder_cast(pass->builder, pass->now[value->id], DTYPE_FLOAT32), kept) != NULL;
}

/* A node at the current positions. What it reads of the source alone is as a whole value to it. */
static bool set_moving(struct pass *pass, struct making *making, const struct node *node) {
  bool keeps = true;
  builder_at(pass->builder, node->where);
  for (int i = 0; i < node->n_inputs; i++)
    if (timeline_of(pass, node->inputs[i]).axis == AXIS_ONCE) keeps &= keep(pass, making, node->inputs[i]);
  pass->moving = true;
  const bool made = keeps && (set_alike(pass, making, node) || set_incremental(pass, making, node));
  pass->moving = false;
  return made;
}

void decode_node(struct pass *pass, struct making *making, const struct node *node) {
  bool moves = false, mixes = false, reads = false;
  for (int i = 0; i < node->n_inputs; i++) {
    const int axis = timeline_of(pass, node->inputs[i]).axis;
    moves |= axis != AXIS_WHOLE && axis != AXIS_ONCE;
    mixes |= axis == AXIS_MIXED;
    reads |= axis == AXIS_ONCE;
  }
  decode_set_all(pass, node, mixes || moves ? mixed : reads ? once : whole);
  if (mixes) return;
  if (moves && !set_moving(pass, making, node) && pass->cause == NULL) pass->cause = node;
  if (!moves && (!reads || pass->first)) node_copy(pass->graph, node, making->to, pass->now);
}
