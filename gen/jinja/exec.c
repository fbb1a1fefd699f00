/* Statements. */
#include <string.h>

#include "gen/jinja/run.h"

struct activation *jj_activation(struct run *run, const struct function *function, struct activation *outer,
                                 struct context *context) {
  struct activation *a = jj_alloc_zero(run->pool, sizeof *a + (size_t)function->slot_count * sizeof *a->slots);
  a->outer = outer;
  a->context = context;
  a->function = function;
  return a;
}

static struct jinja_value initial_value(struct run *run, struct activation *a, const struct initializer *initial) {
  if (initial->initial == INITIAL_MISSING) return jj_undefined(&jj_missing_mark);
  struct jinja_value value;
  if (initial->initial == INITIAL_CONTEXT) {
    value = jj_lookup(run, a->context, initial->own.name);
  } else {
    struct activation *from = a;
    for (int up = initial->outer.up; up > 0; up--) from = from->outer;
    value = from->slots[initial->outer.slot];
    bool unread = value.kind == JINJA_UNDEFINED && value.as.object == NULL;
    if (unread) value = jj_lookup(run, from->context, initial->own.name);
  }
  if (value.kind == JINJA_UNDEFINED && value.as.object == NULL) return jj_undefined(&jj_missing_mark);
  return value;
}

void jj_initialize(struct run *run, struct activation *a, const struct initializers *list) {
  for (int i = 0; i < list->count; i++) a->slots[list->items[i].own.slot] = initial_value(run, a, &list->items[i]);
}

/* --- assignment --- */

void jj_export(struct run *run, struct context *context, struct jinja_string *name, struct jinja_value value) {
  if (context->vars == NULL) context->vars = jj_map(run->pool).as.map;
  jj_map_put(run->pool, context->vars, jj_string_value(name), value);
}

static void store(struct run *run, struct activation *a, const struct variable *variable, struct jinja_value value,
                  bool exported) {
  if (value.kind == JINJA_UNDEFINED && value.as.object == NULL) value = jj_undefined(&jj_nameless);
  a->slots[variable->slot] = value; /* a target is always of the activation's own function */
  if (exported) jj_export(run, a->context, variable->name, value);
}

static void assign(struct run *run, struct activation *a, const struct node *target, struct jinja_value value,
                   bool exported);

static void assign_tuple(struct run *run, struct activation *a, const struct node *target, struct jinja_value value,
                         bool exported) {
  const struct nodes *targets = &target->as.items;
  const struct jinja_list *items = jj_iterate(run, value);
  if (items->count < targets->count) {
    jj_fail(run, "not enough values to unpack (expected %d, got %d)", targets->count, items->count);
  }
  if (items->count > targets->count) jj_fail(run, "too many values to unpack (expected %d)", targets->count);
  for (int i = 0; i < targets->count; i++) assign(run, a, targets->items[i], items->items[i], exported);
}

static void assign_namespace(struct run *run, struct activation *a, const struct node *target,
                             struct jinja_value value) {
  struct jinja_value object = jj_load(run, a, &target->as.nsref.object);
  run->at = target;
  if (object.kind != JINJA_OBJECT || ((struct object *)object.as.object)->type != OBJECT_NAMESPACE) {
    jj_fail(run, "cannot assign attribute on non-namespace object");
  }
  struct namespace *namespace = object.as.object;
  jj_map_put(run->pool, namespace->attributes, jj_string_value(target->as.nsref.attr), value);
}

static void assign(struct run *run, struct activation *a, const struct node *target, struct jinja_value value,
                   bool exported) {
  if (target->kind == N_NAME) {
    store(run, a, &target->as.name, value, exported);
  } else if (target->kind == N_NSREF) {
    assign_namespace(run, a, target, value);
  } else {
    run->at = target;
    assign_tuple(run, a, target, value, exported);
  }
}

/* --- loops --- */

/* What Jinja2's loop filter passes on: the target's values, so an unpacked pair is a tuple from here on. */
static struct jinja_value target_value(struct run *run, struct activation *a, const struct node *target) {
  if (target->kind == N_NAME) return a->slots[target->as.name.slot];
  struct jinja_value tuple = jj_list(run->pool, FLAVOUR_TUPLE, target->as.items.count);
  for (int i = 0; i < target->as.items.count; i++)
    jj_push(run->pool, tuple.as.list, target_value(run, a, target->as.items.items[i]));
  return tuple;
}

/* The items of a loop whose variable `loop` knows how many there are. */
static struct jinja_list *filtered(struct run *run, struct activation *a, const struct for_loop *loop,
                                   const struct jinja_list *items) {
  struct jinja_value kept = jj_list(run->pool, FLAVOUR_LIST, 0);
  for (int i = 0; i < items->count; i++) {
    jj_spend(run, 1);
    assign(run, a, loop->target, jj_item(items, i), false);
    if (jj_truth(run, jj_eval(run, a, loop->filter)))
      jj_push(run->pool, kept.as.list, target_value(run, a, loop->target));
  }
  return kept.as.list;
}

static struct loop_object *new_loop(struct run *run, struct activation *a, const struct node *node,
                                    const struct jinja_list *items, int depth0) {
  struct loop_object *object = jj_alloc_zero(run->pool, sizeof *object);
  object->head.type = OBJECT_LOOP;
  object->items = items;
  object->length = items->count;
  object->depth0 = depth0;
  object->node = node->as.loop->recursive ? node : NULL;
  object->outer = a;
  return object;
}

static const struct item *new_item(struct run *run, struct jinja_value value, const struct item *outer) {
  struct item *item = jj_alloc(run->pool, sizeof *item);
  *item = (struct item){value, outer};
  return item;
}

/* True when a round came to its end: a loop of which every round was cut short runs its else part, as in Jinja2. */
static bool run_items(struct run *run, struct activation *a, const struct for_loop *loop,
                      const struct jinja_list *items, struct loop_object *object) {
  bool completed = false;
  const struct item *around = run->item;
  /* what reads the loop itself, as `loop|first` does, moves it on */
  for (int i = 0; i < items->count; i = object != NULL ? object->index0 + 1 : i + 1) {
    struct jinja_value item = jj_item(items, i);
    jj_spend(run, 1);
    if (run->mapped) run->item = new_item(run, item, around);
    if (object != NULL) {
      object->index0 = i;
      a->slots[loop->loop_slot] = (struct jinja_value){.kind = JINJA_OBJECT, .as.object = object};
    }
    if (loop->target->kind == N_NAME) {
      store(run, a, &loop->target->as.name, item, false);
    } else {
      assign(run, a, loop->target, item, false);
    }
    /* As in Jinja2 an item is filtered when its turn comes, after what the body did with the ones before. */
    if (object == NULL && loop->filter != NULL && !jj_truth(run, jj_eval(run, a, loop->filter))) continue;
    if (loop->body_initial.count > 0) jj_initialize(run, a, &loop->body_initial);
    enum flow flow = jj_exec(run, a, &loop->body);
    if (flow == FLOW_BREAK) break;
    completed |= flow == FLOW_NEXT;
  }
  run->item = around;
  return completed;
}

/* `a` is the activation around the loop; a recursive loop's body has its own, a level deeper at each call. */
enum flow jj_loop(struct run *run, struct activation *a, const struct node *node, struct jinja_value iterable,
                  int depth0) {
  const struct for_loop *loop = node->as.loop;
  struct activation *inner = loop->recursive ? jj_activation(run, loop->function, a, a->context) : a;
  const struct jinja_list *items = jj_sequence(run, iterable);
  if (loop->filter != NULL && loop->extended) items = filtered(run, inner, loop, items);
  struct loop_object *object = loop->extended ? new_loop(run, a, node, items, depth0) : NULL;
  if (run_items(run, inner, loop, items, object) || loop->else_body.count == 0) return FLOW_NEXT;
  jj_initialize(run, inner, &loop->else_initial);
  return jj_exec(run, inner, &loop->else_body); /* a break in there is for the loop around */
}

static enum flow exec_for(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value iterable = jj_eval(run, a, node->as.loop->iterable);
  run->at = node;
  return jj_loop(run, a, node, iterable, 0);
}

/* --- the other statements --- */

static enum flow exec_if(struct run *run, struct activation *a, const struct node *node) {
  for (int i = 0; i < node->as.branch.tests.count; i++) {
    struct jinja_value test = jj_eval(run, a, node->as.branch.tests.items[i]);
    if (test.kind == JINJA_UNDEFINED) run->at = node->as.branch.tests.items[i];
    if (jj_truth(run, test)) return jj_exec(run, a, &node->as.branch.bodies[i]);
  }
  return jj_exec(run, a, &node->as.branch.else_body);
}

/* A body whose text is caught. Break and continue leave it without a trace, as they do in Jinja2. */
static enum flow capture(struct run *run, struct activation *a, const struct initializers *initial,
                         const struct nodes *body, struct jinja_value *text) {
  struct buffer *before = jj_capture_begin(run);
  jj_initialize(run, a, initial);
  enum flow flow = jj_exec(run, a, body);
  *text = jj_capture_end(run, before);
  text->safe = run->autoescape;
  return flow;
}

static enum flow exec_set_block(struct run *run, struct activation *a, const struct node *node) {
  const struct set_block *block = node->as.set_block;
  struct jinja_value value;
  bool muted = run->muted;
  run->muted = false;
  enum flow flow = capture(run, a, &block->initial, &block->body, &value);
  run->muted = muted;
  if (flow != FLOW_NEXT) return flow;
  if (block->filter != NULL) {
    value = jj_eval_filter(run, a, block->filter, value);
    if (run->autoescape) value = jj_str(run, value);
    value.safe |= run->autoescape;
  }
  assign(run, a, block->target, value, node->flag);
  return FLOW_NEXT;
}

/* Writes a value; what it does not know the writer of was written by `node`. */
static inline void write_at(struct run *run, struct jinja_value value, const struct node *node) {
  size_t start = run->out->length;
  int spans = run->out->spans.count;
  run->at = node;
  jj_write_value(run, value);
  if (run->mapped && run->out->spans.count == spans) jj_note_written(run, start, node);
}

static enum flow exec_filter_block(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value text;
  enum flow flow = capture(run, a, &node->as.filter_block.initial, &node->as.filter_block.body, &text);
  if (flow != FLOW_NEXT) return flow;
  text = jj_eval_filter(run, a, node->as.filter_block.filter, text);
  if (text.kind != JINJA_STRING)
    jj_fail(run, "the filter of a filter block must give a string, not '%s'", jj_type_name(text));
  text.safe = true; /* what is in the block was escaped when it was written */
  write_at(run, text, node);
  return FLOW_NEXT;
}

static enum flow exec_with(struct run *run, struct activation *a, const struct node *node) {
  const struct with_block *with = node->as.with;
  struct jinja_value *values = jj_alloc(run->pool, (size_t)(with->values.count + 1) * sizeof *values);
  for (int i = 0; i < with->values.count; i++) values[i] = jj_eval(run, a, with->values.items[i]);
  jj_initialize(run, a, &with->initial);
  for (int i = 0; i < with->targets.count; i++) assign(run, a, with->targets.items[i], values[i], false);
  return jj_exec(run, a, &with->body);
}

static enum flow exec_autoescape(struct run *run, struct activation *a, const struct node *node) {
  bool before = run->autoescape;
  struct jinja_value value = jj_eval(run, a, node->as.autoescape.value);
  run->at = node;
  run->autoescape = jj_truth(run, value);
  jj_initialize(run, a, &node->as.autoescape.initial);
  enum flow flow = jj_exec(run, a, &node->as.autoescape.body);
  run->autoescape = before;
  return flow;
}

static struct macro *new_macro(struct run *run, struct activation *a, const struct function *function) {
  struct macro *macro = jj_alloc_zero(run->pool, sizeof *macro);
  macro->head.type = OBJECT_MACRO;
  macro->function = function;
  macro->outer = a;
  macro->autoescape = run->autoescape;
  return macro;
}

static void exec_macro(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value macro = {.kind = JINJA_OBJECT, .as.object = new_macro(run, a, node->as.macro.function)};
  store(run, a, &node->as.macro.target, macro, node->flag);
}

/* Writes the body, and notes where it is in the output. */
static void exec_generation(struct run *run, const struct node *node, struct macro *body) {
  const struct jinja_value callee = {.kind = JINJA_OBJECT, .as.object = body};
  const struct jinja_value value = jj_call(run, callee, &(struct call){0});
  struct jinja_range range = {.from = run->out->length};
  write_at(run, value, node);
  range.to = run->out->length;
  if (run->out != run->whole)
    run->generated_inside = true;
  else
    ARENA_PUSH(run->env->arena, run->generated, range);
}

static void exec_call_block(struct run *run, struct activation *a, const struct node *node) {
  struct macro *caller = new_macro(run, a, node->as.call_block.function);
  if (node->as.call_block.call == NULL) {
    exec_generation(run, node, caller);
    return;
  }
  struct jinja_value value = jj_eval_call(run, a, node->as.call_block.call, caller);
  write_at(run, value, node);
}

static void exec_output(struct run *run, struct activation *a, const struct node *node) {
  struct jinja_value value = jj_eval(run, a, node->as.expression);
  write_at(run, value, node);
}

static void exec_text(struct run *run, const struct node *node) {
  size_t start = run->out->length;
  jj_write_piece(run, node->as.text.bytes, node->as.text.length);
  if (run->mapped) jj_note_written(run, start, node);
}

enum flow jj_exec(struct run *run, struct activation *a, const struct nodes *body) {
  for (int i = 0; i < body->count; i++) {
    const struct node *node = body->items[i];
    enum flow flow = FLOW_NEXT;
    run->at = node;
    run->steps++;
    switch (node->kind) {
    case N_TEXT:
      if (!run->muted) exec_text(run, node);
      break;
    case N_OUTPUT:
      if (!run->muted) exec_output(run, a, node);
      break;
    case N_IF:
      flow = exec_if(run, a, node);
      break;
    case N_FOR:
      flow = exec_for(run, a, node);
      break;
    case N_SET:
      assign(run, a, node->as.set.target, jj_eval(run, a, node->as.set.value), node->flag);
      break;
    case N_SET_BLOCK:
      flow = exec_set_block(run, a, node);
      break;
    case N_MACRO:
      exec_macro(run, a, node);
      break;
    case N_CALL_BLOCK:
      exec_call_block(run, a, node);
      break;
    case N_FILTER_BLOCK:
      flow = exec_filter_block(run, a, node);
      break;
    case N_WITH:
      flow = exec_with(run, a, node);
      break;
    case N_BLOCK:
      if (!run->muted) jj_exec_block(run, a, node);
      break;
    case N_EXTENDS:
      jj_exec_extends(run, a, node);
      break;
    case N_INCLUDE:
      jj_exec_include(run, a, node);
      break;
    case N_IMPORT:
    case N_FROM:
      jj_exec_import(run, a, node);
      break;
    case N_DO:
      jj_eval(run, a, node->as.expression);
      break;
    case N_BREAK:
      return FLOW_BREAK;
    case N_CONTINUE:
      return FLOW_CONTINUE;
    case N_AUTOESCAPE:
      flow = exec_autoescape(run, a, node);
      break;
    default:
      break;
    }
    if (flow != FLOW_NEXT) return flow;
  }
  return FLOW_NEXT;
}
