/* Any bytes as a file of events: texts are whole strings, not more than there is space for, in the order of the file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/report/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char path[64];
  struct arena *arena = arena_new();
  struct samples *samples = arena_alloc(arena, sizeof *samples);
  FILE *file = tmpfile();
  if (file == NULL || fwrite(bytes, 1, size, file) != size || fflush(file) != 0) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
  if (!samples_read(arena, path, samples) || samples->count > MOST_TAGS) __builtin_trap();
  fclose(file);
  for (int i = 0; i < samples->count; i++) {
    const struct sample_list *list = &samples->tags[i];
    if (list->count < 1 || list->count > 2 * MOST_SAMPLES || list->seen < list->count) __builtin_trap();
    for (int k = 0; k < list->count; k++)
      if (strlen(list->items[k].text) > 4096) __builtin_trap();
  }
  arena_free(arena);
  return 0;
}
