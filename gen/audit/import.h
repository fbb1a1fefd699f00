/* Import: libclang's cursors to the tree. Only the files of this header and parse.c know libclang. */
#ifndef ACCEL_AUDIT_IMPORT_H
#define ACCEL_AUDIT_IMPORT_H

#include <clang-c/Index.h>

#include "gen/audit/tree.h"

/* A declaration and what it became. */
struct declared {
  CXCursor cursor;
  void *made;
};

enum { DECLARED_BUCKETS = 4096, SCALAR_KINDS = 64 };

struct importer {
  struct arena *arena;
  struct diagnostics *diags;
  struct tree *tree;
  CXTranslationUnit unit;
  CXFile last_file;
  const char *last_file_name;
  struct {
    struct declared *items;
    int count, capacity;
  } declared[DECLARED_BUCKETS];
  struct type *scalars[SCALAR_KINDS]; /* by libclang's kind */
  struct function *function;          /* the one that is being read; NULL at file level */
  int depth;
};

struct cursors {
  CXCursor *items;
  int count, capacity;
};

/* Names and places as values of the arena. */
const char *import_string(struct importer *importer, CXString string);
struct location import_location(struct importer *importer, CXSourceLocation place);
struct location import_range(struct importer *importer, CXSourceRange range);

/* The children of a cursor. */
struct cursors import_children(struct importer *importer, CXCursor cursor);

/* What a declaration became, NULL when it is new; and its entry. */
void *import_known(struct importer *importer, CXCursor declaration);
void import_remember(struct importer *importer, CXCursor declaration, void *made);

/* The whole file: functions, variables, marks. */
void import_unit(struct importer *importer);

/* Pragmas, attributes, macros and directives of the file itself, from its tokens. */
void import_marks(struct importer *importer);

const struct type *import_type(struct importer *importer, CXType type);
struct variable *import_variable(struct importer *importer, CXCursor cursor);
struct function *import_function(struct importer *importer, CXCursor cursor);
struct node *import_statement(struct importer *importer, CXCursor cursor);
struct node *import_expression(struct importer *importer, CXCursor cursor);

/* A node for a cursor, with room for n_parts parts. */
struct node *import_node(struct importer *importer, enum node_kind kind, CXCursor cursor, int n_parts);

/* A node that the tree has no word for, with all children as parts, so that calls below it are seen. */
struct node *import_unknown(struct importer *importer, CXCursor cursor);

#endif
