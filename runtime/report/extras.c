#include "runtime/report/extras.h"

#include <stdlib.h>
#include <string.h>

static struct extra *find(const struct extras *extras, const char *name) {
  for (int i = 0; i < extras->count; i++)
    if (strcmp(extras->items[i].name, name) == 0) return &extras->items[i];
  return NULL;
}

static struct extra *add(struct extras *extras, const char *name) {
  if (extras->count == extras->capacity) {
    int capacity = extras->capacity > 0 ? 2 * extras->capacity : 8;
    struct extra *items = realloc(extras->items, (size_t)capacity * sizeof *items);
    if (items == NULL) return NULL;
    extras->items = items;
    extras->capacity = capacity;
  }
  char *copy = malloc(strlen(name) + 1);
  if (copy == NULL) return NULL;
  extras->items[extras->count] = (struct extra){.name = strcpy(copy, name)};
  return &extras->items[extras->count++];
}

bool rt_extras_set(struct extras *extras, const char *name, double value, bool printed) {
  struct extra *extra = find(extras, name);
  if (extra == NULL) extra = add(extras, name);
  if (extra == NULL) return false;
  extra->value = value;
  extra->printed = printed;
  extra->waits = true;
  return true;
}

bool rt_extras_find(const struct extras *extras, const char *name, double *value) {
  const struct extra *extra = find(extras, name);
  if (extra == NULL || !extra->waits) return false;
  *value = extra->value;
  return true;
}

void rt_extras_logged(struct extras *extras) {
  for (int i = 0; i < extras->count; i++) extras->items[i].waits = false;
}

void rt_extras_free(struct extras *extras) {
  for (int i = 0; i < extras->count; i++) free(extras->items[i].name);
  free(extras->items);
  *extras = (struct extras){0};
}
