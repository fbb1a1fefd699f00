/* What follows a value: attributes, subscripts, calls, filters and tests. */
#include <string.h>

#include "gen/jinja/env.h"
#include "gen/jinja/parser.h"

static void parse_argument(struct parser *p, struct args *args, const struct token *start) {
  struct arena *arena = p->env->arena;
  bool valid;
  if (jj_skip(p, T_MUL)) {
    valid = args->star == NULL && args->star2 == NULL;
    args->star = jj_parse_expression(p);
  } else if (jj_skip(p, T_POW)) {
    valid = args->star2 == NULL;
    args->star2 = jj_parse_expression(p);
  } else if (p->at->kind == T_NAME && p->at[1].kind == T_ASSIGN) {
    valid = args->star2 == NULL;
    for (int i = 0; i < args->keyword_names.count; i++) {
      if (args->keyword_names.items[i] == p->at->value.as.string) {
        jj_parse_error(p, p->at, "keyword argument repeated: %s", p->at->value.as.string->bytes);
      }
    }
    ARENA_PUSH(arena, args->keyword_names, p->at->value.as.string);
    p->at += 2;
    ARENA_PUSH(arena, args->keyword_values, jj_parse_expression(p));
  } else {
    valid = args->star == NULL && args->star2 == NULL && args->keyword_names.count == 0;
    ARENA_PUSH(arena, args->positional, jj_parse_expression(p));
  }
  if (!valid) jj_parse_error(p, start, "invalid syntax for function call expression");
}

static struct args *parse_args(struct parser *p) {
  const struct token *start = jj_expect(p, T_LPAREN);
  struct args *args = arena_alloc(p->env->arena, sizeof *args);
  for (bool comma = false; p->at->kind != T_RPAREN; comma = true) {
    if (comma) {
      jj_expect(p, T_COMMA);
      if (p->at->kind == T_RPAREN) break;
    }
    parse_argument(p, args, start);
  }
  jj_expect(p, T_RPAREN);
  return args;
}

/* A name with dots, as filters and tests of other engines have. */
static struct jinja_string *parse_dotted(struct parser *p) {
  const struct token *token = jj_expect(p, T_NAME);
  struct jinja_string *name = token->value.as.string;
  while (jj_skip(p, T_DOT)) {
    const struct jinja_string *more = jj_expect(p, T_NAME)->value.as.string;
    const char *both = arena_printf(p->env->arena, "%s.%s", name->bytes, more->bytes);
    name = jj_intern(p->env, both, strlen(both));
  }
  return name;
}

struct node *jj_parse_filters(struct parser *p, struct node *input, bool inline_first) {
  for (int length = 0; inline_first || p->at->kind == T_PIPE; inline_first = false) {
    jj_check_chain(p, ++length);
    if (!inline_first) p->at++;
    const struct token *token = p->at;
    struct node *node = jj_new_node(p, N_FILTER, token);
    node->as.filter.name = parse_dotted(p);
    node->as.filter.input = input;
    if (p->at->kind == T_LPAREN) node->as.filter.args = parse_args(p);
    input = node;
  }
  return input;
}

static bool test_argument_follows(const struct parser *p) {
  switch (p->at->kind) {
  case T_NAME:
    return !jj_at_name(p, "else") && !jj_at_name(p, "or") && !jj_at_name(p, "and");
  case T_STRING:
  case T_INTEGER:
  case T_FLOAT:
  case T_LBRACKET:
  case T_LBRACE:
    return true;
  default:
    return false;
  }
}

static struct node *parse_test(struct parser *p, struct node *input) {
  const struct token *is = p->at++;
  bool negated = jj_skip_name(p, "not");
  struct node *node = jj_new_node(p, N_TEST, p->at);
  node->as.test.input = input;
  node->as.test.name = parse_dotted(p);
  if (p->at->kind == T_LPAREN) {
    node->as.test.args = parse_args(p);
  } else if (test_argument_follows(p)) {
    if (jj_at_name(p, "is")) jj_parse_error(p, p->at, "You cannot chain multiple tests with is");
    node->as.test.args = arena_alloc(p->env->arena, sizeof *node->as.test.args);
    ARENA_PUSH(p->env->arena, node->as.test.args->positional, jj_parse_postfix(p, jj_parse_primary(p, false)));
  }
  return negated ? jj_pair_node(p, N_NOT, 0, is, node, NULL) : node;
}

static struct node *parse_slice(struct parser *p) {
  const struct token *first = p->at;
  struct node *start = NULL;
  if (p->at->kind != T_COLON) {
    start = jj_parse_expression(p);
    if (p->at->kind != T_COLON) return start;
  }
  p->at++;
  struct node *node = jj_new_node(p, N_SLICE, first);
  node->as.slice.start = start;
  bool stop = p->at->kind != T_COLON && p->at->kind != T_RBRACKET && p->at->kind != T_COMMA;
  if (stop) node->as.slice.stop = jj_parse_expression(p);
  if (jj_skip(p, T_COLON) && p->at->kind != T_RBRACKET && p->at->kind != T_COMMA) {
    node->as.slice.step = jj_parse_expression(p);
  }
  return node;
}

static struct node *parse_bracket(struct parser *p, struct node *object) {
  struct node *node = jj_new_node(p, N_ITEM, p->at++);
  struct nodes keys = {0};
  while (p->at->kind != T_RBRACKET) {
    if (keys.count > 0) jj_expect(p, T_COMMA);
    ARENA_PUSH(p->env->arena, keys, parse_slice(p));
  }
  jj_expect(p, T_RBRACKET);
  node->as.item.object = object;
  node->as.item.key = keys.count == 1 ? keys.items[0] : jj_new_node(p, N_TUPLE, p->at);
  if (keys.count != 1) node->as.item.key->as.items = keys;
  return node;
}

static struct node *parse_dot(struct parser *p, struct node *object) {
  const struct token *dot = p->at++, *token = p->at++;
  if (token->kind == T_NAME) {
    struct node *node = jj_new_node(p, N_ATTR, token);
    node->as.attr.object = object;
    node->as.attr.name = token->value.as.string;
    return node;
  }
  if (token->kind != T_INTEGER) jj_parse_error(p, token->kind == T_EOF ? dot : token, "expected name or number");
  struct node *node = jj_new_node(p, N_ITEM, dot);
  node->as.item.object = object;
  node->as.item.key = jj_constant_node(p, token, token->value);
  return node;
}

static struct node *parse_call(struct parser *p, struct node *callee) {
  struct node *node = jj_new_node(p, N_CALL, p->at);
  node->as.call.callee = callee;
  node->as.call.args = parse_args(p);
  return node;
}

struct node *jj_parse_postfix(struct parser *p, struct node *node) {
  for (int length = 0;; jj_check_chain(p, ++length)) {
    if (p->at->kind == T_DOT) {
      node = parse_dot(p, node);
    } else if (p->at->kind == T_LBRACKET) {
      node = parse_bracket(p, node);
    } else if (p->at->kind == T_LPAREN) {
      node = parse_call(p, node);
    } else {
      return node;
    }
  }
}

struct node *jj_parse_filtered(struct parser *p, struct node *node) {
  for (int length = 0;; jj_check_chain(p, ++length)) {
    if (p->at->kind == T_PIPE) {
      node = jj_parse_filters(p, node, false);
    } else if (jj_at_name(p, "is")) {
      node = parse_test(p, node);
    } else if (p->at->kind == T_LPAREN) {
      node = parse_call(p, node);
    } else {
      return node;
    }
  }
}
