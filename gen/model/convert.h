/* Conversion: libclang's cursors to our syntax tree. Only the files of this header and parse.c know libclang. */
#ifndef ACCEL_MODEL_CONVERT_H
#define ACCEL_MODEL_CONVERT_H

#include <clang-c/Index.h>

#include "gen/model/syntax.h"

/* A declaration and what it became. */
struct declared {
  CXCursor cursor;
  struct variable *variable;
};

struct declared_type {
  CXCursor cursor;
  const struct ctype *type;
};

/* The state of one file's conversion. */
struct converter {
  struct arena *arena;
  struct diagnostics *diags;
  struct model *program;
  CXFile last_file;
  const char *last_file_name;
  struct {
    struct declared *items;
    int count, capacity;
  } variables;
  struct {
    struct declared_type *items;
    int count, capacity;
  } types;
  struct function *function; /* the one that is being converted; NULL at file level */
  bool undeclared;           /* a message about a function that does not exist was given */
  int depth;                 /* nesting of the tree */
  int n_tensors;             /* expressions of type tensor so far */
};

/* Places. */
const char *convert_file_name(struct converter *converter, CXFile file);
struct location convert_location(struct converter *converter, CXSourceLocation place);
struct location convert_range(struct converter *converter, CXSourceRange range);

/* A whole translation unit, into converter->program. */
void convert_unit(struct converter *converter, CXTranslationUnit unit);

/* One type. */
const struct ctype *convert_type(struct converter *converter, CXType type);

/* libclang gives the type of a parameter that is written as an array, and of what is passed to it, as the array: it is
 * a pointer to the elements. */
const struct ctype *convert_decayed(struct converter *converter, const struct ctype *type);

/* One statement or expression; what is outside the subset becomes SYNTAX_UNSUPPORTED. */
struct syntax *convert_statement(struct converter *converter, CXCursor cursor);
struct syntax *convert_expression(struct converter *converter, CXCursor cursor);

/* A local or global variable with its initial value. */
struct variable *convert_variable(struct converter *converter, CXCursor cursor);

/* ---- Shared by the files that convert ---- */

struct cursors {
  CXCursor *items;
  int count, capacity;
};

/* The children of a cursor. */
struct cursors convert_children(struct converter *converter, CXCursor cursor);

/* A name as a string of the arena. */
const char *convert_string(struct converter *converter, CXString string);

/* A node for a cursor, with room for n_parts parts. */
struct syntax *convert_node(struct converter *converter, enum syntax_kind kind, CXCursor cursor, int n_parts);
struct syntax *convert_unsupported(struct converter *converter, CXCursor cursor, const char *what, const char *help);

/* The variable that a declaration became; NULL when it is none. */
struct variable *convert_find(const struct converter *converter, CXCursor declaration);

bool convert_is_expression(CXCursor cursor);

#endif
