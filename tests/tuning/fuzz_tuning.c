/* Any bytes as a table of measurements: it is refused with a message that has a place, or it is the same table when its
 * own text is read. */
#include <stdlib.h>
#include <string.h>

#include "gen/tuning/tuning.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  static FILE *nowhere;
  if (nowhere == NULL) nowhere = fopen("/dev/null", "w");
  const struct tuned_machine machine = {"A processor", 2};
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const char *text = arena_copy(arena, bytes, size);
  const struct tuning *table = tuning_parse(arena, "table.json", text, size, &machine, &diags);
  if ((table == NULL) != (diags.errors > 0)) abort();
  diag_print(&diags, nowhere, false);
  if (table != NULL) {
    const char *once = tuning_text(table);
    const struct tuning *again = tuning_parse(arena, "again.json", once, strlen(once), &machine, &diags);
    if (again == NULL || strcmp(tuning_text(again), once) != 0) abort();
  }
  arena_free(arena);
  return 0;
}
