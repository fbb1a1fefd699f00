/* The page: the claims, what speaks against them first, and the program with the findings at their lines. */
#include <string.h>

#include "gen/audit/write/write.h"

static const char style[] =
    ":root { color-scheme: light dark; --line: #8884; --bad: #c22; --open: #a60; --good: #283; --shade: #c221; }\n"
    "@media (prefers-color-scheme: dark) { :root { --bad: #f77; --open: #fb5; --good: #7c8; --shade: #f772; } }\n"
    "body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 80em; padding: 0 1em; }\n"
    "h1 { font-size: 1.3em; } h2 { font-size: 1.1em; margin-top: 2em; }\n"
    "table { border-collapse: collapse; table-layout: fixed; width: 100%; }\n"
    "td { border-top: 1px solid var(--line); padding: .3em .6em; vertical-align: top; overflow-wrap: anywhere; }\n"
    "td:first-child { width: 6em; } td:nth-child(2) { width: 38%; }\n"
    ".broken { color: var(--bad); } .cannot { color: var(--open); } .holds { color: var(--good); }\n"
    "pre { font: 12.5px/1.5 ui-monospace, monospace; overflow-x: auto; tab-size: 2; }\n"
    ".n { display: inline-block; width: 3.5em; margin-right: 1em; text-align: right; color: #888; user-select: none; "
    "}\n"
    ".at { background: var(--shade); } :target { outline: 1px solid var(--open); }\n"
    "mark { display: block; padding-left: 4.5em; background: none; font-weight: 600; white-space: pre-wrap; }\n"
    ".p { float: right; margin-left: 3em; color: #888; font-size: .9em; }\n"
    "a { color: inherit; } summary { cursor: pointer; } details { margin: .2em 0; }\n";

static const char *class_of(enum verdict verdict) {
  return verdict == VERDICT_HOLDS ? "holds" : verdict == VERDICT_BROKEN ? "broken" : "cannot";
}

static bool in_program(const struct audit *audit, struct location where) {
  return where.line > 0 && where.file != NULL && strcmp(where.file, audit->tree->file) == 0;
}

static void add_entry(const struct audit *audit, const char *class, struct location where, const char *message,
                      struct text *out) {
  text_printf(out, "<div class=\"%s\">", class);
  if (in_program(audit, where))
    text_printf(out, "<a href=\"#L%d\">line %d</a>: ", where.line, where.line);
  else if (where.line > 0)
    write_escaped(out, arena_printf(audit->arena, "%s: ", write_location(audit->arena, where)));
  write_escaped(out, message);
  text_puts(out, "</div>");
}

enum { SHOWN = 12 }; /* findings of a claim that are shown expanded */

static void add_findings(const struct audit *audit, const struct claim *claim, struct text *out) {
  int more = claim->n_findings - SHOWN;
  for (int i = 0; i < claim->n_findings; i++) {
    if (i == SHOWN) text_printf(out, "<details><summary>%d more</summary>", more);
    add_entry(audit, class_of(claim->findings[i].verdict), claim->findings[i].where, claim->findings[i].message, out);
  }
  if (more > 0) text_puts(out, "</details>");
}

static void add_row(const struct audit *audit, const struct claim *claim, struct text *out) {
  text_printf(out, "<tr><td class=\"%s\">%s</td><td><code>%s</code><br>", class_of(claim->verdict),
              verdict_word(claim->verdict), claim->id);
  write_escaped(out, claim->sentence);
  text_puts(out, "</td><td>");
  if (claim->n_findings == 0) write_escaped(out, claim->evidence);
  add_findings(audit, claim, out);
  if (claim->n_facts > 0) {
    text_printf(out, "<details><summary>%d listed</summary>", claim->n_facts);
    for (int i = 0; i < claim->n_facts; i++)
      add_entry(audit, "fact", claim->facts[i].where, claim->facts[i].message, out);
    text_puts(out, "</details>");
  }
  text_puts(out, "</td></tr>\n");
}

/* The findings at a line; with `out` NULL, only whether there are any. */
static bool add_marks(const struct audit *audit, int line, struct text *out) {
  bool any = false;
  for (int i = 0; i < audit->n_claims; i++) {
    const struct claim *claim = &audit->claims[i];
    for (int j = 0; j < claim->n_findings; j++) {
      const struct finding *finding = &claim->findings[j];
      if (finding->where.line != line || !in_program(audit, finding->where)) continue;
      any = true;
      if (out == NULL) continue;
      text_printf(out, "<mark class=\"%s\">%s, %s: ", class_of(finding->verdict), claim->id,
                  verdict_word(finding->verdict));
      write_escaped(out, finding->message);
      text_puts(out, "</mark>");
    }
  }
  return any;
}

static void add_note(const struct line_note *note, struct text *out) {
  text_puts(out, "<span class=\"p\" title=\"");
  write_escaped(out, note->more);
  text_puts(out, "\">");
  write_escaped(out, note->words);
  text_puts(out, "</span>");
}

static void add_source(const struct audit *audit, const struct line_note *notes, struct text *out) {
  const char *at = audit->tree->text;
  for (int line = 1; *at != '\0'; line++) {
    size_t length = strcspn(at, "\n");
    const char *class = add_marks(audit, line, NULL) ? " class=\"at\"" : "";
    text_printf(out, "<span id=\"L%d\"%s>", line, class);
    if (notes != NULL) add_note(&notes[line - 1], out);
    text_printf(out, "<span class=\"n\">%d</span>", line);
    write_escaped(out, arena_copy(audit->arena, at, length));
    text_puts(out, "</span>\n");
    add_marks(audit, line, out);
    at += length + (at[length] == '\n');
  }
}

void audit_write_html(const struct audit *audit, const struct line_note *notes, struct text *out) {
  text_puts(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Audit of ");
  write_escaped(out, audit->tree->file);
  text_printf(out, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<h1>Audit of ", style);
  write_escaped(out, audit->tree->file);
  text_printf(out,
              "</h1>\n<p>%s lines, %d functions, %d of them %s. Of %d claims, %d hold, %d broken, %d "
              "cannot be decided.</p>\n<table>\n",
              write_grouped(out->arena, audit->tree->n_lines), audit->n_functions, audit->n_step_functions,
              audit->scope, audit->n_claims, audit_count(audit, VERDICT_HOLDS), audit_count(audit, VERDICT_BROKEN),
              audit_count(audit, VERDICT_CANNOT_TELL));
  static const enum verdict order[] = {VERDICT_BROKEN, VERDICT_CANNOT_TELL, VERDICT_HOLDS};
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < audit->n_claims; j++)
      if (audit->claims[j].verdict == order[i]) add_row(audit, &audit->claims[j], out);
  text_puts(out, "</table>\n<h2>The program</h2>\n<pre>\n");
  add_source(audit, notes, out);
  text_puts(out, "</pre>\n</body>\n</html>\n");
}
