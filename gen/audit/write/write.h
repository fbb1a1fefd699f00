/* Writing: an audit as text for people and as the formats that machines read. */
#ifndef ACCEL_AUDIT_WRITE_WRITE_H
#define ACCEL_AUDIT_WRITE_WRITE_H

#include "gen/audit/program/claim.h"
#include "gen/base/text.h"

/* A line a claim with its evidence, the locations of its findings, and a total. With `facts`, what the claims list. */
void audit_write_text(const struct audit *audit, bool facts, struct text *out);

/* Everything: program, summary, claims with findings and facts. Keys as in docs/audit.md. */
void audit_write_json(const struct audit *audit, struct text *out);

/* SARIF 2.1.0 (OASIS): a rule a claim; a result a finding, and one of kind "pass" for each claim that holds. */
void audit_write_sarif(const struct audit *audit, struct text *out);

/* JUnit's XML: a test a claim; broken ones are failures, ones that cannot be decided are errors. */
void audit_write_junit(const struct audit *audit, struct text *out);

/* A remark next to a line of the program: a few words, and more on demand. */
struct line_note {
  const char *words, *more;
};

/* One HTML page without anything from outside: the claims, and the program with the findings at their lines. notes: of
 * each line from the first on; NULL: there are none. */
void audit_write_html(const struct audit *audit, const struct line_note *notes, struct text *out);

/* ---- Shared by the writers ---- */

/* Text inside of XML and HTML, in quotes or between tags; what XML cannot hold becomes U+FFFD. */
void write_escaped(struct text *out, const char *string);

/* 1204 as 1,204. */
const char *write_grouped(struct arena *arena, int number);

/* "trainer.c:12:3", or the file alone */
const char *write_location(struct arena *arena, struct location where);

#endif
