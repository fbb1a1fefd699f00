#include "gen/statements/statement.h"
#include "gen/without/without.h"

const char *statements_missing(struct arena *arena) {
  return arena_printf(arena, WITHOUT_MESSAGE, "its writers of SLSA's provenance and of an SBOM", "statements");
}

const char *statement_text(struct arena *arena, const struct made *made) {
  (void)arena;
  (void)made;
  return "";
}

const char *sbom_text(struct arena *arena, const struct made *made) {
  (void)arena;
  (void)made;
  return "";
}
