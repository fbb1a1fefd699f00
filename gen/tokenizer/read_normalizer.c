/* The normalizers of a tokenizer.json. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "gen/tokenizer/reading.h"

static const char key[] = "normalizer";

static bool add(const struct reading *reading, struct normalizer step) {
  return normalizers_add(&reading->tokenizer->normalizers, step) || reading_refuse(reading, key, "too many steps");
}

static bool read_form(const struct reading *reading, const json_t *step) {
  enum { STABLE = UTF8PROC_STABLE, COMPAT = STABLE | UTF8PROC_COMPAT };
  static const struct {
    const char *name;
    int options;
  } forms[] = {{"NFC", STABLE | UTF8PROC_COMPOSE},
               {"NFD", STABLE | UTF8PROC_DECOMPOSE},
               {"NFKC", COMPAT | UTF8PROC_COMPOSE},
               {"NFKD", COMPAT | UTF8PROC_DECOMPOSE}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (json_is_text(json_object_get(step, "type"), forms[i].name))
      return add(reading, (struct normalizer){.kind = NORMALIZE_FORM, .form = forms[i].options});
  return reading_refuse(reading, key, "a step that is none of those that are read");
}

static bool read_lowercase(const struct reading *reading, const json_t *step) {
  (void)step;
  return add(reading, (struct normalizer){.kind = NORMALIZE_LOWERCASE});
}

static bool read_accents(const struct reading *reading, const json_t *step) {
  (void)step;
  return add(reading, (struct normalizer){.kind = NORMALIZE_STRIP_ACCENTS, .marks_all = true});
}

/* Accents go where strip_accents says so or, without a word, with lowercase. */
static bool read_bert(const struct reading *reading, const json_t *step) {
  const json_t *accents = json_object_get(step, "strip_accents"), *lower = json_object_get(step, "lowercase");
  bool strips = json_is_boolean(accents) ? json_is_true(accents) : json_is_true(lower);
  struct normalizer form = {.kind = NORMALIZE_FORM, .form = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE};
  if (json_is_true(json_object_get(step, "clean_text")) && !add(reading, (struct normalizer){.kind = NORMALIZE_CLEAN}))
    return false;
  if (json_is_true(json_object_get(step, "handle_chinese_chars")) &&
      !add(reading, (struct normalizer){.kind = NORMALIZE_CHINESE}))
    return false;
  if (strips && (!add(reading, form) || !add(reading, (struct normalizer){.kind = NORMALIZE_STRIP_ACCENTS})))
    return false;
  return !json_is_true(lower) || read_lowercase(reading, step);
}

static bool read_strip(const struct reading *reading, const json_t *step) {
  return add(reading, (struct normalizer){.kind = NORMALIZE_STRIP,
                                          .left = json_is_true(json_object_get(step, "strip_left")),
                                          .right = json_is_true(json_object_get(step, "strip_right"))});
}

static bool read_prepend(const struct reading *reading, const json_t *step) {
  const char *text = json_string_value(json_object_get(step, "prepend"));
  if (text == NULL) return reading_refuse(reading, key, "a Prepend without a text");
  return add(reading, (struct normalizer){.kind = NORMALIZE_PREPEND, .text = text});
}

static bool read_replace(const struct reading *reading, const json_t *step) {
  char expression[2048], error[192];
  const char *content = json_string_value(json_object_get(step, "content"));
  if (content == NULL || !read_pattern(json_object_get(step, "pattern"), expression, sizeof expression))
    return reading_refuse(reading, key, "a Replace without a pattern or a content");
  struct normalizer made = {.kind = NORMALIZE_REPLACE, .text = content};
  made.code = split_compile(expression, error, sizeof error);
  if (made.code != NULL) return add(reading, made);
  rt_problem(reading->problem, "%s: %s: '%.200s': %s", reading->path, key, expression, error);
  return rt_help(reading->problem, "make the tokens with the library tokenizers, and give them as format npy_tokens");
}

static bool read_charsmap(const struct reading *reading, const json_t *step) {
  const json_t *map = json_object_get(step, "precompiled_charsmap");
  struct normalizer made = {.kind = NORMALIZE_CHARSMAP};
  if (json_is_nothing(map)) return true;
  if (json_is_string(map) && charsmap_read(&made.charsmap, json_string_value(map), json_string_length(map)))
    return add(reading, made);
  charsmap_free(&made.charsmap);
  return reading_refuse(reading, key, "a precompiled_charsmap that is not whole");
}

static bool read_step(const struct reading *reading, const json_t *step) {
  static const struct {
    const char *type;
    bool (*read)(const struct reading *reading, const json_t *step);
  } kinds[] = {{"BertNormalizer", read_bert}, {"Lowercase", read_lowercase}, {"Precompiled", read_charsmap},
               {"Prepend", read_prepend},     {"Replace", read_replace},     {"Strip", read_strip},
               {"StripAccents", read_accents}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (json_is_text(json_object_get(step, "type"), kinds[i].type)) return kinds[i].read(reading, step);
  return read_form(reading, step);
}

bool read_normalizer(const struct reading *reading, const json_t *normalizer) {
  const json_t *list = json_object_get(normalizer, "normalizers");
  if (json_is_nothing(normalizer)) return true;
  if (!json_is_text(json_object_get(normalizer, "type"), "Sequence")) return read_step(reading, normalizer);
  for (size_t i = 0; i < json_array_size(list); i++)
    if (!read_step(reading, json_array_get(list, i))) return false;
  return true;
}
