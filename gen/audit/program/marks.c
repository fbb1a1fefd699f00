#include "gen/audit/program/marks.h"

#include <string.h>

struct scan {
  struct arena *arena;
  const struct written *file;
  struct marks *marks;
  int at;
};

static void add_mark(struct scan *scan, enum mark_kind kind, const char *text, struct location where) {
  struct mark mark = {kind, text, "", where};
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
    {"pragma", MARK_PRAGMA},        {"define", MARK_MACRO},       {"undef", MARK_MACRO},     {"include", MARK_INCLUDE},
    {"include_next", MARK_INCLUDE}, {"import", MARK_INCLUDE},     {"embed", MARK_INCLUDE},   {"if", MARK_CONDITION},
    {"ifdef", MARK_CONDITION},      {"ifndef", MARK_CONDITION},   {"elif", MARK_CONDITION},  {"else", MARK_CONDITION},
    {"elifdef", MARK_CONDITION},    {"elifndef", MARK_CONDITION}, {"endif", MARK_CONDITION}, {"error", MARK_CONDITION},
};

/* Whether a comment begins on the line of a directive, which then continues on another line. */
static bool comment_goes_on(const struct written *file, int at, size_t end) {
  for (; at < file->n_tokens && file->tokens[at].offset < end; at++) {
    if (file->tokens[at].kind != TOKEN_COMMENT) continue;
    const char *start = file->text + file->tokens[at].offset, *close = strstr(start + 2, "*/");
    if (start[1] == '*' && (close == NULL || close > file->text + end)) return true;
  }
  return false;
}

/* A directive at token `at`, which is a '#' that starts a line; moves past it. */
static void read_directive(struct scan *scan) {
  const struct written *file = scan->file;
  const struct token *token = &file->tokens[scan->at];
  size_t end = line_end(file->text, token->offset);
  bool known = scan->at + 1 < file->n_tokens && token[1].offset >= end; /* a '#' alone does nothing */
  for (size_t i = 0; i < sizeof directives / sizeof directives[0] && scan->at + 1 < file->n_tokens; i++) {
    if (strcmp(token[1].text, directives[i].word) != 0) continue;
    known = true;
    size_t from = token[1].offset + strlen(token[1].text);
    while (file->text[from] == ' ') from++;
    add_mark(scan, directives[i].kind, from < end ? arena_copy(scan->arena, file->text + from, end - from) : "",
             token->where);
  }
  if (!known || comment_goes_on(file, scan->at, end))
    add_mark(scan, MARK_UNKNOWN, arena_copy(scan->arena, file->text + token->offset, end - token->offset),
             token->where);
  while (scan->at < file->n_tokens && file->tokens[scan->at].offset < end) scan->at++;
}

/* What follows the newest mark, the name of an attribute, up to the end of the brackets there. */
static void read_arguments(struct scan *scan) {
  const struct token *first = &scan->file->tokens[scan->at + 1];
  if (scan->at + 1 >= scan->file->n_tokens || strcmp(first->text, "(") != 0) return;
  int depth = 0;
  for (int i = scan->at + 1; i < scan->file->n_tokens; i++) {
    const struct token *token = &scan->file->tokens[i];
    depth += (strcmp(token->text, "(") == 0) - (strcmp(token->text, ")") == 0);
    if (depth > 0) continue;
    const char *start = scan->file->text + first->offset;
    scan->marks->items[scan->marks->count - 1].arguments =
        arena_copy(scan->arena, start, token->offset + 1 - first->offset);
    return;
  }
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
    if (expects) {
      add_mark(scan, MARK_ATTRIBUTE, token->text, token->where);
      read_arguments(scan);
    }
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
