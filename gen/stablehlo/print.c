/* The text of a function. */
#include <stdlib.h>
#include <string.h>

#include "gen/base/path.h"
#include "gen/ir/names.h"
#include "gen/stablehlo/maker.h"

/* Marks what the texts that are used name. */
static void mark(struct stablehlo *hlo, const char *text) {
  for (const char *at = strstr(text, "%{"); at != NULL; at = strstr(at + 2, "%{"))
    hlo->function->items.items[atoi(at + 2)].used = true;
}

/* Puts the names of items into a text. */
static void put(struct stablehlo *hlo, struct text *out, const char *text) {
  for (const char *at; (at = strstr(text, "%{")) != NULL; text = strchr(at, '}') + 1) {
    text_add(out, text, (size_t)(at - text));
    text_printf(out, "%%%s", hlo->function->items.items[atoi(at + 2)].name);
  }
  text_puts(out, text);
}

static bool is_taken(const void *context, const char *name) {
  const struct hlo_function *function = context;
  for (int i = 0; i < function->items.count; i++)
    if (function->items.items[i].used && function->items.items[i].name != NULL &&
        strcmp(function->items.items[i].name, name) == 0)
      return true;
  return false;
}

/* A name as MLIR takes it: letters, digits, '$', '.', '_' and '-', and no digit first. */
static const char *spelled(struct arena *arena, const char *name) {
  char *copy = arena_printf(arena, "%s%s", name[0] >= '0' && name[0] <= '9' ? "_" : "", name);
  for (char *at = copy; *at != '\0'; at++)
    if (!(*at >= 'a' && *at <= 'z') && !(*at >= 'A' && *at <= 'Z') && !(*at >= '0' && *at <= '9') &&
        strchr("._-", *at) == NULL)
      *at = '_';
  return copy;
}

/* Names each item by its own name, or by a number. */
static void name_items(struct stablehlo *hlo) {
  const int count = hlo->function->items.count;
  const char **wanted = arena_alloc(hlo->arena, ((size_t)count + 1) * sizeof *wanted);
  int number = 0;
  for (int i = 0; i < count; i++) {
    wanted[i] = hlo->function->items.items[i].name;
    hlo->function->items.items[i].name = NULL;
  }
  for (int i = 0; i < count; i++) {
    struct hlo_item *item = &hlo->function->items.items[i];
    if (!item->used) continue;
    item->name = wanted[i] != NULL ? free_name(hlo->arena, spelled(hlo->arena, wanted[i]), is_taken, hlo->function)
                                   : arena_printf(hlo->arena, "%d", number++);
  }
}

/* ---- Locations ---- */

/* A path without "folder/.."; of one from the root, the file's name alone, so that the text is the same everywhere. */
static const char *plain_path(struct arena *arena, const char *path) {
  char *plain = arena_copy(arena, path, strlen(path)), *up;
  if (path[0] == '/') return name_in_folder(path);
  while ((up = strstr(plain, "/../")) != NULL) {
    char *folder = up;
    while (folder > plain && folder[-1] != '/') folder--;
    if (strncmp(folder, "../", 3) == 0) break;
    memmove(folder, up + 4, strlen(up + 4) + 1);
  }
  return plain;
}

static bool is_location(const void *context, const char *name) {
  const struct maker *maker = context;
  for (int i = 0; i < maker->locations.count; i++)
    if (strcmp(maker->locations.items[i].name, name) == 0) return true;
  return false;
}

static const char *location_name(struct maker *maker, struct location where) {
  struct arena *arena = maker->hlo.arena;
  for (int i = 0; i < maker->locations.count; i++) {
    const struct location *known = &maker->locations.items[i].where;
    if (known->line == where.line && known->column == where.column && strcmp(known->file, where.file) == 0)
      return maker->locations.items[i].name;
  }
  const char *file = name_in_folder(where.file), *stem = without_ending(arena, file, ".c");
  const char *base =
      arena_printf(arena, "%s_%d_%d", identifier(arena, stem != NULL ? stem : file), where.line, where.column);
  const struct hlo_location location = {where, free_name(arena, base, is_location, maker)};
  ARENA_PUSH(arena, maker->locations, location);
  return location.name;
}

void hlo_print_locations(struct maker *maker) {
  if (maker->locations.count > 0) text_puts(maker->out, "\n");
  for (int i = 0; i < maker->locations.count; i++) {
    const struct hlo_location *item = &maker->locations.items[i];
    text_printf(maker->out, "#%s = loc(%s:%d:%d)\n", item->name,
                hlo_quoted(maker->hlo.arena, plain_path(maker->hlo.arena, item->where.file)), item->where.line,
                item->where.column);
  }
}

/* ---- Functions ---- */

/* Marks what the function gives, and what that depends on. */
static void mark_used(struct stablehlo *hlo, const struct hlo_list *given) {
  for (int i = 0; i < given->count; i++) hlo->function->items.items[given->items[i].tensor.item].used = true;
  for (int i = hlo->function->items.count - 1; i >= 0; i--) {
    const struct hlo_item *item = &hlo->function->items.items[i];
    if (item->text == NULL) hlo->function->items.items[i].used = true;
    if (item->used && item->text != NULL) mark(hlo, item->text);
  }
}

static void print_arguments(struct maker *maker) {
  const struct hlo_function *function = maker->hlo.function;
  const char *before = "";
  for (int i = 0; i < function->items.count; i++) {
    const struct hlo_item *item = &function->items.items[i];
    if (item->text != NULL) continue;
    text_printf(maker->out, "%s\n      %%%s: %s", before, item->name, item->type);
    before = ",";
  }
}

/* A line each: the type, and the attribute or what is given. */
static void print_results(struct maker *maker, const struct hlo_list *given) {
  struct stablehlo *hlo = &maker->hlo;
  if (given->count > 0) text_puts(maker->out, " -> (");
  for (int i = 0; i < given->count; i++) {
    const struct hlo_listed *item = &given->items[i];
    text_printf(maker->out, "\n      %s", hlo_type_of(hlo, item->tensor));
    if (item->attribute != NULL) text_printf(maker->out, " {%s}", item->attribute);
    if (i + 1 < given->count) text_puts(maker->out, ",");
    if (item->attribute == NULL) {
      text_puts(maker->out, "  // ");
      put(hlo, maker->out, hlo_name_of(hlo, item->tensor));
    }
  }
  if (given->count > 0) text_puts(maker->out, "\n    )");
}

static void print_operation(struct maker *maker, const struct hlo_item *item) {
  text_printf(maker->out, "    %%%s", item->name);
  if (item->results > 1) text_printf(maker->out, ":%d", item->results);
  text_puts(maker->out, " = ");
  put(&maker->hlo, maker->out, item->text);
  if (item->where.file != NULL) text_printf(maker->out, " loc(#%s)", location_name(maker, item->where));
  text_puts(maker->out, "\n");
}

static void print_return(struct maker *maker, const struct hlo_list *given) {
  struct stablehlo *hlo = &maker->hlo;
  text_puts(maker->out, "    return");
  for (int i = 0; i < given->count; i++) {
    text_puts(maker->out, i > 0 ? ", " : " ");
    put(hlo, maker->out, hlo_name_of(hlo, given->items[i].tensor));
  }
  for (int i = 0; i < given->count; i++)
    text_printf(maker->out, "%s%s", i > 0 ? ", " : " : ", hlo_type_of(hlo, given->items[i].tensor));
  text_puts(maker->out, "\n  }\n");
}

void hlo_print_function(struct maker *maker, const char *visibility, const char *name, const struct hlo_list *given) {
  const struct hlo_function *function = maker->hlo.function;
  mark_used(&maker->hlo, given);
  name_items(&maker->hlo);
  text_printf(maker->out, "\n  func.func %s @%s(", visibility, name);
  print_arguments(maker);
  text_puts(maker->out, ")");
  print_results(maker, given);
  text_puts(maker->out, " {\n");
  for (int i = 0; i < function->items.count; i++)
    if (function->items.items[i].used && function->items.items[i].text != NULL)
      print_operation(maker, &function->items.items[i]);
  print_return(maker, given);
}
