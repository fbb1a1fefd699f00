#include "gen/audit/marks.h"

#include <string.h>

struct scan {
  struct arena *arena;
  const struct written *file;
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

/* A directive at token `at`, which is a '#' that starts a line; moves past it. */
static void read_directive(struct scan *scan) {
  const struct written *file = scan->file;
  const struct token *token = &file->tokens[scan->at];
  size_t end = line_end(file->text, token->offset);
  for (size_t i = 0; i < sizeof directives / sizeof directives[0] && scan->at + 1 < file->n_tokens; i++) {
    if (strcmp(token[1].text, directives[i].word) != 0) continue;
    size_t from = token[1].offset + strlen(token[1].text);
    while (file->text[from] == ' ') from++;
    add_mark(scan, directives[i].kind, from < end ? arena_copy(scan->arena, file->text + from, end - from) : "",
             token->where);
  }
  while (scan->at < file->n_tokens && file->tokens[scan->at].offset < end) scan->at++;
}

/* The names in __attribute__((...)), one mark each. */
static void read_attribute(struct scan *scan) {
  int depth = 0;
  bool expects = true;
  for (scan->at++; scan->at < scan->file->n_tokens; scan->at++) {
    const struct token *token = &scan->file->tokens[scan->at];
    if (strcmp(token->text, "(") == 0) depth++;
    if (strcmp(token->text, ")") == 0 && --depth <= 0) break;
    if (strcmp(token->text, ",") == 0 && depth == 2) expects = true;
    if (depth != 2 || token->kind == TOKEN_PUNCTUATION) continue;
    if (expects) add_mark(scan, MARK_ATTRIBUTE, token->text, token->where);
    expects = false;
  }
}

static bool is_word(const struct scan *scan, int at, const char *word) {
  return at < scan->file->n_tokens && strcmp(scan->file->tokens[at].text, word) == 0;
}

/* The names in [[...]]; of gnu::noinline, the last part. */
static void read_brackets(struct scan *scan) {
  for (scan->at += 2; scan->at < scan->file->n_tokens && !is_word(scan, scan->at, "]"); scan->at++) {
    const struct token *token = &scan->file->tokens[scan->at];
    bool name = is_word(scan, scan->at - 1, "[") || is_word(scan, scan->at - 1, ",") ||
                is_word(scan, scan->at - 1, ":") || is_word(scan, scan->at - 1, "::");
    bool prefix = is_word(scan, scan->at + 1, "::") || is_word(scan, scan->at + 1, ":");
    if (name && !prefix && token->kind == TOKEN_OTHER) add_mark(scan, MARK_ATTRIBUTE, token->text, token->where);
  }
}

static void scan_tokens(struct scan *scan) {
  const struct token *tokens = scan->file->tokens;
  while (scan->at < scan->file->n_tokens) {
    const char *word = tokens[scan->at].text; /* "" for a comment */
    bool hash = strcmp(word, "#") == 0 || strcmp(word, "%:") == 0 || strcmp(word, "\?\?=") == 0;
    if (hash && starts_line(tokens, scan->at)) {
      read_directive(scan);
    } else if (strcmp(word, "[") == 0 && is_word(scan, scan->at + 1, "[")) {
      read_brackets(scan);
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
  struct scan scan = {.arena = arena, .marks = &marks};
  for (int i = 0; i < tree->n_written; i++) {
    scan.file = &tree->written[i];
    scan.at = 0;
    scan_tokens(&scan);
  }
  for (int i = 0; i < tree->n_skipped; i++) {
    const struct skipped *lines = &tree->skipped[i];
    add_mark(&scan, MARK_SKIPPED, arena_printf(arena, "lines %d to %d", lines->where.line, lines->last_line),
             lines->where);
  }
  return marks;
}
