#include "gen/commands/data/image_source.h"

#include <stdlib.h>

bool image_source_open(struct image_source *source, const struct imaging *what, struct problem *problem) {
  *source = (struct image_source){.what = what};
  if (!labels_begin(&source->labels, what->given, problem)) return false;
  source->kind = what->is_folder ? &image_source_folder : &image_source_shards;
  return source->kind->open(source, problem);
}

static void empty(struct image_source *source) {
  for (int i = 0; i < source->count; i++) {
    free(source->items[i].name);
    free(source->items[i].bytes);
  }
  source->count = 0;
}

bool image_source_next(struct image_source *source, int most, struct problem *problem) {
  empty(source);
  return source->kind->next(source, most < IMAGE_BATCH ? most : IMAGE_BATCH, problem);
}

bool image_source_rewind(struct image_source *source, struct problem *problem) {
  empty(source);
  source->done = 0;
  return source->kind->rewind(source, problem);
}

bool image_source_sort(struct image_source *source, int32_t *numbers, int64_t count, struct problem *problem) {
  return source->kind->sort(source, numbers, count, problem);
}

void image_source_close(struct image_source *source) {
  empty(source);
  if (source->kind != NULL) source->kind->close(source);
  labels_end(&source->labels);
  watch_end(&source->watch);
}
