/* The engine's own objects: loop, namespace, cycler, joiner, imported modules, self and super. */
#include <string.h>

#include "gen/jinja/run.h"

/* --- loop --- */

static struct jinja_value loop_cycle(struct run *run, const struct loop_object *loop, const struct call *call) {
  if (call->count == 0) jj_fail(run, "no items for cycling given");
  return call->items[loop->index0 % call->count];
}

static struct jinja_value loop_changed(struct run *run, struct loop_object *loop, const struct call *call) {
  struct jinja_value values = jj_list(run->pool, FLAVOUR_TUPLE, call->count);
  for (int i = 0; i < call->count; i++) jj_push(run->pool, values.as.list, call->items[i]);
  bool changed = !loop->any_changed || !jj_same(run, loop->last_changed, values);
  loop->any_changed = true;
  loop->last_changed = values;
  return jinja_bool(changed);
}

static struct jinja_value call_loop(struct run *run, struct loop_object *loop, const struct call *call) {
  if (loop->node == NULL) jj_fail(run, "The loop must have the 'recursive' marker to be called recursively.");
  if (call->count != 1 || call->keyword_count > 0) jj_fail(run, "loop() takes one argument");
  jj_enter(run);
  const struct link *link = run->link;
  const struct node *at = run->at;
  run->link = jj_link(run, at);
  struct buffer *before = jj_capture_begin(run);
  jj_loop(run, loop->outer, loop->node, call->items[0], loop->depth0 + 1);
  struct jinja_value text = jj_capture_end(run, before);
  text.safe = run->autoescape;
  run->link = link;
  run->at = at;
  jj_leave(run);
  return text;
}

static struct jinja_value loop_neighbour(struct run *run, const struct loop_object *loop, int index) {
  if (index < 0) return jj_undefined_hint(run, "there is no previous item");
  if (index >= loop->length) return jj_undefined_hint(run, "there is no next item");
  return jj_item(loop->items, index);
}

static bool loop_attr(struct run *run, const struct loop_object *loop, enum jj_word word, struct jinja_value *out) {
  switch (word) {
  case W_index:
    *out = jinja_int(loop->index0 + 1);
    return true;
  case W_index0:
    *out = jinja_int(loop->index0);
    return true;
  case W_revindex:
    *out = jinja_int(loop->length - loop->index0);
    return true;
  case W_revindex0:
    *out = jinja_int(loop->length - loop->index0 - 1);
    return true;
  case W_first:
    *out = jinja_bool(loop->index0 == 0);
    return true;
  case W_last:
    *out = jinja_bool(loop->index0 == loop->length - 1);
    return true;
  case W_length:
    *out = jinja_int(loop->length);
    return true;
  case W_depth:
    *out = jinja_int(loop->depth0 + 1);
    return true;
  case W_depth0:
    *out = jinja_int(loop->depth0);
    return true;
  case W_previtem:
    *out = loop_neighbour(run, loop, loop->index0 - 1);
    return true;
  case W_nextitem:
    *out = loop_neighbour(run, loop, loop->index0 + 1);
    return true;
  default:
    return false;
  }
}

/* --- blocks: self.name() and super() --- */

static struct jinja_value block_value(struct run *run, struct context *context, const struct override *override) {
  struct block_object *block = jj_alloc_zero(run->pool, sizeof *block);
  block->head.type = OBJECT_BLOCK;
  block->context = context;
  block->override = override;
  return (struct jinja_value){.kind = JINJA_OBJECT, .as.object = block};
}

static struct jinja_value call_block(struct run *run, const struct block_object *block) {
  bool autoescape = run->autoescape, muted = run->muted;
  const struct node *at = run->at;
  const struct link *link = run->link;
  run->muted = false;
  run->link = jj_link(run, at);
  struct buffer *before = jj_capture_begin(run);
  jj_run_override(run, block->context, block->override);
  struct jinja_value text = jj_capture_end(run, before);
  run->autoescape = autoescape;
  run->muted = muted;
  run->at = at;
  run->link = link;
  text.safe = autoescape;
  return text;
}

static struct jinja_value self_attr(struct run *run, const struct self_object *self, struct jinja_string *name,
                                    struct jinja_value whole) {
  const struct blocks *blocks = self->context->blocks;
  for (int i = 0; i < blocks->count; i++) {
    if (blocks->items[i].name == name) return block_value(run, self->context, blocks->items[i].first);
  }
  return jj_undefined_attr(run, whole, jj_string_value(name));
}

static struct jinja_value super_attr(struct run *run, const struct block_object *block, struct jinja_string *name,
                                     struct jinja_value whole) {
  if (name->word != W_super) return jj_undefined_attr(run, whole, jj_string_value(name));
  if (block->override->parent == NULL) {
    return jj_undefined_hint(run, "there is no parent block called '%s'.", block->override->function->name->bytes);
  }
  return block_value(run, block->context, block->override->parent);
}

/* --- macros, modules --- */

static struct jinja_value macro_attr(struct run *run, const struct macro *macro, struct jinja_string *name,
                                     struct jinja_value whole) {
  const struct function *function = macro->function;
  struct jinja_value list;
  switch (name->word) {
  case W_name:
    return function->node->kind == N_CALL_BLOCK ? jinja_none() : jj_string_value(function->name);
  case W_catch_kwargs:
    return jinja_bool(function->kwargs_slot >= 0);
  case W_catch_varargs:
    return jinja_bool(function->varargs_slot >= 0);
  case W_caller:
    return jinja_bool(function->caller_slot >= 0 || function->explicit_caller);
  case W_arguments:
    list = jj_list(run->pool, FLAVOUR_TUPLE, function->params.count);
    for (int i = 0; i < function->params.count; i++) {
      jj_push(run->pool, list.as.list, jj_string_value(function->params.items[i]->as.name.name));
    }
    return list;
  default:
    return jj_undefined_attr(run, whole, jj_string_value(name));
  }
}

static struct jinja_value module_attr(struct run *run, const struct module *module, struct jinja_string *name,
                                      struct jinja_value whole) {
  const struct jinja_map *vars = module->context->vars;
  const struct map_entry *entry = vars != NULL && name->bytes[0] != '_' ? jj_map_find_string(vars, name) : NULL;
  return entry != NULL ? entry->value : jj_undefined_attr(run, whole, jj_string_value(name));
}

static struct jinja_value cycler_current(struct run *run, const struct cycler *cycler) {
  (void)run;
  return cycler->items.as.list->items[cycler->at];
}

/* --- the two doors --- */

struct jinja_value jj_object_attr(struct run *run, struct jinja_value object, struct jinja_string *name) {
  struct jinja_value value;
  switch (((struct object *)object.as.object)->type) {
  case OBJECT_LOOP:
    if (loop_attr(run, object.as.object, name->word, &value)) return value;
    break;
  case OBJECT_NAMESPACE: {
    struct map_entry *entry = jj_map_find_string(((struct namespace *)object.as.object)->attributes, name);
    if (entry != NULL) return entry->value;
    break;
  }
  case OBJECT_CYCLER:
    if (name->word == W_current) return cycler_current(run, object.as.object);
    break;
  case OBJECT_MODULE:
    return module_attr(run, object.as.object, name, object);
  case OBJECT_MACRO:
    return macro_attr(run, object.as.object, name, object);
  case OBJECT_SELF:
    return self_attr(run, object.as.object, name, object);
  case OBJECT_BLOCK:
    return super_attr(run, object.as.object, name, object);
  default:
    break;
  }
  return jj_undefined_attr(run, object, jj_string_value(name));
}

static struct jinja_value call_cycler(struct cycler *cycler, enum jj_word method) {
  if (method == W_reset) {
    cycler->at = 0;
    return jinja_none();
  }
  struct jinja_value current = cycler->items.as.list->items[cycler->at];
  cycler->at = (cycler->at + 1) % cycler->items.as.list->count;
  return current;
}

static struct jinja_value call_joiner(struct run *run, struct joiner *joiner) {
  if (joiner->used) return joiner->separator;
  joiner->used = true;
  return jj_cstr(run->pool, "");
}

/* object.method(…), or object(…) where method is W_none. */
struct jinja_value jj_object_call(struct run *run, struct jinja_value object, enum jj_word method,
                                  const struct call *call, bool *known) {
  *known = true;
  switch (((struct object *)object.as.object)->type) {
  case OBJECT_LOOP:
    if (method == W_none) return call_loop(run, object.as.object, call);
    if (method == W_cycle) return loop_cycle(run, object.as.object, call);
    if (method == W_changed) return loop_changed(run, object.as.object, call);
    break;
  case OBJECT_CYCLER:
    if (method == W_next || method == W_reset) return call_cycler(object.as.object, method);
    break;
  case OBJECT_JOINER:
    if (method == W_none) return call_joiner(run, object.as.object);
    break;
  case OBJECT_BLOCK:
    if (method == W_none) return call_block(run, object.as.object);
    break;
  default:
    break;
  }
  *known = false;
  return jinja_none();
}
