/* Reading schemas/names.yaml, and finding names in it. */
#include "gen/spec/names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/embedded.h"
#include "gen/spec/yaml.h"

struct reading {
  struct arena *arena;
  struct names names;
};

/* The table is a part of the command: a test sees what is wrong with it. `what`: what is wrong, or missing. */
static _Noreturn void fail(const struct spec_node *node, const char *what) {
  fprintf(stderr, "accel-gen: names.yaml:%d: %s\n", node != NULL ? node->where.line : 0, what);
  exit(1);
}

const char *names_normal(struct arena *arena, const char *word) {
  static const char variable[] = "accelerate_";
  word += strspn(word, "-");
  char *normal = arena_string(arena, word), *to = normal;
  for (; *word != '\0' && strchr("=(", *word) == NULL; word++) {
    if ((*word == ':' || *word == ' ') && to > normal && to[-1] != '.')
      *to++ = '.';
    else if (strchr(": *", *word) == NULL)
      *to++ = *word == '-' ? '_' : (char)tolower((unsigned char)*word);
  }
  *to = '\0';
  return strncmp(normal, variable, sizeof variable - 1) == 0 ? normal + sizeof variable - 1 : normal;
}

static const char *text_of(const struct spec_node *row, const char *key) {
  const struct spec_entry *entry = spec_entry(row, key);
  if (entry == NULL) return NULL;
  if (entry->value->kind != SPEC_STRING) fail(entry->value, "not a text");
  return entry->value->text;
}

static enum name_state state_of(const struct spec_node *row) {
  static const char *const words[] = {"works", "needless", "refused", "absent"};
  const char *text = text_of(row, "is");
  for (int i = 0; text != NULL && i < (int)(sizeof words / sizeof *words); i++)
    if (strcmp(text, words[i]) == 0) return (enum name_state)i;
  fail(row, "'is' must be works, needless, refused or absent");
}

/* The texts of a key, which has one or a list of them; their number in *count. */
static const char **texts_of(struct arena *arena, const struct spec_node *row, const char *key, int *count) {
  const struct spec_entry *entry = spec_entry(row, key);
  if (entry == NULL) return NULL;
  const struct spec_node *value = entry->value;
  bool list = value->kind == SPEC_LIST;
  *count = list ? value->count : 1;
  const char **texts = arena_alloc(arena, (size_t)*count * sizeof *texts);
  for (int i = 0; i < *count; i++) texts[i] = list ? value->entries[i].value->text : value->text;
  return texts;
}

static struct name *add(struct reading *r, const char *of, const char *word, const struct spec_node *row) {
  struct name *name = arena_alloc(r->arena, sizeof *name);
  *name = (struct name){
      .word = word, .of = of, .state = state_of(row), .says = text_of(row, "says"), .as = text_of(row, "as")};
  name->at = texts_of(r->arena, row, "at", &name->at_count);
  name->also = texts_of(r->arena, row, "also", &name->also_count);
  name->path = names_normal(r->arena, of != NULL ? arena_printf(r->arena, "%s.%s", of, word) : word);
  ARENA_PUSH(r->arena, r->names, name);
  return name;
}

static const struct spec_node *part(const struct spec_node *map, const char *key) {
  const struct spec_entry *entry = spec_entry(map, key);
  if (entry == NULL || entry->value->kind != SPEC_MAP) fail(map, key);
  return entry->value;
}

static void read_class(struct reading *r, const char *class, const struct spec_node *row) {
  add(r, NULL, class, row)->is_class = true;
  const struct spec_node *members = part(row, "members");
  const char *prefix = text_of(row, "prefix");
  for (int i = 0; i < members->count; i++) {
    struct name *name = add(r, class, members->entries[i].key, members->entries[i].value);
    if (prefix != NULL) name->alias = names_normal(r->arena, arena_printf(r->arena, "%s%s", prefix, name->word));
  }
}

static void read_values(struct reading *r, const char *key, const struct spec_node *values) {
  for (int i = 0; i < values->count; i++) {
    struct name *name = add(r, key, values->entries[i].key, values->entries[i].value);
    name->path = names_normal(r->arena, name->word);
    name->is_value = true;
  }
}

static const struct spec_node *read_table(struct arena *arena) {
  struct diagnostics diags = diagnostics_in(arena);
  const struct spec_source *source = source_of(arena, "names.yaml", accel_names, strlen(accel_names), false, &diags);
  const struct spec_node *table = source != NULL ? yaml_parse(arena, source, &diags) : NULL;
  if (table == NULL || diags.count > 0) {
    diag_print(&diags, stderr, false);
    fail(table, "the table cannot be read");
  }
  return table;
}

static struct name_files read_files(struct arena *arena, const struct spec_node *table) {
  struct name_files files = {0};
  for (int i = 0; i < table->count; i++) {
    const struct spec_node *row = table->entries[i].value;
    struct name_file file = {.kind = table->entries[i].key,
                             .says = text_of(row, "says"),
                             .class = text_of(row, "class"),
                             .base = text_of(row, "base"),
                             .ending = text_of(row, "ending"),
                             .defaults = spec_find(row, "defaults")};
    if (file.says == NULL || file.class == NULL) fail(row, "a file needs 'says' and 'class'");
    const struct spec_node *sections = spec_find(row, "sections");
    file.section_count = sections != NULL ? sections->count : 0;
    file.sections = arena_alloc(arena, (size_t)file.section_count * sizeof *file.sections + 1);
    for (int k = 0; k < file.section_count; k++)
      file.sections[k] = (struct name_section){sections->entries[k].key, sections->entries[k].value->text};
    ARENA_PUSH(arena, files, file);
  }
  return files;
}

struct names names_of(struct arena *arena, struct name_files *files) {
  struct reading r = {.arena = arena};
  const struct spec_node *table = read_table(arena);
  const struct spec_node *names = part(table, "names"), *classes = part(table, "classes");
  const struct spec_node *values = part(table, "values");
  for (int i = 0; i < names->count; i++) add(&r, NULL, names->entries[i].key, names->entries[i].value);
  for (int i = 0; i < classes->count; i++) read_class(&r, classes->entries[i].key, classes->entries[i].value);
  for (int i = 0; i < values->count; i++) read_values(&r, values->entries[i].key, values->entries[i].value);
  if (files != NULL) *files = read_files(arena, part(table, "files"));
  return r.names;
}

/* Whether `path` is `word`, or ends with it after a dot. */
static bool ends_with(const char *path, const char *word) {
  size_t length = strlen(path), end = strlen(word);
  if (length < end || strcmp(path + length - end, word) != 0) return false;
  return length == end || path[length - end - 1] == '.';
}

/* Whether a topic means a name: with any end of its path, or where a part before the topic was not known, `cut`, by its
 * own word alone. */
static bool means(struct arena *arena, const struct name *name, const char *word, bool cut) {
  if (name->alias != NULL && strcmp(name->alias, word) == 0) return true;
  return cut ? strcmp(names_normal(arena, name->word), word) == 0 : ends_with(name->path, word);
}

struct names names_find(struct arena *arena, const struct names *all, const char *topic) {
  struct names found = {0};
  const char *whole = names_normal(arena, topic), *word = whole;
  while (found.count == 0 && word != NULL && word[0] != '\0') {
    for (int i = 0; i < all->count; i++)
      if (means(arena, all->items[i], word, word != whole)) ARENA_PUSH(arena, found, all->items[i]);
    const char *dot = strchr(word, '.');
    word = dot != NULL ? dot + 1 : NULL;
  }
  return found;
}

struct names names_members(struct arena *arena, const struct names *all, const struct name *class) {
  struct names members = {0};
  for (int i = 0; i < all->count; i++) {
    const struct name *name = all->items[i];
    if (!name->is_value && name->of != NULL && strcmp(name->of, class->word) == 0) ARENA_PUSH(arena, members, name);
  }
  return members;
}

/* Whether a member is of all paths that begin with its word: "wandb_*". */
static bool is_start(const struct name *name, const char *whole) {
  return name->word[strlen(name->word) - 1] == '*' && strncmp(whole, name->path, strlen(name->path)) == 0;
}

const struct name *names_member(struct arena *arena, const struct names *all, const char *class, const char *path) {
  const char *whole = names_normal(arena, arena_printf(arena, "%s.%s", class, path));
  const char *alias = names_normal(arena, path);
  const struct name *longest = NULL;
  for (int i = 0; i < all->count; i++) {
    const struct name *name = all->items[i];
    if (name->is_value || name->of == NULL || strcmp(name->of, class) != 0) continue;
    if (strcmp(name->path, whole) == 0 || (name->alias != NULL && strcmp(name->alias, alias) == 0)) return name;
    if (is_start(name, whole) && (longest == NULL || strlen(longest->path) < strlen(name->path))) longest = name;
  }
  return longest;
}

const struct name *names_value(struct arena *arena, const struct names *all, const char *path, const char *word) {
  const char *key = arena_copy(arena, path, strcspn(path, "[")), *normal = names_normal(arena, word);
  for (int i = 0; i < all->count; i++) {
    const struct name *name = all->items[i];
    if (name->is_value && strcmp(name->of, key) == 0 && strcmp(name->path, normal) == 0) return name;
  }
  return NULL;
}
