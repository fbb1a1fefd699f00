/* What is said of a name, in words. */
#include <string.h>

#include "gen/spec/names.h"
#include "gen/spec/schema.h"

static bool is_group(const json_t *root, const char *key) {
  const json_t *schema = schema_find(root, key);
  return schema != NULL && schema_keyword(root, schema, "properties") != NULL;
}

/* One of the keys that a name leads to, as a sentence has it. */
static const char *lead_words(struct arena *arena, const json_t *root, const char *at) {
  const char *value = strchr(at, '=');
  if (strncmp(at, "accel-gen ", 10) == 0) return arena_printf(arena, "'%s'", at);
  if (value != NULL) return arena_printf(arena, "%.*s: %s", (int)(value - at), at, value + 1);
  return is_group(root, at) ? arena_printf(arena, "the group %s", at) : at;
}

/* "a, b and c" */
static const char *leads(struct arena *arena, const json_t *root, const struct name *name, const char *last) {
  struct text out = text_in(arena);
  for (int i = 0; i < name->at_count; i++) {
    text_puts(&out, i == 0 ? "" : i + 1 < name->at_count ? ", " : last);
    text_puts(&out, lead_words(arena, root, name->at[i]));
  }
  return text_string(&out);
}

/* "bf16": what a key takes; a key has a dot. */
static bool leads_to_value(const struct name *name) {
  return name->is_value && name->at_count > 0 && strchr(name->at[0], '.') == NULL;
}

static const char *opening(struct arena *arena, const json_t *root, const struct name *name) {
  if (leads_to_value(name)) return arena_printf(arena, "is called %s here", leads(arena, root, name, " or "));
  if (name->state == NAME_NEEDLESS) return "is not needed";
  if (name->state == NAME_ABSENT) return name->is_value ? "is not supported" : "is not here";
  const char *end = name->state == NAME_REFUSED ? ", refused so far" : "";
  if (name->at_count == 0) return name->state == NAME_REFUSED ? "is refused so far" : "works here";
  return arena_printf(arena, "is %s here%s", leads(arena, root, name, " and "), end);
}

const char *name_sentence(struct arena *arena, const json_t *root, const struct name *name) {
  const char *says = name->says;
  if (says == NULL) return opening(arena, root, name);
  return arena_printf(arena, "%s%s %s", opening(arena, root, name), leads_to_value(name) ? "," : ":", says);
}

const char *name_brief(struct arena *arena, const json_t *root, const struct name *name) {
  if (name->state == NAME_NEEDLESS) return "not needed";
  if (name->state == NAME_ABSENT) return "not here";
  if (name->state == NAME_REFUSED) return "refused so far";
  return name->at_count == 0 ? "works" : leads(arena, root, name, ", ");
}

const char *name_full(struct arena *arena, const struct name *name) {
  return name->of == NULL || name->is_value ? name->word : arena_printf(arena, "%s.%s", name->of, name->word);
}
