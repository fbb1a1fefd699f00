#include "gen/c/parse.h"

#include <errno.h>
#include <string.h>

#include "gen/base/file.h"
#include "gen/base/text.h"
#include "gen/c/import.h"

const char *import_string(struct importer *importer, CXString string) {
  const char *text = clang_getCString(string);
  const char *copy = arena_string(importer->arena, text == NULL ? "" : text);
  clang_disposeString(string);
  return copy;
}

/* ---- Locations ---- */

static const char *file_name(struct importer *importer, CXFile file) {
  if (file == importer->last_file) return importer->last_file_name;
  const char *name = import_string(importer, clang_getFileName(file));
  static const char folder[] = HEADER_FOLDER "/";
  if (strncmp(name, folder, sizeof folder - 1) == 0) name += sizeof folder - 1;
  importer->last_file = file;
  importer->last_file_name = name;
  return name;
}

struct location import_location(struct importer *importer, CXSourceLocation location) {
  struct location where = {0};
  CXFile file;
  unsigned line, column;
  clang_getFileLocation(location, &file, &line, &column, NULL);
  if (file == NULL) return where;
  where.file = file_name(importer, file);
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

/* ---- Messages ---- */

/* The text of a file that a message points to, so that its lines can be shown. */
static void add_source(struct importer *importer, CXSourceLocation location) {
  CXFile file;
  clang_getFileLocation(location, &file, NULL, NULL, NULL);
  if (file == NULL) return;
  const char *name = file_name(importer, file);
  for (int i = 0; i < importer->diags->n_sources; i++)
    if (strcmp(importer->diags->sources[i].file, name) == 0) return;
  size_t size = 0;
  const char *text = clang_getFileContents(importer->unit, file, &size);
  if (text != NULL) diag_add_source(importer->diags, name, arena_copy(importer->arena, text, size));
}

static struct message new_message(struct importer *importer, CXDiagnostic diagnostic, enum severity severity) {
  CXSourceLocation location = clang_getDiagnosticLocation(diagnostic);
  struct message message = {.severity = severity,
                            .where = import_location(importer, location),
                            .text = import_string(importer, clang_getDiagnosticSpelling(diagnostic)),
                            .in_system = clang_Location_isInSystemHeader(location) != 0};
  if (message.where.file == NULL) message.where.file = importer->tree->file;
  if (severity == SEVERITY_ERROR || !message.in_system) add_source(importer, location);
  return message;
}

static void add_notes(struct importer *importer, CXDiagnostic diagnostic, struct message *message) {
  CXDiagnosticSet children = clang_getChildDiagnostics(diagnostic);
  for (unsigned i = 0; i < clang_getNumDiagnosticsInSet(children); i++) {
    CXDiagnostic note = clang_getDiagnosticInSet(children, i);
    message->notes =
        arena_grow(importer->arena, message->notes, message->n_notes, &message->notes_capacity, sizeof *message->notes);
    message->notes[message->n_notes++] = new_message(importer, note, SEVERITY_NOTE);
    clang_disposeDiagnostic(note);
  }
}

static void add_messages(struct importer *importer) {
  struct tree *tree = importer->tree;
  for (unsigned i = 0; i < clang_getNumDiagnostics(importer->unit); i++) {
    CXDiagnostic diagnostic = clang_getDiagnostic(importer->unit, i);
    enum CXDiagnosticSeverity severity = clang_getDiagnosticSeverity(diagnostic);
    if (severity >= CXDiagnostic_Warning) {
      bool error = severity >= CXDiagnostic_Error;
      struct message message = new_message(importer, diagnostic, error ? SEVERITY_ERROR : SEVERITY_WARNING);
      add_notes(importer, diagnostic, &message);
      tree->messages = arena_grow(importer->arena, tree->messages, tree->n_messages, &tree->messages_capacity,
                                  sizeof *tree->messages);
      tree->messages[tree->n_messages++] = message;
    }
    clang_disposeDiagnostic(diagnostic);
  }
}

bool tree_has_errors(const struct tree *tree) {
  for (int i = 0; i < tree->n_messages; i++)
    if (tree->messages[i].severity == SEVERITY_ERROR) return true;
  return false;
}

/* ---- Running ---- */

static void store_text(struct importer *importer) {
  struct tree *tree = importer->tree;
  for (const char *at = tree->text; (at = strchr(at, '\n')) != NULL; at++) tree->n_lines++;
  diag_add_source(importer->diags, tree->file, tree->text);
}

static void add_include(CXFile file, CXSourceLocation *stack, unsigned depth, CXClientData data) {
  struct importer *importer = data;
  struct tree *tree = importer->tree;
  const char *name = import_string(importer, clang_getFileName(file));
  bool in_memory = strncmp(name, HEADER_FOLDER "/", sizeof HEADER_FOLDER) == 0;
  (void)stack;
  if (depth == 0 || in_memory) return;
  tree->includes =
      arena_grow(importer->arena, tree->includes, tree->n_includes, &tree->includes_capacity, sizeof *tree->includes);
  tree->includes[tree->n_includes++] = name;
}

static enum CXErrorCode run_clang(struct importer *importer, CXIndex index, const struct parse_request *request) {
  struct arena *arena = importer->arena;
  int n_flags = 0, n_files = 0;
  const char **flags = arena_alloc(arena, (size_t)(request->n_flags + 4) * sizeof *flags);
  flags[n_flags++] = request->is_device ? "-xc++" : "-xc";
  if (request->n_headers > 0) {
    flags[n_flags++] = "-I";
    flags[n_flags++] = HEADER_FOLDER;
  }
  for (int i = 0; i < request->n_flags; i++) flags[n_flags++] = request->flags[i];
  struct CXUnsavedFile *files = arena_alloc(arena, (size_t)(request->n_headers + 1) * sizeof *files);
  files[n_files++] = (struct CXUnsavedFile){request->file, importer->tree->text, strlen(importer->tree->text)};
  for (int i = 0; i < request->n_headers; i++) {
    const struct header *header = &request->headers[i];
    files[n_files++] = (struct CXUnsavedFile){arena_printf(arena, HEADER_FOLDER "/%s", header->name), header->text,
                                              strlen(header->text)};
  }
  unsigned options = CXTranslationUnit_None;
  if (request->tokens) options |= CXTranslationUnit_DetailedPreprocessingRecord;
  if (request->outline) options |= CXTranslationUnit_KeepGoing;
  return clang_parseTranslationUnit2(index, request->file, flags, n_flags, files, (unsigned)n_files, options,
                                     &importer->unit);
}

static void import_all(struct importer *importer, const struct parse_request *request) {
  store_text(importer);
  add_messages(importer);
  clang_getInclusions(importer->unit, add_include, importer);
  if (!request->outline && tree_has_errors(importer->tree)) return;
  if (request->tokens) import_tokens(importer);
  import_unit(importer);
  if (request->digest) importer->tree->digest = import_digest(importer);
}

/* What there is to read; NULL with an error. */
static const char *text_of(struct importer *importer, const struct parse_request *request) {
  const struct location where = {.file = request->file};
  size_t length;
  if (request->text != NULL) return request->text;
  const char *text = read_bytes(importer->arena, request->file, &length);
  if (text == NULL)
    diag_error(importer->diags, where, "cannot read it: %s", strerror(errno));
  else if (strlen(text) < length)
    diag_error(importer->diags, where, "it is not text: byte %zu of it is 0", strlen(text) + 1);
  else
    return text;
  return NULL;
}

struct tree *tree_read(struct arena *arena, const struct parse_request *request, struct diagnostics *diags) {
  struct importer *importer = arena_alloc(arena, sizeof *importer);
  importer->arena = arena;
  importer->diags = diags;
  importer->outline = request->outline;
  importer->is_device = request->is_device;
  struct tree *tree = importer->tree = arena_alloc(arena, sizeof *importer->tree);
  tree->file = request->file;
  tree->text = text_of(importer, request);
  if (tree->text == NULL) return NULL;
  CXIndex index = clang_createIndex(0, 0);
  enum CXErrorCode error = run_clang(importer, index, request);
  if (importer->unit == NULL) {
    diag_error(diags, (struct location){.file = request->file}, "the C parser gave up on this file (libclang error %d)",
               (int)error);
    tree = NULL;
  } else {
    import_all(importer, request);
    clang_disposeTranslationUnit(importer->unit);
  }
  clang_disposeIndex(index);
  return tree;
}
