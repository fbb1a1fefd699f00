/* The pre-tokenizers of a tokenizer.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/reading.h"

static const char key[] = "pre_tokenizer";

/* GPT-2's (encoder.py), as ByteLevel has it. */
static const char gpt2_words[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char white_space[] = "\\s", punctuation[] = "[!-/:-@\\[-`{-~\\p{P}]";
/* Characters of words as Unicode's regular expressions have them (UTS #18), and runs of others. */
static const char words[] = "[\\w\\x{200c}\\x{200d}]+|[^\\w\\s\\x{200c}\\x{200d}]+";

static bool add_split(const struct reading *reading, const char *expression, enum split_behavior behavior,
                      bool inverted) {
  char error[192];
  if (splitter_add(&reading->tokenizer->splitter, expression, behavior, inverted, error, sizeof error)) return true;
  rt_problem(reading->problem, "%s: %s: '%.200s': %s", reading->path, key, expression, error);
  return rt_help(reading->problem, "make the tokens with the library tokenizers, and give them as format npy_tokens");
}

bool read_pattern(const json_t *pattern, char *expression, size_t size) {
  const char *regex = json_string_value(json_object_get(pattern, "Regex"));
  const char *text = json_string_value(json_object_get(pattern, "String"));
  if (regex != NULL) return (size_t)snprintf(expression, size, "%s", regex) < size;
  if (text == NULL || strstr(text, "\\E") != NULL) return false;
  return (size_t)snprintf(expression, size, "\\Q%s\\E", text) < size;
}

static bool read_behavior(const json_t *value, enum split_behavior *behavior) {
  static const char *const names[] = {"Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (json_is_text(value, names[i])) return *behavior = (enum split_behavior)i, true;
  return false;
}

static bool read_split(const struct reading *reading, const json_t *step) {
  char expression[4096];
  enum split_behavior behavior;
  if (!read_pattern(json_object_get(step, "pattern"), expression, sizeof expression))
    return reading_refuse(reading, key, "a Split without a pattern that can be taken");
  if (!read_behavior(json_object_get(step, "behavior"), &behavior))
    return reading_refuse(reading, key, "a Split of another behavior");
  return add_split(reading, expression, behavior, json_is_true(json_object_get(step, "invert")));
}

static bool read_digits(const struct reading *reading, const json_t *step) {
  bool each = json_is_true(json_object_get(step, "individual_digits"));
  return add_split(reading, each ? "\\p{N}" : "\\p{N}+", SPLIT_ISOLATED, false);
}

static bool read_punctuation(const struct reading *reading, const json_t *step) {
  enum split_behavior behavior = SPLIT_ISOLATED;
  const json_t *value = json_object_get(step, "behavior");
  if (value != NULL && !read_behavior(value, &behavior))
    return reading_refuse(reading, key, "a Punctuation of another behavior");
  return add_split(reading, punctuation, behavior, false);
}

static bool read_white_space(const struct reading *reading, const json_t *step) {
  (void)step;
  return add_split(reading, white_space, SPLIT_REMOVED, false);
}

static bool read_words(const struct reading *reading, const json_t *step) {
  (void)step;
  return add_split(reading, words, SPLIT_REMOVED, true);
}

static bool read_bert(const struct reading *reading, const json_t *step) {
  return read_white_space(reading, step) && add_split(reading, punctuation, SPLIT_ISOLATED, false);
}

static bool read_delimiter(const struct reading *reading, const json_t *step) {
  char expression[64];
  const char *text = json_string_value(json_object_get(step, "delimiter"));
  if (text == NULL || *text == '\0' || strlen(text) > 4 ||
      (size_t)snprintf(expression, sizeof expression, "\\Q%s\\E", text) >= sizeof expression)
    return reading_refuse(reading, key, "a CharDelimiterSplit without a character");
  return add_split(reading, expression, SPLIT_REMOVED, false);
}

/* Within a text its words become bytes; a blank is put before it where it has none. */
static bool read_bytes(const struct reading *reading, const json_t *step) {
  struct tokenizer *tokenizer = reading->tokenizer;
  tokenizer->maps_bytes = true;
  if (json_is_true(json_object_get(step, "add_prefix_space"))) {
    if (tokenizer->splitter.count > 0)
      return reading_refuse(reading, key, "add_prefix_space within the pieces of another step");
    tokenizer->prefix = (struct prefix){.text = " ", .size = 1};
  }
  return json_is_false(json_object_get(step, "use_regex")) || add_split(reading, gpt2_words, SPLIT_ISOLATED, false);
}

/* Whether what is before the first character of a text is never removed from it. */
static bool begins_with_text(const struct normalizers *normalizers) {
  bool good = true;
  for (int i = 0; i < normalizers->count; i++) {
    enum normalizer_kind kind = normalizers->steps[i].kind;
    good &= kind == NORMALIZE_FORM || kind == NORMALIZE_LOWERCASE || kind == NORMALIZE_PREPEND ||
            (kind == NORMALIZE_REPLACE && *normalizers->steps[i].text != '\0');
  }
  return good;
}

/* The mark of blanks, put before texts and split at. Versions before 0.15 have add_prefix_space alone. */
static bool read_blanks(const struct reading *reading, const json_t *step) {
  struct tokenizer *tokenizer = reading->tokenizer;
  char expression[64];
  const char *blank = json_string_value(json_object_get(step, "replacement"));
  const json_t *scheme = json_object_get(step, "prepend_scheme"), *splits = json_object_get(step, "split");
  bool first = json_is_text(scheme, "first");
  bool never =
      json_is_text(scheme, "never") || (scheme == NULL && json_is_false(json_object_get(step, "add_prefix_space")));
  int level = tokenizer->splitter.count;
  if (blank == NULL || *blank == '\0' || strlen(blank) > 4 || strchr(blank, '\\') != NULL)
    return reading_refuse(reading, key, "a Metaspace without a character");
  if (tokenizer->prefix.text != NULL) return reading_refuse(reading, key, "two steps that put something before a text");
  if (level > 0 && (first || json_is_false(splits)))
    return reading_refuse(reading, key,
                          "a Metaspace after another step that does not split, or for the first text alone");
  if (first && !begins_with_text(&tokenizer->normalizers))
    return reading_refuse(reading, key,
                          "a Metaspace for the first text alone, of which a normalizer removes characters");
  tokenizer->prefix = (struct prefix){
      .text = never ? NULL : blank, .size = strlen(blank), .only_first = first, .level = level, .blank = blank};
  snprintf(expression, sizeof expression, "\\Q%s\\E", blank);
  return json_is_false(splits) || add_split(reading, expression, SPLIT_MERGED_WITH_NEXT, false);
}

static bool read_step(const struct reading *reading, const json_t *step) {
  static const struct {
    const char *type;
    bool (*read)(const struct reading *reading, const json_t *step);
  } kinds[] = {{"BertPreTokenizer", read_bert}, {"ByteLevel", read_bytes},  {"CharDelimiterSplit", read_delimiter},
               {"Digits", read_digits},         {"Metaspace", read_blanks}, {"Punctuation", read_punctuation},
               {"Split", read_split},           {"Whitespace", read_words}, {"WhitespaceSplit", read_white_space}};
  if (reading->tokenizer->maps_bytes) return reading_refuse(reading, key, "a step after ByteLevel");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (json_is_text(json_object_get(step, "type"), kinds[i].type)) return kinds[i].read(reading, step);
  return reading_refuse(reading, key, "a step that is none of those that are read");
}

bool read_pre_tokenizer(const struct reading *reading, const json_t *pre_tokenizer) {
  const json_t *list = json_object_get(pre_tokenizer, "pretokenizers");
  if (json_is_nothing(pre_tokenizer)) return true;
  if (!json_is_text(json_object_get(pre_tokenizer, "type"), "Sequence")) return read_step(reading, pre_tokenizer);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *step = json_array_get(list, i), *before = i > 0 ? json_array_get(list, i - 1) : NULL;
    if (before != NULL && json_is_text(json_object_get(step, "type"), "Metaspace") &&
        !json_is_text(json_object_get(before, "type"), "WhitespaceSplit"))
      return reading_refuse(reading, key, "a Metaspace after a step that is not WhitespaceSplit");
    if (!read_step(reading, step)) return false;
  }
  return true;
}
