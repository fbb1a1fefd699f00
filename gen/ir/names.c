#include "gen/ir/names.h"

#include <ctype.h>
#include <string.h>

#include "gen/ir/op.h"

/* What a C compiler, or the emitted program itself, has for its own. */
static bool is_reserved(const char *name) {
  static const char *const words[] = {"auto",    "break",    "case",      "char",   "const",    "continue", "default",
                                      "do",      "double",   "else",      "enum",   "extern",   "float",    "for",
                                      "goto",    "if",       "inline",    "int",    "long",     "register", "restrict",
                                      "return",  "short",    "signed",    "sizeof", "static",   "struct",   "switch",
                                      "typedef", "union",    "unsigned",  "void",   "volatile", "while",    "weights",
                                      "saved",   "scratch",  "gradients", "stream", "arena",    "main",     "step",
                                      "forward", "backward", "bool",      "true",   "false"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(words[i], name) == 0) return true;
  return false;
}

const char *identifier(struct arena *arena, const char *text) {
  char *name = arena_printf(arena, "%s%s", isdigit((unsigned char)text[0]) ? "_" : "", text);
  for (char *c = name; *c != '\0'; c++)
    if (!isalnum((unsigned char)*c)) *c = '_';
  return is_reserved(name) ? arena_printf(arena, "%s_", name) : name;
}

static bool is_taken(const struct value_list *named, const char *name) {
  for (int i = 0; i < named->count; i++)
    if (strcmp(named->items[i]->name, name) == 0) return true;
  return false;
}

static void name_one(struct arena *arena, struct value_list *named, struct value *value, const char *fallback) {
  const char *base = identifier(arena, value->name != NULL ? value->name : fallback);
  value->name = base;
  for (int k = 2; is_taken(named, value->name); k++) value->name = arena_printf(arena, "%s_%d", base, k);
  ARENA_PUSH(arena, *named, value);
}

/* What a value without a name of its own is called after. */
static const char *maker_name(struct arena *arena, const struct node *node) {
  if (node->call == NULL) return node->kind->name;
  const struct region *callee = node->call->callee;
  return callee->forward != NULL ? arena_printf(arena, "d_%s", callee->forward->name) : callee->name;
}

void name_values(struct arena *arena, struct region *region) {
  struct value_list named = {0};
  for (int i = 0; i < region->inputs.count; i++) name_one(arena, &named, region->inputs.items[i], "x");
  for (int i = 0; i < region->parameters.count; i++)
    name_one(arena, &named, region->parameters.items[i].value, region->parameters.items[i].path);
  for (int i = 0; i < region->nodes.count; i++) {
    const struct node *node = region->nodes.items[i];
    const char *maker = maker_name(arena, node);
    for (int k = 0; k < node->n_outputs; k++) {
      const char *operand = k > 0 && node->call == NULL ? node->kind->output_names[k] : NULL;
      const char *first = node->outputs[0]->name != NULL ? node->outputs[0]->name : maker;
      name_one(arena, &named, node->outputs[k], operand != NULL ? arena_printf(arena, "%s_%s", first, operand) : maker);
    }
  }
}
