/* The tokens of the file itself, and the lines that the preprocessor left out: what the tree does not show. */
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

static void add_tokens(struct importer *importer, CXSourceRange whole) {
  struct tree *tree = importer->tree;
  CXToken *tokens = NULL;
  unsigned count = 0;
  clang_tokenize(importer->unit, whole, &tokens, &count);
  tree->tokens = arena_alloc(importer->arena, ((size_t)count + 1) * sizeof *tree->tokens);
  for (unsigned i = 0; i < count; i++) {
    CXSourceLocation place = clang_getTokenLocation(importer->unit, tokens[i]);
    struct token *token = &tree->tokens[tree->n_tokens++];
    token->kind = kind_of(tokens[i]);
    token->where = import_location(importer, place);
    clang_getFileLocation(place, NULL, NULL, NULL, &token->offset);
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
  if (list == NULL) return;
  tree->skipped = arena_alloc(importer->arena, ((size_t)list->count + 1) * sizeof *tree->skipped);
  for (unsigned i = 0; i < list->count; i++)
    tree->skipped[tree->n_skipped++] =
        (struct skipped){import_location(importer, clang_getRangeStart(list->ranges[i])),
                         import_location(importer, clang_getRangeEnd(list->ranges[i])).line};
  clang_disposeSourceRangeList(list);
}

void import_tokens(struct importer *importer) {
  CXFile file = clang_getFile(importer->unit, importer->tree->file);
  if (file == NULL) return;
  unsigned end = (unsigned)strlen(importer->tree->text);
  add_tokens(importer, clang_getRange(clang_getLocationForOffset(importer->unit, file, 0),
                                      clang_getLocationForOffset(importer->unit, file, end)));
  add_skipped(importer, file);
}
