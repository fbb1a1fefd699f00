/* The tree: what the parser builds, the compiler annotates (slots of variables, filters, tests, scopes), and the
 * evaluator visits. Annotations are marked "compiler:". */
#ifndef ACCEL_JINJA_AST_H
#define ACCEL_JINJA_AST_H

#include "gen/jinja/value.h"

enum node_kind {
  /* expressions */
  N_CONST,
  N_NAME,
  N_LIST,
  N_TUPLE,
  N_DICT,
  N_COND,
  N_AND,
  N_OR,
  N_NOT,
  N_COMPARE,
  N_CONCAT,
  N_BINARY,
  N_NEG,
  N_POS,
  N_ATTR,
  N_ITEM,
  N_SLICE,
  N_CALL,
  N_FILTER,
  N_TEST,
  N_NSREF,
  /* statements */
  N_TEXT,
  N_OUTPUT,
  N_IF,
  N_FOR,
  N_SET,
  N_SET_BLOCK,
  N_MACRO,
  N_CALL_BLOCK,
  N_FILTER_BLOCK,
  N_WITH,
  N_BLOCK,
  N_EXTENDS,
  N_INCLUDE,
  N_IMPORT,
  N_FROM,
  N_DO,
  N_BREAK,
  N_CONTINUE,
  N_AUTOESCAPE
};

enum operator{
  OP_ADD,
  OP_SUB,
  OP_MUL,
  OP_DIV,
  OP_FLOORDIV,
  OP_MOD,
  OP_POW,
  OP_EQ,
  OP_NE,
  OP_LT,
  OP_LTEQ,
  OP_GT,
  OP_GTEQ,
  OP_IN,
  OP_NOT_IN
};

struct node;
struct filter;
struct test;

struct nodes {
  struct node **items;
  int count, capacity;
};

struct names {
  struct jinja_string **items;
  int count, capacity;
};

struct args {
  struct nodes positional;
  struct names keyword_names;
  struct nodes keyword_values;
  struct node *star, *star2; /* *args, **kwargs */
};

/* compiler: where a variable is: `up` activations out, in slot `slot`. */
struct variable {
  struct jinja_string *name;
  const struct undefined_info *undefined; /* what it is when it is not there */
  int up, slot;
};

/* compiler: how a scope's own variable begins when the scope is entered. */
enum initial { INITIAL_MISSING, INITIAL_ALIAS, INITIAL_CONTEXT };
struct initializer {
  enum initial initial;
  struct variable own, outer;
};
struct initializers {
  struct initializer *items;
  int count, capacity;
};
struct variables {
  struct variable *items;
  int count, capacity;
};

/* A body that runs with slots of its own: a template's root, a block, a macro, a recursive loop. */
struct function {
  struct template *template;
  struct jinja_string *name;
  struct node *node;
  int slot_count;              /* compiler */
  struct initializers initial; /* compiler: of its outermost scope */
  struct nodes body;
  /* of macros and call blocks */
  struct nodes params, defaults; /* names; the last defaults.count of them have one */
  int varargs_slot, kwargs_slot, caller_slot, self_slot, super_slot; /* compiler: -1 where not used */
  bool explicit_caller;
};

struct node {
  uint8_t kind;
  uint8_t op; /* of N_BINARY */
  bool flag;  /* recursive, scoped, with context, ignore missing, …: see each kind */
  bool flag2;
  int line, column;
  union {
    struct jinja_value constant;
    struct variable name;
    struct nodes items; /* N_LIST, N_TUPLE, N_CONCAT; N_DICT: key, value, key, value */
    struct {
      struct node *test, *yes, *no;
    } cond;
    struct {
      struct node *left, *right;
    } pair; /* N_AND, N_OR, N_BINARY; N_NOT, N_NEG, N_POS: left only */
    struct {
      struct node *first;
      struct nodes rest;
      uint8_t *ops;
    } compare;
    struct {
      struct node *object;
      struct jinja_string *name;
    } attr;
    struct {
      struct node *object, *key;
    } item;
    struct {
      struct node *start, *stop, *step;
    } slice;
    struct {
      struct node *callee;
      struct args *args;
    } call;
    /* input NULL: the innermost filter of a filter block. filter NULL: unknown, but may never be reached */
    struct {
      struct node *input;
      struct jinja_string *name;
      const struct filter *filter;
      struct args *args;
    } filter;
    struct {
      struct node *input;
      struct jinja_string *name;
      const struct test *test;
      struct args *args;
    } test;
    struct {
      struct variable object;
      struct jinja_string *attr;
    } nsref;
    struct {
      const char *bytes;
      size_t length;
    } text;
    struct node *expression; /* N_OUTPUT, N_DO; N_EXTENDS */
    struct {
      struct nodes tests;
      struct nodes *bodies;
      struct nodes else_body;
    } branch;
    struct for_loop *loop;
    struct {
      struct node *target, *value;
    } set;                       /* flag: at the template's top level, so it is exported */
    struct set_block *set_block; /* flag: as above */
    struct {
      struct variable target;
      struct function *function;
    } macro; /* flag: as above */
    struct {
      struct node *call; /* NULL: the block `generation` */
      struct function *function;
    } call_block;
    struct {
      struct node *filter;
      struct nodes body;
      struct initializers initial;
    } filter_block;
    struct with_block *with;
    /* flag: scoped, flag2: required */
    struct {
      struct function *function;
      struct variables visible;
    } block;
    struct include *include; /* flag: ignore missing, flag2: with context */
    struct import *import;   /* flag: at top level, flag2: with context */
    struct {
      struct node *value;
      struct nodes body;
      struct initializers initial;
    } autoescape;
  } as;
};

struct for_loop {
  struct node *target, *iterable, *filter;
  struct nodes body, else_body;
  bool recursive, extended;                       /* extended: the body uses `loop` */
  struct initializers body_initial, else_initial; /* compiler */
  int loop_slot;                                  /* compiler */
  struct function *function;                      /* compiler: of a recursive loop */
};

struct set_block {
  struct node *target, *filter;
  struct nodes body;
  struct initializers initial; /* compiler */
};

struct with_block {
  struct nodes targets, values, body;
  struct initializers initial; /* compiler */
};

struct include {
  struct node *name;
  struct variables visible; /* compiler: the locals that go along */
};

struct import {
  struct node *name;
  struct variable target; /* N_IMPORT */
  struct names names;     /* N_FROM: what is imported, and as which variables */
  struct variables targets;
  struct variables visible;
};

struct template {
  const char *name;
  const char *source;
  size_t length;
  struct function root;
  struct function **blocks;
  int block_count, block_capacity;
};

typedef void node_visit(void *context, struct node *node);

/* Visits the expressions that an expression is made of, in the order in which they are evaluated. */
void jj_each_operand(const struct node *node, node_visit *visit, void *context);

#endif
