/* Parser: tokens in, tree out. Jinja2's grammar, with its precedences. */
#ifndef ACCEL_JINJA_PARSER_H
#define ACCEL_JINJA_PARSER_H

#include "gen/jinja/ast.h"
#include "gen/jinja/lexer.h"

struct parser {
  struct jinja_env *env;
  struct syntax_fault *fault;
  struct template *template;
  const struct token *at;
  int depth; /* of nested statements and expressions, against a hostile template */
  int loops; /* how many loops are open in this function: break and continue need one */
};

/* Parses the whole template into template->root.body and template->blocks. */
void jj_parse(struct jinja_env *env, struct syntax_fault *fault, struct template *template);

/* --- tokens and bodies (parser.c) --- */
struct node *jj_new_node(struct parser *p, enum node_kind kind, const struct token *at);
_Noreturn void jj_parse_error(struct parser *p, const struct token *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool jj_at_name(const struct parser *p, const char *name);
bool jj_skip_name(struct parser *p, const char *name);
void jj_expect_name(struct parser *p, const char *name);
bool jj_skip(struct parser *p, enum token_kind kind);
const struct token *jj_expect(struct parser *p, enum token_kind kind);
void jj_deeper(struct parser *p);
/* The node that writes an expression's value. */
struct node *jj_output(struct parser *p, const struct token *at, struct node *expression);
/* What a tag encloses, up to one of the tags `ends`, which stays the current token. */
struct nodes jj_parse_body(struct parser *p, const char *const *ends);

/* --- statements (parse_statement.c) --- */
/* The tag that begins here, whose nodes it adds to `body`. */
void jj_parse_statement(struct parser *p, struct nodes *body);

/* --- expressions (parse_expression.c) --- */
struct node *jj_parse_expression(struct parser *p);
/* `end`: a name that ends the tuple, as "in" does after the targets of a for. */
struct node *jj_parse_tuple(struct parser *p, bool simple, bool conditional, const char *end, bool namespaces);
struct node *jj_parse_primary(struct parser *p, bool namespaces);
struct node *jj_constant_node(struct parser *p, const struct token *at, struct jinja_value value);
struct node *jj_pair_node(struct parser *p, enum node_kind kind, int op, const struct token *at, struct node *left,
                          struct node *right);
/* An error when a chain of operators has become this long. */
void jj_check_chain(struct parser *p, int length);

/* --- what follows a value (parse_postfix.c) --- */
struct node *jj_parse_postfix(struct parser *p, struct node *node);
/* Filters, tests and calls of what they give. */
struct node *jj_parse_filtered(struct parser *p, struct node *node);
struct node *jj_parse_filters(struct parser *p, struct node *input, bool inline_first);

#endif
