#include "gen/ir/names.h"

#include <ctype.h>
#include <string.h>

#include "gen/base/hash.h"
#include "gen/ir/op.h"

/* Whether a header may have a macro of this name: capitals alone, or an underscore and what C reserves. */
static bool may_be_macro(const char *name) {
  static const char capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  bool own = name[0] == '_' && (name[1] == '_' || isupper((unsigned char)name[1]));
  return own || (isupper((unsigned char)name[0]) && name[1] != '\0' && name[strspn(name, capitals)] == '\0');
}

/* What a C compiler, its headers, or the emitted program itself have for their own. */
static bool is_reserved(const char *name) {
  static const char *const words[] = {
      "auto",         "break",       "case",          "char",     "const",       "continue",  "default",  "do",
      "double",       "else",        "enum",          "extern",   "float",       "for",       "goto",     "if",
      "inline",       "int",         "long",          "register", "restrict",    "return",    "short",    "signed",
      "sizeof",       "static",      "struct",        "switch",   "typedef",     "union",     "unsigned", "void",
      "volatile",     "while",       "weights",       "saved",    "scratch",     "gradients", "aliased",  "stream",
      "arena",        "main",        "step",          "forward",  "backward",    "bool",      "true",     "false",
      "weights_bf16", "weights_f16", "train",         "measure",  "write_texts", "alignas",   "alignof",  "asm",
      "linux",        "noreturn",    "static_assert", "typeof",   "unix"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i], name) == 0) return true;
  return may_be_macro(name);
}

const char *identifier(struct arena *arena, const char *text) {
  char *name = arena_printf(arena, "%s%s", isdigit((unsigned char)text[0]) ? "_" : "", text);
  for (char *c = name; *c != '\0'; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return is_reserved(name) ? arena_printf(arena, "%s_", name) : name;
}

/* The names of a region so far: an open hash table, and for each name the suffix to try next after it. */
struct name_table {
  struct name_entry {
    const char *name;
    int next;
  } *entries;
  size_t size; /* a power of two, at most half full */
};

static struct name_entry *find_name(const struct name_table *table, const char *name) {
  for (size_t i = (size_t)hash_bytes(name, strlen(name));; i++) {
    struct name_entry *entry = &table->entries[i & (table->size - 1)];
    if (entry->name == NULL || strcmp(entry->name, name) == 0) return entry;
  }
}

static void name_one(struct arena *arena, struct name_table *table, struct value *value, const char *fallback) {
  const char *base = identifier(arena, value->name != NULL ? value->name : fallback);
  struct name_entry *entry = find_name(table, base), *first = entry;
  value->name = base;
  while (entry->name != NULL) {
    value->name = arena_printf(arena, "%s_%d", base, ++first->next);
    entry = find_name(table, value->name);
  }
  *entry = (struct name_entry){value->name, 1};
}

static size_t count_values(const struct region *region) {
  size_t count = (size_t)region->inputs.count + 2 * (size_t)region->parameters.count;
  for (int i = 0; i < region->nodes.count; i++) count += (size_t)region->nodes.items[i]->n_outputs;
  return count;
}

/* What a value without a name of its own is called after. */
static const char *maker_name(struct arena *arena, const struct node *node) {
  if (node->call == NULL) return node->kind->name;
  const struct region *callee = node->call->callee;
  return callee->forward != NULL ? arena_printf(arena, "d_%s", callee->forward->name) : callee->name;
}

void name_values(struct arena *arena, struct region *region) {
  struct name_table table = {.size = 16};
  while (table.size < 2 * count_values(region)) table.size *= 2;
  table.entries = arena_alloc(arena, table.size * sizeof *table.entries);
  for (int i = 0; i < region->inputs.count; i++) name_one(arena, &table, region->inputs.items[i], "x");
  for (int i = 0; i < region->parameters.count; i++) {
    const struct parameter *parameter = &region->parameters.items[i];
    name_one(arena, &table, parameter->value, parameter->path);
    if (parameter->bits16 != NULL) name_one(arena, &table, parameter->bits16, parameter->path);
  }
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    const char *maker = maker_name(arena, node);
    for (int k = 0; k < node->n_outputs; k++) {
      const char *operand = k > 0 && node->call == NULL ? node->kind->output_names[op_described(node->kind, k)] : NULL;
      const char *first = node->outputs[0]->name != NULL ? node->outputs[0]->name : maker;
      name_one(arena, &table, node->outputs[k], operand != NULL ? arena_printf(arena, "%s_%s", first, operand) : maker);
    }
  }
}

bool is_operation_name(struct arena *arena, const char *name) {
  while (strncmp(name, "d_", 2) == 0) name += 2;
  size_t length = strlen(name), digits = 0;
  while (digits < length && isdigit((unsigned char)name[length - digits - 1])) digits++;
  if (digits > 0 && digits < length && name[length - digits - 1] == '_') length -= digits + 1;
  return op_kind_find(arena_copy(arena, name, length)) != NULL;
}

const char *free_name(struct arena *arena, const char *base, bool (*is_taken)(const void *context, const char *name),
                      const void *context) {
  const char *name = base;
  for (int k = 2; is_taken(context, name); k++) name = arena_printf(arena, "%s_%d", base, k);
  return name;
}
