/* Two passes over each scope's code: jj_note gives the scope the names there are; `bind` then gives each name its slot
 * and enters the inner scopes. */
#include "gen/jinja/compiler.h"

#include <string.h>

#include "gen/jinja/note.h"
#include "gen/jinja/tables.h"

struct compiler {
  struct jinja_env *env;
  struct syntax_fault *fault;
  struct template *template;
  int soft; /* in an if-branch, where an unknown filter is an error only when it is reached */
  bool toplevel;
};

static void bind(struct compiler *c, struct scope *s, struct node *node);

static void bind_all(struct compiler *c, struct scope *s, const struct nodes *nodes) {
  for (int i = 0; i < nodes->count; i++) bind(c, s, nodes->items[i]);
}

static _Noreturn void unknown(struct compiler *c, const struct node *node, const char *what, const char *name) {
  jj_syntax_error(c->fault, node->line, node->column, "No %s named '%s'.", what, name);
}

static void find_filter(struct compiler *c, struct node *node) {
  node->as.filter.filter = jj_find_filter_in(c->env, node->as.filter.name->bytes);
  if (node->as.filter.filter == NULL && c->soft == 0) unknown(c, node, "filter", node->as.filter.name->bytes);
}

static void find_test(struct compiler *c, struct node *node) {
  node->as.test.test = jj_find_test(node->as.test.name->bytes);
  if (node->as.test.test == NULL && c->soft == 0) unknown(c, node, "test", node->as.test.name->bytes);
}

struct binding {
  struct compiler *compiler;
  struct scope *scope;
};

static void bind_operand(void *context, struct node *operand) {
  struct binding *binding = context;
  bind(binding->compiler, binding->scope, operand);
}

static void bind_expression(struct compiler *c, struct scope *s, struct node *node) {
  struct binding binding = {c, s};
  if (node->kind == N_NAME) jj_scope_bind(s, &node->as.name);
  if (node->kind == N_NSREF) jj_scope_bind(s, &node->as.nsref.object);
  if (node->kind == N_FILTER) find_filter(c, node);
  if (node->kind == N_TEST) find_test(c, node);
  c->soft += node->kind == N_COND;
  jj_each_operand(node, bind_operand, &binding);
  c->soft -= node->kind == N_COND;
}

/* Code in an inner scope is neither at the top level nor, for unknown filters, conditional. */
struct outside {
  int soft;
  bool toplevel;
};

static struct outside enter_inner(struct compiler *c) {
  struct outside outside = {c->soft, c->toplevel};
  c->soft = 0;
  c->toplevel = false;
  return outside;
}

static void leave_inner(struct compiler *c, struct outside outside) {
  c->soft = outside.soft;
  c->toplevel = outside.toplevel;
}

/* A block's own filter counts as inside of it. */
static void bind_inner(struct compiler *c, struct scope *s, struct node *node) {
  struct outside outside = enter_inner(c);
  bind(c, s, node);
  leave_inner(c, outside);
}

/* A body with a scope of its own in the same function. */
static struct initializers bind_body(struct compiler *c, struct scope *inner, const struct nodes *body) {
  struct outside outside = enter_inner(c);
  jj_note_all(inner, body);
  struct initializers initial = jj_scope_initializers(inner);
  bind_all(c, inner, body);
  leave_inner(c, outside);
  return initial;
}

static void declare_target(struct scope *s, const struct node *target) {
  if (target->kind == N_NAME) jj_scope_parameter(s, target->as.name.name);
  if (target->kind != N_TUPLE) return;
  for (int i = 0; i < target->as.items.count; i++) declare_target(s, target->as.items.items[i]);
}

static struct function *loop_function(struct compiler *c, struct node *node) {
  struct function *function = arena_alloc(c->env->arena, sizeof *function);
  function->template = c->template;
  function->node = node;
  function->name = jj_intern(c->env, "loop", 4);
  function->varargs_slot = function->kwargs_slot = function->caller_slot = -1;
  function->self_slot = function->super_slot = -1;
  return function;
}

/* The filter runs before the body's scope is entered and has no `loop`; it shares the target's slots. */
static void bind_loop_filter(struct compiler *c, const struct scope *body, struct node *filter) {
  if (filter == NULL) return;
  struct scope scope = *body;
  scope.loop = NULL;
  scope.items = NULL;
  scope.count = scope.capacity = 0;
  for (int i = 0; i < body->count; i++) ARENA_PUSH(c->env->arena, scope, body->items[i]);
  jj_note(&scope, filter);
  bind(c, &scope, filter);
}

static void bind_for(struct compiler *c, struct scope *s, struct node *node) {
  struct for_loop *loop = node->as.loop;
  bind(c, s, loop->iterable);
  struct scope holder, *outer = s;
  if (loop->recursive) {
    loop->function = loop_function(c, node);
    holder = jj_scope(c->env, s, loop->function);
    outer = &holder;
  }
  struct scope body = jj_scope(c->env, outer, outer->function), otherwise = jj_scope(c->env, outer, outer->function);
  declare_target(&body, loop->target);
  struct outside outside = enter_inner(c);
  bind_loop_filter(c, &body, loop->filter);
  loop->loop_slot = -1;
  body.loop = loop;
  if (loop->recursive) jj_scope_need_loop(&body);
  jj_note_all(&body, &loop->body);
  loop->body_initial = jj_scope_initializers(&body);
  bind(c, &body, loop->target);
  bind_all(c, &body, &loop->body);
  leave_inner(c, outside);
  loop->else_initial = bind_body(c, &otherwise, &loop->else_body);
}

static void bind_function(struct compiler *c, struct scope *s, struct function *function) {
  struct scope body = jj_scope(c->env, s, function);
  body.takes_extra = true;
  struct outside outside = enter_inner(c);
  bool bare_caller = false;
  for (int i = 0; i < function->params.count; i++) {
    struct jinja_string *name = function->params.items[i]->as.name.name;
    jj_scope_parameter(&body, name);
    if (name->word != W_caller) continue;
    function->explicit_caller = true;
    bare_caller = i < function->params.count - function->defaults.count;
  }
  jj_note_all(&body, &function->defaults);
  body.bare_caller = bare_caller;
  jj_note_all(&body, &function->body);
  function->initial = jj_scope_initializers(&body);
  bind_all(c, &body, &function->params);
  bind_all(c, &body, &function->defaults);
  bind_all(c, &body, &function->body);
  leave_inner(c, outside);
  if (!body.reads_bare_caller) return;
  jj_syntax_error(c->fault, function->node->line, function->node->column,
                  "When defining macros or call blocks the special \"caller\" argument must be omitted or be given a "
                  "default.");
}

static void bind_if(struct compiler *c, struct scope *s, struct node *node) {
  c->soft++;
  for (int i = 0; i < node->as.branch.tests.count; i++) {
    bind(c, s, node->as.branch.tests.items[i]);
    bind_all(c, s, &node->as.branch.bodies[i]);
  }
  bind_all(c, s, &node->as.branch.else_body);
  c->soft--;
}

static void bind_with(struct compiler *c, struct scope *s, struct node *node) {
  struct with_block *with = node->as.with;
  bind_all(c, s, &with->values);
  struct scope inner = jj_scope(c->env, s, s->function);
  for (int i = 0; i < with->targets.count; i++) declare_target(&inner, with->targets.items[i]);
  with->initial = bind_body(c, &inner, &with->body);
  bind_all(c, &inner, &with->targets);
}

static void bind_set_block(struct compiler *c, struct scope *s, struct node *node) {
  struct set_block *block = node->as.set_block;
  struct scope inner = jj_scope(c->env, s, s->function);
  block->initial = bind_body(c, &inner, &block->body);
  if (block->filter != NULL) bind_inner(c, &inner, block->filter);
  bind(c, s, block->target);
}

static void bind_filter_block(struct compiler *c, struct scope *s, struct node *node) {
  struct scope inner = jj_scope(c->env, s, s->function);
  node->as.filter_block.initial = bind_body(c, &inner, &node->as.filter_block.body);
  bind_inner(c, s, node->as.filter_block.filter);
}

static void bind_autoescape(struct compiler *c, struct scope *s, struct node *node) {
  bind(c, s, node->as.autoescape.value);
  struct scope inner = jj_scope(c->env, s, s->function);
  node->as.autoescape.initial = bind_body(c, &inner, &node->as.autoescape.body);
}

static void bind_import(struct compiler *c, struct scope *s, struct node *node) {
  struct import *import = node->as.import;
  bind(c, s, import->name);
  node->flag = c->toplevel;
  if (node->flag2) import->visible = jj_scope_visible(s);
  if (node->kind == N_IMPORT) jj_scope_bind(s, &import->target);
  for (int i = 0; i < import->targets.count; i++) jj_scope_bind(s, &import->targets.items[i]);
}

/* A block's body is compiled as a template of its own would be: it sees the context and no outer scope. */
static void bind_block(struct compiler *c, struct scope *s, struct node *node) {
  struct function *function = node->as.block.function;
  if (node->flag) {
    jj_scope_need_loop(s);
    node->as.block.visible = jj_scope_visible(s);
  }
  struct scope body = jj_scope(c->env, NULL, function);
  function->initial = bind_body(c, &body, &function->body);
}

static void bind(struct compiler *c, struct scope *s, struct node *node) {
  if (node == NULL) return;
  switch (node->kind) {
  case N_OUTPUT:
  case N_DO:
  case N_EXTENDS:
    bind(c, s, node->as.expression);
    break;
  case N_IF:
    bind_if(c, s, node);
    break;
  case N_FOR:
    bind_for(c, s, node);
    break;
  case N_SET:
    node->flag = c->toplevel;
    bind(c, s, node->as.set.value);
    bind(c, s, node->as.set.target);
    break;
  case N_SET_BLOCK:
    node->flag = c->toplevel;
    bind_set_block(c, s, node);
    break;
  case N_MACRO:
    node->flag = c->toplevel;
    jj_scope_bind(s, &node->as.macro.target);
    bind_function(c, s, node->as.macro.function);
    break;
  case N_CALL_BLOCK:
    bind_function(c, s, node->as.call_block.function);
    if (node->as.call_block.call != NULL) bind(c, s, node->as.call_block.call);
    break;
  case N_FILTER_BLOCK:
    bind_filter_block(c, s, node);
    break;
  case N_WITH:
    bind_with(c, s, node);
    break;
  case N_BLOCK:
    bind_block(c, s, node);
    break;
  case N_INCLUDE:
    bind(c, s, node->as.include->name);
    if (node->flag2) node->as.include->visible = jj_scope_visible(s);
    break;
  case N_IMPORT:
  case N_FROM:
    bind_import(c, s, node);
    break;
  case N_AUTOESCAPE:
    bind_autoescape(c, s, node);
    break;
  default:
    bind_expression(c, s, node);
    break;
  }
}

void jj_annotate(struct jinja_env *env, struct syntax_fault *fault, struct template *template) {
  struct compiler c = {.env = env, .fault = fault, .template = template, .toplevel = true};
  struct scope root = jj_scope(env, NULL, &template->root);
  jj_note_all(&root, &template->root.body);
  template->root.initial = jj_scope_initializers(&root);
  bind_all(&c, &root, &template->root.body);
}
