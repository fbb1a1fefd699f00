/* Syntax: a model's functions as a small tree, independent of libclang. gen/model/convert*.c makes it, the evaluator
 * walks it. */
#ifndef ACCEL_MODEL_SYNTAX_H
#define ACCEL_MODEL_SYNTAX_H

#include "gen/base/diag.h"
#include "gen/model/ctype.h"

enum syntax_kind {
  /* expressions */
  SYNTAX_INTEGER,          /* integer */
  SYNTAX_REAL,             /* real */
  SYNTAX_TEXT,             /* text: a string literal */
  SYNTAX_VARIABLE,         /* variable */
  SYNTAX_MEMBER,           /* part[0].field */
  SYNTAX_INDEX,            /* part[0][part[1]] */
  SYNTAX_CALL,             /* text(part...): function when it is the model's own */
  SYNTAX_UNARY,            /* operation part[0] */
  SYNTAX_INCREMENT,        /* integer is +1 or -1; prefix: the new value */
  SYNTAX_BINARY,           /* part[0] operation part[1] */
  SYNTAX_ASSIGN,           /* part[0] = part[0] operation part[1]; OPERATOR_NONE for a plain one */
  SYNTAX_CONDITIONAL,      /* part[0] ? part[1] : part[2] */
  SYNTAX_CAST,             /* part[0] as `type` */
  SYNTAX_COMPOUND_LITERAL, /* (type)part[0] */
  SYNTAX_LIST,             /* {part...} */
  SYNTAX_DESIGNATED,       /* .field or [index] steps, then the value as the last part */
  SYNTAX_FIELD_STEP,       /* field */
  /* statements; an expression is one too */
  SYNTAX_BLOCK,   /* part... */
  SYNTAX_DECLARE, /* variable */
  SYNTAX_IF,      /* part[0]; then part[1]; else part[2] or NULL */
  SYNTAX_FOR,     /* init, condition, step (each may be NULL), body */
  SYNTAX_WHILE,   /* condition, body */
  SYNTAX_DO,      /* body, condition */
  SYNTAX_SWITCH,  /* value, block */
  SYNTAX_CASE,    /* value, statement */
  SYNTAX_DEFAULT, /* statement */
  SYNTAX_BREAK,
  SYNTAX_CONTINUE,
  SYNTAX_RETURN, /* part[0] or NULL */
  SYNTAX_EMPTY,
  SYNTAX_UNSUPPORTED /* text: what it is; help: what to write instead */
};

enum operation {
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
  OPERATOR_DEREFERENCE
};

struct syntax {
  enum syntax_kind kind;
  struct location where;
  const struct ctype *type; /* of an expression */
  struct syntax **parts;
  int n_parts;
  enum operation operation;
  bool prefix;
  bool tensors; /* a loop: makes tensors in its body */
  bool system;  /* a call: the function is declared in a header of the system */
  int field;
  int64_t integer;
  double real;
  const char *text, *help;
  const struct variable *variable;
  const struct function *function;
};

/* A variable or parameter. */
struct variable {
  const char *name;
  const struct ctype *type;
  struct location where;
  bool lasting;                 /* global or static: evaluated once, never assigned */
  int slot;                     /* in the frame, or among the program's lasting ones */
  const struct syntax *initial; /* NULL when there is none */
  struct syntax **sizes;        /* of a variable-length array, from the innermost dimension on */
  int n_sizes;
};

struct function {
  const char *name;
  struct location where;
  const struct ctype *result;
  struct variable **parameters;
  int n_parameters;
  int n_slots; /* of its frame: parameters first */
  struct syntax *body;
  bool is_region; /* its result holds tensors and it is not inline: the graph keeps it as a region */
};

/* A parsed model. */
struct model {
  const char *file;
  struct function **functions;
  int n_functions, functions_capacity;
  struct variable **lasting;
  int n_lasting, lasting_capacity;
};

/* The model's own function of this name; NULL when there is none. */
struct function *program_function(const struct model *program, const char *name);

#endif
