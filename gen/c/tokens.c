/* The tokens of the source and of its own headers, and the lines that the preprocessor left out: what the tree does not
 * show. */
#include <string.h>

#include "gen/c/import.h"

static enum token_kind kind_of(CXToken token) {
  switch (clang_getTokenKind(token)) {
  case CXToken_Punctuation:
    return TOKEN_PUNCTUATION;
  case CXToken_Comment:
    return TOKEN_COMMENT;
  default:
    return TOKEN_OTHER;
  }
}

static void add_tokens(struct importer *importer, CXSourceRange whole, struct written *written) {
  CXToken *tokens = NULL;
  unsigned count = 0;
  clang_tokenize(importer->unit, whole, &tokens, &count);
  written->tokens = arena_alloc(importer->arena, ((size_t)count + 1) * sizeof *written->tokens);
  for (unsigned i = 0; i < count; i++) {
    CXSourceLocation location = clang_getTokenLocation(importer->unit, tokens[i]);
    struct token *token = &written->tokens[written->n_tokens++];
    token->kind = kind_of(tokens[i]);
    token->where = import_location(importer, location);
    clang_getFileLocation(location, NULL, NULL, NULL, &token->offset);
    if (token->kind != TOKEN_COMMENT)
      token->text = import_string(importer, clang_getTokenSpelling(importer->unit, tokens[i]));
    else
      token->text = "";
  }
  clang_disposeTokens(importer->unit, tokens, count);
}

static void add_skipped(struct importer *importer, CXFile file) {
  struct tree *tree = importer->tree;
  CXSourceRangeList *list = clang_getSkippedRanges(importer->unit, file);
  for (unsigned i = 0; list != NULL && i < list->count; i++) {
    struct skipped lines = {import_location(importer, clang_getRangeStart(list->ranges[i])),
                            import_location(importer, clang_getRangeEnd(list->ranges[i])).line};
    tree->skipped =
        arena_grow(importer->arena, tree->skipped, tree->n_skipped, &tree->skipped_capacity, sizeof *tree->skipped);
    tree->skipped[tree->n_skipped++] = lines;
  }
  if (list != NULL) clang_disposeSourceRangeList(list);
}

/* ---- Files ---- */

static bool is_written(const struct tree *tree, const char *file) {
  for (int i = 0; i < tree->n_written; i++)
    if (strcmp(tree->written[i].file, file) == 0) return true;
  return false;
}

static void add_file(struct importer *importer, CXFile file) {
  struct tree *tree = importer->tree;
  size_t size = 0;
  const char *text = clang_getFileContents(importer->unit, file, &size);
  CXSourceLocation start = clang_getLocationForOffset(importer->unit, file, 0);
  struct written written = {.file = import_location(importer, start).file};
  if (text == NULL || written.file == NULL || is_written(tree, written.file)) return;
  written.text = arena_copy(importer->arena, text, size);
  CXSourceLocation end = clang_getLocationForOffset(importer->unit, file, (unsigned)size);
  add_tokens(importer, clang_getRange(start, end), &written);
  tree->written =
      arena_grow(importer->arena, tree->written, tree->n_written, &tree->written_capacity, sizeof *tree->written);
  tree->written[tree->n_written++] = written;
  add_skipped(importer, file);
}

/* Whether a file includes another one as "...", not as <...>. */
static bool is_quoted(struct importer *importer, CXCursor cursor) {
  CXToken *tokens = NULL;
  unsigned count = 0;
  clang_tokenize(importer->unit, clang_getCursorExtent(cursor), &tokens, &count);
  const char *name = count < 3 ? "" : import_string(importer, clang_getTokenSpelling(importer->unit, tokens[2]));
  clang_disposeTokens(importer->unit, tokens, count);
  return name[0] == '"';
}

/* The headers of written files come after them. */
static enum CXChildVisitResult add_included(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct importer *importer = data;
  (void)parent;
  if (clang_getCursorKind(cursor) != CXCursor_InclusionDirective) return CXChildVisit_Continue;
  struct location where = import_location(importer, clang_getCursorLocation(cursor));
  CXFile file = clang_getIncludedFile(cursor);
  bool own = file != NULL && where.file != NULL && is_written(importer->tree, where.file);
  if (own && is_quoted(importer, cursor)) add_file(importer, file);
  return CXChildVisit_Continue;
}

void import_tokens(struct importer *importer) {
  CXFile file = clang_getFile(importer->unit, importer->tree->file);
  if (file == NULL) return;
  add_file(importer, file);
  clang_visitChildren(clang_getTranslationUnitCursor(importer->unit), add_included, importer);
}
