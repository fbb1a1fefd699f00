#include "gen/commands/tune/profile.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double first_quartile(double *numbers, int count) {
  if (count == 0) return 0;
  qsort(numbers, (size_t)count, sizeof *numbers, by_size);
  double position = (count - 1) / 4.0;
  int below = (int)position;
  int above = below + 1 < count ? below + 1 : below;
  return numbers[below] + (position - below) * (numbers[above] - numbers[below]);
}

/* A part's events so far: their number, and for each step the sum of its seconds. */
struct events {
  double *seconds;
  int count;
};

const struct profile_part *profile_find(const struct step_profile *profile, const char *name) {
  for (int i = 0; i < profile->count; i++)
    if (strcmp(profile->items[i].name, name) == 0) return &profile->items[i];
  return NULL;
}

static bool is_step(const json_t *event) {
  const char *kind = json_string_value(json_object_get(event, "cat"));
  return kind != NULL && strcmp(kind, "step") == 0;
}

static bool is_part(const json_t *event) {
  const char *kind = json_string_value(json_object_get(event, "cat"));
  return kind != NULL && strcmp(kind, "part") == 0;
}

/* ---- The steps that count ---- */

/* A step of a run, by its number. */
struct measured {
  double seconds;
  int number;
};

static int by_seconds(const void *a, const void *b) {
  const struct measured *x = a, *y = b;
  return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* The middle half of the steps by how long they took: no step that the system delayed is among them, and unlike medians
 * the means of parts over the same steps add up to the mean of the steps. */
struct middle {
  const struct measured *steps;
  int count;
};

static struct middle middle_steps(struct arena *arena, const double *whole, int count) {
  struct measured *steps = arena_alloc(arena, ((size_t)count + 1) * sizeof *steps);
  for (int i = 0; i < count; i++) steps[i] = (struct measured){whole[i], i};
  qsort(steps, (size_t)count, sizeof *steps, by_seconds);
  return (struct middle){steps + count / 4, count - 2 * (count / 4)};
}

/* The mean over these steps of what a part, or the step itself, took in each. */
static double mean_over(struct middle middle, const double *seconds) {
  double sum = 0;
  for (int i = 0; i < middle.count; i++) sum += seconds[middle.steps[i].number];
  return middle.count > 0 ? sum / middle.count : 0;
}

/* ---- Reading ---- */

static int count_steps(const json_t *list) {
  size_t i;
  const json_t *event;
  int count = 0;
  json_array_foreach(list, i, event) count += is_step(event);
  return count;
}

/* The events of a step come before that of the step itself. */
static void read_events(struct arena *arena, const json_t *list, struct step_profile *profile) {
  int n_steps = count_steps(list), step = 0, capacity = 0;
  struct events *all = NULL;
  double *whole = arena_alloc(arena, ((size_t)n_steps + 1) * sizeof *whole);
  size_t i;
  const json_t *event;
  json_array_foreach(list, i, event) {
    double seconds = 1e-6 * json_number_value(json_object_get(event, "dur"));
    const char *name = json_string_value(json_object_get(event, "name"));
    if (is_step(event)) whole[step++] = seconds;
    if (!is_part(event) || name == NULL || step >= n_steps) continue;
    const struct profile_part *found = profile_find(profile, name);
    int at = found != NULL ? (int)(found - profile->items) : profile->count;
    if (found == NULL) {
      struct events none = {arena_alloc(arena, ((size_t)n_steps + 1) * sizeof(double)), 0};
      all = arena_grow(arena, all, profile->count, &capacity, sizeof *all);
      all[profile->count] = none;
      const json_t *work = json_object_get(event, "args");
      ARENA_PUSH(arena, *profile,
                 ((struct profile_part){.name = arena_string(arena, name),
                                        .flops = json_number_value(json_object_get(work, "flop")),
                                        .bytes = json_number_value(json_object_get(work, "bytes"))}));
    }
    all[at].seconds[step] += seconds;
    all[at].count++;
  }
  const struct middle middle = middle_steps(arena, whole, n_steps);
  for (int k = 0; k < profile->count; k++) {
    profile->items[k].times = (double)all[k].count / n_steps;
    profile->items[k].seconds = mean_over(middle, all[k].seconds);
  }
  profile->n_steps = n_steps;
  profile->step = mean_over(middle, whole);
}

bool profile_read(struct arena *arena, const char *path, struct step_profile *profile) {
  json_t *root = json_load_file(path, 0, NULL);
  *profile = (struct step_profile){0};
  if (root != NULL) read_events(arena, json_object_get(root, "traceEvents"), profile);
  json_decref(root);
  return profile->n_steps > 0;
}
