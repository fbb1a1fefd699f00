#include "gen/import/import.h"

#include <string.h>

#include "gen/base/path.h"
#include "gen/import/convert.h"
#include "gen/import/read.h"
#include "gen/spec/assign.h"

struct import import_in(struct arena *arena, const json_t *schema) {
  struct import import = {.arena = arena, .schema = schema};
  import.names = names_of(arena, &import.kinds);
  import.job = arena_alloc(arena, sizeof *import.job);
  *import.job = (struct spec_node){.kind = SPEC_MAP, .text = ""};
  return import;
}

int import_count(const struct import *import, enum import_state state) {
  int count = 0;
  for (int i = 0; i < import->count; i++)
    for (int k = 0; k < import->items[i].count; k++) count += import->items[i].items[k].state == state;
  return count;
}

/* ---- Which kind of file ---- */

static bool has_below(struct import *import, const char *class, const char *path);

static const char *section_class(const struct name_file *kind, const char *path) {
  for (int i = 0; i < kind->section_count; i++)
    if (strcmp(kind->sections[i].key, path) == 0) return kind->sections[i].class;
  return NULL;
}

/* What a key is in a class, or in the class that a kind's own is based on. */
static const struct name *member_of(struct import *import, const struct name_file *kind, const char *class,
                                    const char *path) {
  const struct name *own = names_member(import->arena, &import->names, class, path);
  if (own != NULL || kind->base == NULL || strcmp(class, kind->class) != 0) return own;
  return names_member(import->arena, &import->names, kind->base, path);
}

/* How many keys at the top of a file a kind knows. */
static int known_keys(struct import *import, const struct name_file *kind, const struct spec_node *map) {
  int count = 0;
  for (int i = 0; i < map->count; i++) {
    const char *key = map->entries[i].key;
    count += section_class(kind, key) != NULL || has_below(import, kind->class, key) ||
             member_of(import, kind, kind->class, key) != NULL;
  }
  return count;
}

/* The kind that knows most of the keys; NULL: none knows any. */
static const struct name_file *likely_kind(struct import *import, const char *path, const struct spec_node *map) {
  const struct name_file *likely = NULL;
  int most = 0;
  for (int i = 0; i < import->kinds.count; i++) {
    const struct name_file *kind = &import->kinds.items[i];
    if (kind->ending != NULL && has_ending(path, kind->ending)) return kind;
    const int known = kind->ending == NULL ? known_keys(import, kind, map) : 0;
    if (known > most) likely = kind, most = known;
  }
  return likely;
}

static const char *kinds_text(struct import *import) {
  struct text out = text_in(import->arena);
  for (int i = 0; i < import->kinds.count; i++)
    text_printf(&out, "%s%s (%s)", i > 0 ? ", " : "", import->kinds.items[i].kind, import->kinds.items[i].says);
  return text_string(&out);
}

static const struct name_file *kind_of(struct import *import, const char *path, const char *word,
                                       const struct spec_node *map, struct diagnostics *diags) {
  const struct name_file *found = word == NULL ? likely_kind(import, path, map) : NULL;
  for (int i = 0; word != NULL && i < import->kinds.count; i++)
    if (strcmp(word, import->kinds.items[i].kind) == 0) found = &import->kinds.items[i];
  if (found != NULL) return found;
  if (word != NULL)
    diag_error(diags, (struct location){.file = path}, "'%s' is not a kind of file that is imported", word);
  else
    diag_error(diags, map->entries[0].key_where, "none of the keys identifies the kind of this file");
  diag_help(diags, "the kinds are %s; --format names one", kinds_text(import));
  return NULL;
}

/* ---- Keys ---- */

struct traversal {
  struct import *import;
  int file; /* its index, as the list of files grows while one is read */
  const char *folder;
};

/* Whether a class has members below a path. */
static bool has_below(struct import *import, const char *class, const char *path) {
  const char *start = names_normal(import->arena, arena_printf(import->arena, "%s.%s.", class, path));
  for (int i = 0; i < import->names.count; i++) {
    const struct name *name = import->names.items[i];
    if (!name->is_value && name->of != NULL && strcmp(name->of, class) == 0 &&
        strncmp(name->path, start, strlen(start)) == 0)
      return true;
  }
  return false;
}

/* The same of a class and, of a kind's own, of the one that it is based on. */
static bool has_group(struct import *import, const struct name_file *kind, const char *class, const char *path) {
  const bool based = kind->base != NULL && strcmp(class, kind->class) == 0;
  return has_below(import, class, path) || (based && has_below(import, kind->base, path));
}

/* The member that an unknown key is nearest to, as a sentence. */
static const char *suggestion(struct import *import, const char *class, const char *path) {
  const struct names *all = &import->names;
  const char **words = arena_alloc(import->arena, ((size_t)all->count + 1) * sizeof *words);
  int count = 0;
  for (int i = 0; i < all->count; i++)
    if (!all->items[i]->is_value && all->items[i]->of != NULL && strcmp(all->items[i]->of, class) == 0)
      words[count++] = all->items[i]->alias != NULL ? all->items[i]->alias : all->items[i]->word;
  const char *near = nearest_word(path, words, count);
  return near != NULL ? arena_printf(import->arena, "no such key is known; did you mean '%s'?", near)
                      : "no such key is known";
}

/* Whether a path is a group of keys that are known. */
static bool is_group(const struct traversal *traversal, const char *class, const char *path, const char *shown) {
  const struct name_file *kind = traversal->import->items[traversal->file].kind;
  return section_class(kind, shown) != NULL || has_group(traversal->import, kind, class, path);
}

static void add_row(const struct traversal *traversal, const struct spec_node *group, const char *class,
                    const char *path, const char *shown, const struct spec_entry *entry) {
  struct import *import = traversal->import;
  struct import_row row = {.key = shown, .value = entry->value, .where = entry->value->where};
  struct conversion conversion = {.import = import,
                                  .group = group,
                                  .name = member_of(import, import->items[traversal->file].kind, class, path),
                                  .row = &row,
                                  .folder = traversal->folder};
  const bool nothing = entry->value->kind == SPEC_NULL || (entry->value->kind == SPEC_MAP && entry->value->count == 0);
  if (entry->value->broken)
    row.state = IMPORT_REFUSED, row.says = "its value is computed, and nothing is run";
  else if (nothing && is_group(traversal, class, path, shown))
    row.state = IMPORT_NEEDLESS, row.says = "it has no keys";
  else if (conversion.name != NULL)
    convert(&conversion);
  else
    row.state = IMPORT_UNKNOWN, row.says = suggestion(import, class, path);
  ARENA_PUSH(import->arena, import->items[traversal->file], row);
}

/* The keys of a map, whose names are `class` and its path there. `shown`: its path in the file. */
static void visit_map(const struct traversal *traversal, const struct spec_node *map, const char *class,
                      const char *path, const char *shown) {
  struct import *import = traversal->import;
  for (int i = 0; i < map->count; i++) {
    const struct spec_entry *entry = &map->entries[i];
    const char *dot = path[0] != '\0' ? "." : "";
    const char *below = arena_printf(import->arena, "%s%s%s", path, dot, entry->key);
    const char *whole = arena_printf(import->arena, "%s%s%s", shown, shown[0] != '\0' ? "." : "", entry->key);
    const char *section = section_class(import->items[traversal->file].kind, whole);
    const bool is_map = entry->value->kind == SPEC_MAP && entry->value->count > 0;
    if (is_map && section != NULL)
      visit_map(traversal, entry->value, section, "", whole);
    else if (is_map && has_group(import, import->items[traversal->file].kind, class, below))
      visit_map(traversal, entry->value, class, below, whole);
    else
      add_row(traversal, map, class, below, whole, entry);
  }
}

/* Whether a map has the group of a key: "fp16" of "fp16.hysteresis". */
static bool has_group_of(struct arena *arena, const struct spec_node *map, const char *key) {
  const char *dot = strchr(key, '.');
  return dot == NULL || spec_find(map, arena_copy(arena, key, (size_t)(dot - key))) != NULL;
}

/* The map with the trainer's defaults for keys that it does not have. Their locations have no line. */
static const struct spec_node *with_defaults(struct import *import, const struct import_file *file,
                                             const struct spec_node *map) {
  const struct spec_node *defaults = file->kind->defaults;
  if (defaults == NULL) return map;
  for (int i = 0; i < defaults->count; i++) {
    const char *key = defaults->entries[i].key;
    if (spec_find(map, key) != NULL || !has_group_of(import->arena, map, key)) continue;
    struct diagnostics unread = diagnostics_in(import->arena);
    struct spec_node *value = arena_alloc(import->arena, sizeof *value);
    *value = *defaults->entries[i].value;
    value->where = (struct location){.file = file->path, .column = i + 1}; /* a location of its own */
    const struct spec_node *with = document_assign(import->arena, NULL, map, key, value, &unread);
    if (with != NULL) map = with;
  }
  return map;
}

static const char *folder_prefix(struct arena *arena, const char *path) {
  const char *slash = strrchr(path, '/');
  return slash != NULL ? arena_copy(arena, path, (size_t)(slash - path) + 1) : "";
}

bool import_add(struct import *import, const char *path, const char *kind, struct diagnostics *diags) {
  for (int i = 0; i < import->count; i++)
    if (strcmp(import->items[i].path, path) == 0) return true;
  const struct spec_node *map = import_read(import->arena, path, diags);
  if (map == NULL) return false;
  struct import_file file = {.path = arena_string(import->arena, path),
                             .kind = kind_of(import, path, kind, map, diags)};
  if (file.kind == NULL) return false;
  ARENA_PUSH(import->arena, *import, file);
  const struct traversal traversal = {import, import->count - 1, folder_prefix(import->arena, path)};
  visit_map(&traversal, with_defaults(import, &file, map), file.kind->class, "", "");
  return true;
}
