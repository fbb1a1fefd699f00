#include "runtime/weights/sources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STARS = 8, LONGEST = 1024 };

/* ---- Rules ---- */

/* What a * of a pattern matched. */
struct span {
  const char *text;
  size_t length;
};

/* Whether the pattern matches the whole name; a * matches as little as it can. */
static bool matches(const char *pattern, const char *name, struct span *spans, int n_spans) {
  while (*pattern != '\0' && *pattern != '*')
    if (*pattern++ != *name++) return false;
  if (*pattern == '\0') return *name == '\0';
  for (size_t length = 0;; length++) {
    if (n_spans < MOST_STARS) spans[n_spans] = (struct span){name, length};
    if (matches(pattern + 1, name + length, spans, n_spans + 1)) return true;
    if (name[length] == '\0') return false;
  }
}

/* The text with what the stars matched in place of its own; false where it is too long. */
static bool fill_in(const char *to, const struct span *spans, char *out, size_t size) {
  size_t length = 0;
  for (int stars = 0; *to != '\0'; to++) {
    const struct span own = {to, 1}, *piece = *to == '*' && stars < MOST_STARS ? &spans[stars++] : &own;
    if (length + piece->length >= size) return false;
    memcpy(out + length, piece->text, piece->length);
    length += piece->length;
  }
  out[length] = '\0';
  return true;
}

/* Renames one tensor; whether the rule matches it, in *matched. */
static bool rename_one(const struct accel_rename *rule, struct named_tensor *tensor, bool *matched,
                       struct problem *problem) {
  struct span spans[MOST_STARS] = {{0}};
  char name[LONGEST];
  if (!matches(rule->from, tensor->name, spans, 0)) return true;
  *matched = true;
  if (!fill_in(rule->to, spans, name, sizeof name))
    return rt_problem(problem, "%s: model.weights_map makes the name of '%.200s' too long", tensor->path, tensor->name);
  char *copy = strdup(name);
  if (copy == NULL) return rt_problem(problem, "%s: no memory for the names of tensors", tensor->path);
  if (tensor->name != tensor->tensor->name) free((char *)tensor->name);
  tensor->name = copy;
  return true;
}

/* The source that rules name by this path; 0: it is not open. */
static int source_of(const struct sources *sources, const char *path) {
  for (int i = 1; i < sources->count; i++)
    if (strcmp(sources->paths[i], path) == 0) return i;
  return 0;
}

/* One after the other, each over the names that those before it made. */
static bool rename_all(struct sources *sources, const struct accel_start_file *start, struct problem *problem) {
  for (int i = 0; i < start->n_renames; i++) {
    const struct accel_rename *rule = &start->renames[i];
    const int source = rule->path != NULL ? source_of(sources, rule->path) : 0;
    const char *path = sources->paths[source];
    bool matched = false;
    for (int k = 0; k < sources->n_tensors; k++)
      if (sources->tensors[k].source == source && !rename_one(rule, &sources->tensors[k], &matched, problem))
        return false;
    if (matched) continue;
    rt_problem(problem, "%s: model.weights_map: '%s' matches no tensor there", path, rule->from);
    if (sources->n_tensors == 0) return false;
    return rt_help(problem, "a tensor there is called '%.200s'; * is any text, and rules are applied in their order",
                   sources->tensors[0].tensor->name);
  }
  return true;
}

/* ---- Names ---- */

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct named_tensor *)a)->name, ((const struct named_tensor *)b)->name);
}

/* torch.save keeps all names of what is tied. */
static bool is_same(const struct stored_tensor *a, const struct stored_tensor *b) {
  return a->bytes == b->bytes && a->file == b->file && a->at == b->at && a->size == b->size && a->size > 0;
}

static bool sort(struct sources *sources, struct problem *problem) {
  struct named_tensor *tensors = sources->tensors;
  if (sources->n_tensors > 0) qsort(tensors, (size_t)sources->n_tensors, sizeof *tensors, by_name);
  for (int i = 1; i < sources->n_tensors; i++) {
    const struct named_tensor *a = &tensors[i - 1], *b = &tensors[i];
    if (strcmp(a->name, b->name) != 0 || is_same(a->tensor, b->tensor)) continue;
    rt_problem(problem, "two tensors for one parameter: '%.200s' of %.200s and '%.200s' of %.200s both become '%.200s'",
               a->tensor->name, a->path, b->tensor->name, b->path, a->name);
    return rt_help(problem, "narrow a rule of model.weights_map, so that one of them keeps another name");
  }
  return true;
}

static bool list(struct sources *sources, struct problem *problem) {
  int count = 0;
  for (int i = 0; i < sources->count; i++) count += sources->items[i].n_tensors;
  sources->tensors = calloc((size_t)count + 1, sizeof *sources->tensors);
  if (sources->tensors == NULL) return rt_problem(problem, "%s: no memory for the list of tensors", sources->paths[0]);
  for (int i = 0; i < sources->count; i++)
    for (int k = 0; k < sources->items[i].n_tensors; k++) {
      const struct stored_tensor *tensor = sources->items[i].by_name[k];
      sources->tensors[sources->n_tensors++] = (struct named_tensor){tensor->name, tensor, sources->paths[i], i};
    }
  return true;
}

const struct named_tensor *rt_sources_find(const struct sources *sources, const char *name) {
  const struct named_tensor wanted = {.name = name};
  if (sources->n_tensors == 0) return NULL;
  return bsearch(&wanted, sources->tensors, (size_t)sources->n_tensors, sizeof wanted, by_name);
}

/* ---- Files ---- */

static bool open_one(struct sources *sources, const char *path, const char *cure, struct problem *problem) {
  struct shards *shards = &sources->items[sources->count];
  if (!(sources->unmapped ? rt_shards_open_unmapped : rt_shards_open)(shards, path, cure, problem)) return false;
  sources->paths[sources->count++] = path;
  return true;
}

static bool open_all(struct sources *sources, const struct accel_start_file *start, const char *path,
                     struct problem *problem) {
  bool good = open_one(sources, path, "correct model.weights in the job, or give existing safetensors", problem);
  for (int i = 0; i < start->n_renames && good; i++)
    if (start->renames[i].path != NULL && source_of(sources, start->renames[i].path) == 0)
      good = open_one(sources, start->renames[i].path, "correct the path in model.weights_map", problem);
  return good;
}

static bool make_room(struct sources *sources, int count, bool unmapped, struct problem *problem) {
  *sources = (struct sources){.unmapped = unmapped,
                              .items = calloc((size_t)count, sizeof *sources->items),
                              .paths = calloc((size_t)count, sizeof *sources->paths)};
  return (sources->items != NULL && sources->paths != NULL) || rt_problem(problem, "no memory for the list of files");
}

bool rt_sources_open(struct sources *sources, const struct accel_start_file *start, const char *path, bool unmapped,
                     struct problem *problem) {
  if (make_room(sources, start->n_renames + 1, unmapped, problem) && open_all(sources, start, path, problem) &&
      list(sources, problem) && rename_all(sources, start, problem) && sort(sources, problem))
    return true;
  rt_sources_close(sources);
  return false;
}

bool rt_sources_of(struct sources *sources, const struct shards *shards, const char *path, struct problem *problem) {
  *sources = (struct sources){0};
  sources->tensors = calloc((size_t)shards->n_tensors + 1, sizeof *sources->tensors);
  if (sources->tensors == NULL) return rt_problem(problem, "%s: no memory for the list of tensors", path);
  for (int i = 0; i < shards->n_tensors; i++) /* which are in the order of their names */
    sources->tensors[sources->n_tensors++] =
        (struct named_tensor){shards->by_name[i]->name, shards->by_name[i], path, 0};
  return true;
}

void rt_sources_forget(const struct sources *sources, const struct named_tensor *tensor) {
  if (tensor->source < sources->count) rt_shards_forget(&sources->items[tensor->source], tensor->tensor);
}

void rt_sources_close(struct sources *sources) {
  for (int i = 0; i < sources->n_tensors; i++)
    if (sources->tensors[i].name != sources->tensors[i].tensor->name) free((char *)sources->tensors[i].name);
  for (int i = 0; i < sources->count; i++) rt_shards_close(&sources->items[i]);
  free(sources->items);
  free(sources->paths);
  free(sources->tensors);
  *sources = (struct sources){0};
}
