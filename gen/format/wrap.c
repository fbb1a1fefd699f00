#include "gen/format/wrap.h"

#include <limits.h>
#include <string.h>

#include "gen/format/phrase.h"

/* The state of each bracket, and of each group of operands, that is open at a token. Columns are 0 for none. */
struct level {
  short indent;         /* of lines that continue in it */
  short last_space;     /* the column that nested brackets are indented from */
  short call;           /* where the operand that an opening bracket belongs to begins */
  short question;       /* column of a condition's `?` */
  short members;        /* column of the first . or -> that begins a line */
  short variable;       /* column of the first variable of a declaration */
  bool one_per_line;    /* if one item is on a line of its own, all are */
  bool break_items;     /* break before each further item */
  bool whole;           /* may not be broken */
  bool operand_whole;   /* nor may the current operand */
  bool operator_broken; /* the latest operator began a line or ended one */
  bool broken;          /* has a break */
  bool chained;         /* a condition within another one's else */
};

enum { LEVELS = 64 };

/* A line up to a word: how the words before it are laid out. */
struct layout {
  const struct layout *before;
  bool newline; /* the word before it begins a line */
  int penalty, order;
  int next;   /* the word */
  int column; /* where the current line ends */
  int start;  /* column of the word before it */
  int string; /* column of the first of some strings; 0: there is none */
  int line_level, lowest_level;
  int depth;
  struct level levels[];
};

struct search {
  struct arena *arena;
  const struct phrase *phrase;
  int first_indent; /* of the whole statement */
  struct layout **queue;
  int count, capacity, orders;
  struct layout **seen; /* a hash table */
  unsigned seen_size, seen_count;
};

/* ---- The queue: a heap, the least penalty first ---- */

static bool is_before(const struct layout *a, const struct layout *b) {
  return a->penalty != b->penalty ? a->penalty < b->penalty : a->order < b->order;
}

static void swap(struct layout **a, struct layout **b) {
  struct layout *swapped = *a;
  *a = *b;
  *b = swapped;
}

static void push(struct search *s, struct layout *layout) {
  s->queue = arena_grow(s->arena, s->queue, s->count, &s->capacity, sizeof *s->queue);
  int at = s->count++;
  layout->order = s->orders++;
  s->queue[at] = layout;
  for (; at > 0 && is_before(s->queue[at], s->queue[(at - 1) / 2]); at = (at - 1) / 2)
    swap(&s->queue[at], &s->queue[(at - 1) / 2]);
}

static struct layout *pop(struct search *s) {
  struct layout *first = s->queue[0];
  s->queue[0] = s->queue[--s->count];
  for (int at = 0, child; (child = 2 * at + 1) < s->count; at = child) {
    if (child + 1 < s->count && is_before(s->queue[child + 1], s->queue[child])) child++;
    if (!is_before(s->queue[child], s->queue[at])) break;
    swap(&s->queue[child], &s->queue[at]);
  }
  return first;
}

/* ---- What was seen ---- */

static bool is_same(const struct layout *a, const struct layout *b) {
  return a->next == b->next && a->column == b->column && a->string == b->string && a->line_level == b->line_level &&
         a->lowest_level == b->lowest_level && a->depth == b->depth &&
         memcmp(a->levels, b->levels, (size_t)a->depth * sizeof *a->levels) == 0;
}

static unsigned hash(const struct layout *layout) {
  unsigned sum = (unsigned)layout->next * 31 + (unsigned)layout->column;
  const unsigned char *bytes = (const unsigned char *)&layout->levels[layout->depth - 1];
  for (size_t i = 0; i < sizeof *layout->levels; i++) sum = sum * 31 + bytes[i];
  return sum;
}

static bool add_seen(struct search *s, struct layout *layout) {
  if (2 * s->seen_count >= s->seen_size) {
    struct layout **old = s->seen;
    const unsigned size = s->seen_size;
    s->seen_size = size == 0 ? 256 : 4 * size;
    s->seen_count = 0;
    s->seen = arena_alloc(s->arena, s->seen_size * sizeof *s->seen);
    for (unsigned i = 0; i < size; i++)
      if (old[i] != NULL) add_seen(s, old[i]);
  }
  unsigned at = hash(layout) % s->seen_size;
  for (; s->seen[at] != NULL; at = (at + 1) % s->seen_size)
    if (is_same(s->seen[at], layout)) return false;
  s->seen[at] = layout;
  s->seen_count++;
  return true;
}

/* ---- Rules ---- */

static int max(int a, int b) {
  return a > b ? a : b;
}

static int min(int a, int b) {
  return a < b ? a : b;
}

static bool is_condition(const struct word *word) {
  return word->role == ROLE_QUESTION || word->role == ROLE_COLON;
}

static bool is_chained(const struct word *word) {
  return word->group_count > 0 && word->groups[word->group_count - 1] == PRECEDENCE_CONDITIONAL;
}

/* The column of the next word if it begins a line. */
static int column_of_break(const struct search *s, const struct layout *l) {
  const struct word *word = &s->phrase->words[l->next], *before = word - 1;
  const struct level *level = &l->levels[l->depth - 1];
  const int deeper = max(level->last_space, level->indent) + FORMAT_CONTINUATION;
  if (token_is(word->token, "}") && l->depth > 1) return l->levels[l->depth - 2].last_space;
  if (word->role == ROLE_STRING && l->string != 0) return l->string;
  if (word->role == ROLE_MEMBER && !word->designator) return level->members != 0 ? level->members : deeper;
  if (level->question != 0 && (word->role == ROLE_COLON || is_condition(before))) {
    const bool chain =
        (word->role == ROLE_COLON && is_chained(word + 1)) || (before->role == ROLE_COLON && is_chained(word));
    return chain ? level->indent - (level->chained ? 2 : 0) : level->question;
  }
  if (before->role == ROLE_COMMA && level->variable != 0) return level->variable;
  if (before->closes_template || word->role == ROLE_FUNCTION_NAME) return max(level->last_space, level->indent);
  if (token_is(before->token, "=")) return deeper;
  if (token_is(before->token, ")") && word->role != ROLE_BINARY && word->role != ROLE_COLON) return deeper;
  if (level->indent == s->first_indent && !token_is(before->token, "}")) return level->indent + FORMAT_CONTINUATION;
  return level->indent;
}

static bool may_break(const struct search *s, const struct layout *l) {
  const struct word *word = &s->phrase->words[l->next], *before = word - 1;
  const struct level *level = &l->levels[l->depth - 1];
  if (!word->can_break) return false;
  if (!word->must_break && token_is(before->token, "{") && l->next > 1 &&
      (token_is(before[-1].token, "{") || token_is(before[-1].token, "(") || token_is(before[-1].token, ",")))
    return false;
  if (before->role == ROLE_OPEN && !token_is(before->token, "{") && l->lowest_level < l->line_level &&
      l->lowest_level < word->level)
    return false;
  if (word->role == ROLE_FUNCTION_NAME && l->column < 6) return false;
  if (word->role != ROLE_BINARY && word->role != ROLE_COMMA && level->operand_whole) return false;
  return !level->whole;
}

static bool has_to_break(const struct search *s, const struct layout *l) {
  const struct word *word = &s->phrase->words[l->next], *before = word - 1;
  const struct level *level = &l->levels[l->depth - 1];
  if (word->must_break) return true;
  const bool item = (before->role == ROLE_COMMA && !word->token->trailing) || before->role == ROLE_SEMICOLON ||
                    (is_condition(word) && before->role != ROLE_QUESTION);
  if (item && level->break_items && word->role != ROLE_CLOSE && !word->token->trailing) return true;
  if (level->chained && word->role == ROLE_COLON) return true;
  if (before->closes_template) return true;
  if (l->column <= column_of_break(s, l)) return false;
  if (before->role == ROLE_BINARY && word->can_break && before->precedence != PRECEDENCE_ASSIGNMENT &&
      level->break_items) {
    const bool compares = before->precedence == PRECEDENCE_RELATION || before->precedence == PRECEDENCE_EQUALITY;
    return !compares || before[-1].ends_binary;
  }
  return word->role == ROLE_FUNCTION_NAME && level->break_items;
}

/* ---- Steps ---- */

static int stay_on_line(const struct search *s, struct layout *l) {
  const struct word *word = &s->phrase->words[l->next], *before = word - 1;
  struct level *level = &l->levels[l->depth - 1];
  if (token_is(word->token, "=") && level->variable == 0 &&
      (word->level == 0 || token_is(s->phrase->words[0].token, "for")) && !(l->next > 1 && before[-1].designator)) {
    level->variable = (short)l->column;
    for (const struct word *at = before; at >= s->phrase->words && level->variable >= at->width; at--) {
      level->variable = (short)(level->variable - at->width);
      if (at->token->space) break;
    }
  }
  const int column = l->column + word->token->space;
  if (before->role == ROLE_OPEN) level->indent = (short)column;
  if (level->one_per_line && before->role == ROLE_COMMA) level->whole = true;
  const bool condition = before->role == ROLE_COLON;
  if ((before->role == ROLE_BINARY && before->precedence != PRECEDENCE_ASSIGNMENT &&
       before->precedence != PRECEDENCE_RELATION) ||
      before->role == ROLE_COMMA || condition) {
    const bool two = before->first_operator && before->last_operator && !condition;
    if ((!condition && !two) || (condition && !level->operator_broken)) level->operand_whole = true;
  }
  if (token_is(before->token, "(") && l->next > 1 &&
      (token_is(before[-1].token, "for") || token_is(before[-1].token, "if")))
    level->last_space = (short)column;
  else if (before->role == ROLE_COMMA || is_condition(before))
    level->last_space = (short)column;
  else if (before->role == ROLE_BINARY && (before->precedence != PRECEDENCE_ASSIGNMENT || word->begins_binary))
    level->last_space = (short)column;
  l->column = column;
  return 0;
}

static int begin_line(const struct search *s, struct layout *l) {
  const struct word *word = &s->phrase->words[l->next], *before = word - 1;
  struct level *level = &l->levels[l->depth - 1];
  const int penalty = word->penalty + (level->broken ? 0 : 15);
  level->broken = true;
  l->column = column_of_break(s, l);
  if (word->role == ROLE_MEMBER && level->members == 0) level->members = (short)l->column;
  const bool separated = before->role == ROLE_COMMA || before->role == ROLE_SEMICOLON;
  if ((separated && !level->one_per_line) || before->role == ROLE_BINARY ||
      (token_is(before->token, ">") && before->role == ROLE_CLOSE && word->level == 0))
    level->break_items = false;
  if (word->role == ROLE_QUESTION) level->break_items = true;
  level->last_space = (short)l->column;
  l->line_level = l->lowest_level = word->level;
  for (int i = 0; i < l->depth - 1; i++) l->levels[i].break_items = true;
  const bool closes_template = before->closes_template && word->level == 0;
  if (!separated && before->role != ROLE_COLON && !closes_template && before->role != ROLE_BINARY &&
      before->role != ROLE_OPEN && before->token->kind != TOKEN_COMMENT)
    level->break_items = true;
  if (level->one_per_line && !token_is(before->token, "(") && !token_is(before->token, "{") &&
      before->role != ROLE_BINARY)
    level->break_items = true;
  return penalty;
}

static void open_groups(const struct search *s, struct layout *l) {
  const struct word *word = &s->phrase->words[l->next], *before = l->next > 0 ? word - 1 : NULL;
  bool no_deeper = before != NULL && (before->role == ROLE_OPEN || before->role == ROLE_SEMICOLON ||
                                      token_is(before->token, "return") || before->precedence == PRECEDENCE_ASSIGNMENT);
  for (int i = word->group_count; i-- > 0 && l->depth < LEVELS;) {
    const struct level *outer = &l->levels[l->depth - 1];
    const signed char precedence = word->groups[i];
    struct level level = *outer;
    level.broken = level.chained = false;
    level.operator_broken = true;
    level.whole = outer->whole || outer->operand_whole;
    if (precedence > PRECEDENCE_COMMA) level.one_per_line = false;
    if (before == NULL || !token_is(before->token, "return") || precedence > PRECEDENCE_NONE)
      level.indent = (short)max(max(l->column, level.indent), outer->last_space);
    if (precedence > PRECEDENCE_NONE) level.last_space = (short)max(level.last_space, l->column);
    if (precedence != PRECEDENCE_CONDITIONAL && word->role != ROLE_UNARY) level.call = (short)l->column;
    if (precedence == PRECEDENCE_CONDITIONAL && before != NULL && before->role == ROLE_COLON &&
        i == word->group_count - 1)
      level.chained = true;
    else if (!no_deeper && precedence > PRECEDENCE_ASSIGNMENT)
      level.indent = (short)(level.indent + FORMAT_CONTINUATION);
    if ((before != NULL && before->role != ROLE_OPEN) || precedence != PRECEDENCE_COMMA) level.break_items = false;
    l->levels[l->depth++] = level;
    no_deeper = false;
  }
}

static void open_bracket(const struct search *s, struct layout *l) {
  const struct word *word = &s->phrase->words[l->next];
  const struct level *outer = &l->levels[l->depth - 1];
  if (l->depth == LEVELS) return;
  const bool list = token_is(word->token, "{");
  struct level level;
  memset(&level, 0, sizeof level);
  level.last_space = outer->last_space;
  level.indent = (short)((list ? outer->last_space : max(outer->last_space, outer->call)) + FORMAT_CONTINUATION);
  level.one_per_line = list && l->next + 1 < s->phrase->count && word[1].designator;
  level.operator_broken = true;
  level.whole = outer->whole || outer->operand_whole;
  l->levels[l->depth++] = level;
}

/* Goes past the next word, which is at the layout's column. */
static int step(const struct search *s, struct layout *l, bool newline) {
  const struct word *word = &s->phrase->words[l->next];
  struct level *level = &l->levels[l->depth - 1];
  l->start = l->column;
  if (word->role == ROLE_COMMA || word->role == ROLE_BINARY) level->operand_whole = false;
  if (word->role == ROLE_BINARY || (is_condition(word) && l->next > 0 && !is_condition(word - 1)))
    level->operator_broken = newline;
  if (word->role == ROLE_QUESTION) level->question = (short)l->column;
  if (word->role != ROLE_OPEN && word->role != ROLE_CLOSE) l->lowest_level = min(l->lowest_level, word->level);
  if (word->role == ROLE_MEMBER && !word->designator) level->call = (short)(word->last_operator ? 0 : l->column);
  open_groups(s, l);
  if (word->role == ROLE_CLOSE && l->depth > 1) l->depth--;
  if (word->role == ROLE_OPEN) open_bracket(s, l);
  for (int i = 0; i < word->group_ends && l->depth > 1; i++) {
    l->depth--;
    l->levels[l->depth - 1].variable = l->levels[l->depth].variable;
  }
  if (word->role == ROLE_STRING && l->string == 0)
    l->string = l->column;
  else if (word->role != ROLE_STRING && word->token->kind != TOKEN_WORD)
    l->string = 0;
  l->column += word->width;
  l->next++;
  const bool counts = !word->token->trailing && l->column > FORMAT_COLUMNS;
  return counts ? 10000 * (l->column - FORMAT_COLUMNS) : 0;
}

static void try(struct search *s, const struct layout *from, bool newline) {
  if (newline ? !may_break(s, from) : has_to_break(s, from)) return;
  const size_t size = sizeof *from + ((size_t)from->depth + GROUPS + 1) * sizeof *from->levels;
  struct layout *l = arena_alloc(s->arena, size);
  memcpy(l, from, sizeof *from + (size_t)from->depth * sizeof *from->levels);
  l->before = from;
  l->newline = newline;
  l->penalty += newline ? begin_line(s, l) : stay_on_line(s, l);
  l->penalty += step(s, l, newline);
  push(s, l);
}

static const struct layout *best(struct search *s, const struct line *line) {
  struct layout *l = arena_alloc(s->arena, sizeof *l + (GROUPS + 2) * sizeof *l->levels);
  l->column = line->indent;
  l->depth = 1;
  l->levels[0] =
      (struct level){.indent = (short)line->indent, .last_space = (short)line->indent, .operator_broken = true};
  step(s, l, false);
  push(s, l);
  while (s->count > 0) {
    l = pop(s);
    if (l->next == s->phrase->count) return l;
    if (!add_seen(s, l)) continue;
    try(s, l, false);
    try(s, l, true);
  }
  return NULL;
}

void wrap_line(struct arena *arena, struct tokens *tokens, const struct line *line) {
  struct phrase phrase = phrase_of(arena, tokens, line);
  struct search search = {.arena = arena, .phrase = &phrase, .first_indent = line->depth > 0 ? -1 : line->indent};
  for (const struct layout *l = best(&search, line); l != NULL && l->before != NULL; l = l->before) {
    struct token *token = &tokens->items[line->first + l->next - 1];
    token->breaks = l->newline;
    token->column = l->start;
  }
}
