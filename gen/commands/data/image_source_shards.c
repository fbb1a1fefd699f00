/* Images of shards of WebDataset: a sample is an image and its label, which is the number in .cls, the name in .txt or
 * in another file, or a field of .json. */
#include <ctype.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "gen/commands/data/forget.h"
#include "gen/commands/data/image_source.h"
#include "gen/tokenizer/bytes.h"
#include "gen/unpack/shard.h"
#include "runtime/files/mapping.h"

enum { BATCH_BYTES = 64 << 20, MOST_CLASSES = 1000000 };

static const char *const image_endings[] = {"jpg", "jpeg", "png"};
enum { IMAGE_ENDINGS = 3 };

struct shards_state {
  const char *wanted[IMAGE_ENDINGS + 2]; /* the endings that are read */
  const char *ending, *field;            /* of the label; field: of .json, else NULL */
  struct mapping *files;
  struct shard *shard; /* the current one */
  int at;              /* its number */
  uint64_t before;     /* bytes of the files before it */
  size_t forgotten;
};

/* ---- The label ---- */

/* A problem with a sample's file. */
static bool bad(struct image_item *item, const char *name, const char *what, const char *remedy) {
  rt_problem(&item->problem, "%s: %s", name, what);
  return rt_help(&item->problem, "%s", remedy);
}

/* The text without the blanks around it, as int() of Python reads a number. */
static void trim(const char **text, size_t *size) {
  while (*size > 0 && isspace((unsigned char)**text)) ++*text, --*size;
  while (*size > 0 && isspace((unsigned char)(*text)[*size - 1])) --*size;
}

static bool take_number(struct image_source *source, struct image_item *item, const char *text, size_t size) {
  static const char remedy[] = "write the number of the class, from 0 on, or name a label with --label";
  const int64_t classes = source->labels.given ? labels_count(&source->labels) : MOST_CLASSES;
  int64_t number = 0;
  for (size_t i = 0; i < size; i++) {
    if (!isdigit((unsigned char)text[i])) return bad(item, item->name, "the .cls is not a whole number", remedy);
    number = number * 10 + (text[i] - '0');
    if (number >= MOST_CLASSES) break;
  }
  if (size == 0) return bad(item, item->name, "the .cls is empty", remedy);
  item->label = (int32_t)number;
  if (number < classes) return true;
  rt_problem(&item->problem, "%s: the number in .cls is not below %" PRId64, item->name, classes);
  return rt_help(&item->problem, "--labels names the classes 0, 1 and so on; without it at most %d are read",
                 MOST_CLASSES);
}

static bool take_value(struct image_source *source, struct image_item *item, const json_t *value) {
  struct problem why = {0};
  const int64_t number = labels_number(&source->labels, value, &why);
  item->label = (int32_t)number;
  return number >= 0 || bad(item, item->name, why.what, why.help);
}

static bool take_field(struct image_source *source, struct image_item *item, const char *text, size_t size) {
  const struct shards_state *state = source->state;
  char what[200];
  json_error_t error;
  json_t *record = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
  const json_t *value = json_object_get(record, state->field);
  snprintf(what, sizeof what, "the .json has no field '%.100s'", state->field);
  if (record == NULL) snprintf(what, sizeof what, "the .json, line %d: %s", error.line, error.text);
  bool good = value != NULL ? take_value(source, item, value) : bad(item, item->name, what, "");
  json_decref(record);
  return good;
}

static bool take_label(struct image_source *source, struct image_item *item, const struct shard_sample *sample) {
  const struct shards_state *state = source->state;
  const struct shard_file *file = shard_file_of(sample, state->ending);
  if (file == NULL) {
    rt_problem(&item->problem, "%s: the sample has no .%s, which would be its label", item->name, state->ending);
    return rt_help(&item->problem, "--label NAME takes a field of the .json, --label .ENDING the text of another file");
  }
  const char *text = sample->content + file->from;
  size_t size = file->size, at;
  if (state->field != NULL) return take_field(source, item, text, size);
  trim(&text, &size);
  if (source->is_numbered) return take_number(source, item, text, size);
  if (memchr(text, '\0', size) != NULL || !is_utf8(text, size, &at))
    return bad(item, item->name, "its label is not a text of UTF-8", "");
  json_t *value = json_stringn(text, size);
  bool good = value != NULL ? take_value(source, item, value) : bad(item, item->name, "no memory for its label", "");
  json_decref(value);
  return good;
}

/* ---- A sample ---- */

/* The image of a sample, of which it must have one. */
static const struct shard_file *image_of(const struct shard_sample *sample, struct image_item *item) {
  const struct shard_file *found = NULL, *file;
  for (int i = 0; i < IMAGE_ENDINGS; i++) {
    file = shard_file_of(sample, image_endings[i]);
    if (file != NULL && found != NULL) {
      bad(item, item->name, "the sample has two images", "give it one of .jpg, .jpeg and .png");
      return NULL;
    }
    if (file != NULL) found = file;
  }
  if (found == NULL) bad(item, item->name, "the sample has no image", "give it one of .jpg, .jpeg and .png");
  return found;
}

/* Makes an item of a sample. False without memory. */
static bool take_sample(struct image_source *source, const struct shard_sample *sample) {
  const struct shards_state *state = source->state;
  struct image_item *item = &source->items[source->count++];
  const char *path = source->what->paths[state->at];
  *item = (struct image_item){.name = malloc(strlen(path) + strlen(sample->key) + 3)};
  if (item->name == NULL) return false;
  sprintf(item->name, "%s: %s", path, sample->key);
  const struct shard_file *image = image_of(sample, item);
  item->failed = image == NULL || !take_label(source, item, sample);
  if (item->failed) return true;
  item->size = image->size;
  item->bytes = malloc(image->size + 1);
  if (item->bytes != NULL) memcpy(item->bytes, sample->content + image->from, image->size);
  return item->bytes != NULL;
}

/* ---- The files ---- */

static void close_shard(struct shards_state *state) {
  shard_free(state->shard);
  state->shard = NULL;
}

static bool open_shard(struct image_source *source, struct problem *problem) {
  struct shards_state *state = source->state;
  const struct mapping *file = &state->files[state->at];
  const char *path = source->what->paths[state->at], *bytes = file->bytes != NULL ? (const char *)file->bytes : "";
  state->forgotten = 0;
  state->shard = shard_new(path, bytes, file->size, state->wanted, problem);
  return state->shard != NULL;
}

static bool is_not_shard(const char *path, struct problem *problem) {
  rt_problem(problem, "%s: neither a folder of images nor a tar archive", path);
  return rt_help(problem, "images are in a folder with a folder for each class, or in shards of WebDataset");
}

static bool shards_open(struct image_source *source, struct problem *problem) {
  const struct imaging *what = source->what;
  struct shards_state *state = source->state = arena_alloc(what->arena, sizeof *state);
  const char *label = what->label != NULL ? what->label : ".cls";
  *state =
      (struct shards_state){.ending = label[0] == '.' ? label + 1 : "json", .field = label[0] == '.' ? NULL : label};
  source->is_numbered = strcasecmp(label, ".cls") == 0;
  for (int i = 0; i < IMAGE_ENDINGS; i++) state->wanted[i] = image_endings[i];
  state->wanted[IMAGE_ENDINGS] = state->ending;
  state->files = arena_alloc(what->arena, (size_t)what->count * sizeof *state->files);
  if (!watch_begin(&source->watch, what->paths, what->count, problem)) return false;
  for (int i = 0; i < what->count; i++) {
    struct mapping *file = &state->files[i];
    if (!rt_map(file, what->paths[i], "give an existing file", problem)) return false;
    if (!documents_is_shard((const char *)file->bytes, file->size)) return is_not_shard(what->paths[i], problem);
    source->all += file->size;
  }
  return open_shard(source, problem);
}

static bool shards_next(struct image_source *source, int most, struct problem *problem) {
  struct shards_state *state = source->state;
  const struct shard_sample *sample;
  for (size_t bytes = 0; source->count < most && bytes < BATCH_BYTES;) {
    enum shard_found found = shard_next(state->shard, &sample, problem);
    if (found == SHARD_BAD) return false;
    if (found == SHARD_NEXT && !take_sample(source, sample)) return rt_problem(problem, "no memory for the images");
    if (found == SHARD_NEXT) {
      bytes += source->items[source->count - 1].size;
      continue;
    }
    if (state->at + 1 == source->what->count) break;
    close_shard(state);
    state->before += state->files[state->at++].size;
    if (!open_shard(source, problem)) return false;
  }
  source->done = state->before + shard_done(state->shard);
  state->forgotten = forget_read(&state->files[state->at], state->forgotten, shard_done(state->shard));
  return true;
}

static bool shards_rewind(struct image_source *source, struct problem *problem) {
  struct shards_state *state = source->state;
  close_shard(state);
  state->at = 0;
  state->before = 0;
  return open_shard(source, problem);
}

/* The classes 0 to the highest one are named by their numbers. */
static bool name_numbers(struct image_source *source, const int32_t *numbers, int64_t count, struct problem *problem) {
  char name[16];
  int32_t highest = -1;
  for (int64_t i = 0; i < count; i++)
    if (numbers[i] > highest) highest = numbers[i];
  for (int32_t i = 0; !source->labels.given && i <= highest; i++) {
    snprintf(name, sizeof name, "%" PRId32, i);
    if (labels_number_of(&source->labels, name, problem) != i) return false;
  }
  return true;
}

static bool shards_sort(struct image_source *source, int32_t *numbers, int64_t count, struct problem *problem) {
  if (source->is_numbered) return name_numbers(source, numbers, count, problem);
  if (!labels_drop_unused(&source->labels, numbers, count)) return rt_problem(problem, "no memory for the labels");
  int32_t *sorted = labels_sort(&source->labels);
  if (sorted == NULL) return rt_problem(problem, "no memory for the labels");
  for (int64_t i = 0; i < count; i++) numbers[i] = sorted[numbers[i]];
  free(sorted);
  return true;
}

static void shards_close(struct image_source *source) {
  struct shards_state *state = source->state;
  if (state == NULL) return;
  close_shard(state);
  for (int i = 0; state->files != NULL && i < source->what->count; i++) rt_unmap(&state->files[i]);
}

const struct image_source_kind image_source_shards = {shards_open, shards_next, shards_rewind, shards_sort,
                                                      shards_close};
