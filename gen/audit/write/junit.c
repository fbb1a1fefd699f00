/* JUnit's XML. */
#include <string.h>

#include "gen/audit/write/write.h"

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

const char *write_location(struct arena *arena, struct location where) {
  const char *file = where.file != NULL ? where.file : "";
  return where.line == 0 ? file : arena_printf(arena, "%s:%d:%d", file, where.line, where.column);
}

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
    write_escaped(out, write_location(audit->arena, claim->findings[i].where));
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
