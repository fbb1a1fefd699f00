/* What the tree does not show: pragmas, attributes, macros and directives, from the tokens of the file itself. */
#include <string.h>

#include "gen/audit/import.h"
#include "gen/base/text.h"

struct scan {
  struct importer *importer;
  CXToken *tokens;
  unsigned count, at;
};

static const char *spelling(const struct scan *scan, unsigned at) {
  return import_string(scan->importer, clang_getTokenSpelling(scan->importer->unit, scan->tokens[at]));
}

static bool is_comment(const struct scan *scan, unsigned at) {
  return clang_getTokenKind(scan->tokens[at]) == CXToken_Comment;
}

static struct location place(const struct scan *scan, unsigned at) {
  struct importer *importer = scan->importer;
  return import_location(importer, clang_getTokenLocation(importer->unit, scan->tokens[at]));
}

static void add_mark(struct importer *importer, enum mark_kind kind, const char *text, struct location where) {
  struct tree *tree = importer->tree;
  tree->marks = arena_grow(importer->arena, tree->marks, tree->n_marks, &tree->marks_capacity, sizeof *tree->marks);
  tree->marks[tree->n_marks++] = (struct mark){kind, text, where};
}

/* Where the logical line of byte `at` ends: a backslash before a line's end continues it. */
static size_t line_end(const char *text, size_t at) {
  while (text[at] != '\0' && text[at] != '\n') at++;
  while (at > 0 && text[at] == '\n' && text[at - 1] == '\\') {
    at++;
    while (text[at] != '\0' && text[at] != '\n') at++;
  }
  return at;
}

static unsigned offset_of(const struct scan *scan, unsigned at) {
  unsigned offset = 0;
  clang_getFileLocation(clang_getTokenLocation(scan->importer->unit, scan->tokens[at]), NULL, NULL, NULL, &offset);
  return offset;
}

static bool starts_line(const struct scan *scan, unsigned at) {
  return at == 0 || place(scan, at).line != place(scan, at - 1).line || is_comment(scan, at - 1);
}

static const struct {
  const char *word;
  enum mark_kind kind;
} directives[] = {
    {"pragma", MARK_PRAGMA},        {"define", MARK_MACRO},     {"undef", MARK_MACRO},    {"include", MARK_INCLUDE},
    {"include_next", MARK_INCLUDE}, {"import", MARK_INCLUDE},   {"embed", MARK_INCLUDE},  {"if", MARK_CONDITION},
    {"ifdef", MARK_CONDITION},      {"ifndef", MARK_CONDITION}, {"elif", MARK_CONDITION}, {"else", MARK_CONDITION},
    {"line", MARK_PRAGMA},          {"error", MARK_CONDITION},  {"ident", MARK_PRAGMA},
};

/* A directive at token `at`, which is a '#' that starts a line; moves behind it. */
static void read_directive(struct scan *scan) {
  const char *text = scan->importer->tree->text;
  size_t begin = offset_of(scan, scan->at), end = line_end(text, begin);
  if (scan->at + 1 < scan->count) {
    const char *word = spelling(scan, scan->at + 1);
    for (size_t i = 0; i < sizeof directives / sizeof directives[0]; i++)
      if (strcmp(word, directives[i].word) == 0) {
        size_t from = offset_of(scan, scan->at + 1) + strlen(word);
        while (text[from] == ' ') from++;
        add_mark(scan->importer, directives[i].kind,
                 from < end ? arena_copy(scan->importer->arena, text + from, end - from) : "", place(scan, scan->at));
      }
  }
  while (scan->at < scan->count && offset_of(scan, scan->at) < end) scan->at++;
}

/* The names in __attribute__((...)) or [[...]], one mark each. */
static void read_attribute(struct scan *scan) {
  int depth = 0;
  bool expects = true;
  for (scan->at++; scan->at < scan->count; scan->at++) {
    const char *word = spelling(scan, scan->at);
    if (strcmp(word, "(") == 0) depth++;
    if (strcmp(word, ")") == 0 && --depth <= 0) break;
    if (strcmp(word, ",") == 0 && depth == 2) expects = true;
    if (depth != 2 || clang_getTokenKind(scan->tokens[scan->at]) == CXToken_Punctuation) continue;
    if (expects) add_mark(scan->importer, MARK_ATTRIBUTE, word, place(scan, scan->at));
    expects = false;
  }
}

static void scan_tokens(struct scan *scan) {
  while (scan->at < scan->count) {
    if (is_comment(scan, scan->at)) {
      scan->at++;
      continue;
    }
    const char *word = spelling(scan, scan->at);
    bool hash = strcmp(word, "#") == 0 || strcmp(word, "%:") == 0 || strcmp(word, "\?\?=") == 0;
    if (hash && starts_line(scan, scan->at)) {
      read_directive(scan);
    } else if (strcmp(word, "__attribute__") == 0 || strcmp(word, "__attribute") == 0) {
      read_attribute(scan);
    } else {
      if (strcmp(word, "_Pragma") == 0) add_mark(scan->importer, MARK_PRAGMA, "_Pragma", place(scan, scan->at));
      scan->at++;
    }
  }
}

static void add_skipped(struct importer *importer, CXFile file) {
  CXSourceRangeList *list = clang_getSkippedRanges(importer->unit, file);
  for (unsigned i = 0; list != NULL && i < list->count; i++) {
    struct location from = import_location(importer, clang_getRangeStart(list->ranges[i]));
    struct location to = import_location(importer, clang_getRangeEnd(list->ranges[i]));
    add_mark(importer, MARK_SKIPPED, arena_printf(importer->arena, "lines %d to %d", from.line, to.line), from);
  }
  if (list != NULL) clang_disposeSourceRangeList(list);
}

void import_marks(struct importer *importer) {
  CXFile file = clang_getFile(importer->unit, importer->tree->file);
  if (file == NULL) return;
  unsigned end = (unsigned)strlen(importer->tree->text);
  CXSourceRange whole = clang_getRange(clang_getLocationForOffset(importer->unit, file, 0),
                                       clang_getLocationForOffset(importer->unit, file, end));
  struct scan scan = {.importer = importer};
  clang_tokenize(importer->unit, whole, &scan.tokens, &scan.count);
  scan_tokens(&scan);
  clang_disposeTokens(importer->unit, scan.tokens, scan.count);
  add_skipped(importer, file);
}
