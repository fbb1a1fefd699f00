/* Import: libclang's cursors to the tree. Only the files of this header know libclang. */
#ifndef ACCEL_C_IMPORT_H
#define ACCEL_C_IMPORT_H

#include <clang-c/Index.h>

#include "gen/c/parse.h"

/* A declaration and what it became. */
struct declared {
  CXCursor cursor;
  void *made;
};

enum { DECLARED_BUCKETS = 4096, SCALAR_KINDS = 64 };

/* Where headers in memory seem to be: a folder that does not exist. */
#define HEADER_FOLDER "/accel-gen/include"

struct importer {
  struct arena *arena;
  struct diagnostics *diags;
  struct tree *tree;
  CXTranslationUnit unit;
  bool outline, is_device;
  CXFile last_file;
  const char *last_file_name;
  struct {
    struct declared *items;
    int count, capacity;
  } declared[DECLARED_BUCKETS];
  struct {
    const struct type **items;
    int count, capacity;
  } scalars[SCALAR_KINDS]; /* by libclang's kind; one for each name */
  struct {
    const struct type **items;
    int count, capacity;
  } open_records;            /* whose members are being read */
  struct function *function; /* the one that is being read; NULL at file level */
  int depth;
};

/* As tree_parse, in this process and without limits. */
struct tree *tree_read(struct arena *arena, const struct parse_request *request, struct diagnostics *diags);

struct cursors {
  CXCursor *items;
  int count, capacity;
};

/* Names and locations as values of the arena. */
const char *import_string(struct importer *importer, CXString string);
struct location import_location(struct importer *importer, CXSourceLocation location);
struct location import_range(struct importer *importer, CXSourceRange range);

/* The children of a cursor. */
struct cursors import_children(struct importer *importer, CXCursor cursor);

/* What a declaration became, NULL when it is new; and its entry. */
void *import_known(struct importer *importer, CXCursor declaration);
void import_remember(struct importer *importer, CXCursor declaration, void *made);

/* The whole source: functions and variables. */
void import_unit(struct importer *importer);

/* The tokens of the file itself. */
void import_tokens(struct importer *importer);

/* Adds a declaration of a written file to the tree's list, if it belongs there. */
void import_declared(struct importer *importer, CXCursor cursor, bool is_local);

const struct type *import_type(struct importer *importer, CXType type);
struct variable *import_variable(struct importer *importer, CXCursor cursor);
struct function *import_function(struct importer *importer, CXCursor cursor);
struct syntax *import_statement(struct importer *importer, CXCursor cursor);
struct syntax *import_expression(struct importer *importer, CXCursor cursor);

/* A node for a cursor, with space for n_parts parts. */
struct syntax *import_node(struct importer *importer, enum syntax_kind kind, CXCursor cursor, int n_parts);

/* A node that the tree has no word for, with all children as parts, so that calls below it are seen. */
struct syntax *import_unknown(struct importer *importer, CXCursor cursor, enum unknown_kind unknown);

/* A node instead of one that is nested too deep. */
struct syntax *import_deep(struct importer *importer, CXCursor cursor, enum unknown_kind unknown);

/* The source's digest, for tree->digest. */
const char *import_digest(struct importer *importer);

#endif
