#include "gen/commands/generate/targets.h"

#include <string.h>

#include "gen/base/file.h"
#include "gen/base/path.h"

/* A module's name, and the targets of a model that has one (PEFT, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING).
 */
static const char *const known[][2] = {{"q_proj", "q_proj, v_proj"},
                                       {"c_attn", "c_attn"},
                                       {"query_key_value", "query_key_value"},
                                       {"qkv_proj", "qkv_proj"},
                                       {"query_proj", "query_proj, value_proj"},
                                       {"query", "query, value"},
                                       {"q_lin", "q_lin, v_lin"},
                                       {"q", "q, v"}};

/* Headers that include headers, at most. */
enum { DEPTH = 4 };

/* Whether a text has a module of that name in quotes: "query", "self.query". */
static bool names_module(const char *text, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = text; (at = strstr(at, name)) != NULL; at += length)
    if (at > text && (at[-1] == '"' || at[-1] == '.') && at[length] == '"') return true;
  return false;
}

static const char *targets_of(struct arena *arena, const char *path, int depth);

/* Of the headers that a text at `path` includes, the first one's that has some. */
static const char *targets_of_headers(struct arena *arena, const char *path, const char *text, int depth) {
  static const char include[] = "#include \"";
  const char *targets = NULL;
  for (const char *at = text; targets == NULL && (at = strstr(at, include)) != NULL;) {
    at += strlen(include);
    const char *name = arena_printf(arena, "%.*s", (int)strcspn(at, "\"\n"), at);
    targets = targets_of(arena, arena_printf(arena, "%s/%s", folder_of(arena, path), name), depth + 1);
  }
  return targets;
}

static const char *targets_of(struct arena *arena, const char *path, int depth) {
  size_t length;
  const char *text = depth < DEPTH ? read_bytes(arena, path, &length) : NULL;
  for (size_t i = 0; text != NULL && i < sizeof known / sizeof *known; i++)
    if (names_module(text, known[i][0])) return known[i][1];
  return text != NULL ? targets_of_headers(arena, path, text, depth) : NULL;
}

const char *usual_targets(struct arena *arena, const char *source) {
  return targets_of(arena, source, 0);
}
