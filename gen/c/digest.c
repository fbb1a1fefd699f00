/* The digest of a source: of the tokens of its files, so that comments and layout make no other one. */
#include <string.h>

#include "gen/base/sha256.h"
#include "gen/c/import.h"

struct summing {
  struct importer *importer;
  struct sha256 sum;
};

static void add_token(struct summing *summing, CXToken token) {
  if (clang_getTokenKind(token) == CXToken_Comment) return;
  const char *text = import_string(summing->importer, clang_getTokenSpelling(summing->importer->unit, token));
  sha256_add(&summing->sum, text, strlen(text) + 1);
}

/* Headers in memory come with whoever reads, and others from the system. */
static void add_file(CXFile file, CXSourceLocation *stack, unsigned depth, CXClientData data) {
  struct summing *summing = data;
  CXTranslationUnit unit = summing->importer->unit;
  size_t size = 0;
  (void)stack, (void)depth;
  const char *text = clang_getFileContents(unit, file, &size);
  const char *name = import_string(summing->importer, clang_getFileName(file));
  CXSourceLocation start = clang_getLocationForOffset(unit, file, 0);
  bool in_memory = strncmp(name, HEADER_FOLDER "/", sizeof HEADER_FOLDER) == 0;
  if (text == NULL || in_memory || clang_Location_isInSystemHeader(start)) return;
  CXSourceLocation end = clang_getLocationForOffset(unit, file, (unsigned)size);
  CXToken *tokens = NULL;
  unsigned count = 0;
  clang_tokenize(unit, clang_getRange(start, end), &tokens, &count);
  for (unsigned i = 0; i < count; i++) add_token(summing, tokens[i]);
  clang_disposeTokens(unit, tokens, count);
}

const char *import_digest(struct importer *importer) {
  struct summing summing = {importer, sha256_start()};
  char hex[65];
  clang_getInclusions(importer->unit, add_file, &summing);
  sha256_hex(&summing.sum, hex);
  return arena_copy(importer->arena, hex, 16);
}
