/* Any bytes as a table of measurements, and as those of a trainer: each is refused with a message that has a position,
 * or it is a table that is the same when its own text is read, and whose words for variants can stand in a program. */
#include <stdlib.h>
#include <string.h>

#include "gen/tuning/tuning.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const struct tuned_machine machine = {"A processor", 2};

static void check_variants(const struct tuning *table) {
  for (int i = 0; i < table->entries.count; i++)
    for (int k = 0; k < table->entries.items[i].variants.count; k++)
      if (strpbrk(table->entries.items[i].variants.items[k].variant, "\"\\\n") != NULL) abort();
}

static void check_table(struct arena *arena, const char *text, size_t size, struct diagnostics *diags) {
  const struct tuning *table = tuning_parse(arena, "table.json", text, size, &machine, diags);
  if ((table == NULL) != (diags->errors > 0)) abort();
  if (table == NULL) return;
  check_variants(table);
  const char *once = tuning_text(table);
  const struct tuning *again = tuning_parse(arena, "again.json", once, strlen(once), &machine, diags);
  if (again == NULL || strcmp(tuning_text(again), once) != 0) abort();
}

static void check_measured(struct arena *arena, const char *text, size_t size, struct diagnostics *diags) {
  const struct tuning *read = tuning_measured(arena, "measured.json", text, size, diags);
  if ((read == NULL) != (diags->errors > 0)) abort();
  if (read == NULL) return;
  check_variants(read);
  const char *once = tuning_text(read);
  if (tuning_parse(arena, "table.json", once, strlen(once), &read->machine, diags) == NULL) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static void (*const checks[])(struct arena *, const char *, size_t, struct diagnostics *) = {check_table,
                                                                                               check_measured};
  static FILE *nowhere;
  if (nowhere == NULL) nowhere = fopen("/dev/null", "w");
  for (int i = 0; i < 2; i++) {
    struct arena *arena = arena_new();
    struct diagnostics diags = diagnostics_in(arena);
    checks[i](arena, arena_copy(arena, bytes, size), size, &diags);
    diag_print(&diags, nowhere, false);
    arena_free(arena);
  }
  return 0;
}
