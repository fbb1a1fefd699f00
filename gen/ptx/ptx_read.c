#include "gen/ptx/ptx_read.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/text.h"

struct ptx_reader ptx_open(struct arena *arena, const char *file, const char *text, size_t length) {
  return (struct ptx_reader){.arena = arena, .file = file, .at = text, .end = text + length, .line = 1};
}

/* ---- Characters ---- */

static void skip_character(struct ptx_reader *r) {
  r->line += *r->at == '\n';
  r->at++;
}

static bool starts_with(const struct ptx_reader *r, const char *word) {
  size_t length = strlen(word);
  return (size_t)(r->end - r->at) >= length && memcmp(r->at, word, length) == 0;
}

static void skip_comment(struct ptx_reader *r) {
  bool line = starts_with(r, "//");
  while (r->at < r->end && !(line ? *r->at == '\n' : starts_with(r, "*/"))) skip_character(r);
  if (!line && r->at < r->end) r->at += 2;
}

static bool skip_space(struct ptx_reader *r) {
  bool any = false;
  while (r->at < r->end) {
    if (starts_with(r, "//") || starts_with(r, "/*"))
      skip_comment(r);
    else if (isspace((unsigned char)*r->at))
      skip_character(r);
    else
      break;
    any = true;
  }
  return any;
}

/* ---- Directives of one line ---- */

/* .file NUMBER "PATH" */
static void take_file(struct ptx_reader *r, const char *text) {
  int number = 0;
  const char *open = strchr(text, '"'), *close = open != NULL ? strchr(open + 1, '"') : NULL;
  if (sscanf(text, ".file %d", &number) != 1 || number < 0 || number > 10000 || close == NULL) return;
  while (r->files.count <= number) ARENA_PUSH(r->arena, r->files, NULL);
  r->files.items[number] = arena_copy(r->arena, open + 1, (size_t)(close - open - 1));
}

static struct location location_of(const struct ptx_reader *r, const int at[3]) {
  const bool known = at[0] >= 0 && at[0] < r->files.count && r->files.items[at[0]] != NULL;
  return (struct location){.file = known ? r->files.items[at[0]] : r->file, .line = known ? at[1] : 0, .column = at[2]};
}

/* Follows calls that were put in, through those that the PTX has named before. */
static void find_outer(struct ptx_reader *r, struct ptx_inlined inlined) {
  enum { NEAR = 512 };
  int *into = inlined.into;
  ARENA_PUSH(r->arena, r->inlined, inlined);
  for (int i = r->inlined.count - 1; i >= 0 && i > r->inlined.count - NEAR; i--)
    if (memcmp(r->inlined.items[i].at, into, sizeof inlined.into) == 0)
      memcpy(into, r->inlined.items[i].into, sizeof inlined.into);
  r->outer = location_of(r, into);
}

/* .loc FILE LINE COLUMN, then the function that the line was put in from, and where: inlined_at FILE LINE COLUMN. */
static void take_location(struct ptx_reader *r, const char *text) {
  struct ptx_inlined found;
  int *at = found.at, *into = found.into;
  if (sscanf(text, ".loc %d %d %d", &at[0], &at[1], &at[2]) != 3 || at[1] <= 0) return; /* 0: of no line of its own */
  r->where = r->outer = location_of(r, at);
  const char *call = strstr(text, "inlined_at ");
  if (call != NULL && sscanf(call, "inlined_at %d %d %d", &into[0], &into[1], &into[2]) == 3) find_outer(r, found);
}

static bool is_line_directive(const struct ptx_reader *r) {
  static const char *const words[] = {".loc", ".file", ".version", ".target", ".address_size"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (starts_with(r, words[i]) && r->at + strlen(words[i]) < r->end &&
        isspace((unsigned char)r->at[strlen(words[i])]))
      return true;
  return false;
}

static void take_line(struct ptx_reader *r) {
  const char *start = r->at;
  while (r->at < r->end && *r->at != '\n') r->at++;
  const char *text = arena_copy(r->arena, start, (size_t)(r->at - start));
  if (strncmp(text, ".file", 5) == 0) take_file(r, text);
  if (strncmp(text, ".loc", 4) == 0) take_location(r, text);
}

/* .section NAME { ... }: tables for debuggers. */
static void skip_section(struct ptx_reader *r) {
  while (r->at < r->end && *r->at != '}') skip_character(r);
  if (r->at < r->end) r->at++;
}

/* ---- Statements ---- */

/* Whether a brace after this text opens a body, and not a list of registers. */
static bool opens_body(const char *text) {
  return strstr(text, ".entry ") != NULL || strstr(text, ".func ") != NULL;
}

/* Reads on to the end of a statement and gives its text without that; *ended by which character, 0 at the text's end.
 */
static const char *take_statement(struct ptx_reader *r, char *ended) {
  struct text text = text_in(r->arena);
  int lists = 0;
  *ended = 0;
  while (r->at < r->end && *ended == 0) {
    if (skip_space(r)) {
      if (text.length > 0) text_puts(&text, " ");
      continue;
    }
    char c = *r->at;
    bool label = c == ':' && lists == 0 && strpbrk(text_string(&text), " ,[(") == NULL;
    bool body = c == '{' && lists == 0 && (text.length == 0 || opens_body(text_string(&text)));
    if (lists == 0 && (c == ';' || body || label || (c == '}' && text.length == 0))) {
      *ended = c;
    } else {
      lists += (c == '{') - (c == '}');
      text_add(&text, &c, 1);
    }
    skip_character(r);
  }
  while (text.length > 0 && text.bytes[text.length - 1] == ' ') text.bytes[--text.length] = '\0';
  return text_string(&text);
}

/* What precedes the parameters: the last word. */
static const char *function_name(struct arena *arena, const char *text) {
  const char *at = strstr(text, ".entry ") != NULL ? strstr(text, ".entry ") + 7 : strstr(text, ".func ") + 6;
  if (*at == '(') { /* what a function gives */
    at += strcspn(at, ")");
    at += strspn(at, ") ");
  }
  return arena_copy(arena, at, strcspn(at, " (\t"));
}

static struct ptx_statement instruction(struct ptx_reader *r, struct ptx_statement statement) {
  const char *at = statement.text;
  statement.kind = PTX_INSTRUCTION;
  statement.is_guarded = *at == '@';
  if (statement.is_guarded) {
    at += strcspn(at, " ");
    at += strspn(at, " ");
  }
  size_t length = strcspn(at, " ");
  statement.name = arena_copy(r->arena, at, length);
  statement.operands = at + length + strspn(at + length, " ");
  statement.where = r->where;
  statement.outer = r->outer;
  return statement;
}

static struct ptx_statement classify(struct ptx_reader *r, struct ptx_statement statement, char ended) {
  const char *text = statement.text;
  if (ended == '{' && opens_body(text)) {
    r->depth = 1;
    r->where = r->outer = (struct location){.file = r->file};
    statement.kind = PTX_FUNCTION;
    statement.is_kernel = strstr(text, ".entry ") != NULL;
    statement.name = function_name(r->arena, text);
  } else if (ended == ':') {
    statement.kind = PTX_LABEL;
    statement.name = text;
  } else if (text[0] == '.' || r->depth == 0) {
    statement.kind = text[0] == '.' ? PTX_DECLARATION : PTX_BROKEN;
  } else {
    statement = instruction(r, statement);
  }
  return statement;
}

struct ptx_statement ptx_next(struct ptx_reader *r) {
  for (;;) {
    skip_space(r);
    struct ptx_statement statement = {.line = r->line, .where = {.file = r->file}};
    if (r->at == r->end) {
      statement.kind = r->depth > 0 ? PTX_BROKEN : PTX_END;
      r->depth = 0;
      return statement;
    }
    if (is_line_directive(r)) {
      take_line(r);
      continue;
    }
    if (starts_with(r, ".section")) {
      skip_section(r);
      continue;
    }
    char ended;
    statement.text = take_statement(r, &ended);
    if (ended == 0) {
      statement.kind = PTX_BROKEN;
      return statement;
    }
    bool brace = ended == '}' || (ended == '{' && statement.text[0] == '\0');
    if (!brace && statement.text[0] != '\0') return classify(r, statement, ended);
    if (!brace) continue;
    if (r->depth == 0) { /* outside of functions */
      statement.kind = PTX_BROKEN;
      r->at = r->end;
      return statement;
    }
    r->depth += ended == '{' ? 1 : -1;
    statement.kind = r->depth == 0 ? PTX_CLOSE : ended == '{' ? PTX_SCOPE : PTX_SCOPE_END;
    return statement;
  }
}
