/* Any bytes as a job; after a NUL, an override "key=value". A job that is accepted must be the same job when its
 * resolved text is read. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gen/spec/job.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_resolved(struct arena *arena, const struct job *job) {
  struct diagnostics diags = diagnostics_in(arena);
  const char *text = job_resolved(arena, job);
  const struct job *again = job_parse(arena, "resolved.yaml", text, strlen(text), NULL, 0, &diags);
  if (again == NULL || strcmp(again->digest, job->digest) != 0) {
    fputs(text, stderr);
    diag_print(&diags, stderr, false);
    abort();
  }
}

/* The messages of a bad job have positions within it. */
static void check_messages(const struct diagnostics *diags) {
  static FILE *nowhere;
  if (nowhere == NULL) nowhere = fopen("/dev/null", "w");
  if (diags->errors == 0) abort();
  diag_print(diags, nowhere, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct arena *arena = arena_new();
  struct diagnostics diags = diagnostics_in(arena);
  char *text = arena_copy(arena, bytes, size);
  const char *nul = memchr(text, '\0', size);
  struct job_override override = {0};
  int overrides = 0;
  size_t length = nul == NULL ? size : (size_t)(nul - text);
  if (nul != NULL) {
    char *key = text + length + 1, *equals = strchr(key, '=');
    if (equals != NULL) *equals = '\0';
    override = (struct job_override){key, equals == NULL ? NULL : equals + 1};
    overrides = 1;
  }
  const struct job *job = job_parse(arena, "job.yaml", text, length, &override, overrides, &diags);
  if (job == NULL)
    check_messages(&diags);
  else
    check_resolved(arena, job);
  arena_free(arena);
  return 0;
}
