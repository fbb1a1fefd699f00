#include "gen/format/phrase.h"

#include <string.h>

static bool is_name(const struct word *word) {
  static const char *const keywords[] = {"float",    "double", "int",    "char",   "void",     "bool",
                                         "unsigned", "signed", "long",   "short",  "struct",   "union",
                                         "enum",     "return", "sizeof", "static", "volatile", "inline",
                                         "extern",   "while",  "if",     "for",    NULL};
  const char c = word->token->text[0];
  return word->token->kind == TOKEN_WORD && (c < '0' || c > '9') && c != '.' && !token_is_any(word->token, keywords);
}

/* ---- Roles ---- */

static enum precedence precedence_of(const struct token *token) {
  static const struct {
    const char *text;
    enum precedence precedence;
  } table[] = {{"||", PRECEDENCE_OR},       {"&&", PRECEDENCE_AND},      {"|", PRECEDENCE_BIT_OR},
               {"^", PRECEDENCE_BIT_XOR},   {"&", PRECEDENCE_BIT_AND},   {"==", PRECEDENCE_EQUALITY},
               {"!=", PRECEDENCE_EQUALITY}, {"<", PRECEDENCE_RELATION},  {">", PRECEDENCE_RELATION},
               {"<=", PRECEDENCE_RELATION}, {">=", PRECEDENCE_RELATION}, {"<<", PRECEDENCE_SHIFT},
               {">>", PRECEDENCE_SHIFT},    {"+", PRECEDENCE_SUM},       {"-", PRECEDENCE_SUM},
               {"*", PRECEDENCE_PRODUCT},   {"/", PRECEDENCE_PRODUCT},   {"%", PRECEDENCE_PRODUCT}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (token_is(token, table[i].text)) return table[i].precedence;
  return PRECEDENCE_ASSIGNMENT;
}

static enum word_role mark_role(const struct token *token, bool first, const struct word *before) {
  static const char *const unary[] = {"-", "+", "!", "~", "*", "&", "++", "--", NULL};
  if (token_is(token, ",")) return ROLE_COMMA;
  if (token_is(token, ";")) return ROLE_SEMICOLON;
  if (token_is(token, "?")) return ROLE_QUESTION;
  if (token_is(token, ".") || token_is(token, "->")) return ROLE_MEMBER;
  const bool operand =
      !first && (before->role == ROLE_OTHER || before->role == ROLE_CLOSE) && !token_is(before->token, "return");
  if (token_is_any(token, unary) && !operand) return ROLE_UNARY;
  return ROLE_OTHER;
}

static void set_role(struct word *word, const struct line *line, int index) {
  const struct token *token = word->token;
  const int match = token->match;
  const bool first = index == line->first;
  if (token->kind == TOKEN_STRING) word->role = ROLE_STRING;
  if (token->kind != TOKEN_MARK) return;
  word->match = match < line->first || match >= line->end ? -1 : match - line->first;
  if (match > index)
    word->role = ROLE_OPEN;
  else if (match >= 0)
    word->role = ROLE_CLOSE;
  else if (token->binary)
    word->role = ROLE_BINARY, word->precedence = precedence_of(token);
  else
    word->role = mark_role(token, first, word - 1);
  if (word->role == ROLE_COMMA) word->precedence = PRECEDENCE_COMMA;
  if (word->role == ROLE_MEMBER || (word->role == ROLE_OPEN && token_is(token, "[")))
    word->designator = first || token_is(word[-1].token, "{") || token_is(word[-1].token, ",");
}

/* Levels of brackets, parameters, and the colons of conditions. */
static void set_levels(struct phrase *phrase) {
  int depth = 0, questions = 0, lists = 0;
  for (int i = 0; i < phrase->count; i++) {
    struct word *word = &phrase->words[i];
    word->level = depth;
    word->in_list = lists > 0;
    lists += token_is(word->token, "{") - token_is(word->token, "}");
    if (word->role == ROLE_OPEN) {
      depth++;
    } else if (word->role == ROLE_CLOSE && depth > 0) {
      depth--;
    } else if (word->role == ROLE_QUESTION) {
      word->precedence = PRECEDENCE_CONDITIONAL;
      questions++;
    } else if (questions > 0 && token_is(word->token, ":")) {
      word->role = ROLE_COLON;
      word->precedence = PRECEDENCE_CONDITIONAL;
      questions--;
    }
  }
}

/* The name that a declaration declares, where that is a function: the first name with arguments after a type. */
static int function_name(const struct phrase *phrase) {
  for (int i = 0; i + 1 < phrase->count; i++) {
    const struct word *word = &phrase->words[i];
    static const char *const attributes[] = {"__attribute__", "alignas", "static_assert", "extern", NULL};
    if (word->role == ROLE_BINARY && word->level == 0) return -1;
    if (word->level > 0 || !is_name(word) || token_is_any(word->token, attributes)) continue;
    if (token_is(word[1].token, "(") && i > 0) return i;
  }
  return -1;
}

/* ---- Groups ---- */

struct grouping {
  struct phrase *phrase;
  int at;
};

static void group(struct grouping *g, int precedence);

static const struct word *current(const struct grouping *g) {
  return g->at < g->phrase->count ? &g->phrase->words[g->at] : NULL;
}

static void add_group(struct grouping *g, int start, int precedence) {
  struct word *first = &g->phrase->words[start], *last = &g->phrase->words[g->at - 1];
  if (first->group_count == GROUPS) return;
  first->groups[first->group_count++] = (signed char)precedence;
  last->group_ends++;
  if (precedence > PRECEDENCE_NONE) first->begins_binary = last->ends_binary = true;
}

static int precedence_at(const struct grouping *g) {
  const struct word *word = current(g);
  if (word == NULL) return -1;
  if (word->role == ROLE_SEMICOLON) return PRECEDENCE_NONE;
  if (word->role == ROLE_MEMBER && !word->designator) return PRECEDENCE_MEMBER;
  return word->precedence > PRECEDENCE_NONE ? (int)word->precedence : -1;
}

static void group_unary(struct grouping *g) {
  const int start = g->at;
  while (current(g) != NULL && current(g)->role == ROLE_UNARY) g->at++;
  const int end = g->at;
  group(g, PRECEDENCE_MEMBER);
  for (int i = end; i-- > start;) add_group(g, i, PRECEDENCE_NONE);
}

static void group_condition(struct grouping *g) {
  const int start = g->at;
  group(g, PRECEDENCE_OR);
  if (current(g) == NULL || current(g)->role != ROLE_QUESTION) return;
  g->at++;
  group(g, PRECEDENCE_ASSIGNMENT);
  if (current(g) == NULL || current(g)->role != ROLE_COLON) return;
  g->at++;
  group(g, PRECEDENCE_ASSIGNMENT);
  add_group(g, start, PRECEDENCE_CONDITIONAL);
}

static void group_bracket(struct grouping *g) {
  const int open = g->at++, close = g->phrase->words[open].match;
  if (close < 0) return;
  while (g->at < close) {
    group(g, PRECEDENCE_NONE);
    if (g->at < close) g->at++;
  }
  g->at = close + 1;
}

/* A group of operands of the operators of one precedence, from where `g` is, and all the groups within. */
static void group(struct grouping *g, int precedence) {
  while (current(g) != NULL && token_is(current(g)->token, "return")) g->at++;
  if (current(g) == NULL || precedence > PRECEDENCE_MEMBER) return;
  if (precedence == PRECEDENCE_CONDITIONAL) {
    group_condition(g);
    return;
  }
  if (precedence == PRECEDENCE_UNARY) {
    group_unary(g);
    return;
  }
  const int start = g->at;
  struct word *latest = NULL;
  while (current(g) != NULL) {
    group(g, precedence + 1);
    const struct word *word = current(g);
    const int found = precedence_at(g);
    if (word == NULL || word->role == ROLE_CLOSE || (found != -1 && found < precedence)) break;
    if (found == PRECEDENCE_CONDITIONAL && precedence == PRECEDENCE_ASSIGNMENT && word->role == ROLE_COLON) break;
    if (word->role == ROLE_OPEN) {
      group_bracket(g);
      continue;
    }
    if (found == precedence) {
      struct word *operator= & g->phrase->words[g->at];
      operator->first_operator = latest == NULL;
      operator->last_operator = true;
      if (latest != NULL) latest->last_operator = false;
      latest = operator;
    }
    g->at++;
  }
  if (latest == NULL || (current(g) == NULL && precedence == PRECEDENCE_NONE)) return;
  add_group(g, start, precedence == PRECEDENCE_MEMBER ? PRECEDENCE_NONE : precedence);
}

/* ---- Breaks ---- */

static bool can_break(const struct word *left, const struct word *right, const struct line *line) {
  if (right->token->trailing) return false;
  if (right->role == ROLE_FUNCTION_NAME) return true;
  if (right->role == ROLE_QUESTION || right->role == ROLE_COLON) return true;
  if (left->role == ROLE_QUESTION || left->role == ROLE_COLON) return false;
  if (left->closes_template) return true;
  if (left->role == ROLE_UNARY || right->role == ROLE_CLOSE) return false;
  if (left->role == ROLE_BINARY) return true;
  if (token_is(left->token, "(")) return left[-1].role != ROLE_BINARY;
  if (token_is(left->token, "{")) return !left->in_list && line->depth == 0;
  if (left->role == ROLE_COMMA || left->role == ROLE_SEMICOLON) return true;
  if (right->role == ROLE_MEMBER) return !right->designator;
  if (left->token->kind == TOKEN_COMMENT) return true;
  return token_is(left->token, ")") && is_name(right);
}

static int split_penalty(const struct word *left, const struct word *right, bool declaration, bool loop) {
  if (left->role == ROLE_SEMICOLON) return 0;
  if (right->role == ROLE_FUNCTION_NAME) return 60;
  const bool assigns = token_is(left->token, "=");
  if (assigns && token_is(right->token, "{")) return 160;
  if (left->token->kind == TOKEN_COMMENT) return 1000;
  if (right->role == ROLE_MEMBER && !right->designator) return 150;
  if (loop && assigns) return 4;
  if (token_is(left->token, "(") && declaration) return 100;
  if (token_is(left->token, "(") && (token_is(left[-1].token, "for") || token_is(left[-1].token, "if"))) return 1000;
  if (assigns && declaration) return 110;
  if (token_is(left->token, "<")) return 100;
  if (left->role == ROLE_OPEN) return 19;
  if (left->role == ROLE_COMMA) return 1;
  if (left->closes_template) return 10;
  if (left->precedence > PRECEDENCE_NONE) return (int)left->precedence;
  return right->precedence > PRECEDENCE_NONE ? (int)right->precedence : 3;
}

static int binding(const struct word *word, const struct phrase *phrase, int base) {
  int strength = base;
  for (int i = (int)(word - phrase->words); i-- > 0;) {
    const struct word *open = &phrase->words[i];
    if (open->role != ROLE_OPEN || (open->match >= 0 && open->match < word - phrase->words)) continue;
    strength += token_is(open->token, "[") || token_is(open->token, "<") ? 10 : 1;
  }
  return strength;
}

static void set_breaks(struct phrase *phrase, const struct line *line, bool declaration) {
  const bool loop = token_is(phrase->words[0].token, "for");
  for (int i = 1; i < phrase->count; i++) {
    struct word *left = &phrase->words[i - 1], *right = left + 1;
    right->must_break = token_must_break(right->token);
    right->can_break = right->must_break || can_break(left, right, line);
    if (!right->can_break) continue;
    right->penalty = 20 * binding(right, phrase, 1 + line->depth) + split_penalty(left, right, declaration, loop);
  }
}

struct phrase phrase_of(struct arena *arena, const struct tokens *tokens, const struct line *line) {
  struct phrase phrase = {.count = line->end - line->first};
  phrase.words = arena_alloc(arena, ((size_t)phrase.count + 1) * sizeof *phrase.words);
  for (int i = 0; i < phrase.count; i++) {
    struct word *word = &phrase.words[i];
    word->token = &tokens->items[line->first + i];
    word->match = -1;
    word->width = token_width(word->token);
    set_role(word, line, line->first + i);
  }
  set_levels(&phrase);
  if (token_is(phrase.words[0].token, "template") && phrase.count > 1 && phrase.words[1].match > 0)
    phrase.words[phrase.words[1].match].closes_template = true;
  const int name = line->declaration ? function_name(&phrase) : -1;
  if (name >= 0) phrase.words[name].role = ROLE_FUNCTION_NAME;
  struct grouping grouping = {&phrase, 0};
  while (grouping.at < phrase.count) {
    group(&grouping, PRECEDENCE_NONE);
    if (grouping.at < phrase.count) grouping.at++;
  }
  set_breaks(&phrase, line, name >= 0);
  return phrase;
}
