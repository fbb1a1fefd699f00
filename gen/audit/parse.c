/* Parsing: runs libclang over a program and has its syntax tree read. */
#include <stdio.h>
#include <string.h>

#include "gen/audit/import.h"

const char *import_string(struct importer *importer, CXString string) {
  const char *text = clang_getCString(string);
  const char *copy = arena_string(importer->arena, text == NULL ? "" : text);
  clang_disposeString(string);
  return copy;
}

struct location import_location(struct importer *importer, CXSourceLocation place) {
  struct location where = {0};
  CXFile file;
  unsigned line, column;
  clang_getFileLocation(place, &file, &line, &column, NULL);
  if (file == NULL) return where;
  if (file != importer->last_file) {
    importer->last_file = file;
    importer->last_file_name = import_string(importer, clang_getFileName(file));
  }
  where.file = importer->last_file_name;
  where.line = (int)line;
  where.column = (int)column;
  return where;
}

struct location import_range(struct importer *importer, CXSourceRange range) {
  struct location where = import_location(importer, clang_getRangeStart(range));
  struct location end = import_location(importer, clang_getRangeEnd(range));
  if (end.file == where.file && end.line == where.line && end.column > where.column)
    where.length = end.column - where.column;
  return where;
}

/* ---- Diagnostics ---- */

/* The compiler's errors. A program that does not compile cannot be audited; its warnings are the compiler's matter. */
static void add_diagnostics(struct importer *importer) {
  for (unsigned i = 0; i < clang_getNumDiagnostics(importer->unit); i++) {
    CXDiagnostic diagnostic = clang_getDiagnostic(importer->unit, i);
    if (clang_getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Error) {
      struct location where = import_location(importer, clang_getDiagnosticLocation(diagnostic));
      if (where.file == NULL) where.file = importer->tree->file;
      diag_error(importer->diags, where, "%s", import_string(importer, clang_getDiagnosticSpelling(diagnostic)));
    }
    clang_disposeDiagnostic(diagnostic);
  }
}

/* ---- Running ---- */

static const char *const own_flags[] = {"-xc", "-std=gnu17", "-Wno-everything"};

static const char **all_flags(struct arena *arena, const struct parse_options *options, int *count) {
  int n_own = (int)(sizeof own_flags / sizeof own_flags[0]);
  const char **flags = arena_alloc(arena, (size_t)(n_own + options->n_flags + 1) * sizeof *flags);
  for (int i = 0; i < n_own; i++) flags[i] = own_flags[i];
  for (int i = 0; i < options->n_flags; i++) flags[n_own + i] = options->flags[i];
  *count = n_own + options->n_flags;
  return flags;
}

static void keep_text(struct importer *importer) {
  struct tree *tree = importer->tree;
  CXFile file = clang_getFile(importer->unit, tree->file);
  size_t size = 0;
  const char *text = file == NULL ? NULL : clang_getFileContents(importer->unit, file, &size);
  tree->text = text == NULL ? "" : arena_copy(importer->arena, text, size);
  for (const char *at = tree->text; (at = strchr(at, '\n')) != NULL; at++) tree->n_lines++;
  diag_add_source(importer->diags, tree->file, tree->text);
}

struct tree *tree_parse(struct arena *arena, const char *file, const struct parse_options *options,
                        struct diagnostics *diags) {
  struct importer *importer = arena_alloc(arena, sizeof *importer);
  importer->arena = arena;
  importer->diags = diags;
  importer->tree = arena_alloc(arena, sizeof *importer->tree);
  importer->tree->file = file;
  int errors = diags->errors, count = 0;
  const char **flags = all_flags(arena, options, &count);
  CXIndex index = clang_createIndex(0, 0);
  enum CXErrorCode error = clang_parseTranslationUnit2(index, file, flags, count, NULL, 0,
                                                       CXTranslationUnit_DetailedPreprocessingRecord, &importer->unit);
  if (importer->unit == NULL) {
    diag_error(diags, (struct location){.file = file}, "cannot read the program (libclang error %d)", (int)error);
  } else {
    keep_text(importer);
    add_diagnostics(importer);
    if (diags->errors == errors) import_unit(importer);
    clang_disposeTranslationUnit(importer->unit);
  }
  clang_disposeIndex(index);
  return diags->errors == errors ? importer->tree : NULL;
}
