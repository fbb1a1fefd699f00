/* Statements: a tag's tokens to a node. */
#include <string.h>

#include "gen/jinja/env.h"
#include "gen/jinja/parser.h"

static struct function *new_function(struct parser *p, struct node *node, struct jinja_string *name) {
  struct function *function = arena_alloc(p->env->arena, sizeof *function);
  function->template = p->template;
  function->node = node;
  function->name = name;
  function->varargs_slot = function->kwargs_slot = function->caller_slot = -1;
  function->self_slot = function->super_slot = -1;
  return function;
}

/* --- assignment targets --- */

static void check_target(struct parser *p, const struct token *at, const struct node *target) {
  static const char *const kinds[] = {[N_CONST] = "const", [N_LIST] = "list", [N_DICT] = "dict"};
  if (target->kind == N_NAME || target->kind == N_NSREF) return;
  if (target->kind != N_TUPLE) {
    const char *kind = target->kind <= N_DICT && kinds[target->kind] != NULL ? kinds[target->kind] : "expression";
    jj_parse_error(p, at, "can't assign to '%s'", kind);
  }
  for (int i = 0; i < target->as.items.count; i++) check_target(p, at, target->as.items.items[i]);
}

static struct node *parse_target(struct parser *p, const char *end, bool namespaces) {
  const struct token *at = p->at;
  struct node *target = jj_parse_tuple(p, true, true, end, namespaces);
  check_target(p, at, target);
  return target;
}

static bool reserved(const struct jinja_string *name) {
  static const char *const words[] = {"true", "false", "none", "True", "False", "None"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(name->bytes, words[i]) == 0) return true;
  }
  return false;
}

static struct jinja_string *parse_target_name(struct parser *p) {
  const struct token *token = jj_expect(p, T_NAME);
  if (reserved(token->value.as.string)) jj_parse_error(p, token, "can't assign to 'name'");
  return token->value.as.string;
}

static struct node *name_node(struct parser *p, const struct token *at, struct jinja_string *name) {
  struct node *node = jj_new_node(p, N_NAME, at);
  node->as.name.name = name;
  return node;
}

static void refuse_loop_target(struct parser *p, const struct token *at, const struct node *target) {
  if (target->kind == N_NAME && target->as.name.name->word == W_loop) {
    jj_parse_error(p, at, "Can't assign to special loop variable in for-loop target");
  }
  for (int i = 0; target->kind == N_TUPLE && i < target->as.items.count; i++)
    refuse_loop_target(p, at, target->as.items.items[i]);
}

/* --- statements, in the order of the documentation --- */

static struct node *parse_for(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"endfor", "else", NULL};
  struct node *node = jj_new_node(p, N_FOR, at);
  struct for_loop *loop = node->as.loop = arena_alloc(p->env->arena, sizeof *loop);
  loop->target = parse_target(p, "in", false);
  refuse_loop_target(p, at, loop->target);
  jj_expect_name(p, "in");
  loop->iterable = jj_parse_tuple(p, false, false, "recursive", false);
  if (jj_skip_name(p, "if")) loop->filter = jj_parse_expression(p);
  loop->recursive = jj_skip_name(p, "recursive");
  p->loops++;
  loop->body = jj_parse_body(p, ends);
  p->loops--;
  if (jj_skip_name(p, "else")) loop->else_body = jj_parse_body(p, ends);
  jj_expect_name(p, "endfor");
  return node;
}

static struct node *parse_if(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"elif", "else", "endif", NULL};
  struct node *node = jj_new_node(p, N_IF, at);
  int capacity = 0;
  do {
    struct node *test = jj_parse_tuple(p, false, false, NULL, false);
    int count = node->as.branch.tests.count;
    node->as.branch.bodies = arena_grow(p->env->arena, node->as.branch.bodies, count, &capacity, sizeof(struct nodes));
    ARENA_PUSH(p->env->arena, node->as.branch.tests, test);
    node->as.branch.bodies[count] = jj_parse_body(p, ends);
  } while (jj_skip_name(p, "elif"));
  if (jj_skip_name(p, "else")) {
    static const char *const last[] = {"endif", NULL};
    node->as.branch.else_body = jj_parse_body(p, last);
  }
  jj_expect_name(p, "endif");
  return node;
}

static struct node *parse_set(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"endset", NULL};
  struct node *target = parse_target(p, NULL, true);
  if (jj_skip(p, T_ASSIGN)) {
    struct node *node = jj_new_node(p, N_SET, at);
    node->as.set.target = target;
    node->as.set.value = jj_parse_tuple(p, false, true, NULL, false);
    return node;
  }
  struct node *node = jj_new_node(p, N_SET_BLOCK, at);
  struct set_block *block = node->as.set_block = arena_alloc(p->env->arena, sizeof *block);
  block->target = target;
  block->filter = jj_parse_filters(p, NULL, false);
  block->body = jj_parse_body(p, ends);
  jj_expect_name(p, "endset");
  return node;
}

static struct node *parse_with(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"endwith", NULL};
  struct node *node = jj_new_node(p, N_WITH, at);
  struct with_block *with = node->as.with = arena_alloc(p->env->arena, sizeof *with);
  while (p->at->kind != T_BLOCK_END) {
    if (with->targets.count > 0) jj_expect(p, T_COMMA);
    ARENA_PUSH(p->env->arena, with->targets, parse_target(p, NULL, false));
    jj_expect(p, T_ASSIGN);
    ARENA_PUSH(p->env->arena, with->values, jj_parse_expression(p));
  }
  with->body = jj_parse_body(p, ends);
  jj_expect_name(p, "endwith");
  return node;
}

static struct node *parse_autoescape(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"endautoescape", NULL};
  struct node *node = jj_new_node(p, N_AUTOESCAPE, at);
  node->as.autoescape.value = jj_parse_expression(p);
  node->as.autoescape.body = jj_parse_body(p, ends);
  jj_expect_name(p, "endautoescape");
  return node;
}

static void check_required(struct parser *p, const struct token *at, const struct nodes *body) {
  for (int i = 0; i < body->count; i++) {
    const struct node *node = body->items[i];
    bool blank = node->kind == N_TEXT && strspn(node->as.text.bytes, " \t\n\v\f\r") >= node->as.text.length;
    if (!blank) jj_parse_error(p, at, "Required blocks can only contain comments or whitespace");
  }
}

static struct node *parse_block(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"endblock", NULL};
  struct node *node = jj_new_node(p, N_BLOCK, at);
  struct jinja_string *name = jj_expect(p, T_NAME)->value.as.string;
  node->flag = jj_skip_name(p, "scoped");
  node->flag2 = jj_skip_name(p, "required");
  if (p->at->kind == T_SUB) {
    jj_parse_error(p, p->at,
                   "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, "
                   "use an underscore instead.");
  }
  struct function *function = node->as.block.function = new_function(p, node, name);
  for (int i = 0; i < p->template->block_count; i++) {
    if (p->template->blocks[i]->name == name) jj_parse_error(p, at, "block '%s' defined twice", name->bytes);
  }
  p->template->blocks = arena_grow(p->env->arena, p->template->blocks, p->template->block_count,
                                   &p->template->block_capacity, sizeof *p->template->blocks);
  p->template->blocks[p->template->block_count++] = function;
  int loops = p->loops;
  p->loops = 0;
  function->body = jj_parse_body(p, ends);
  p->loops = loops;
  if (node->flag2) check_required(p, at, &function->body);
  jj_expect_name(p, "endblock");
  jj_skip_name(p, name->bytes);
  return node;
}

static struct node *parse_extends(struct parser *p, const struct token *at) {
  struct node *node = jj_new_node(p, N_EXTENDS, at);
  node->as.expression = jj_parse_expression(p);
  return node;
}

static bool at_two(const struct parser *p, const char *first, const char *second) {
  return jj_at_name(p, first) && p->at[1].kind == T_NAME && strcmp(p->at[1].value.as.string->bytes, second) == 0;
}

/* "with context" or "without context", if it is next. */
static bool parse_context(struct parser *p, struct node *node) {
  bool with = at_two(p, "with", "context");
  if (!with && !at_two(p, "without", "context")) return false;
  p->at += 2;
  node->flag2 = with;
  return true;
}

static struct node *parse_include(struct parser *p, const struct token *at) {
  struct node *node = jj_new_node(p, N_INCLUDE, at);
  node->as.include = arena_alloc(p->env->arena, sizeof *node->as.include);
  node->as.include->name = jj_parse_expression(p);
  node->flag = at_two(p, "ignore", "missing");
  if (node->flag) p->at += 2;
  node->flag2 = true;
  parse_context(p, node);
  return node;
}

static struct node *parse_import(struct parser *p, const struct token *at) {
  struct node *node = jj_new_node(p, N_IMPORT, at);
  node->as.import = arena_alloc(p->env->arena, sizeof *node->as.import);
  node->as.import->name = jj_parse_expression(p);
  jj_expect_name(p, "as");
  node->as.import->target.name = parse_target_name(p);
  parse_context(p, node);
  return node;
}

static struct node *parse_from(struct parser *p, const struct token *at) {
  struct node *node = jj_new_node(p, N_FROM, at);
  struct import *import = node->as.import = arena_alloc(p->env->arena, sizeof *import);
  import->name = jj_parse_expression(p);
  jj_expect_name(p, "import");
  while (true) {
    if (import->names.count > 0) jj_expect(p, T_COMMA);
    if (p->at->kind != T_NAME) jj_expect(p, T_NAME);
    if (parse_context(p, node)) break;
    const struct token *token = p->at;
    struct jinja_string *name = parse_target_name(p);
    if (name->bytes[0] == '_') jj_parse_error(p, token, "names starting with an underline can not be imported");
    ARENA_PUSH(p->env->arena, import->names, name);
    if (jj_skip_name(p, "as")) name = parse_target_name(p);
    ARENA_PUSH(p->env->arena, import->targets, (struct variable){.name = name});
    if (parse_context(p, node) || p->at->kind != T_COMMA) break;
  }
  return node;
}

static void parse_signature(struct parser *p, struct function *function) {
  jj_expect(p, T_LPAREN);
  while (p->at->kind != T_RPAREN) {
    if (function->params.count > 0) jj_expect(p, T_COMMA);
    const struct token *at = p->at;
    struct jinja_string *name = parse_target_name(p);
    for (int i = 0; i < function->params.count; i++) {
      if (function->params.items[i]->as.name.name == name)
        jj_parse_error(p, at, "duplicate argument '%s'", name->bytes);
    }
    if (jj_skip(p, T_ASSIGN)) {
      ARENA_PUSH(p->env->arena, function->defaults, jj_parse_expression(p));
    } else if (function->defaults.count > 0) {
      jj_parse_error(p, p->at, "non-default argument follows default argument");
    }
    ARENA_PUSH(p->env->arena, function->params, name_node(p, at, name));
  }
  jj_expect(p, T_RPAREN);
}

static void parse_function_body(struct parser *p, struct function *function, const char *const *ends) {
  int loops = p->loops;
  p->loops = 0;
  function->body = jj_parse_body(p, ends);
  p->loops = loops;
  jj_expect_name(p, ends[0]);
}

static struct node *parse_call_block(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"endcall", NULL};
  struct node *node = jj_new_node(p, N_CALL_BLOCK, at);
  struct function *function = node->as.call_block.function = new_function(p, node, jj_intern(p->env, "caller", 6));
  if (p->at->kind == T_LPAREN) parse_signature(p, function);
  node->as.call_block.call = jj_parse_expression(p);
  if (node->as.call_block.call->kind != N_CALL) jj_parse_error(p, at, "expected call");
  parse_function_body(p, function, ends);
  return node;
}

/* transformers' extension: the text of the block is what a model has generated. It is a call block without a call. */
static struct node *parse_generation(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"endgeneration", NULL};
  if (!p->env->options.chat) jj_parse_error(p, at, "Encountered unknown tag 'generation'.");
  struct node *node = jj_new_node(p, N_CALL_BLOCK, at);
  node->as.call_block.function = new_function(p, node, jj_intern(p->env, "caller", 6));
  parse_function_body(p, node->as.call_block.function, ends);
  return node;
}

static struct node *parse_macro(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"endmacro", NULL};
  struct node *node = jj_new_node(p, N_MACRO, at);
  struct jinja_string *name = parse_target_name(p);
  node->as.macro.target.name = name;
  node->as.macro.function = new_function(p, node, name);
  parse_signature(p, node->as.macro.function);
  parse_function_body(p, node->as.macro.function, ends);
  return node;
}

static struct node *parse_filter_block(struct parser *p, const struct token *at) {
  static const char *const ends[] = {"endfilter", NULL};
  struct node *node = jj_new_node(p, N_FILTER_BLOCK, at);
  node->as.filter_block.filter = jj_parse_filters(p, NULL, true);
  node->as.filter_block.body = jj_parse_body(p, ends);
  jj_expect_name(p, "endfilter");
  return node;
}

static struct node *parse_do(struct parser *p, const struct token *at) {
  struct node *node = jj_new_node(p, N_DO, at);
  node->as.expression = jj_parse_tuple(p, false, true, NULL, false);
  return node;
}

static struct node *parse_loop_control(struct parser *p, const struct token *at, enum node_kind kind) {
  if (p->loops == 0) jj_parse_error(p, at, "'%s' outside of a loop", kind == N_BREAK ? "break" : "continue");
  return jj_new_node(p, kind, at);
}

static void parse_print(struct parser *p, struct nodes *body) {
  for (bool comma = false; p->at->kind != T_BLOCK_END; comma = true) {
    if (comma) jj_expect(p, T_COMMA);
    const struct token *at = p->at;
    ARENA_PUSH(p->env->arena, *body, jj_output(p, at, jj_parse_expression(p)));
  }
}

static struct node *parse_break(struct parser *p, const struct token *at) {
  return parse_loop_control(p, at, N_BREAK);
}

static struct node *parse_continue(struct parser *p, const struct token *at) {
  return parse_loop_control(p, at, N_CONTINUE);
}

static const struct {
  const char *name;
  struct node *(*parse)(struct parser *, const struct token *);
} statements[] = {
    {"for", parse_for},
    {"if", parse_if},
    {"set", parse_set},
    {"macro", parse_macro},
    {"call", parse_call_block},
    {"block", parse_block},
    {"extends", parse_extends},
    {"include", parse_include},
    {"import", parse_import},
    {"from", parse_from},
    {"with", parse_with},
    {"filter", parse_filter_block},
    {"do", parse_do},
    {"break", parse_break},
    {"continue", parse_continue},
    {"autoescape", parse_autoescape},
    {"generation", parse_generation},
};
enum { STATEMENT_COUNT = sizeof statements / sizeof *statements };

void jj_parse_statement(struct parser *p, struct nodes *body) {
  const struct token *at = p->at;
  if (at->kind == T_EOF) jj_parse_error(p, at, "unexpected end of template, expected a tag name.");
  if (at->kind != T_NAME) jj_parse_error(p, at, "tag name expected");
  p->at++;
  jj_deeper(p);
  if (strcmp(at->value.as.string->bytes, "print") == 0) {
    parse_print(p, body);
    p->depth--;
    return;
  }
  for (int i = 0; i < STATEMENT_COUNT; i++) {
    if (strcmp(at->value.as.string->bytes, statements[i].name) != 0) continue;
    struct node *node = statements[i].parse(p, at);
    ARENA_PUSH(p->env->arena, *body, node);
    p->depth--;
    return;
  }
  jj_parse_error(p, at, "Encountered unknown tag '%s'.", at->value.as.string->bytes);
}
