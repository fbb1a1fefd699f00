#include "gen/commands/verify/verify_text.h"

#include "gen/audit/audit.h"
#include "gen/audit/program/claim.h"
#include "gen/commands/cli/runtime.h"

const struct tree *verify_text(struct arena *arena, const struct options *options, const char *program, bool *plain) {
  struct diagnostics unread = diagnostics_in(arena);
  struct words flags = words_in(arena);
  reading_flags(options, &flags);
  const struct audit_options request = {.flags = (const char *const *)flags.items, .n_flags = flags.count};
  const struct audit *audit = audit_text(arena, program, &request, &unread);
  *plain = audit != NULL && audit_count(audit, VERDICT_HOLDS) == audit->n_claims;
  return audit != NULL ? audit->tree : NULL;
}
