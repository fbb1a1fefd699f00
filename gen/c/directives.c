#include "gen/c/directives.h"

#include <ctype.h>
#include <string.h>

/* ---- The text ---- */

static const char *past_blanks(const char *at) {
  return at + strspn(at, " \t");
}

static bool is_part_of_word(char c) {
  return c == '_' || isalnum((unsigned char)c);
}

/* Moves past a word and the blanks after it, if it is there. */
static bool skip(const char **at, const char *word) {
  const size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0 || (is_part_of_word(word[0]) && is_part_of_word((*at)[length]))) return false;
  *at = past_blanks(*at + length);
  return true;
}

static const char *read_word(struct arena *arena, const char **at) {
  size_t length = 0;
  while (is_part_of_word((*at)[length])) length++;
  const char *word = arena_copy(arena, *at, length);
  *at = past_blanks(*at + length);
  return word;
}

/* Moves past what is in brackets, after the first of them. */
static void skip_brackets(const char **at) {
  for (int depth = 1; **at != '\0' && depth > 0; (*at)++) depth += (**at == '(') - (**at == ')');
  *at = past_blanks(*at);
}

static void read_names(struct arena *arena, struct directive *directive, const char **at, const char *operation) {
  do {
    struct directive_name name = {read_word(arena, at), operation};
    directive->names = arena_grow(arena, directive->names, directive->n_names, &directive->names_capacity, sizeof name);
    directive->names[directive->n_names++] = name;
  } while (skip(at, ","));
}

static void read_reduction(struct arena *arena, struct directive *directive, const char **at) {
  const char *colon = strchr(*at, ':');
  if (colon == NULL) return;
  size_t length = (size_t)(colon - *at);
  while (length > 0 && (*at)[length - 1] == ' ') length--;
  const char *operation = arena_copy(arena, *at, length);
  *at = past_blanks(colon + 1);
  read_names(arena, directive, at, operation);
}

static void read_clause(struct arena *arena, struct directive *directive, const char **at) {
  static const char *const without_effect[] = {"schedule", "num_threads", "if",      "default",
                                               "shared",   "safelen",     "simdlen", "proc_bind"};
  const char *name = read_word(arena, at);
  const bool brackets = skip(at, "(");
  bool known = false;
  for (size_t i = 0; i < sizeof without_effect / sizeof without_effect[0]; i++)
    known = known || strcmp(name, without_effect[i]) == 0;
  if (strcmp(name, "nowait") == 0) {
    known = directive->nowait = true;
  } else if (strcmp(name, "collapse") == 0 && brackets) {
    known = **at >= '1' && **at <= '9' && (*at)[1] == ')';
    directive->collapse = known ? **at - '0' : 1;
  } else if (strcmp(name, "reduction") == 0 && brackets) {
    known = true;
    read_reduction(arena, directive, at);
  } else if ((strcmp(name, "private") == 0 || strcmp(name, "firstprivate") == 0) && brackets) {
    known = true;
    read_names(arena, directive, at, NULL);
  }
  if (!known || name[0] == '\0') directive->unknown = directive->text;
  if (brackets) skip_brackets(at);
  if (name[0] == '\0' && !brackets && **at != '\0') (*at)++; /* a comma */
}

/* The words of a directive and its clauses. */
static void read_directive(struct arena *arena, struct directive *directive) {
  static const struct {
    const char *word;
    unsigned part;
  } words[] = {{"parallel", DIRECTIVE_PARALLEL}, {"for", DIRECTIVE_LOOP},      {"simd", DIRECTIVE_SIMD},
               {"barrier", DIRECTIVE_BARRIER},   {"single", DIRECTIVE_SINGLE}, {"master", DIRECTIVE_MASTER},
               {"masked", DIRECTIVE_MASTER},     {"atomic", DIRECTIVE_ATOMIC}, {"critical", DIRECTIVE_CRITICAL}};
  const char *at = directive->text;
  for (bool found = true; found;) {
    found = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && !found; i++) {
      if (!skip(&at, words[i].word)) continue;
      found = true;
      directive->parts |= words[i].part;
    }
  }
  if ((directive->parts & DIRECTIVE_ATOMIC) != 0) { /* read, write, update, capture */
    while (*at != '\0' && is_part_of_word(*at)) read_word(arena, &at);
  }
  if ((directive->parts & DIRECTIVE_CRITICAL) != 0 && skip(&at, "(")) {
    directive->text = read_word(arena, &at);
    skip_brackets(&at);
  }
  if (directive->parts == 0) directive->unknown = directive->text;
  while (*at != '\0' && directive->parts != 0) read_clause(arena, directive, &at);
}

/* ---- Lines ---- */

struct lines {
  const char *at;
  int line;
  bool in_comment;
};

/* Moves to the next character of code, if there is one on this line. */
static bool find_code(struct lines *lines) {
  while (*lines->at != '\0' && *lines->at != '\n') {
    if (lines->in_comment) {
      lines->in_comment = strncmp(lines->at, "*/", 2) != 0;
      lines->at += lines->in_comment ? 1 : 2;
    } else if (strncmp(lines->at, "/*", 2) == 0) {
      lines->in_comment = true;
      lines->at += 2;
    } else if (strncmp(lines->at, "//", 2) == 0) {
      lines->at += strcspn(lines->at, "\n");
    } else if (strchr(" \t\r", *lines->at) == NULL) {
      return true;
    } else {
      lines->at++;
    }
  }
  return false;
}

/* Moves past the code of this line up to its end; a backslash before it continues the line. */
static void pass_line(struct lines *lines) {
  while (find_code(lines)) {
    if (*lines->at == '\\' && lines->at[1] == '\n') {
      lines->at += 2;
      lines->line++;
    } else if (*lines->at == '"' || *lines->at == '\'') {
      const char quote = *lines->at++;
      while (*lines->at != '\0' && *lines->at != quote && *lines->at != '\n')
        lines->at += *lines->at == '\\' && lines->at[1] != '\0' ? 2 : 1;
      lines->at += *lines->at == quote;
    } else {
      lines->at++;
    }
  }
}

/* The text of a directive from here to the end of its line, without what continues it. */
static const char *line_of(struct arena *arena, const char *at) {
  size_t length = 0;
  while (at[length] != '\0' && at[length] != '\n') length += at[length] == '\\' && at[length + 1] == '\n' ? 2 : 1;
  char *text = arena_copy(arena, at, length);
  for (char *c = text; *c != '\0'; c++)
    if (*c == '\\' || *c == '\n' || *c == '\t') *c = ' ';
  return text;
}

/* "omp" in a pragma: moves past it. */
static bool starts_directive(const char **at) {
  const char *word = *at;
  if (*word != '#') return false;
  word = past_blanks(word + 1);
  if (!skip(&word, "pragma") || !skip(&word, "omp")) return false;
  *at = word;
  return true;
}

struct directives directives_read(struct arena *arena, const char *file, const char *text) {
  struct directives directives = {.file = file};
  struct lines lines = {text, 1, false};
  int waiting = 0; /* the first one whose statement is still to come */
  while (*lines.at != '\0') {
    const char *at;
    if (find_code(&lines)) {
      const int line = lines.line;
      at = lines.at;
      if (starts_directive(&at)) {
        struct directive directive = {
            .where = {.file = file, .line = line, .column = 1, .length = 7}, .text = line_of(arena, at), .collapse = 1};
        read_directive(arena, &directive);
        ARENA_PUSH(arena, directives, directive);
      } else if (*at != '#') {
        for (; waiting < directives.count; waiting++) directives.items[waiting].line = line;
      }
    }
    pass_line(&lines);
    if (*lines.at == '\n') {
      lines.at++;
      lines.line++;
    }
  }
  for (int i = 0; i + 1 < directives.count; i++)
    if (directives.items[i].line == directives.items[i + 1].line) directives.items[i].next = &directives.items[i + 1];
  return directives;
}

/* ---- Statements ---- */

struct placing {
  struct directives *directives;
  void (*place)(struct syntax *node, const struct directive *directive, bool at_end, void *data);
  void *data;
};

static bool is_statement(const struct syntax *node) {
  return node->kind != SYNTAX_CASE && node->kind != SYNTAX_DEFAULT && node->kind != SYNTAX_LABEL;
}

static bool place_at(struct syntax *node, void *data) {
  struct placing *placing = data;
  struct directives *directives = placing->directives;
  int first = 0, last = directives->count; /* the first one at this line or after it */
  while (first < last) {
    const int middle = (first + last) / 2;
    if (directives->items[middle].line < node->where.line)
      first = middle + 1;
    else
      last = middle;
  }
  if (first >= directives->count || directives->items[first].line != node->where.line || !is_statement(node))
    return true;
  if (directives->items[first].is_placed) return true;
  placing->place(node, &directives->items[first], false, placing->data);
  for (int i = first; i < directives->count && directives->items[i].line == node->where.line; i++)
    directives->items[i].is_placed = true;
  return true;
}

struct block_search {
  const struct directive *directive;
  struct syntax *block; /* the innermost one that the directive is in; NULL: none */
};

static bool find_block(struct syntax *node, void *data) {
  struct block_search *search = data;
  if (node->kind == SYNTAX_BLOCK && node->where.line < search->directive->where.line &&
      node->last_line == search->directive->line)
    search->block = node;
  return true;
}

void directives_place(struct directives *directives, struct function *function,
                      void (*place)(struct syntax *node, const struct directive *directive, bool at_end, void *data),
                      void *data) {
  struct placing placing = {directives, place, data};
  if (directives->count == 0) return;
  syntax_visit(function->body, place_at, &placing);
  for (int i = 0; i < directives->count; i++) {
    struct directive *directive = &directives->items[i];
    struct block_search search = {directive, NULL};
    if (directive->is_placed || directive->parts != DIRECTIVE_BARRIER) continue;
    syntax_visit(function->body, find_block, &search);
    if (search.block == NULL) continue;
    place(search.block, directive, true, data);
    directive->is_placed = true;
  }
}
