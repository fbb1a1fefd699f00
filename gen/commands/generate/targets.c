#include "gen/commands/generate/targets.h"

#include <string.h>

#include "gen/base/file.h"

const char *usual_targets(struct arena *arena, const char *source) {
  static const char *const known[][2] = {{"q_proj", "q_proj, v_proj"},
                                         {"c_attn", "c_attn"},
                                         {"query_key_value", "query_key_value"},
                                         {"query", "query, value"}};
  size_t length;
  const char *text = read_bytes(arena, source, &length);
  for (size_t i = 0; text != NULL && i < sizeof known / sizeof *known; i++)
    if (strstr(text, arena_printf(arena, "\"%s\"", known[i][0])) != NULL) return known[i][1];
  return NULL;
}
