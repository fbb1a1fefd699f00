/* The digest of a source: of what computes. Comments and layout make no other one, nor do tables that the code of the
 * source never names, which others read, and macros that only these use. */
#include <string.h>

#include "gen/base/hash.h"
#include "gen/base/sha256.h"
#include "gen/c/import.h"

struct word {
  const char *text;
  unsigned offset, end; /* bytes from the file's start */
  bool is_name;
  int item, next; /* which the word is of, and its next word there; -1: none */
};

enum item_kind { ITEM_CODE, ITEM_VARIABLE, ITEM_MACRO, ITEM_LEFT_OUT };

/* A declaration at file level, or a line of the preprocessor. */
struct item {
  enum item_kind kind; /* ITEM_VARIABLE: one with an initial value */
  int first, last;     /* of its words, between which may be lines of the preprocessor */
  bool counts;
};

struct names {
  const char **slots; /* a table of hashes */
  size_t count, capacity;
};

/* All files in turn. */
struct digesting {
  struct importer *importer;
  struct {
    struct word *items;
    int count, capacity;
  } words;
  struct {
    struct item *items;
    int count, capacity;
  } items;
  struct names names; /* that what counts has */
};

/* ---- Names ---- */

static const char **slot_of(const struct names *names, const char *name) {
  size_t at = hash_bytes(name, strlen(name)) & (names->capacity - 1);
  while (names->slots[at] != NULL && strcmp(names->slots[at], name) != 0) at = (at + 1) & (names->capacity - 1);
  return &names->slots[at];
}

static void names_add(struct arena *arena, struct names *names, const char *name) {
  if (2 * names->count >= names->capacity) {
    const struct names old = *names;
    names->capacity = old.capacity > 0 ? 2 * old.capacity : 256;
    names->slots = arena_alloc(arena, names->capacity * sizeof *names->slots);
    for (size_t i = 0; i < old.capacity; i++)
      if (old.slots[i] != NULL) *slot_of(names, old.slots[i]) = old.slots[i];
  }
  const char **slot = slot_of(names, name);
  if (*slot == NULL) names->count++;
  *slot = name;
}

static bool names_have(const struct names *names, const char *name) {
  return names->capacity > 0 && *slot_of(names, name) != NULL;
}

/* ---- Items ---- */

static bool is_text(const struct word *word, const char *text) {
  return strcmp(word->text, text) == 0;
}

/* Whether a line ends between two words, not after a backslash. */
static bool is_line_end(const char *text, unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++) {
    const unsigned before = i > from && text[i - 1] == '\r' ? i - 1 : i;
    if (text[i] == '\n' && (before == from || text[before - 1] != '\\')) return true;
  }
  return false;
}

static int new_item(struct digesting *digesting, enum item_kind kind, int first) {
  struct item item = {.kind = kind, .first = first, .last = -1};
  ARENA_PUSH(digesting->importer->arena, digesting->items, item);
  return digesting->items.count - 1;
}

static void join_word(struct digesting *digesting, int number, int at) {
  struct item *item = &digesting->items.items[number];
  digesting->words.items[at].item = number;
  digesting->words.items[at].next = -1;
  if (item->last >= 0) digesting->words.items[item->last].next = at;
  item->last = at;
}

/* The item of a line of the preprocessor from word `at` on; the word after it. Files count themselves, and not that
 * they are included. */
static int add_line(struct digesting *digesting, const char *text, int at) {
  struct word *words = digesting->words.items;
  int end = at + 1;
  while (end < digesting->words.count && !is_line_end(text, words[end - 1].end, words[end].offset)) end++;
  const bool is_macro = end > at + 2 && is_text(&words[at + 1], "define");
  const bool is_include = end > at + 1 && is_text(&words[at + 1], "include");
  const int item = new_item(digesting, is_macro ? ITEM_MACRO : is_include ? ITEM_LEFT_OUT : ITEM_CODE, at);
  while (at < end) join_word(digesting, item, at++);
  return end;
}

/* A declaration as its words come. */
struct open_item {
  int number, depth; /* -1: none is open */
  bool has_parameters;
};

static void add_word(struct digesting *digesting, struct open_item *open, int at) {
  struct word *word = &digesting->words.items[at];
  if (open->number < 0) *open = (struct open_item){.number = new_item(digesting, ITEM_CODE, at)};
  struct item *item = &digesting->items.items[open->number];
  join_word(digesting, open->number, at);
  if (open->depth == 0 && is_text(word, "(") && item->kind == ITEM_CODE) open->has_parameters = true;
  if (open->depth == 0 && is_text(word, "=") && !open->has_parameters) item->kind = ITEM_VARIABLE;
  const bool opens = is_text(word, "(") || is_text(word, "[") || is_text(word, "{"), is_body = is_text(word, "}");
  open->depth += opens - (is_text(word, ")") || is_text(word, "]") || is_body);
  if (open->depth == 0 && (is_text(word, ";") || (is_body && open->has_parameters))) open->number = -1;
}

/* The lines that keep a header from being read twice are no part of what it says: #ifndef, #define, #endif. */
static void leave_guard_out(struct digesting *digesting, int first) {
  int last = digesting->items.count - 1;
  while (last > first && !is_text(&digesting->words.items[digesting->items.items[last].first], "#")) last--;
  if (last < first + 2) return;
  struct item *items = digesting->items.items;
  items[first].kind = items[first + 1].kind = items[last].kind = ITEM_LEFT_OUT;
}

/* Divides the words from `first` on, those of a file, into items. */
static void add_items(struct digesting *digesting, CXFile file, const char *text, int first) {
  struct open_item open = {.number = -1};
  const int first_item = digesting->items.count;
  for (int i = first; i < digesting->words.count;) {
    const struct word *word = &digesting->words.items[i];
    const bool begins = i == first || is_line_end(text, word[-1].end, word->offset);
    if (begins && is_text(word, "#"))
      i = add_line(digesting, text, i);
    else
      add_word(digesting, &open, i++);
  }
  if (clang_isFileMultipleIncludeGuarded(digesting->importer->unit, file)) leave_guard_out(digesting, first_item);
}

/* ---- Files ---- */

static void add_words(struct digesting *digesting, const CXToken *tokens, unsigned count) {
  struct importer *importer = digesting->importer;
  for (unsigned i = 0; i < count; i++) {
    if (clang_getTokenKind(tokens[i]) == CXToken_Comment) continue;
    const CXSourceRange range = clang_getTokenExtent(importer->unit, tokens[i]);
    struct word word = {.text = import_string(importer, clang_getTokenSpelling(importer->unit, tokens[i])),
                        .is_name = clang_getTokenKind(tokens[i]) == CXToken_Identifier};
    clang_getFileLocation(clang_getRangeStart(range), NULL, NULL, NULL, &word.offset);
    clang_getFileLocation(clang_getRangeEnd(range), NULL, NULL, NULL, &word.end);
    ARENA_PUSH(importer->arena, digesting->words, word);
  }
}

/* Headers in memory come with whoever reads, and others from the system. */
static void add_file(CXFile file, CXSourceLocation *stack, unsigned depth, CXClientData data) {
  struct digesting *digesting = data;
  CXTranslationUnit unit = digesting->importer->unit;
  size_t size = 0;
  (void)stack, (void)depth;
  const char *text = clang_getFileContents(unit, file, &size);
  const char *name = import_string(digesting->importer, clang_getFileName(file));
  CXSourceLocation start = clang_getLocationForOffset(unit, file, 0);
  bool in_memory = strncmp(name, HEADER_FOLDER "/", sizeof HEADER_FOLDER) == 0;
  if (text == NULL || in_memory || clang_Location_isInSystemHeader(start)) return;
  CXSourceLocation end = clang_getLocationForOffset(unit, file, (unsigned)size);
  CXToken *tokens = NULL;
  unsigned count = 0;
  const int first = digesting->words.count;
  clang_tokenize(unit, clang_getRange(start, end), &tokens, &count);
  add_words(digesting, tokens, count);
  clang_disposeTokens(unit, tokens, count);
  add_items(digesting, file, text, first);
}

/* ---- What counts ---- */

static void count_item(struct digesting *digesting, struct item *item) {
  item->counts = true;
  for (int i = item->first; i >= 0; i = digesting->words.items[i].next)
    if (digesting->words.items[i].is_name)
      names_add(digesting->importer->arena, &digesting->names, digesting->words.items[i].text);
}

/* Whether what counts has one of a variable's names outside of brackets, its type's too, so that the defaults of a
 * config count with it; or a macro's own name. */
static bool is_named(const struct digesting *digesting, const struct item *item) {
  int depth = 0;
  if (item->kind == ITEM_MACRO) return names_have(&digesting->names, digesting->words.items[item->first + 2].text);
  for (int i = item->first; i >= 0; i = digesting->words.items[i].next) {
    const struct word *word = &digesting->words.items[i];
    if (depth == 0 && word->is_name && names_have(&digesting->names, word->text)) return true;
    depth += is_text(word, "(") || is_text(word, "[") || is_text(word, "{");
    depth -= is_text(word, ")") || is_text(word, "]") || is_text(word, "}");
  }
  return false;
}

/* First all code, then what it names, and what that names. */
static void count_items(struct digesting *digesting) {
  bool grows = true;
  for (int i = 0; i < digesting->items.count; i++)
    if (digesting->items.items[i].kind == ITEM_CODE) count_item(digesting, &digesting->items.items[i]);
  while (grows) {
    grows = false;
    for (int i = 0; i < digesting->items.count; i++) {
      struct item *item = &digesting->items.items[i];
      if (item->counts || item->kind == ITEM_LEFT_OUT || !is_named(digesting, item)) continue;
      count_item(digesting, item);
      grows = true;
    }
  }
}

const char *import_digest(struct importer *importer) {
  struct digesting digesting = {.importer = importer};
  struct sha256 sum = sha256_start();
  char hex[65];
  clang_getInclusions(importer->unit, add_file, &digesting);
  count_items(&digesting);
  for (int i = 0; i < digesting.words.count; i++) {
    const struct word *word = &digesting.words.items[i];
    if (digesting.items.items[word->item].counts) sha256_add(&sum, word->text, strlen(word->text) + 1);
  }
  sha256_hex(&sum, hex);
  return arena_copy(importer->arena, hex, 16);
}
