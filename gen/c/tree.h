/* The syntax tree of a C source, plain data: types, variables, functions, statements and expressions, as a compiler
 * reads them. libclang is used in this folder alone; all later stages see only this tree. */
#ifndef ACCEL_C_TREE_H
#define ACCEL_C_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "gen/base/diag.h"

enum type_kind {
  TYPE_VOID,
  TYPE_INTEGER, /* bool, characters and enumerations too */
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
  struct location where;
  int64_t offset; /* bytes from the start of the record; -1 for a bit-field */
};

struct enumerator {
  const char *name;
  int64_t value;
};

/* Records and enumerations are unique: one pointer for each declaration. */
struct type {
  enum type_kind kind;
  const char *name;  /* as it is spelled: "struct config", "int[3]", "int64_t" */
  const char *tag;   /* of a record: "config"; "" without one */
  int64_t size;      /* bytes; -1 where it is not known */
  int64_t alignment; /* bytes; 1 where it is not known */
  bool is_signed, is_union;
  bool is_bool, is_char;   /* an integer: _Bool; char without a word of its sign */
  bool points_to_constant; /* a pointer through which nothing is written */
  bool is_recursive;       /* a pointer, in a record, to that record */
  const struct type *element;
  int64_t count; /* elements; -1 for an array whose size is not constant */
  struct member *members;
  int n_members, members_capacity;
  const struct enumerator *enumerators; /* of an enumeration */
  int n_enumerators;
};

extern const struct type type_void, type_int, type_float, type_double;

enum syntax_kind {
  /* expressions; parentheses leave no trace */
  SYNTAX_INTEGER,          /* integer */
  SYNTAX_REAL,             /* real */
  SYNTAX_STRING,           /* text, as it is spelled */
  SYNTAX_VARIABLE,         /* variable */
  SYNTAX_FUNCTION,         /* function: its name */
  SYNTAX_MEMBER,           /* parts[0].members[member]; text: its name */
  SYNTAX_INDEX,            /* parts[0][parts[1]] */
  SYNTAX_CALL,             /* parts[0] is called with the others; `function` when that is a name */
  SYNTAX_UNARY,            /* operation parts[0] */
  SYNTAX_INCREMENT,        /* integer is +1 or -1; prefix: the new value */
  SYNTAX_BINARY,           /* parts[0] operation parts[1] */
  SYNTAX_ASSIGN,           /* parts[0] = parts[0] operation parts[1]; OPERATOR_NONE for a plain one */
  SYNTAX_SELECT,           /* parts[0] ? parts[1] : parts[2] */
  SYNTAX_CAST,             /* parts[0] as `type`; implicit conversions too */
  SYNTAX_COMPOUND_LITERAL, /* (type){...}: parts[0] is the list */
  SYNTAX_LIST,             /* {parts...} */
  SYNTAX_DESIGNATED,       /* .member or [index] steps, then the value as the last part */
  SYNTAX_DESIGNATOR,       /* text: the member's name in such a step */
  SYNTAX_STATEMENTS,       /* ({ ... }): parts[0] is the block */
  /* statements; an expression is one too */
  SYNTAX_BLOCK,   /* parts... */
  SYNTAX_DECLARE, /* variable */
  SYNTAX_IF,      /* condition, then, else or NULL */
  SYNTAX_FOR,     /* init, condition, step (each may be NULL), body */
  SYNTAX_WHILE,   /* condition, body */
  SYNTAX_DO,      /* body, condition */
  SYNTAX_SWITCH,  /* value, body */
  SYNTAX_CASE,    /* value, statement; with a range: first, last, statement */
  SYNTAX_DEFAULT, /* statement */
  SYNTAX_BREAK,
  SYNTAX_CONTINUE,
  SYNTAX_GOTO,
  SYNTAX_LABEL,  /* parts... */
  SYNTAX_RETURN, /* parts[0] or nothing */
  SYNTAX_EMPTY,
  SYNTAX_ASSEMBLER,
  SYNTAX_UNKNOWN /* unknown: what it is; parts: what is below it, so that calls there are seen */
};

/* What the tree has no word for. */
enum unknown_kind {
  UNKNOWN_EXPRESSION,
  UNKNOWN_STATEMENT,
  UNKNOWN_CONSTANT,  /* that the compiler gives no value */
  UNKNOWN_FOR,       /* whose parts cannot be distinguished, inside a macro */
  UNKNOWN_MEMBER,    /* of an unnamed part */
  UNKNOWN_SELECTION, /* _Generic */
  UNKNOWN_COMPLEX,
  UNKNOWN_DEEP_EXPRESSION, /* nested deeper than the tree goes: nothing below it is seen */
  UNKNOWN_DEEP_STATEMENT
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

struct syntax {
  enum syntax_kind kind;
  struct location where;
  int last_line;
  const struct type *type; /* of an expression; never NULL */
  struct syntax **parts;
  int n_parts;
  enum operator_kind operation;
  enum unknown_kind unknown;
  bool prefix;
  bool is_system; /* SYNTAX_STATEMENTS: what a macro of a system's header wrote */
  int member;
  int64_t integer;
  double real;
  const char *text;
  struct variable *variable;
  struct function *function;
  struct note *note; /* data that a reader of the tree attaches, of a type of its own; NULL at first */
};

struct variable {
  const char *name;
  const struct type *type;
  struct location where;
  struct syntax *initial; /* NULL when there is none */
  struct syntax **sizes;  /* of a variable-length array, from the innermost dimension on */
  int n_sizes;
  bool is_static;   /* of static storage: at file level, or static inside a function */
  bool is_constant; /* its declaration says const */
  bool is_parameter;
  bool is_external;          /* declared extern */
  bool is_system;            /* declared in a header of the system */
  int slot;                  /* its index among the function's variables, or among the tree's static ones */
  struct function *function; /* that declares it; NULL at file level */
};

struct function {
  const char *name;
  struct location where; /* of the definition, where there is one */
  const char *type_name; /* "void (int)", without the names that typedef gives */
  const struct type *result;
  struct variable **parameters; /* in the first slots */
  int n_parameters;             /* that are named */
  struct syntax *body;          /* NULL when it is only declared */
  bool is_defined;
  bool is_static, is_inline;
  bool is_system;     /* declared in a header of the system */
  bool is_device;     /* of device code */
  bool is_plain;      /* the linker knows it by its name alone, as all of C */
  bool has_label;     /* a declaration outside of the system's headers gives it another name for the linker */
  const char *header; /* the file that declares it; NULL: the compiler */
  int n_slots;
  struct role *role; /* data that a reader of the tree attaches, of a type of its own; NULL at first */
};

/* What the compiler says of the source. */
struct message {
  enum severity severity; /* SEVERITY_ERROR or SEVERITY_WARNING; of a note SEVERITY_NOTE */
  struct location where;
  const char *text;
  bool in_system; /* about a header of the system */
  struct message *notes;
  int n_notes, notes_capacity;
};

enum token_kind { TOKEN_PUNCTUATION, TOKEN_COMMENT, TOKEN_OTHER };

/* Which macro a token names: one of the source's own, of a header that is not written here, or of the compiler alone.
 */
enum macro_origin { MACRO_NONE, MACRO_OWN, MACRO_HEADER, MACRO_COMPILER };

struct token {
  enum token_kind kind;
  enum macro_origin macro;
  const char *text;
  struct location where;
  unsigned offset; /* bytes from the file's start */
};

enum declaration_kind {
  DECLARATION_FUNCTION,
  DECLARATION_VARIABLE,
  DECLARATION_TYPE, /* typedef */
  DECLARATION_RECORD,
  DECLARATION_ENUMERATION,
  DECLARATION_ASSERTION, /* static_assert */
  DECLARATION_OTHER      /* assembler, and what the tree has no word for */
};

/* A declaration as it is written, at file level or in a function. */
struct declaration {
  enum declaration_kind kind;
  const char *name;
  struct location where;
  bool is_definition;
  bool is_external; /* the linker sees the name */
  bool is_local;    /* in a function */
  bool is_of_code;  /* of a type whose size is computed when the program runs */
};

/* Lines that the preprocessor left out. */
struct skipped {
  struct location where;
  int last_line;
};

/* A file of the source as it is written: the source itself, or a header of its own that it includes as "...". */
struct written {
  const char *file, *text;
  struct token *tokens;
  int n_tokens;
};

/* A parsed source. Everything lives in its arena. */
struct tree {
  const char *file;
  const char *digest; /* 16 hexadecimal digits over what computes in its own files, where it was requested */
  const char *text;
  int n_lines;
  struct function **functions; /* defined ones and those that are called or named, in the order of the text */
  int n_functions, functions_capacity;
  struct variable **statics; /* those of static storage */
  int n_statics, statics_capacity;
  const char **includes; /* files that it includes, as the compiler names them; not the headers in memory */
  int n_includes, includes_capacity;
  struct message *messages;
  int n_messages, messages_capacity;
  struct written *written; /* where tokens were requested; the source itself first */
  int n_written, written_capacity;
  struct declaration *declarations; /* of these files, in the order of the text; variables in functions if external */
  int n_declarations, declarations_capacity;
  struct skipped *skipped; /* of these files */
  int n_skipped, skipped_capacity;
  struct location deep; /* a location that is nested deeper than the tree goes; line 0: none */
};

/* The function of this name; NULL when there is none. */
struct function *tree_function(const struct tree *tree, const char *name);

/* The variable of static storage of this name at file level; NULL when there is none. */
struct variable *tree_variable(const struct tree *tree, const char *name);

/* The index of a record's member of this name; -1 when there is none. */
int type_member(const struct type *type, const char *name);

/* Calls `visit` for `node` and everything below it, parents first; a visit that returns false skips its children.
 * NULL is allowed. */
void syntax_visit(struct syntax *node, bool (*visit)(struct syntax *node, void *data), void *data);

/* The operand below casts. */
struct syntax *syntax_bare(struct syntax *node);

/* How often a part of a function names a variable. NULL: 0. */
int syntax_uses(struct syntax *node, const struct variable *variable);

/* The operator as C spells it. */
const char *operator_spelling(enum operator_kind kind);

/* The comparison with its sides exchanged: > for <. Another operator is left as it is. */
enum operator_kind operator_mirrored(enum operator_kind kind);

#endif
