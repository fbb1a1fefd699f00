/* The time of a step by kind of kernel, of the trace that a run with profile.output_trace_dir leaves. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gen/base/path.h"
#include "gen/commands/report/page.h"
#include "gen/commands/tune/profile.h"

enum { MOST_KINDS = 14 };

/* Kernels whose names differ in their sizes alone. */
struct kernel_kind {
  const char *name;
  double times, seconds, flops, bytes; /* of a step */
};

struct kinds {
  struct kernel_kind *items;
  int count, capacity;
};

/* "layer_norm_backward" of "layer_norm_backward_4x64x64", "matmul" of "matmul_nt_4x64x64x192". */
static const char *kind_of(struct arena *arena, const char *part) {
  static const char *const operands[] = {"_nt", "_tn", "_tt"};
  size_t length = 0;
  while (part[length] != '\0' && !(part[length] == '_' && part[length + 1] >= '0' && part[length + 1] <= '9')) length++;
  char *name = arena_copy(arena, part, length);
  for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
    if (has_ending(name, operands[i])) name[length - strlen(operands[i])] = '\0';
  return name;
}

static int by_seconds(const void *a, const void *b) {
  const struct kernel_kind *x = a, *y = b;
  return x->seconds != y->seconds ? (x->seconds < y->seconds) - (x->seconds > y->seconds) : strcmp(x->name, y->name);
}

static struct kinds kinds_of(struct arena *arena, const struct step_profile *profile) {
  struct kinds kinds = {0};
  for (int i = 0; i < profile->count; i++) {
    const struct profile_part *item = &profile->items[i];
    const struct kernel_kind part = {kind_of(arena, item->name), item->times, item->seconds, item->flops * item->times,
                                     item->bytes * item->times};
    int at = 0;
    while (at < kinds.count && strcmp(kinds.items[at].name, part.name) != 0) at++;
    if (at == kinds.count) {
      ARENA_PUSH(arena, kinds, part);
    } else {
      kinds.items[at].times += part.times;
      kinds.items[at].seconds += part.seconds;
      kinds.items[at].flops += part.flops;
      kinds.items[at].bytes += part.bytes;
    }
  }
  if (kinds.count > 0) qsort(kinds.items, (size_t)kinds.count, sizeof *kinds.items, by_seconds);
  return kinds;
}

/* So many thousand millions a second. */
static struct jinja_value rate_text(struct arena *arena, double work, double seconds) {
  return jinja_string(arena, work > 0 && seconds > 0 ? arena_printf(arena, "%.1f", 1e-9 * work / seconds) : "");
}

static void add_kind(struct arena *arena, struct jinja_value list, const struct kernel_kind *kind, double step) {
  struct jinja_value row = jinja_map(arena);
  const double part = step > 0 ? 100 * kind->seconds / step : 0;
  jinja_set(arena, row, "name", page_text(arena, kind->name));
  jinja_set(arena, row, "times", jinja_string(arena, kind->times > 0 ? arena_printf(arena, "%.3g", kind->times) : ""));
  jinja_set(arena, row, "ms", jinja_string(arena, arena_printf(arena, "%.3f", 1e3 * kind->seconds)));
  jinja_set(arena, row, "part", jinja_string(arena, arena_printf(arena, "%.1f", part)));
  jinja_set(arena, row, "flops", rate_text(arena, kind->flops, kind->seconds));
  jinja_set(arena, row, "bytes", rate_text(arena, kind->bytes, kind->seconds));
  jinja_set(arena, row, "width", jinja_string(arena, arena_printf(arena, "%.2f", part < 100 ? part : 100)));
  jinja_push(arena, list, row);
}

/* The longest kinds, and all others in one row. */
static struct jinja_value rows_of(struct arena *arena, const struct kinds *kinds, double step) {
  struct jinja_value list = jinja_list(arena);
  struct kernel_kind others = {.name = "others"};
  for (int i = 0; i < kinds->count; i++) {
    if (i < MOST_KINDS)
      add_kind(arena, list, &kinds->items[i], step);
    else
      others.seconds += kinds->items[i].seconds;
  }
  if (others.seconds > 0) add_kind(arena, list, &others, step);
  return list;
}

static bool has_work(const struct kinds *kinds) {
  for (int i = 0; i < kinds->count; i++)
    if (kinds->items[i].flops > 0) return true;
  return false;
}

void page_add_profiles(struct arena *arena, struct jinja_value page, const struct report_run *runs, int count) {
  struct jinja_value list = jinja_list(arena);
  for (int i = 0; i < count; i++) {
    struct step_profile profile;
    if (runs[i].trace == NULL || !profile_read(arena, runs[i].trace, &profile)) continue;
    const struct kinds kinds = kinds_of(arena, &profile);
    struct jinja_value value = jinja_map(arena);
    jinja_set(arena, value, "name", page_text(arena, runs[i].name));
    jinja_set(arena, value, "index", jinja_int(i));
    jinja_set(arena, value, "steps", jinja_int(profile.n_steps));
    jinja_set(arena, value, "ms", jinja_string(arena, arena_printf(arena, "%.3f", 1e3 * profile.step)));
    jinja_set(arena, value, "has_work", jinja_bool(has_work(&kinds)));
    jinja_set(arena, value, "rows", rows_of(arena, &kinds, profile.step));
    jinja_push(arena, list, value);
  }
  jinja_set(arena, page, "profiles", list);
}
