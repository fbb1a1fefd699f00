/* Assignments of a Python file, such as nanoGPT's config/train_gpt2.py: "name = expression", a line each. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gen/import/read.h"

enum { DEEPEST = 64 };

struct python {
  struct arena *arena;
  struct diagnostics *diags;
  const char *file;
  const char *at, *line_start; /* the next character, and the line that it is in */
  int line, depth;
  struct spec_node *map;
  int capacity;
  bool failed;
};

static struct location here(const struct python *p, const char *from) {
  const int column = (int)(from - p->line_start) + 1, length = (int)(p->at - from);
  return (struct location){p->file, p->line, column, length > 0 ? length : 0};
}

/* What is not an assignment ends the reading. */
static void fail_line(struct python *p, const char *from, const char *message) {
  if (!p->failed) {
    diag_error(p->diags, here(p, from), "%s", message);
    diag_help(p->diags, "assignments of one line are read: literals, and sums, products and quotients of them");
  }
  p->failed = true;
}

/* What is not read in an expression. */
static struct spec_node *fail(struct python *p) {
  p->failed = true;
  return NULL;
}

static void skip_blanks(struct python *p) {
  p->at += strspn(p->at, " \t\r");
  if (*p->at == '#') p->at += strcspn(p->at, "\n");
}

static void next_line(struct python *p) {
  if (*p->at != '\n') return;
  p->line_start = ++p->at;
  p->line++;
}

static struct spec_node *value_of(struct python *p, const char *from, struct spec_node value) {
  struct spec_node *node = arena_alloc(p->arena, sizeof *node);
  *node = value;
  node->where = here(p, from);
  if (node->text == NULL) node->text = arena_copy(p->arena, from, (size_t)(p->at - from));
  node->length = strlen(node->text);
  return node;
}

static bool is_number(const struct spec_node *node) {
  return node->kind == SPEC_INT || node->kind == SPEC_REAL;
}

/* ---- Literals ---- */

/* A number as Python writes it: digits may be in groups, 1_000. */
static struct spec_node *read_number(struct python *p) {
  enum { LONGEST = 64 };
  char digits[LONGEST];
  const char *from = p->at;
  size_t length = 0;
  while (isalnum((unsigned char)*p->at) || *p->at == '.' || *p->at == '_' ||
         (strchr("+-", *p->at) != NULL && *p->at != '\0' && p->at > from && strchr("eE", p->at[-1]) != NULL)) {
    if (*p->at != '_' && length + 1 < sizeof digits) digits[length++] = *p->at;
    p->at++;
  }
  digits[length] = '\0';
  char *end;
  errno = 0;
  if (digits[strspn(digits, "0123456789")] == '\0') {
    const long long integer = strtoll(digits, &end, 10);
    if (errno == 0)
      return value_of(p, from, (struct spec_node){.kind = SPEC_INT, .integer = integer, .real = (double)integer});
  }
  const double real = strtod(digits, &end);
  if (*end != '\0' || strpbrk(digits, "xXnNpP") != NULL) return fail(p);
  return value_of(p, from, (struct spec_node){.kind = SPEC_REAL, .real = real});
}

static struct spec_node *read_string(struct python *p) {
  const char *from = p->at, quote = *p->at++;
  const size_t length = strcspn(p->at, quote == '\'' ? "'\\\n" : "\"\\\n");
  const char *text = arena_copy(p->arena, p->at, length);
  p->at += length;
  if (*p->at != quote) return fail(p);
  p->at++;
  return value_of(p, from, (struct spec_node){.kind = SPEC_STRING, .text = text});
}

static struct spec_node *read_word(struct python *p) {
  const char *from = p->at;
  while (isalnum((unsigned char)*p->at) || *p->at == '_') p->at++;
  const char *word = arena_copy(p->arena, from, (size_t)(p->at - from));
  const bool yes = strcmp(word, "True") == 0;
  if (yes || strcmp(word, "False") == 0)
    return value_of(p, from, (struct spec_node){.kind = SPEC_BOOL, .integer = yes});
  if (strcmp(word, "None") == 0) return value_of(p, from, (struct spec_node){.kind = SPEC_NULL});
  const struct spec_entry *known = spec_entry(p->map, word);
  if (known == NULL) return fail(p);
  struct spec_node copy = *known->value;
  return value_of(p, from, copy);
}

/* ---- Expressions ---- */

static struct spec_node *read_sum(struct python *p);

static struct spec_node *read_list(struct python *p) {
  const char *from = p->at, close = *p->at++ == '[' ? ']' : ')';
  struct {
    struct spec_entry *items;
    int count, capacity;
  } list = {0};
  bool commas = false;
  for (skip_blanks(p); *p->at != close; skip_blanks(p)) {
    struct spec_node *item = read_sum(p);
    if (item == NULL) return NULL;
    ARENA_PUSH(p->arena, list, (struct spec_entry){.value = item});
    skip_blanks(p);
    if (*p->at == ',') {
      commas = true;
      p->at++;
    } else if (*p->at != close) {
      return fail(p);
    }
  }
  p->at++;
  if (close == ')' && !commas && list.count == 1) return list.items[0].value;
  return value_of(p, from, (struct spec_node){.kind = SPEC_LIST, .entries = list.items, .count = list.count});
}

static struct spec_node *read_factor(struct python *p) {
  skip_blanks(p);
  const char *from = p->at;
  if (p->depth >= DEEPEST) return fail(p);
  if (*p->at == '-') {
    p->at++;
    p->depth++;
    struct spec_node *value = read_factor(p);
    p->depth--;
    if (value == NULL) return NULL;
    if (!is_number(value)) return fail(p);
    return value_of(p, from, (struct spec_node){.kind = value->kind, .integer = -value->integer, .real = -value->real});
  }
  if (isdigit((unsigned char)*p->at) || (*p->at == '.' && isdigit((unsigned char)p->at[1]))) return read_number(p);
  if (*p->at == '\'' || *p->at == '"') return read_string(p);
  if (isalpha((unsigned char)*p->at) || *p->at == '_') return read_word(p);
  if (*p->at != '(' && *p->at != '[') return fail(p);
  p->depth++;
  struct spec_node *list = read_list(p);
  p->depth--;
  return list;
}

/* a OP b, with Python's types: a quotient is real, and an integer that is too large for one is. */
static struct spec_node *combine(struct python *p, const char *from, const struct spec_node *a, const char *operator,
                                 const struct spec_node * b) {
  if (!is_number(a) || !is_number(b)) return fail(p);
  const bool whole = operator[0] == '/' && operator[1] == '/';
  const bool integers = a->kind == SPEC_INT && b->kind == SPEC_INT;
  if (*operator== '/' && b->real == 0) return fail(p);
  if (whole && !(integers && a->integer >= 0 && b->integer > 0)) return fail(p);
  int64_t integer = 0;
  bool wide = !integers || (*operator== '/' && !whole);
  if (!wide && *operator== '+') wide = __builtin_add_overflow(a->integer, b->integer, &integer);
  if (!wide && *operator== '-') wide = __builtin_sub_overflow(a->integer, b->integer, &integer);
  if (!wide && *operator== '*') wide = __builtin_mul_overflow(a->integer, b->integer, &integer);
  if (!wide && whole) integer = a->integer / b->integer;
  const double real = *operator== '+'    ? a->real + b->real
                      : * operator== '-' ? a->real - b->real
                      : * operator== '*' ? a->real * b->real
                                         : a->real / b->real;
  return value_of(p, from,
                  wide ? (struct spec_node){.kind = SPEC_REAL, .real = real}
                       : (struct spec_node){.kind = SPEC_INT, .integer = integer, .real = (double)integer});
}

static struct spec_node *read_product(struct python *p) {
  skip_blanks(p);
  const char *from = p->at;
  struct spec_node *value = read_factor(p);
  for (skip_blanks(p); value != NULL && (*p->at == '*' || *p->at == '/'); skip_blanks(p)) {
    const char *operator= * p->at == '*' ? "*" : p->at[1] == '/' ? "//" : "/";
    if (p->at[0] == '*' && p->at[1] == '*') return fail(p);
    p->at += strlen(operator);
    const struct spec_node *next = read_factor(p);
    value = next != NULL ? combine(p, from, value, operator, next) : NULL;
  }
  return value;
}

static struct spec_node *read_sum(struct python *p) {
  skip_blanks(p);
  const char *from = p->at;
  struct spec_node *value = read_product(p);
  for (skip_blanks(p); value != NULL && (*p->at == '+' || *p->at == '-'); skip_blanks(p)) {
    const char *operator= * p->at == '+' ? "+" : "-";
    p->at++;
    const struct spec_node *next = read_product(p);
    value = next != NULL ? combine(p, from, value, operator, next) : NULL;
  }
  return value;
}

/* ---- Lines ---- */

static void assign(struct python *p, const char *name, struct location where, struct spec_node *value) {
  struct spec_entry *known = spec_entry(p->map, name);
  if (known != NULL) {
    *known = (struct spec_entry){name, where, value};
    return;
  }
  p->map->entries = arena_grow(p->arena, p->map->entries, p->map->count, &p->capacity, sizeof *p->map->entries);
  p->map->entries[p->map->count++] = (struct spec_entry){name, where, value};
}

/* An expression that is not read, to its line's end: a value that is broken. */
static struct spec_node *skip_expression(struct python *p, const char *start) {
  while (p->at > start && memchr(start, '\n', (size_t)(p->at - start)) != NULL) p->at--;
  p->failed = false;
  p->depth = 0;
  p->at = start + strcspn(start, "\n");
  return value_of(p, start, (struct spec_node){.kind = SPEC_STRING, .broken = true});
}

static void read_assignment(struct python *p) {
  const char *from = p->at;
  while (isalnum((unsigned char)*p->at) || *p->at == '_') p->at++;
  const char *name = arena_copy(p->arena, from, (size_t)(p->at - from));
  const struct location where = here(p, from);
  skip_blanks(p);
  if (name[0] == '\0' || isdigit((unsigned char)name[0]) || *p->at != '=' || p->at[1] == '=') {
    fail_line(p, from, "an assignment 'name = value' is expected here");
    return;
  }
  p->at++;
  skip_blanks(p);
  const char *start = p->at;
  struct spec_node *value = read_sum(p);
  skip_blanks(p);
  if (value == NULL || (*p->at != '\n' && *p->at != '\0')) value = skip_expression(p, start);
  assign(p, name, where, value);
}

/* "import time", whose names no value that is read needs. */
static bool skip_import(struct python *p) {
  if (strncmp(p->at, "import ", 7) != 0 && strncmp(p->at, "from ", 5) != 0) return false;
  p->at += strcspn(p->at, "\n");
  return true;
}

/* A string in three quotes that is a statement, as a file's documentation does. */
static bool skip_documentation(struct python *p) {
  const char *quotes = strncmp(p->at, "\"\"\"", 3) == 0 ? "\"\"\"" : strncmp(p->at, "'''", 3) == 0 ? "'''" : NULL;
  if (quotes == NULL) return false;
  const char *from = p->at, *end = strstr(p->at + 3, quotes);
  if (end == NULL) {
    fail_line(p, from, "this string has no end");
    return true;
  }
  while (p->at < end) {
    if (*p->at == '\n')
      next_line(p);
    else
      p->at++;
  }
  p->at += 3;
  return true;
}

struct spec_node *python_read(struct arena *arena, const char *file, const char *text, struct diagnostics *diags) {
  struct python p = {.arena = arena, .diags = diags, .file = file, .at = text, .line_start = text, .line = 1};
  p.map = arena_alloc(arena, sizeof *p.map);
  *p.map = (struct spec_node){.kind = SPEC_MAP, .where = {.file = file}, .text = ""};
  while (*p.at != '\0' && !p.failed) {
    const bool indented = *p.at == ' ' || *p.at == '\t';
    skip_blanks(&p);
    if (*p.at == '\n' || *p.at == '\0')
      next_line(&p);
    else if (indented)
      fail_line(&p, p.at, "assignments begin in the first column");
    else if (!skip_documentation(&p) && !skip_import(&p))
      read_assignment(&p);
  }
  return p.failed ? NULL : p.map;
}
