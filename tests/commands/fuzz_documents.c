/* Any bytes as JSON Lines, as a CSV and as a file of unknown kind: every text is in memory that is there, and a
 * second reading from where a record began gives the same. */
#include <stdlib.h>
#include <string.h>

#include "gen/tokenizer/documents.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void read_all(const char *text, size_t size, struct text_selector selector) {
  struct problem problem;
  struct documents documents, again;
  if (documents_begin(&documents, "fuzz.csv", text, size, selector, &problem)) {
    size_t before = documents.at;
    while (documents_next(&documents, &problem) == DOCUMENT_NEXT) {
      if (!documents_begin(&again, "fuzz.csv", text, size, selector, &problem)) __builtin_trap();
      if (before >= again.at) documents_seek(&again, before);
      if (documents_next(&again, &problem) != DOCUMENT_NEXT || again.length != documents.length) __builtin_trap();
      if (again.at != documents.at || again.line != documents.line) __builtin_trap();
      if (documents.length > 0 && memcmp(again.text, documents.text, documents.length) != 0) __builtin_trap();
      documents_end(&again);
      before = documents.at;
    }
  }
  documents_end(&documents);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  struct problem problem;
  struct skipped skipped = {0};
  char *text = malloc(size + 1);
  if (text == NULL) return 0;
  memcpy(text, bytes, size);
  for (int skips = 0; skips < 2; skips++) {
    read_all(text, size,
             (struct text_selector){.kind = TEXT_FIELD, .name = "t", .skipped = skips != 0 ? &skipped : NULL});
    read_all(text, size,
             (struct text_selector){.kind = TEXT_COLUMN, .name = "t", .skipped = skips != 0 ? &skipped : NULL});
  }
  documents_check_whole("fuzz", text, size, &problem);
  free(text);
  return 0;
}
