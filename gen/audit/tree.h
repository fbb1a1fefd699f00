/* The tree of a program in C: types, variables, functions, statements and expressions, as a compiler reads them. What
 * libclang knows ends in parse.c and import*.c; everything behind them sees this alone. */
#ifndef ACCEL_AUDIT_TREE_H
#define ACCEL_AUDIT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/diag.h"

enum type_kind {
  TYPE_VOID,
  TYPE_INTEGER, /* bool and enumerations too */
  TYPE_REAL,
  TYPE_POINTER,  /* element */
  TYPE_ARRAY,    /* element, count; a parameter that is written as an array keeps this type */
  TYPE_VECTOR,   /* element, count: the compiler's vector registers */
  TYPE_RECORD,   /* members */
  TYPE_FUNCTION, /* what a pointer may point to */
  TYPE_OTHER
};

struct member {
  const char *name; /* "" for an unnamed struct or union */
  const struct type *type;
  int64_t offset; /* bytes from the start of the record */
};

struct type {
  enum type_kind kind;
  const char *name; /* as it is spelled */
  int64_t size;     /* bytes; -1 where it is not known */
  bool is_signed, is_union;
  bool points_to_constant; /* a pointer through which nothing is written */
  const struct type *element;
  int64_t count; /* elements; -1 for an array of unknown size */
  struct member *members;
  int n_members, members_capacity;
};

enum node_kind {
  /* expressions */
  NODE_INTEGER,    /* integer */
  NODE_REAL,       /* real */
  NODE_STRING,     /* text, as it is spelled */
  NODE_VARIABLE,   /* variable */
  NODE_FUNCTION,   /* function: its name where it is not called */
  NODE_MEMBER,     /* parts[0].members[member] */
  NODE_INDEX,      /* parts[0][parts[1]] */
  NODE_CALL,       /* parts[0] is called with the others; `function` when that is a name */
  NODE_UNARY,      /* operator parts[0] */
  NODE_INCREMENT,  /* integer is +1 or -1; prefix */
  NODE_BINARY,     /* parts[0] operator parts[1] */
  NODE_ASSIGN,     /* parts[0] = parts[0] operator parts[1]; OPERATOR_NONE for a plain one */
  NODE_SELECT,     /* parts[0] ? parts[1] : parts[2] */
  NODE_CAST,       /* parts[0] as `type` */
  NODE_LITERAL,    /* (type){...}: parts[0] is the list */
  NODE_LIST,       /* {parts...} */
  NODE_ITEM,       /* .member or [index] steps, then the value as the last part */
  NODE_STEP,       /* text: a member's name in an item */
  NODE_STATEMENTS, /* ({ ... }): parts[0] is the block */
  /* statements; an expression is one too */
  NODE_BLOCK,   /* parts... */
  NODE_DECLARE, /* variable */
  NODE_IF,      /* condition, then, else or NULL */
  NODE_FOR,     /* init, condition, step (each may be NULL), body */
  NODE_WHILE,   /* condition, body */
  NODE_DO,      /* body, condition */
  NODE_SWITCH,  /* parts... */
  NODE_BREAK,
  NODE_CONTINUE,
  NODE_GOTO,
  NODE_LABEL,  /* parts... */
  NODE_RETURN, /* parts[0] or NULL */
  NODE_EMPTY,
  NODE_ASSEMBLER,
  NODE_UNKNOWN /* text: what the compiler calls it; parts... */
};

enum operator_kind {
  OPERATOR_NONE,
  OPERATOR_MULTIPLY,
  OPERATOR_DIVIDE,
  OPERATOR_REMAINDER,
  OPERATOR_ADD,
  OPERATOR_SUBTRACT,
  OPERATOR_LEFT,
  OPERATOR_RIGHT,
  OPERATOR_LESS,
  OPERATOR_GREATER,
  OPERATOR_LESS_EQUAL,
  OPERATOR_GREATER_EQUAL,
  OPERATOR_EQUAL,
  OPERATOR_NOT_EQUAL,
  OPERATOR_BIT_AND,
  OPERATOR_BIT_XOR,
  OPERATOR_BIT_OR,
  OPERATOR_AND,
  OPERATOR_OR,
  OPERATOR_COMMA,
  OPERATOR_PLUS,
  OPERATOR_MINUS,
  OPERATOR_NOT,
  OPERATOR_COMPLEMENT,
  OPERATOR_DEREFERENCE,
  OPERATOR_ADDRESS,
  OPERATOR_OTHER
};

struct node {
  enum node_kind kind;
  struct location where;
  int last_line;
  const struct type *type; /* of an expression; never NULL */
  struct node **parts;
  int n_parts;
  enum operator_kind operation;
  bool prefix;
  int member;
  int64_t integer;
  double real;
  const char *text;
  struct variable *variable;
  struct function *function;
  struct note *note; /* what the walk learned of it (walk.h); NULL at first */
};

struct variable {
  const char *name;
  const struct type *type;
  struct location where;
  struct node *initial; /* NULL when there is none */
  bool lasting;         /* of static storage: at file level, or static inside a function */
  bool is_constant;     /* its declaration says const */
  bool is_parameter;
  bool is_external;          /* declared extern */
  int slot;                  /* its place among the function's variables, or among the program's lasting ones */
  struct function *function; /* that declares it; NULL at file level */
};

struct function {
  const char *name;
  struct location where;
  const struct type *result;
  struct variable **parameters;
  int n_parameters;
  struct node *body;  /* NULL when it is only declared */
  bool is_system;     /* declared in a header of the system */
  bool has_label;     /* a declaration outside of the system's headers gives it another name for the linker */
  const char *header; /* the file that declares it; NULL: the compiler */
  int n_slots;
  int index;            /* in the program's list */
  int mark;             /* for walks over the call graph */
  bool is_hot;          /* reachable from the root */
  bool is_used;         /* reachable from main */
  int is_kernel;        /* 1: yes, -1: no, 0: not asked yet (walk_call.c) */
  int orchestrates;     /* the same, of calling kernels */
  int touches_pointers; /* the same, of using pointers that last */
  int does_tensor_work; /* the same, of loops, products and exchanges (walk_claims.c) */
};

/* A mark of the text that the tree does not show: a pragma, an attribute, a macro, a directive. */
enum mark_kind { MARK_PRAGMA, MARK_ATTRIBUTE, MARK_MACRO, MARK_INCLUDE, MARK_CONDITION, MARK_SKIPPED };

struct mark {
  enum mark_kind kind;
  const char *text; /* what stands behind the word */
  struct location where;
};

struct string {
  const char *text;
  struct location where;
  const struct function *function;
};

/* A parsed program. Everything lives in its arena. */
struct tree {
  const char *file;
  const char *text;
  int n_lines;
  struct function **functions; /* defined ones and those that are called or named */
  int n_functions, functions_capacity;
  struct variable **lasting;
  int n_lasting, lasting_capacity;
  struct mark *marks;
  int n_marks, marks_capacity;
  struct string *strings;
  int n_strings, strings_capacity;
};

/* What a parser needs to find. */
struct parse_options {
  const char *const *flags; /* as a compiler takes them: "-I", "DIR" */
  int n_flags;
};

/* Reads a program. NULL once there are errors in diags: the file is no readable C. */
struct tree *tree_parse(struct arena *arena, const char *file, const struct parse_options *options,
                        struct diagnostics *diags);

/* The function of this name; NULL when there is none. */
struct function *tree_function(const struct tree *tree, const char *name);

/* The lasting variable of this name at file level; NULL when there is none. */
struct variable *tree_variable(const struct tree *tree, const char *name);

/* Calls `visit` for `node` and everything below it, parents first; a visit that returns false keeps its children out.
 * NULL is allowed. */
void node_walk(struct node *node, bool (*visit)(struct node *node, void *data), void *data);

/* The operator as C spells it. */
const char *operator_spelling(enum operator_kind kind);

#endif
