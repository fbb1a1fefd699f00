/* Images of a folder with a folder for each class: all are listed at the start, and their classes are known. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "gen/commands/data/image_source.h"
#include "gen/dataset/image_folder.h"
#include "gen/tokenizer/bytes.h"

struct folder_state {
  struct image_folder folder;
  int at; /* the next file */
};

static bool watch_files(struct image_source *source, struct problem *problem) {
  const struct folder_state *state = source->state;
  const int count = state->folder.files.count;
  const char **paths = arena_alloc(source->what->arena, ((size_t)count + 1) * sizeof *paths);
  for (int i = 0; i < count; i++) paths[i] = state->folder.files.items[i].path;
  if (!watch_begin(&source->watch, paths, count, problem)) return false;
  for (int i = 0; i < count; i++) source->all += (uint64_t)source->watch.states[i].size;
  return true;
}

/* Numbers the classes of the folder as they are sorted, or takes the numbers of the given ones. */
static bool folder_open(struct image_source *source, struct problem *problem) {
  const struct imaging *what = source->what;
  struct folder_state *state = source->state = arena_alloc(what->arena, sizeof *state);
  struct image_folder *folder = &state->folder;
  struct class_names known = {0};
  const char *name, *root = what->paths[0];
  struct json_t *number;
  size_t at;
  json_object_foreach(source->labels.numbers, name, number) ARENA_PUSH(what->arena, known, name);
  (void)number;
  if (!image_folder_read(folder, what->arena, root, what->given != NULL ? &known : NULL, problem)) return false;
  for (int i = 0; i < folder->classes.count; i++) {
    name = folder->classes.items[i];
    if (!is_utf8(name, strlen(name), &at))
      return rt_problem(problem, "%s/%s: the name of the class is not UTF-8", root, name);
    if (labels_number_of(&source->labels, name, problem) != i) return false;
  }
  return watch_files(source, problem);
}

static bool folder_next(struct image_source *source, int most, struct problem *problem) {
  struct folder_state *state = source->state;
  for (; source->count < most && state->at < state->folder.files.count; state->at++) {
    const struct labelled_file *file = &state->folder.files.items[state->at];
    char *name = strdup(file->path);
    if (name == NULL) return rt_problem(problem, "no memory for the images");
    source->items[source->count++] = (struct image_item){.name = name, .label = file->label};
    source->done += (uint64_t)source->watch.states[state->at].size;
  }
  return true;
}

static bool folder_rewind(struct image_source *source, struct problem *problem) {
  (void)problem;
  ((struct folder_state *)source->state)->at = 0;
  return true;
}

/* They have their numbers from the start. */
static bool folder_sort(struct image_source *source, int32_t *numbers, int64_t count, struct problem *problem) {
  (void)source;
  (void)numbers;
  (void)count;
  (void)problem;
  return true;
}

static void folder_close(struct image_source *source) {
  (void)source;
}

const struct image_source_kind image_source_folder = {folder_open, folder_next, folder_rewind, folder_sort,
                                                      folder_close};
