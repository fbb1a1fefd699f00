/* Any bytes as an object of a program, or as a linked one: it is refused with a message, or each claim about it has a
 * verdict. */
#define _GNU_SOURCE /* memfd_create */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gen/audit/audit.h"
#include "gen/audit/machine/linked.h"
#include "gen/audit/machine/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* The program of the seeds, read once. */
static const struct audit *program(void) {
  static const char *const flags[] = {"-I", "include"};
  static const struct audit_options options = {.flags = flags, .n_flags = 2};
  static const struct audit *audit;
  if (audit == NULL) {
    struct arena *arena = arena_new();
    struct diagnostics diags = diagnostics_in(arena);
    audit = audit_calls(arena, "tests/audit/corpus_object/program.c", &options, &diags);
  }
  if (audit == NULL) abort();
  return audit;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct audit audit = *program();
  int file = memfd_create("object", 0);
  if (file < 0 || write(file, bytes, size) != (ssize_t)size) abort();
  audit.arena = arena_new();
  struct diagnostics diags = diagnostics_in(audit.arena);
  const struct audit_options options = {.object = arena_printf(audit.arena, "/proc/self/fd/%d", file)};
  const bool read = linked_is_program(options.object) ? linked_check(&audit, &options, &diags)
                                                      : machine_check(&audit, &options, &diags);
  if (read == (diags.errors > 0)) abort();
  if (read && audit.n_claims == 0) abort();
  arena_free(audit.arena);
  close(file);
  return 0;
}
