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

/* --- between the parser's two files --- */
struct node *jj_new_node(struct parser *p, enum node_kind kind, const struct token *at);
_Noreturn void jj_parse_error(struct parser *p, const struct token *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool jj_at_name(const struct parser *p, const char *name);
bool jj_skip_name(struct parser *p, const char *name);
bool jj_skip(struct parser *p, enum token_kind kind);
const struct token *jj_expect(struct parser *p, enum token_kind kind);
void jj_deeper(struct parser *p);
struct node *jj_parse_expression(struct parser *p);
/* `end`: a name that ends the tuple, as "in" does after the targets of a for. */
struct node *jj_parse_tuple(struct parser *p, bool simple, bool conditional, const char *end, bool namespaces);
struct node *jj_parse_filters(struct parser *p, struct node *input, bool inline_first);

#endif
