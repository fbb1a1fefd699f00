#include "gen/audit/marks.h"

#include <string.h>

struct scan {
  struct arena *arena;
  const struct tree *tree;
  struct marks *marks;
  int at;
};

static void add_mark(struct scan *scan, enum mark_kind kind, const char *text, struct location where) {
  struct mark mark = {kind, text, where};
  ARENA_PUSH(scan->arena, *scan->marks, mark);
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

static bool starts_line(const struct token *tokens, int at) {
  return at == 0 || tokens[at].where.line != tokens[at - 1].where.line || tokens[at - 1].kind == TOKEN_COMMENT;
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
  const struct tree *tree = scan->tree;
  const struct token *token = &tree->tokens[scan->at];
  size_t end = line_end(tree->text, token->offset);
  for (size_t i = 0; i < sizeof directives / sizeof directives[0] && scan->at + 1 < tree->n_tokens; i++) {
    if (strcmp(token[1].text, directives[i].word) != 0) continue;
    size_t from = token[1].offset + strlen(token[1].text);
    while (tree->text[from] == ' ') from++;
    add_mark(scan, directives[i].kind, from < end ? arena_copy(scan->arena, tree->text + from, end - from) : "",
             token->where);
  }
  while (scan->at < tree->n_tokens && tree->tokens[scan->at].offset < end) scan->at++;
}

/* The names in __attribute__((...)), one mark each. */
static void read_attribute(struct scan *scan) {
  int depth = 0;
  bool expects = true;
  for (scan->at++; scan->at < scan->tree->n_tokens; scan->at++) {
    const struct token *token = &scan->tree->tokens[scan->at];
    if (strcmp(token->text, "(") == 0) depth++;
    if (strcmp(token->text, ")") == 0 && --depth <= 0) break;
    if (strcmp(token->text, ",") == 0 && depth == 2) expects = true;
    if (depth != 2 || token->kind == TOKEN_PUNCTUATION) continue;
    if (expects) add_mark(scan, MARK_ATTRIBUTE, token->text, token->where);
    expects = false;
  }
}

static void scan_tokens(struct scan *scan) {
  const struct token *tokens = scan->tree->tokens;
  while (scan->at < scan->tree->n_tokens) {
    const char *word = tokens[scan->at].text; /* "" for a comment */
    bool hash = strcmp(word, "#") == 0 || strcmp(word, "%:") == 0 || strcmp(word, "\?\?=") == 0;
    if (hash && starts_line(tokens, scan->at)) {
      read_directive(scan);
    } else if (strcmp(word, "__attribute__") == 0 || strcmp(word, "__attribute") == 0) {
      read_attribute(scan);
    } else {
      if (strcmp(word, "_Pragma") == 0) add_mark(scan, MARK_PRAGMA, "_Pragma", tokens[scan->at].where);
      scan->at++;
    }
  }
}

struct marks marks_of(struct arena *arena, const struct tree *tree) {
  struct marks marks = {0};
  struct scan scan = {.arena = arena, .tree = tree, .marks = &marks};
  scan_tokens(&scan);
  for (int i = 0; i < tree->n_skipped; i++) {
    const struct skipped *lines = &tree->skipped[i];
    add_mark(&scan, MARK_SKIPPED, arena_printf(arena, "lines %d to %d", lines->where.line, lines->last_line),
             lines->where);
  }
  return marks;
}
