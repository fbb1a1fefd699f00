#include "gen/tuning/tuning.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/version.h"

struct tuning *tuning_new(struct arena *arena) {
  struct tuning *tuning = arena_alloc(arena, sizeof *tuning);
  *tuning = (struct tuning){.arena = arena, .generator = ACCEL_VERSION, .forced = -1};
  tuning->compiler = tuning->flags = tuning->library = "";
  return tuning;
}

/* How far two amounts of bytes are from each other, as a ratio. */
static double distance(double a, double b) {
  return a == b ? 0 : a > 0 && b > 0 ? fabs(log(a / b)) : HUGE_VAL;
}

const struct tuned *tuning_find(const struct tuning *tuning, const char *subject, int64_t threads, double bytes) {
  const struct tuned *found = NULL;
  for (int i = 0; i < tuning->entries.count; i++) {
    const struct tuned *entry = &tuning->entries.items[i];
    if (entry->threads != threads || strcmp(entry->subject, subject) != 0) continue;
    if (found == NULL || distance(entry->bytes, bytes) < distance(found->bytes, bytes)) found = entry;
  }
  return found;
}

double tuned_seconds(const struct tuned *tuned, const char *variant) {
  for (int i = 0; i < tuned->variants.count; i++)
    if (strcmp(tuned->variants.items[i].variant, variant) == 0) return tuned->variants.items[i].seconds;
  return 0;
}

void tuning_put(struct tuning *tuning, const struct tuned *entry, const char *variant, double seconds) {
  struct tuned *found = NULL;
  for (int i = 0; i < tuning->entries.count && found == NULL; i++) {
    struct tuned *at = &tuning->entries.items[i];
    if (at->threads == entry->threads && at->bytes == entry->bytes && strcmp(at->subject, entry->subject) == 0)
      found = at;
  }
  if (found == NULL) {
    struct tuned empty = {entry->subject, entry->threads, entry->flops, entry->bytes, {0}};
    ARENA_PUSH(tuning->arena, tuning->entries, empty);
    found = &tuning->entries.items[tuning->entries.count - 1];
  }
  for (int i = 0; i < found->variants.count; i++)
    if (strcmp(found->variants.items[i].variant, variant) == 0) {
      found->variants.items[i].seconds = seconds;
      return;
    }
  ARENA_PUSH(tuning->arena, found->variants, ((struct tuned_variant){variant, seconds}));
}

static int by_subject(const void *a, const void *b) {
  const struct tuned *x = a, *y = b;
  int order = strcmp(x->subject, y->subject);
  if (order == 0) order = (x->threads > y->threads) - (x->threads < y->threads);
  return order != 0 ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static json_t *entry_json(const struct tuned *entry) {
  json_t *variants = json_array();
  for (int i = 0; i < entry->variants.count; i++)
    json_array_append_new(variants, json_pack("{s:s, s:f}", "variant", entry->variants.items[i].variant, "seconds",
                                              entry->variants.items[i].seconds));
  return json_pack("{s:s, s:I, s:I, s:I, s:o}", "subject", entry->subject, "threads", (json_int_t)entry->threads,
                   "flops", (json_int_t)entry->flops, "bytes", (json_int_t)entry->bytes, "variants", variants);
}

const char *tuning_text(const struct tuning *tuning) {
  size_t size = (size_t)tuning->entries.count * sizeof(struct tuned);
  struct tuned *sorted = arena_alloc(tuning->arena, size + 1);
  json_t *entries = json_array();
  if (size > 0) memcpy(sorted, tuning->entries.items, size);
  qsort(sorted, (size_t)tuning->entries.count, sizeof *sorted, by_subject);
  for (int i = 0; i < tuning->entries.count; i++) json_array_append_new(entries, entry_json(&sorted[i]));
  json_t *root = json_pack("{s:s, s:s, s:{s:s, s:I}, s:s, s:s, s:s, s:o}", "format", "accel-gen-tuning-1", "generator",
                           tuning->generator, "machine", "processor", tuning->machine.processor, "cores",
                           (json_int_t)tuning->machine.cores, "compiler", tuning->compiler, "flags", tuning->flags,
                           "library", tuning->library, "entries", entries);
  char *text = root != NULL ? json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) : NULL;
  const char *copy = arena_printf(tuning->arena, "%s\n", text != NULL ? text : "{}");
  free(text);
  json_decref(root);
  return copy;
}
