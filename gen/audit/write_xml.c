/* JUnit's XML, and the page. */
#include <string.h>

#include "gen/audit/write.h"

void write_escaped(struct text *out, const char *string) {
  for (; *string != '\0'; string++) {
    unsigned char byte = (unsigned char)*string;
    switch (byte) {
    case '&':
      text_puts(out, "&amp;");
      break;
    case '<':
      text_puts(out, "&lt;");
      break;
    case '>':
      text_puts(out, "&gt;");
      break;
    case '"':
      text_puts(out, "&quot;");
      break;
    case '\'':
      text_puts(out, "&#39;");
      break;
    default:
      if (byte < 0x20 && byte != '\t' && byte != '\n')
        text_puts(out, "\xEF\xBF\xBD");
      else
        text_add(out, string, 1);
    }
  }
}

const char *write_place(struct arena *arena, struct location where) {
  const char *file = where.file != NULL ? where.file : "";
  return where.line == 0 ? file : arena_printf(arena, "%s:%d:%d", file, where.line, where.column);
}

/* ---- JUnit ---- */

static void add_test(const struct audit *audit, const struct claim *claim, struct text *out) {
  text_printf(out, "    <testcase classname=\"accel-gen.audit\" name=\"%s\"", claim->id);
  if (claim->verdict == VERDICT_HOLDS) {
    text_puts(out, "/>\n");
    return;
  }
  const char *tag = claim->verdict == VERDICT_BROKEN ? "failure" : "error";
  text_printf(out, ">\n      <%s type=\"%s\" message=\"", tag, verdict_word(claim->verdict));
  write_escaped(out, claim->sentence);
  text_puts(out, "\">");
  for (int i = 0; i < claim->n_findings; i++) {
    write_escaped(out, write_place(audit->arena, claim->findings[i].where));
    text_puts(out, ": ");
    write_escaped(out, claim->findings[i].message);
    if (i + 1 < claim->n_findings) text_puts(out, "\n");
  }
  text_printf(out, "</%s>\n    </testcase>\n", tag);
}

void audit_write_junit(const struct audit *audit, struct text *out) {
  int broken = audit_count(audit, VERDICT_BROKEN), unknown = audit_count(audit, VERDICT_CANNOT_TELL);
  text_puts(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  text_printf(out, "<testsuites tests=\"%d\" failures=\"%d\" errors=\"%d\">\n", audit->n_claims, broken, unknown);
  text_puts(out, "  <testsuite name=\"");
  write_escaped(out, audit->tree->file);
  text_printf(out, "\" tests=\"%d\" failures=\"%d\" errors=\"%d\" skipped=\"0\">\n", audit->n_claims, broken, unknown);
  for (int i = 0; i < audit->n_claims; i++) add_test(audit, &audit->claims[i], out);
  text_puts(out, "  </testsuite>\n</testsuites>\n");
}

/* ---- The page ---- */

static const char style[] =
    ":root { color-scheme: light dark; --line: #8884; --bad: #c22; --open: #a60; --good: #283; }\n"
    "body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em; }\n"
    "h1 { font-size: 1.3em; } table { border-collapse: collapse; width: 100%; }\n"
    "td { border-top: 1px solid var(--line); padding: .3em .6em; vertical-align: top; }\n"
    ".broken { color: var(--bad); } .cannot { color: var(--open); } .holds { color: var(--good); }\n"
    "pre { font: 12.5px/1.5 ui-monospace, monospace; overflow-x: auto; tab-size: 2; }\n"
    ".n { display: inline-block; width: 4em; color: #8888; user-select: none; }\n"
    "mark { display: block; padding-left: 4.5em; background: none; font-weight: 600; white-space: pre-wrap; }\n"
    "a { color: inherit; } details { margin: .2em 0; }\n";

static const char *class_of(enum verdict verdict) {
  return verdict == VERDICT_HOLDS ? "holds" : verdict == VERDICT_BROKEN ? "broken" : "cannot";
}

static bool in_program(const struct audit *audit, struct location where) {
  return where.line > 0 && where.file != NULL && strcmp(where.file, audit->tree->file) == 0;
}

static void add_entry(const struct audit *audit, struct location where, const char *message, struct text *out) {
  text_puts(out, "<div>");
  if (in_program(audit, where))
    text_printf(out, "<a href=\"#L%d\">line %d</a>: ", where.line, where.line);
  else if (where.line > 0)
    write_escaped(out, arena_printf(audit->arena, "%s: ", write_place(audit->arena, where)));
  write_escaped(out, message);
  text_puts(out, "</div>");
}

static void add_row(const struct audit *audit, const struct claim *claim, struct text *out) {
  text_printf(out, "<tr><td class=\"%s\">%s</td><td><code>%s</code><br>", class_of(claim->verdict),
              verdict_word(claim->verdict), claim->id);
  write_escaped(out, claim->sentence);
  text_puts(out, "</td><td>");
  if (claim->n_findings == 0) write_escaped(out, claim->evidence);
  for (int i = 0; i < claim->n_findings; i++)
    add_entry(audit, claim->findings[i].where, claim->findings[i].message, out);
  if (claim->n_facts > 0) {
    text_printf(out, "<details><summary>%d listed</summary>", claim->n_facts);
    for (int i = 0; i < claim->n_facts; i++) add_entry(audit, claim->facts[i].where, claim->facts[i].message, out);
    text_puts(out, "</details>");
  }
  text_puts(out, "</td></tr>\n");
}

static void add_marks(const struct audit *audit, int line, struct text *out) {
  for (int i = 0; i < audit->n_claims; i++) {
    const struct claim *claim = &audit->claims[i];
    for (int j = 0; j < claim->n_findings; j++) {
      const struct finding *finding = &claim->findings[j];
      if (finding->where.line != line || !in_program(audit, finding->where)) continue;
      text_printf(out, "<mark class=\"%s\">%s, %s: ", class_of(finding->verdict), claim->id,
                  verdict_word(finding->verdict));
      write_escaped(out, finding->message);
      text_puts(out, "</mark>");
    }
  }
}

static void add_source(const struct audit *audit, struct text *out) {
  const char *at = audit->tree->text;
  for (int line = 1; *at != '\0'; line++) {
    size_t length = strcspn(at, "\n");
    text_printf(out, "<span id=\"L%d\"><span class=\"n\">%d</span>", line, line);
    write_escaped(out, arena_copy(audit->arena, at, length));
    text_puts(out, "</span>\n");
    add_marks(audit, line, out);
    at += length + (at[length] == '\n');
  }
}

void audit_write_html(const struct audit *audit, struct text *out) {
  text_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Audit of ");
  write_escaped(out, audit->tree->file);
  text_printf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>Audit of ", style);
  write_escaped(out, audit->tree->file);
  text_printf(out,
              "</h1>\n<p>%d lines, %d functions, %d of them in the hot loop: %d claims hold, %d are broken, %d "
              "cannot be told.</p>\n<table>\n",
              audit->tree->n_lines, audit->n_functions, audit->n_hot, audit_count(audit, VERDICT_HOLDS),
              audit_count(audit, VERDICT_BROKEN), audit_count(audit, VERDICT_CANNOT_TELL));
  for (int i = 0; i < audit->n_claims; i++) add_row(audit, &audit->claims[i], out);
  text_puts(out, "</table>\n<pre>\n");
  add_source(audit, out);
  text_puts(out, "</pre>\n</body>\n</html>\n");
}
