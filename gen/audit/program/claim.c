#include <stdarg.h>
#include <string.h>

#include "gen/audit/program/claim.h"

struct claim *audit_claim(struct audit *audit, const char *id, const char *sentence) {
  struct claim claim = {.id = id, .sentence = sentence, .evidence = ""};
  audit->claims =
      arena_grow(audit->arena, audit->claims, audit->n_claims, &audit->claims_capacity, sizeof *audit->claims);
  audit->claims[audit->n_claims] = claim;
  return &audit->claims[audit->n_claims++];
}

static bool same_location(struct location a, struct location b) {
  return a.line == b.line && a.column == b.column && a.file != NULL && b.file != NULL && strcmp(a.file, b.file) == 0;
}

void claim_finding(struct audit *audit, struct claim *claim, enum verdict verdict, struct location where,
                   const char *format, ...) {
  va_list args;
  va_start(args, format);
  struct finding finding = {verdict, where, arena_vprintf(audit->arena, format, args)};
  va_end(args);
  for (int i = 0; i < claim->n_findings; i++)
    if (same_location(claim->findings[i].where, where) && strcmp(claim->findings[i].message, finding.message) == 0)
      return;
  claim->findings =
      arena_grow(audit->arena, claim->findings, claim->n_findings, &claim->findings_capacity, sizeof *claim->findings);
  int at = claim->n_findings++; /* broken findings come before those that cannot be decided */
  for (; verdict == VERDICT_BROKEN && at > 0 && claim->findings[at - 1].verdict != VERDICT_BROKEN; at--)
    claim->findings[at] = claim->findings[at - 1];
  claim->findings[at] = finding;
  if (claim->verdict != VERDICT_BROKEN) claim->verdict = verdict;
}

void claim_fact(struct audit *audit, struct claim *claim, struct location where, const char *format, ...) {
  va_list args;
  va_start(args, format);
  struct fact fact = {where, arena_vprintf(audit->arena, format, args)};
  va_end(args);
  claim->facts = arena_grow(audit->arena, claim->facts, claim->n_facts, &claim->facts_capacity, sizeof *claim->facts);
  claim->facts[claim->n_facts++] = fact;
}

void claim_evidence(struct audit *audit, struct claim *claim, const char *format, ...) {
  va_list args;
  va_start(args, format);
  claim->evidence = arena_vprintf(audit->arena, format, args);
  va_end(args);
}

int audit_count(const struct audit *audit, enum verdict verdict) {
  int count = 0;
  for (int i = 0; i < audit->n_claims; i++) count += audit->claims[i].verdict == verdict;
  return count;
}

const char *verdict_word(enum verdict verdict) {
  static const char *const words[] = {"holds", "broken", "cannot tell"};
  return words[verdict];
}
