#include <string.h>

#include "gen/audit/write/write.h"

const char *write_grouped(struct arena *arena, int number) {
  if (number < 1000) return arena_printf(arena, "%d", number);
  return arena_printf(arena, "%s,%03d", write_grouped(arena, number / 1000), number % 1000);
}

static void add_location(struct text *out, struct location where) {
  if (where.line == 0)
    text_printf(out, "%s: ", where.file != NULL ? where.file : "");
  else
    text_printf(out, "%s:%d:%d: ", where.file, where.line, where.column);
}

enum { SHOWN = 12 }; /* findings of a claim, without -v */

static void add_findings(const struct claim *claim, bool all, struct text *out) {
  for (int i = 0; i < claim->n_findings; i++) {
    if (i > 0) text_printf(out, "%41s", "");
    if (i == SHOWN && !all) {
      text_printf(out, "and %d more (-v lists them)\n", claim->n_findings - SHOWN);
      return;
    }
    add_location(out, claim->findings[i].where);
    text_printf(out, "%s\n", claim->findings[i].message);
  }
}

static void add_facts(const struct claim *claim, struct text *out) {
  for (int i = 0; i < claim->n_facts; i++) {
    text_printf(out, "%15s", "");
    add_location(out, claim->facts[i].where);
    text_printf(out, "%s\n", claim->facts[i].message);
  }
}

static void add_claim(const struct claim *claim, bool facts, struct text *out) {
  text_printf(out, "  %-11s  %-25s  ", verdict_word(claim->verdict), claim->id);
  if (claim->n_findings > 0)
    add_findings(claim, facts, out);
  else
    text_printf(out, "%s\n", claim->evidence);
  if (facts) add_facts(claim, out);
}

void audit_write_text(const struct audit *audit, bool facts, struct text *out) {
  text_printf(out, "%s: %s lines, %d functions, %d of them %s\n", audit->tree->file,
              write_grouped(out->arena, audit->tree->n_lines), audit->n_functions, audit->n_step_functions,
              audit->scope);
  for (int i = 0; i < audit->n_claims; i++) add_claim(&audit->claims[i], facts, out);
  int holds = audit_count(audit, VERDICT_HOLDS), broken = audit_count(audit, VERDICT_BROKEN);
  text_printf(out, "%d hold, %d broken", holds, broken);
  if (holds + broken < audit->n_claims) text_printf(out, ", %d cannot be decided", audit->n_claims - holds - broken);
  text_puts(out, "\n");
}
