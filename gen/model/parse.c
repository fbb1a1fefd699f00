/* Parsing: runs libclang over a model, turns its diagnostics into ours, and has the syntax tree converted. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gen/base/text.h"
#include "gen/model/convert.h"
#include "gen/model/evaluate.h"
#include "gen/model/headers.h"
#include "gen/model/model.h"

/* Where our headers seem to be: a folder that does not exist, given to libclang in memory. */
#define INCLUDE_FOLDER "/accel-gen/include"

const char *convert_file_name(struct converter *converter, CXFile file) {
  if (file == converter->last_file) return converter->last_file_name;
  CXString name = clang_getFileName(file);
  const char *text = clang_getCString(name);
  if (text == NULL) text = "";
  static const char folder[] = INCLUDE_FOLDER "/";
  if (strncmp(text, folder, sizeof folder - 1) == 0) text += sizeof folder - 1;
  converter->last_file = file;
  converter->last_file_name = arena_string(converter->arena, text);
  clang_disposeString(name);
  return converter->last_file_name;
}

struct location convert_location(struct converter *converter, CXSourceLocation place) {
  struct location where = {0};
  CXFile file;
  unsigned line, column;
  clang_getFileLocation(place, &file, &line, &column, NULL);
  if (file == NULL) return where;
  where.file = convert_file_name(converter, file);
  where.line = (int)line;
  where.column = (int)column;
  return where;
}

struct location convert_range(struct converter *converter, CXSourceRange range) {
  struct location where = convert_location(converter, clang_getRangeStart(range));
  struct location end = convert_location(converter, clang_getRangeEnd(range));
  if (end.file == where.file && end.line == where.line && end.column > where.column)
    where.length = end.column - where.column;
  return where;
}

/* ---- Diagnostics ---- */

/* The text of a file that a message points to, so that its lines can be shown. */
static void add_source(struct converter *converter, CXTranslationUnit unit, CXSourceLocation place) {
  CXFile file;
  clang_getFileLocation(place, &file, NULL, NULL, NULL);
  if (file == NULL) return;
  const char *name = convert_file_name(converter, file);
  for (int i = 0; i < converter->diags->n_sources; i++)
    if (strcmp(converter->diags->sources[i].file, name) == 0) return;
  size_t size = 0;
  const char *text = clang_getFileContents(unit, file, &size);
  if (text != NULL) diag_add_source(converter->diags, name, arena_copy(converter->arena, text, size));
}

/* What a beginner meant by C that the compiler refuses. */
static const char *advice(const char *message) {
  bool tensor = strstr(message, "accel_tensor") != NULL;
  bool operands = strstr(message, "invalid operands") != NULL || strstr(message, "invalid argument type") != NULL;
  if (tensor && (operands || strstr(message, "arithmetic on") != NULL))
    return "tensors have functions, not operators: add(a, b), sub, mul, divide, neg; scale(x, 2.0), shift(x, 2.0)";
  if (tensor && strstr(message, "subscript of pointer") != NULL)
    return "a part of a tensor is slice(x, axis, start, count) or split(x, axis, parts, which)";
  return NULL;
}

static void add_notes(struct converter *converter, CXTranslationUnit unit, CXDiagnostic diagnostic) {
  CXDiagnosticSet children = clang_getChildDiagnostics(diagnostic);
  for (unsigned i = 0; i < clang_getNumDiagnosticsInSet(children); i++) {
    CXDiagnostic note = clang_getDiagnosticInSet(children, i);
    CXSourceLocation place = clang_getDiagnosticLocation(note);
    const char *text = convert_string(converter, clang_getDiagnosticSpelling(note));
    bool system = clang_Location_isInSystemHeader(place) != 0; /* as inside assert */
    if (!system) {
      add_source(converter, unit, place);
      diag_note(converter->diags, convert_location(converter, place), "%s", text);
    }
    clang_disposeDiagnostic(note);
  }
}

static void add_warning(struct diagnostics *diags, struct location where, const char *message) {
  struct diagnostic item = {SEVERITY_WARNING, where, arena_string(diags->arena, message)};
  ARENA_PUSH(diags->arena, *diags, item);
}

/* A function that does not exist: the compiler's message speaks of standards, ours of the name. */
static bool add_undeclared(struct converter *converter, struct location where, const char *message) {
  bool undeclared = strncmp(message, "call to undeclared function '", 29) == 0 ||
                    strncmp(message, "call to undeclared library function '", 37) == 0;
  if (!undeclared) return false;
  const char *name = strchr(message, '\'') + 1;
  name = arena_copy(converter->arena, name, strcspn(name, "'"));
  where.length = (int)strlen(name);
  const char *similar = model_similar_function(converter->arena, name);
  diag_error(converter->diags, where, "a model has no function '%s'", name);
  if (similar != NULL) diag_help(converter->diags, "did you mean '%s'?", similar);
  converter->undeclared = true;
  return true;
}

/* What follows from a function that does not exist: C gives it the result int. */
static bool follows_undeclared(const struct converter *converter, const char *message) {
  return converter->undeclared && strncmp(message, "incompatible integer to pointer conversion", 42) == 0;
}

static void add_diagnostic(struct converter *converter, CXTranslationUnit unit, CXDiagnostic diagnostic) {
  CXSourceLocation place = clang_getDiagnosticLocation(diagnostic);
  bool warning = clang_getDiagnosticSeverity(diagnostic) == CXDiagnostic_Warning;
  const char *message = convert_string(converter, clang_getDiagnosticSpelling(diagnostic));
  if (warning && clang_Location_isInSystemHeader(place)) return;
  add_source(converter, unit, place);
  struct location where = convert_location(converter, place);
  if (where.file == NULL) where.file = converter->program->file;
  if (follows_undeclared(converter, message) || add_undeclared(converter, where, message)) return;
  const char *help = advice(message);
  if (warning)
    add_warning(converter->diags, where, message);
  else
    diag_error(converter->diags, where, "%s", message);
  if (help != NULL) diag_help(converter->diags, "%s", help);
  add_notes(converter, unit, diagnostic);
}

static void add_diagnostics(struct converter *converter, CXTranslationUnit unit) {
  for (unsigned i = 0; i < clang_getNumDiagnostics(unit); i++) {
    CXDiagnostic diagnostic = clang_getDiagnostic(unit, i);
    if (clang_getDiagnosticSeverity(diagnostic) >= CXDiagnostic_Warning) add_diagnostic(converter, unit, diagnostic);
    clang_disposeDiagnostic(diagnostic);
  }
}

/* ---- Running ---- */

static CXTranslationUnit run_clang(struct arena *arena, CXIndex index, const char *file, const char *text,
                                   enum CXErrorCode *error) {
  static const char *const arguments[] = {"-xc",
                                          "-std=c17",
                                          "-D_DEFAULT_SOURCE",
                                          "-I",
                                          INCLUDE_FOLDER,
                                          "-Wall",
                                          "-Wno-unused-function",
                                          "-Wno-missing-braces",
                                          "-Werror=incompatible-pointer-types",
                                          "-Werror=implicit-function-declaration",
                                          "-Werror=int-conversion",
                                          "-Werror=return-type"};
  struct header headers[HEADER_COUNT];
  model_headers(arena, headers);
  struct CXUnsavedFile files[1 + HEADER_COUNT] = {{file, text, strlen(text)}};
  for (int i = 0; i < HEADER_COUNT; i++)
    files[1 + i] = (struct CXUnsavedFile){arena_printf(arena, INCLUDE_FOLDER "/%s", headers[i].name), headers[i].text,
                                          strlen(headers[i].text)};
  int count = (int)(sizeof arguments / sizeof arguments[0]);
  CXTranslationUnit unit = NULL;
  *error = clang_parseTranslationUnit2(index, file, arguments, count, files, 1 + HEADER_COUNT, CXTranslationUnit_None,
                                       &unit);
  return unit;
}

struct model *model_parse_text(struct arena *arena, const char *file, const char *text, struct diagnostics *diags) {
  struct converter converter = {.arena = arena, .diags = diags};
  converter.program = arena_alloc(arena, sizeof *converter.program);
  converter.program->file = file;
  diag_add_source(diags, file, text);
  int errors = diags->errors;
  CXIndex index = clang_createIndex(0, 0);
  enum CXErrorCode error;
  CXTranslationUnit unit = run_clang(arena, index, file, text, &error);
  if (unit == NULL) {
    diag_error(diags, (struct location){.file = file}, "the C parser gave up on this file (libclang error %d)",
               (int)error);
  } else {
    add_diagnostics(&converter, unit);
    if (diags->errors == errors) convert_unit(&converter, unit);
    clang_disposeTranslationUnit(unit);
  }
  clang_disposeIndex(index);
  return diags->errors == errors ? converter.program : NULL;
}

/* ---- The file ---- */

enum { LARGEST_MODEL = 16 << 20 };

static const char *read_stream(struct arena *arena, FILE *stream) {
  struct text text = text_in(arena);
  char buffer[8192];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, stream)) > 0;) {
    text_add(&text, buffer, got);
    if (text.length > LARGEST_MODEL) return NULL;
  }
  return ferror(stream) ? NULL : text_string(&text);
}

struct model *model_parse(struct arena *arena, const char *file, struct diagnostics *diags) {
  struct location where = {.file = file};
  FILE *stream = fopen(file, "rb");
  if (stream == NULL) {
    diag_error(diags, where, "cannot read the model: %s", strerror(errno));
    return NULL;
  }
  const char *text = read_stream(arena, stream);
  fclose(stream);
  if (text == NULL) {
    diag_error(diags, where, "cannot read the model: it is no readable file of at most 16 MiB");
    return NULL;
  }
  return model_parse_text(arena, file, text, diags);
}

bool model_has(const struct model *program, const char *entry) {
  return program_function(program, entry) != NULL;
}
