#include "gen/spec/extends.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "gen/base/path.h"
#include "gen/spec/assign.h"
#include "gen/spec/requires.h"
#include "gen/spec/source.h"
#include "gen/spec/yaml.h"

enum {
  DEEPEST = 16,     /* files that extend files */
  MOST_FILES = 64,  /* read in all, a file that two others extend twice */
  MOST_KEYS = 2048, /* of a merged group */
};

/* A file that is being read, and the one that names it. */
struct level {
  const struct level *by;
  const char *file;
  struct stat identity;
  int depth;
};

struct extender {
  struct arena *arena;
  struct extended_files *files;
  int reads;
  struct diagnostics *diags;
};

/* ---- Merging ---- */

static void remove_entry(struct spec_node *map, struct spec_entry *entry) {
  size_t after = (size_t)(map->entries + map->count - (entry + 1));
  memmove(entry, entry + 1, after * sizeof *entry);
  map->count--;
}

static const struct spec_node *merge(struct extender *e, const struct spec_node *below, const struct spec_node *above);

/* False with an error. */
static bool merge_entry(struct extender *e, struct spec_node *merged, const struct spec_entry *above) {
  struct spec_entry *entry = spec_entry(merged, above->key);
  if (entry == NULL) {
    merged->entries[merged->count++] = *above;
    if (merged->count <= MOST_KEYS) return true;
    diag_error(e->diags, above->key_where, "more than %d keys in one group of files that extend each other", MOST_KEYS);
    return false;
  }
  if (above->value->kind == SPEC_NULL) {
    remove_entry(merged, entry);
    return true;
  }
  const struct spec_node *value = merge(e, entry->value, above->value);
  if (value == NULL) return false;
  entry->key_where = above->key_where;
  entry->value = spec_copy_map(e->arena, value, 0);
  return true;
}

static const struct spec_node *merge(struct extender *e, const struct spec_node *below, const struct spec_node *above) {
  if (below->kind != SPEC_MAP || above->kind != SPEC_MAP) return above;
  struct spec_node *merged = spec_copy_map(e->arena, below, above->count);
  merged->where = above->where;
  for (int i = 0; i < above->count; i++)
    if (!merge_entry(e, merged, &above->entries[i])) return NULL;
  return merged;
}

/* ---- Paths ---- */

/* The keys whose paths are relative to the file that writes them; a word that is none stays. */
static const struct {
  const char *key, *word;
} paths[] = {{"model.source", ""}, {"hooks.source", ""}, {"devices.tuning", "machine"}};

static const char *in_folder(struct arena *arena, const char *folder, const char *path) {
  return path[0] == '/' || strcmp(folder, ".") == 0 ? path : arena_printf(arena, "%s/%s", folder, path);
}

/* The document with its paths as the file sees them that names it by `name`. */
static const struct spec_node *rebase(struct extender *e, const struct spec_node *document, const char *name) {
  const char *folder = folder_of(e->arena, name);
  for (size_t i = 0; i < sizeof paths / sizeof *paths && document != NULL; i++) {
    const struct spec_node *value = spec_find(document, paths[i].key);
    if (value == NULL || value->kind != SPEC_STRING || strcmp(value->text, paths[i].word) == 0) continue;
    struct spec_node *moved = spec_copy_map(e->arena, value, 0);
    moved->text = in_folder(e->arena, folder, value->text);
    moved->length = strlen(moved->text);
    document = document_assign(e->arena, NULL, document, paths[i].key, moved, e->diags);
  }
  return document;
}

/* ---- Files ---- */

static bool is_open(const struct level *level, const struct stat *identity) {
  for (; level != NULL; level = level->by)
    if (level->identity.st_dev == identity->st_dev && level->identity.st_ino == identity->st_ino) return true;
  return false;
}

static void report_cycle(struct extender *e, const struct level *level, const char *file, struct location where) {
  bool itself = strcmp(level->file, file) == 0;
  diag_error(e->diags, where, itself ? "'%s' extends itself" : "'%s' extends itself by way of '%s'", file, level->file);
}

/* Whether the file can be read here; its identity. */
static bool may_open(struct extender *e, const struct level *by, const char *file, struct location where,
                     struct stat *identity) {
  if (stat(file, identity) != 0)
    diag_error(e->diags, where, "cannot open '%s': %s", file, strerror(errno));
  else if (!S_ISREG(identity->st_mode))
    diag_error(e->diags, where, "'%s' is not a file", file);
  else if (is_open(by, identity))
    report_cycle(e, by, file, where);
  else if (by->depth >= DEEPEST)
    diag_error(e->diags, where, "more than %d files extend each other in a row", DEEPEST);
  else if (++e->reads > MOST_FILES)
    diag_error(e->diags, where, "more than %d files are extended", MOST_FILES);
  else
    return true;
  return false;
}

static void add_file(struct extender *e, const char *file) {
  for (int i = 0; i < e->files->count; i++)
    if (strcmp(e->files->items[i], file) == 0) return;
  ARENA_PUSH(e->arena, *e->files, file);
}

static const struct spec_node *extend(struct extender *e, const struct level *level, const struct spec_node *document);

/* What the file says that `entry` of a document of `by` names, over what it extends itself. */
static const struct spec_node *read_file(struct extender *e, const struct level *by, const struct spec_node *name) {
  const char *path = in_folder(e->arena, folder_of(e->arena, by->file), name->text);
  struct level level = {.by = by, .file = path, .depth = by->depth + 1};
  if (!may_open(e, by, path, name->where, &level.identity)) return NULL;
  size_t length = 0;
  const char *text = source_read(e->arena, path, name->where, &length, e->diags);
  if (text == NULL) return NULL;
  diag_add_source(e->diags, path, text);
  const struct spec_source *source = source_of(e->arena, path, text, length, false, e->diags);
  const struct spec_node *document = source == NULL ? NULL : yaml_parse(e->arena, source, e->diags);
  if (document != NULL && document->kind != SPEC_MAP) {
    diag_error(e->diags, document->where, "a file that is extended must be a group of keys, not %s",
               spec_describe(e->arena, document));
    document = NULL;
  }
  if (document != NULL) document = extend(e, &level, document);
  add_file(e, path);
  return document == NULL ? NULL : rebase(e, document, name->text);
}

static bool is_path(struct extender *e, const struct spec_node *name) {
  bool text = name->kind == SPEC_STRING && name->length > 0 && strlen(name->text) == name->length;
  if (!text)
    diag_error(e->diags, name->where, "'extends' must be the path of a file or a list of paths, not %s",
               spec_describe(e->arena, name));
  return text;
}

/* `below` with a further file above it; NULL with an error. */
static const struct spec_node *add_named(struct extender *e, const struct level *level, const struct spec_node *below,
                                         const struct spec_node *name) {
  const struct spec_node *above = is_path(e, name) ? read_file(e, level, name) : NULL;
  return above == NULL || below == NULL ? above : merge(e, below, above);
}

/* What the files of a document's `extends` say together; NULL with an error. */
static const struct spec_node *read_below(struct extender *e, const struct level *level,
                                          const struct spec_node *names) {
  if (names->kind != SPEC_LIST) return add_named(e, level, NULL, names);
  const struct spec_node *below = NULL;
  bool good = is_path(e, names->count > 0 ? names->entries[0].value : names);
  for (int i = 0; i < names->count && good; i++) {
    below = add_named(e, level, below, names->entries[i].value);
    good = below != NULL;
  }
  return below;
}

/* The document over what it extends, without the key; NULL with an error. */
static const struct spec_node *extend(struct extender *e, const struct level *level, const struct spec_node *document) {
  if (!requires_is_met(e->arena, document, e->diags)) return NULL;
  const struct spec_node *names = spec_find(document, "extends");
  if (names == NULL) return document;
  struct spec_node *own = spec_copy_map(e->arena, document, 0);
  remove_entry(own, spec_entry(own, "extends"));
  const struct spec_node *below = read_below(e, level, names);
  return below == NULL ? NULL : merge(e, below, own);
}

const struct spec_node *extends_apply(struct arena *arena, const char *file, const struct spec_node *document,
                                      struct extended_files *files, struct diagnostics *diags) {
  struct extender e = {.arena = arena, .files = files, .diags = diags};
  struct level job = {.file = file};
  if (stat(file, &job.identity) != 0) job.identity = (struct stat){0}; /* a text that no file holds */
  return extend(&e, &job, document);
}

const struct spec_node *extends_merge(struct arena *arena, const struct spec_node *below, const struct spec_node *above,
                                      struct diagnostics *diags) {
  struct extender e = {.arena = arena, .diags = diags};
  return merge(&e, below, above);
}
