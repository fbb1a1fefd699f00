/* The parser's frame: tokens one at a time, bodies of text and tags, the whole template. */
#include <stdarg.h>
#include <string.h>

#include "gen/jinja/env.h"
#include "gen/jinja/parser.h"

enum { MAX_DEPTH = 200 };

/* --- tokens --- */

struct node *jj_new_node(struct parser *p, enum node_kind kind, const struct token *at) {
  struct node *node = arena_alloc(p->env->arena, sizeof *node);
  node->kind = (uint8_t)kind;
  node->line = at->line;
  node->column = at->column;
  return node;
}

void jj_parse_error(struct parser *p, const struct token *at, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *message = arena_vprintf(p->env->arena, format, args);
  va_end(args);
  jj_syntax_error(p->fault, at->line, at->column, "%s", message);
}

bool jj_at_name(const struct parser *p, const char *name) {
  return p->at->kind == T_NAME && strcmp(p->at->value.as.string->bytes, name) == 0;
}

bool jj_skip_name(struct parser *p, const char *name) {
  if (!jj_at_name(p, name)) return false;
  p->at++;
  return true;
}

bool jj_skip(struct parser *p, enum token_kind kind) {
  if (p->at->kind != kind) return false;
  p->at++;
  return true;
}

static const char *kind_name(enum token_kind kind) {
  switch (kind) {
  case T_BLOCK_END:
    return "end of statement block";
  case T_VARIABLE_END:
    return "end of print statement";
  case T_NAME:
    return "name";
  case T_ASSIGN:
    return "=";
  case T_COLON:
    return ":";
  case T_COMMA:
    return ",";
  case T_LPAREN:
    return "(";
  case T_RPAREN:
    return ")";
  case T_LBRACKET:
    return "[";
  case T_RBRACKET:
    return "]";
  case T_LBRACE:
    return "{";
  case T_RBRACE:
    return "}";
  default:
    return "token";
  }
}

const struct token *jj_expect(struct parser *p, enum token_kind kind) {
  if (p->at->kind == kind) return p->at++;
  if (p->at->kind == T_EOF) jj_parse_error(p, p->at, "unexpected end of template, expected '%s'.", kind_name(kind));
  jj_parse_error(p, p->at, "expected token '%s', got '%s'", kind_name(kind), jj_describe_token(p->env->arena, p->at));
}

void jj_expect_name(struct parser *p, const char *name) {
  if (jj_skip_name(p, name)) return;
  jj_parse_error(p, p->at, "expected token '%s', got '%s'", name, jj_describe_token(p->env->arena, p->at));
}

void jj_deeper(struct parser *p) {
  if (++p->depth > MAX_DEPTH)
    jj_parse_error(p, p->at, "the template is nested too deeply: more than %d levels", MAX_DEPTH);
}

/* --- bodies --- */

struct node *jj_output(struct parser *p, const struct token *at, struct node *expression) {
  struct node *node = jj_new_node(p, N_OUTPUT, at);
  node->as.expression = expression;
  return node;
}

static bool at_any(const struct parser *p, const char *const *ends) {
  for (; ends != NULL && *ends != NULL; ends++) {
    if (jj_at_name(p, *ends)) return true;
  }
  return false;
}

static void add_text(struct parser *p, struct nodes *body, const struct token *token) {
  struct node *node = jj_new_node(p, N_TEXT, token);
  node->as.text.bytes = token->text;
  node->as.text.length = token->length;
  ARENA_PUSH(p->env->arena, *body, node);
}

/* Text and tags up to one of `ends` (which stays the current token), or to the end of the template. */
static struct nodes parse_items(struct parser *p, const char *const *ends) {
  struct nodes body = {0};
  while (p->at->kind != T_EOF) {
    const struct token *token = p->at++;
    if (token->kind == T_DATA) {
      add_text(p, &body, token);
    } else if (token->kind == T_VARIABLE_BEGIN) {
      struct node *expression = jj_parse_tuple(p, false, true, NULL, false);
      ARENA_PUSH(p->env->arena, body, jj_output(p, token, expression));
      jj_expect(p, T_VARIABLE_END);
    } else {
      if (at_any(p, ends)) return body;
      jj_parse_statement(p, &body);
      jj_expect(p, T_BLOCK_END);
    }
  }
  if (ends != NULL) {
    jj_parse_error(p, p->at, "Unexpected end of template. Jinja was looking for the following tags: '%s'.", ends[0]);
  }
  return body;
}

struct nodes jj_parse_body(struct parser *p, const char *const *ends) {
  jj_skip(p, T_COLON);
  jj_expect(p, T_BLOCK_END);
  return parse_items(p, ends);
}

void jj_parse(struct jinja_env *env, struct syntax_fault *fault, struct template *template) {
  struct tokens tokens = jj_lex(env, fault, template->source, template->length);
  struct parser p = {.env = env, .fault = fault, .template = template, .at = tokens.items};
  struct function *root = &template->root;
  root->template = template;
  root->varargs_slot = root->kwargs_slot = root->caller_slot = root->self_slot = root->super_slot = -1;
  root->body = parse_items(&p, NULL);
}
