#include "gen/audit/text/hidden.h"

#include <string.h>

#include "gen/audit/program/externals.h"
#include "gen/audit/program/grammar.h"
#include "gen/audit/text/declarations.h"

struct hidden {
  struct audit *audit;
  struct claim *claim;
  int n_marks;
};

static bool is_word(const char *names, const char *word, size_t length) {
  for (const char *at = names; (at = strstr(at, word)) != NULL && length > 0; at++)
    if ((at == names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
  return false;
}

/* ---- Pragmas and attributes ---- */

static void check_pragma(struct hidden *hidden, const struct mark *mark) {
  if (!grammar_has_pragma(mark->text))
    claim_finding(hidden->audit, hidden->claim, VERDICT_BROKEN, mark->where, "the pragma '%s'", mark->text);
}

static void check_attribute(struct hidden *hidden, const struct mark *mark) {
  if (!grammar_has_attribute(mark->text, mark->arguments))
    claim_finding(hidden->audit, hidden->claim, VERDICT_BROKEN, mark->where, "the attribute '%s%s'", mark->text,
                  mark->arguments);
}

/* ---- Macros ---- */

static const char reserved[] =
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Alignas "
    "_Alignof _Atomic _Bool _Static_assert alignas alignof bool static_assert true false NULL size_t int8_t int16_t "
    "int32_t int64_t uint8_t uint16_t uint32_t uint64_t INFINITY NAN assert memcpy memset memmove offsetof";

static const char suspicious[] = "asm __asm __asm__ _Pragma __attribute__ goto";

static size_t identifier_length(const char *text) {
  return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

static void check_macro(struct hidden *hidden, const struct tree *tree, const struct mark *mark) {
  size_t length = identifier_length(mark->text);
  const char *name = arena_copy(hidden->audit->arena, mark->text, length);
  bool function = tree_function(tree, name) != NULL || external_is_listed(name);
  if (is_word(reserved, name, length) || function)
    claim_finding(hidden->audit, hidden->claim, VERDICT_BROKEN, mark->where,
                  "the macro '%s' redefines a name with a meaning of its own", name);
  for (const char *at = mark->text + length; *at != '\0';) {
    size_t size = identifier_length(at);
    const char *word = arena_copy(hidden->audit->arena, at, size);
    if (size > 0 && is_word(suspicious, word, size))
      claim_finding(hidden->audit, hidden->claim, VERDICT_BROKEN, mark->where, "the macro '%s' holds '%s'", name, word);
    at += size > 0 ? size : 1;
  }
  claim_fact(hidden->audit, hidden->claim, mark->where, "the macro '%s'", name);
}

/* A header of the program's own is looked through as the program is, and is below its folder. */
static void check_include(struct hidden *hidden, const struct mark *mark) {
  bool angled = mark->text[0] == '<', quoted = mark->text[0] == '"';
  size_t length = strcspn(mark->text + 1, ">\"");
  const char *name = arena_copy(hidden->audit->arena, mark->text + 1, mark->text[0] == '\0' ? 0 : length);
  bool leaves = name[0] == '/' || strstr(name, "..") != NULL;
  if ((quoted && leaves) || (angled && !grammar_has_header(name)))
    claim_finding(hidden->audit, hidden->claim, VERDICT_BROKEN, mark->where, "the header '%s' is on no list", name);
  else if (quoted)
    claim_fact(hidden->audit, hidden->claim, mark->where, "the header %s", mark->text);
  else if (mark->text[0] != '<')
    claim_finding(hidden->audit, hidden->claim, VERDICT_CANNOT_TELL, mark->where,
                  "a macro decides which header '%s' is", mark->text);
}

static void check_mark(struct hidden *hidden, const struct tree *tree, const struct mark *mark) {
  hidden->n_marks++;
  switch (mark->kind) {
  case MARK_UNKNOWN:
    claim_finding(hidden->audit, hidden->claim, VERDICT_BROKEN, mark->where, "the directive '%s'", mark->text);
    break;
  case MARK_PRAGMA:
    check_pragma(hidden, mark);
    break;
  case MARK_ATTRIBUTE:
    check_attribute(hidden, mark);
    break;
  case MARK_MACRO:
    check_macro(hidden, tree, mark);
    break;
  case MARK_INCLUDE:
    check_include(hidden, mark);
    break;
  case MARK_SKIPPED:
    claim_fact(hidden->audit, hidden->claim, mark->where, "%s are left out on this machine", mark->text);
    break;
  case MARK_CONDITION:
    break; /* one-reading */
  }
}

/* ---- Words, assembler, and what has no word ---- */

static void check_words(struct hidden *hidden, const struct written *written) {
  for (int i = 0; i < written->n_tokens; i++) {
    const struct token *token = &written->tokens[i];
    if (token->kind == TOKEN_OTHER && grammar_refuses_word(token->text))
      claim_finding(hidden->audit, hidden->claim, VERDICT_BROKEN, token->where, "the word '%s'", token->text);
  }
}

static bool visit_node(struct syntax *node, void *data) {
  struct hidden *hidden = data;
  if (node->kind == SYNTAX_ASSEMBLER)
    claim_finding(hidden->audit, hidden->claim, VERDICT_BROKEN, node->where, "assembler");
  if (node->kind == SYNTAX_STATEMENTS && !node->is_system) /* assert has them */
    claim_finding(hidden->audit, hidden->claim, VERDICT_BROKEN, node->where, "statements inside an expression");
  return true;
}

/* ---- Strings ---- */

struct listing {
  struct audit *audit;
  struct claim *claim;
  const struct function *function; /* NULL at file level */
  int n_strings, n_inside;
};

static bool list_string(struct syntax *node, void *data) {
  struct listing *listing = data;
  if (node->kind != SYNTAX_STRING || strcmp(node->text, "\"\"") == 0) return true;
  const struct function *function = listing->function;
  listing->n_strings++;
  listing->n_inside += function != NULL;
  claim_fact(listing->audit, listing->claim, node->where, "%s", node->text);
  if (function != NULL && function->role->in_step_path)
    claim_finding(listing->audit, listing->claim, VERDICT_BROKEN, node->where,
                  "the step path's function '%s' holds the string %s", function->name, node->text);
  return true;
}

static void list_strings(struct audit *audit, const struct tree *tree) {
  struct claim *claim = audit_claim(audit, "strings-listed",
                                    "Every string of the program is listed, and none on the step path is a path, an "
                                    "address or a command.");
  struct listing listing = {.audit = audit, .claim = claim};
  for (int i = 0; i < tree->n_statics; i++)
    if (tree->statics[i]->function == NULL) syntax_visit(tree->statics[i]->initial, list_string, &listing);
  for (int i = 0; i < tree->n_functions; i++) {
    listing.function = tree->functions[i];
    syntax_visit(tree->functions[i]->body, list_string, &listing);
  }
  claim_evidence(audit, claim, "%d strings, %d of them inside functions", listing.n_strings, listing.n_inside);
}

void hidden_check(struct audit *audit, const struct tree *tree) {
  struct claim *claim = audit_claim(audit, "nothing-hidden",
                                    "Pragmas, attributes, headers and kinds of declarations are those of the list that "
                                    "--grammar prints; no assembler, and no macro that changes what a word means.");
  struct hidden hidden = {audit, claim, 0};
  for (int i = 0; i < audit->marks.count; i++) check_mark(&hidden, tree, &audit->marks.items[i]);
  for (int i = 0; i < tree->n_written; i++) check_words(&hidden, &tree->written[i]);
  for (int i = 0; i < tree->n_functions; i++) syntax_visit(tree->functions[i]->body, visit_node, &hidden);
  claim_evidence(audit, claim, "%d pragmas, attributes, macros and directives", hidden.n_marks);
  declarations_check(audit, claim, tree);
  list_strings(audit, tree);
}
