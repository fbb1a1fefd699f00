/* Any bytes as device code: the first chooses PTX or SASS. It is refused with a message, or each claim about it has a
 * verdict. */
#include <stdlib.h>
#include <string.h>

#include "gen/device_code/ptx.h"
#include "gen/device_code/sass.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size == 0) return 0;
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  const char *text = arena_copy(arena, bytes + 1, size - 1);
  bool ptx = bytes[0] % 2 == 0;
  struct audit *audit = ptx ? ptx_audit(arena, "tests/audit/corpus_device_code/add.ptx", text, &diags)
                            : sass_audit(arena, "tests/audit/corpus_device_code/add.sass", text, &diags);
  if ((audit == NULL) != (diags.errors > 0)) abort();
  if (audit != NULL && audit->n_claims == 0) abort();
  arena_free(arena);
  return 0;
}
