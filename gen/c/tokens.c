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

/* ---- Macros ---- */

enum { NAME_BUCKETS = 4096 };

/* A word of the text, and which macro it names. */
struct name {
  const char *text;
  enum macro_origin macro;
  struct name *next;
};

struct names {
  struct importer *importer;
  struct name *buckets[NAME_BUCKETS];
};

static struct name **find_name(struct names *names, const char *text) {
  unsigned hash = 5381;
  for (const char *at = text; *at != '\0'; at++) hash = hash * 33 + (unsigned char)*at;
  struct name **at = &names->buckets[hash % NAME_BUCKETS];
  while (*at != NULL && strcmp((*at)->text, text) != 0) at = &(*at)->next;
  return at;
}

static enum macro_origin origin_of(struct importer *importer, CXCursor definition) {
  struct location where = import_location(importer, clang_getCursorLocation(definition));
  if (clang_Cursor_isMacroBuiltin(definition) || where.file == NULL) return MACRO_COMPILER;
  return is_written(importer->tree, where.file) ? MACRO_OWN : MACRO_HEADER;
}

/* A macro that the compiler or a header defines keeps that origin, whoever defines it again. */
static enum CXChildVisitResult note_macro(CXCursor cursor, CXCursor parent, CXClientData data) {
  struct names *names = data;
  (void)parent;
  if (clang_getCursorKind(cursor) != CXCursor_MacroDefinition) return CXChildVisit_Continue;
  CXString spelling = clang_getCursorSpelling(cursor);
  struct name *name = *find_name(names, clang_getCString(spelling));
  clang_disposeString(spelling);
  if (name == NULL) return CXChildVisit_Continue;
  enum macro_origin origin = origin_of(names->importer, cursor);
  if (origin > name->macro) name->macro = origin;
  return CXChildVisit_Continue;
}

static void mark_macros(struct importer *importer) {
  struct names *names = arena_alloc(importer->arena, sizeof *names);
  struct tree *tree = importer->tree;
  names->importer = importer;
  for (int i = 0; i < tree->n_written; i++)
    for (int j = 0; j < tree->written[i].n_tokens; j++) {
      const struct token *token = &tree->written[i].tokens[j];
      struct name **at = find_name(names, token->text);
      if (token->kind != TOKEN_OTHER || *at != NULL) continue;
      *at = arena_alloc(importer->arena, sizeof **at);
      (*at)->text = token->text;
    }
  clang_visitChildren(clang_getTranslationUnitCursor(importer->unit), note_macro, names);
  for (int i = 0; i < tree->n_written; i++)
    for (int j = 0; j < tree->written[i].n_tokens; j++) {
      struct token *token = &tree->written[i].tokens[j];
      if (token->kind == TOKEN_OTHER) token->macro = (*find_name(names, token->text))->macro;
    }
}

void import_tokens(struct importer *importer) {
  CXFile file = clang_getFile(importer->unit, importer->tree->file);
  if (file == NULL) return;
  add_file(importer, file);
  clang_visitChildren(clang_getTranslationUnitCursor(importer->unit), add_included, importer);
  mark_macros(importer);
}

/* ---- Declarations ---- */

static enum declaration_kind declaration_kind(CXCursor cursor) {
  switch (clang_getCursorKind(cursor)) {
  case CXCursor_FunctionDecl:
    return DECLARATION_FUNCTION;
  case CXCursor_VarDecl:
    return DECLARATION_VARIABLE;
  case CXCursor_TypedefDecl:
    return DECLARATION_TYPE;
  case CXCursor_StructDecl:
  case CXCursor_UnionDecl:
    return DECLARATION_RECORD;
  case CXCursor_EnumDecl:
    return DECLARATION_ENUMERATION;
  case CXCursor_StaticAssert:
    return DECLARATION_ASSERTION;
  default:
    return DECLARATION_OTHER;
  }
}

/* Whether code computes the size of a type, or of what it points to. */
static bool is_of_code(CXType type) {
  for (int depth = 0; depth < 64; depth++) {
    type = clang_getCanonicalType(type);
    if (type.kind == CXType_VariableArray) return true;
    CXType inner = clang_getArrayElementType(type);
    if (inner.kind == CXType_Invalid) inner = clang_getPointeeType(type);
    if (inner.kind == CXType_Invalid) return false;
    type = inner;
  }
  return true;
}

static bool has_parameter_of_code(CXCursor cursor) {
  for (int i = 0; i < clang_Cursor_getNumArguments(cursor); i++)
    if (is_of_code(clang_getCursorType(clang_Cursor_getArgument(cursor, (unsigned)i)))) return true;
  return false;
}

void import_declared(struct importer *importer, CXCursor cursor, bool is_local) {
  struct tree *tree = importer->tree;
  struct declaration declaration = {.kind = declaration_kind(cursor),
                                    .where = import_location(importer, clang_getCursorLocation(cursor)),
                                    .is_external = clang_getCursorLinkage(cursor) == CXLinkage_External,
                                    .is_local = is_local};
  bool plain = is_local && declaration.kind == DECLARATION_VARIABLE && !declaration.is_external;
  if (plain || clang_isPreprocessing(clang_getCursorKind(cursor)) || declaration.where.file == NULL ||
      !is_written(tree, declaration.where.file))
    return;
  declaration.name = import_string(importer, clang_getCursorSpelling(cursor));
  declaration.is_definition = clang_isCursorDefinition(cursor) != 0;
  if (declaration.kind == DECLARATION_FUNCTION) declaration.is_of_code = has_parameter_of_code(cursor);
  if (declaration.kind == DECLARATION_TYPE)
    declaration.is_of_code = is_of_code(clang_getTypedefDeclUnderlyingType(cursor));
  tree->declarations = arena_grow(importer->arena, tree->declarations, tree->n_declarations,
                                  &tree->declarations_capacity, sizeof *tree->declarations);
  tree->declarations[tree->n_declarations++] = declaration;
}
