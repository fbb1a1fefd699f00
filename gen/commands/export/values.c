/* Values of what is exported: fields of the config, numbers of its config.json, and comparisons of them. */
#include <stdlib.h>
#include <string.h>

#include "gen/commands/export/export.h"

const struct model_value *exported_field(const struct exported *of, const char *path) {
  for (int i = 0; i < of->config.count; i++)
    if (strcmp(of->config.items[i].path, path) == 0) return &of->config.items[i];
  return NULL;
}

/* A number of the config.json at "a.b". */
static bool published_number(const struct exported *of, const char *path, struct model_value *value) {
  const json_t *at = of->published;
  for (; at != NULL && *path != '\0'; path += strspn(path, ".")) {
    const size_t length = strcspn(path, ".");
    at = json_object_get(at, arena_copy(of->arena, path, length));
    path += length;
  }
  if (!json_is_number(at)) return false;
  value->number = json_number_value(at);
  value->kind = json_is_integer(at) ? MODEL_INTEGER : MODEL_REAL;
  return true;
}

static bool factor_of(const struct exported *of, const char *word, struct model_value *value) {
  const struct model_value *field = exported_field(of, word);
  char *end;
  if (field != NULL) *value = *field;
  if (field != NULL) return field->kind != MODEL_TEXT;
  value->number = strtod(word, &end);
  value->kind = strpbrk(word, ".eE") != NULL ? MODEL_REAL : MODEL_INTEGER;
  return (end != word && *end == '\0') || published_number(of, word, value);
}

/* Products and quotients, from the left. */
static bool term_of(const struct exported *of, const char *word, struct model_value *value) {
  char operation = '*';
  *value = (struct model_value){.kind = MODEL_INTEGER, .number = 1};
  if (strpbrk(word, "*/") == NULL) return factor_of(of, word, value);
  while (operation != '\0') {
    struct model_value factor;
    const size_t length = strcspn(word, "*/");
    if (!factor_of(of, arena_copy(of->arena, word, length), &factor)) return false;
    if (factor.kind == MODEL_REAL) value->kind = MODEL_REAL;
    value->number = operation == '*' ? value->number * factor.number : value->number / factor.number;
    operation = word[length];
    word += length + 1;
  }
  return true;
}

bool exported_number(const struct exported *of, const char *word, struct model_value *value) {
  if (strchr(word, '+') == NULL) return term_of(of, word, value);
  *value = (struct model_value){.kind = MODEL_INTEGER};
  for (; *word != '\0'; word += strspn(word, "+")) {
    struct model_value term;
    const size_t length = strcspn(word, "+");
    if (!term_of(of, arena_copy(of->arena, word, length), &term)) return false;
    if (term.kind == MODEL_REAL) value->kind = MODEL_REAL;
    value->number += term.number;
    word += length;
  }
  return true;
}

/* ---- Conditions ---- */

/* A side of a comparison: a number, else a text. */
static struct model_value side_of(const struct exported *of, const char *word) {
  const struct model_value *field = exported_field(of, word);
  struct model_value value = {.text = word};
  if (field != NULL) return *field;
  if (!exported_number(of, word, &value)) value.kind = MODEL_TEXT;
  value.text = word;
  return value;
}

static bool compares(const struct exported *of, const char *condition) {
  const size_t length = strcspn(condition, "!=<>"), sign = strspn(condition + length, "!=<>");
  const char *left = arena_copy(of->arena, condition, length), *operation = condition + length;
  const struct model_value a = side_of(of, left), b = side_of(of, operation + sign);
  if (a.kind == MODEL_TEXT && exported_field(of, left) == NULL) return false;
  const bool numbers = a.kind != MODEL_TEXT && b.kind != MODEL_TEXT;
  const int order = numbers ? (a.number > b.number) - (a.number < b.number) : strcmp(a.text, b.text);
  if (operation[0] == '<') return order < 0;
  if (operation[0] == '>') return sign == 2 ? order >= 0 : order > 0;
  return (order == 0) == (operation[0] == '=');
}

bool exported_holds(const struct exported *of, const char *when) {
  bool all = true;
  for (when = when != NULL ? when : ""; all && *when != '\0'; when += strspn(when, " ")) {
    const size_t length = strcspn(when, " ");
    all = compares(of, arena_copy(of->arena, when, length));
    when += length;
  }
  return all;
}
