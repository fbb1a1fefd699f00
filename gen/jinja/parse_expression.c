/* Expressions: literals, tuples, operators. */
#include <string.h>

#include "gen/jinja/env.h"
#include "gen/jinja/parser.h"

/* A left-leaning chain (1 + 1 + 1 + …) is a tree as deep as it is long, and the evaluator recurses over it. */
enum { MAX_CHAIN = 1000 };

static struct node *parse_or(struct parser *p);
static struct node *parse_unary(struct parser *p, bool with_filter);

void jj_check_chain(struct parser *p, int length) {
  if (length > MAX_CHAIN)
    jj_parse_error(p, p->at, "the expression is too long: more than %d operators in a row", MAX_CHAIN);
}

struct node *jj_pair_node(struct parser *p, enum node_kind kind, int op, const struct token *at, struct node *left,
                          struct node *right) {
  struct node *node = jj_new_node(p, kind, at);
  node->op = (uint8_t)op;
  node->as.pair.left = left;
  node->as.pair.right = right;
  return node;
}

struct node *jj_constant_node(struct parser *p, const struct token *at, struct jinja_value value) {
  struct node *node = jj_new_node(p, N_CONST, at);
  node->as.constant = value;
  return node;
}

/* --- literals --- */

static struct node *parse_name(struct parser *p, bool namespaces) {
  const struct token *token = p->at++;
  const char *text = token->value.as.string->bytes;
  if (strcmp(text, "true") == 0 || strcmp(text, "True") == 0) return jj_constant_node(p, token, jinja_bool(true));
  if (strcmp(text, "false") == 0 || strcmp(text, "False") == 0) return jj_constant_node(p, token, jinja_bool(false));
  if (strcmp(text, "none") == 0 || strcmp(text, "None") == 0) return jj_constant_node(p, token, jinja_none());
  if (namespaces && p->at->kind == T_DOT) {
    p->at++;
    struct node *node = jj_new_node(p, N_NSREF, token);
    node->as.nsref.object.name = token->value.as.string;
    node->as.nsref.attr = jj_expect(p, T_NAME)->value.as.string;
    return node;
  }
  struct node *node = jj_new_node(p, N_NAME, token);
  node->as.name.name = token->value.as.string;
  return node;
}

static struct node *parse_strings(struct parser *p) {
  const struct token *first = p->at++;
  struct jinja_value value = first->value;
  for (; p->at->kind == T_STRING; p->at++) {
    const struct jinja_string *left = value.as.string, *right = p->at->value.as.string;
    struct jinja_string *both = jj_string_new(&p->env->pool, NULL, left->length + right->length);
    memcpy(both->bytes, left->bytes, left->length);
    memcpy(both->bytes + left->length, right->bytes, right->length);
    value = jj_string_value(both);
  }
  return jj_constant_node(p, first, value);
}

static struct node *parse_list(struct parser *p) {
  struct node *node = jj_new_node(p, N_LIST, jj_expect(p, T_LBRACKET));
  while (p->at->kind != T_RBRACKET) {
    if (node->as.items.count > 0) jj_expect(p, T_COMMA);
    if (p->at->kind == T_RBRACKET) break;
    ARENA_PUSH(p->env->arena, node->as.items, jj_parse_expression(p));
  }
  jj_expect(p, T_RBRACKET);
  return node;
}

static struct node *parse_dict(struct parser *p) {
  struct node *node = jj_new_node(p, N_DICT, jj_expect(p, T_LBRACE));
  while (p->at->kind != T_RBRACE) {
    if (node->as.items.count > 0) jj_expect(p, T_COMMA);
    if (p->at->kind == T_RBRACE) break;
    ARENA_PUSH(p->env->arena, node->as.items, jj_parse_expression(p));
    jj_expect(p, T_COLON);
    ARENA_PUSH(p->env->arena, node->as.items, jj_parse_expression(p));
  }
  jj_expect(p, T_RBRACE);
  return node;
}

static bool tuple_ends(const struct parser *p, const char *end) {
  enum token_kind kind = p->at->kind;
  return kind == T_VARIABLE_END || kind == T_BLOCK_END || kind == T_RPAREN || (end != NULL && jj_at_name(p, end));
}

/* 9223372036854775808, of which there is only the negative. */
static bool is_least(const struct token *token) {
  return token->kind == T_INTEGER && token->value.as.integer == INT64_MIN;
}

struct node *jj_parse_primary(struct parser *p, bool namespaces) {
  const struct token *token = p->at;
  struct node *node;
  switch (token->kind) {
  case T_NAME:
    return parse_name(p, namespaces);
  case T_STRING:
    return parse_strings(p);
  case T_INTEGER:
    if (is_least(token)) jj_parse_error(p, token, "the integer does not fit in 64 bits");
    p->at++;
    return jj_constant_node(p, token, token->value);
  case T_FLOAT:
    p->at++;
    return jj_constant_node(p, token, token->value);
  case T_LBRACKET:
    return parse_list(p);
  case T_LBRACE:
    return parse_dict(p);
  case T_LPAREN:
    p->at++;
    if (p->at->kind == T_RPAREN) {
      node = jj_new_node(p, N_TUPLE, token);
    } else {
      node = jj_parse_tuple(p, false, true, NULL, false);
    }
    jj_expect(p, T_RPAREN);
    return node;
  default:
    jj_parse_error(p, token, "unexpected '%s'", jj_describe_token(p->env->arena, token));
  }
}

struct node *jj_parse_tuple(struct parser *p, bool simple, bool conditional, const char *end, bool namespaces) {
  const struct token *first = p->at;
  struct nodes items = {0};
  bool is_tuple = false;
  while (true) {
    if (items.count > 0) jj_expect(p, T_COMMA);
    if (tuple_ends(p, end)) break;
    struct node *item = simple ? jj_parse_primary(p, namespaces) : conditional ? jj_parse_expression(p) : parse_or(p);
    ARENA_PUSH(p->env->arena, items, item);
    if (p->at->kind != T_COMMA) break;
    is_tuple = true;
  }
  if (!is_tuple && items.count > 0) return items.items[0];
  if (!is_tuple) {
    jj_parse_error(p, p->at, "Expected an expression, got '%s'", jj_describe_token(p->env->arena, p->at));
  }
  struct node *node = jj_new_node(p, N_TUPLE, first);
  node->as.items = items;
  return node;
}

/* --- operators, the tightest first --- */

static struct node *parse_unary(struct parser *p, bool with_filter) {
  const struct token *token = p->at;
  struct node *node;
  jj_deeper(p);
  if (token->kind == T_SUB && is_least(token + 1)) {
    p->at += 2;
    node = jj_constant_node(p, token, token[1].value);
  } else if (token->kind == T_SUB || token->kind == T_ADD) {
    p->at++;
    node = jj_pair_node(p, token->kind == T_SUB ? N_NEG : N_POS, 0, token, parse_unary(p, false), NULL);
  } else {
    node = jj_parse_primary(p, false);
  }
  node = jj_parse_postfix(p, node);
  if (with_filter) node = jj_parse_filtered(p, node);
  p->depth--;
  return node;
}

static struct node *parse_power(struct parser *p) {
  struct node *left = parse_unary(p, true);
  for (int length = 0; p->at->kind == T_POW; jj_check_chain(p, ++length)) {
    const struct token *token = p->at++;
    left = jj_pair_node(p, N_BINARY, OP_POW, token, left, parse_unary(p, true));
  }
  return left;
}

static struct node *parse_product(struct parser *p) {
  struct node *left = parse_power(p);
  for (int length = 0;; jj_check_chain(p, ++length)) {
    const struct token *token = p->at;
    int op = token->kind == T_MUL        ? OP_MUL
             : token->kind == T_DIV      ? OP_DIV
             : token->kind == T_FLOORDIV ? OP_FLOORDIV
             : token->kind == T_MOD      ? OP_MOD
                                         : -1;
    if (op < 0) return left;
    p->at++;
    left = jj_pair_node(p, N_BINARY, op, token, left, parse_power(p));
  }
}

static struct node *parse_concat(struct parser *p) {
  struct node *first = parse_product(p);
  if (p->at->kind != T_TILDE) return first;
  struct node *node = jj_new_node(p, N_CONCAT, p->at);
  ARENA_PUSH(p->env->arena, node->as.items, first);
  while (jj_skip(p, T_TILDE)) ARENA_PUSH(p->env->arena, node->as.items, parse_product(p));
  return node;
}

static struct node *parse_sum(struct parser *p) {
  struct node *left = parse_concat(p);
  for (int length = 0; p->at->kind == T_ADD || p->at->kind == T_SUB; jj_check_chain(p, ++length)) {
    const struct token *token = p->at++;
    left = jj_pair_node(p, N_BINARY, token->kind == T_ADD ? OP_ADD : OP_SUB, token, left, parse_concat(p));
  }
  return left;
}

static int comparison(struct parser *p) {
  switch (p->at->kind) {
  case T_EQ:
    p->at++;
    return OP_EQ;
  case T_NE:
    p->at++;
    return OP_NE;
  case T_LT:
    p->at++;
    return OP_LT;
  case T_LTEQ:
    p->at++;
    return OP_LTEQ;
  case T_GT:
    p->at++;
    return OP_GT;
  case T_GTEQ:
    p->at++;
    return OP_GTEQ;
  default:
    break;
  }
  if (jj_skip_name(p, "in")) return OP_IN;
  if (jj_at_name(p, "not") && p->at[1].kind == T_NAME && strcmp(p->at[1].value.as.string->bytes, "in") == 0) {
    p->at += 2;
    return OP_NOT_IN;
  }
  return -1;
}

static struct node *parse_compare(struct parser *p) {
  struct node *first = parse_sum(p), *node = NULL;
  int capacity = 0;
  while (true) {
    const struct token *token = p->at;
    int op = comparison(p);
    if (op < 0) return node != NULL ? node : first;
    if (node == NULL) {
      node = jj_new_node(p, N_COMPARE, token);
      node->as.compare.first = first;
    }
    node->as.compare.ops = arena_grow(p->env->arena, node->as.compare.ops, node->as.compare.rest.count, &capacity, 1);
    node->as.compare.ops[node->as.compare.rest.count] = (uint8_t)op;
    ARENA_PUSH(p->env->arena, node->as.compare.rest, parse_sum(p));
  }
}

static struct node *parse_not(struct parser *p) {
  if (!jj_at_name(p, "not")) return parse_compare(p);
  const struct token *token = p->at++;
  jj_deeper(p);
  struct node *node = jj_pair_node(p, N_NOT, 0, token, parse_not(p), NULL);
  p->depth--;
  return node;
}

static struct node *parse_and(struct parser *p) {
  struct node *left = parse_not(p);
  for (int length = 0; jj_at_name(p, "and"); jj_check_chain(p, ++length)) {
    const struct token *token = p->at++;
    left = jj_pair_node(p, N_AND, 0, token, left, parse_not(p));
  }
  return left;
}

static struct node *parse_or(struct parser *p) {
  struct node *left = parse_and(p);
  for (int length = 0; jj_at_name(p, "or"); jj_check_chain(p, ++length)) {
    const struct token *token = p->at++;
    left = jj_pair_node(p, N_OR, 0, token, left, parse_and(p));
  }
  return left;
}

struct node *jj_parse_expression(struct parser *p) {
  jj_deeper(p);
  struct node *node = parse_or(p);
  for (int length = 0; jj_at_name(p, "if"); jj_check_chain(p, ++length)) {
    struct node *cond = jj_new_node(p, N_COND, p->at++);
    cond->as.cond.yes = node;
    cond->as.cond.test = parse_or(p);
    if (jj_skip_name(p, "else")) cond->as.cond.no = jj_parse_expression(p);
    node = cond;
  }
  p->depth--;
  return node;
}
