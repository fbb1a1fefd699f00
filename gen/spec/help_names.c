#include "gen/spec/help_names.h"

#include <string.h>

#include "gen/spec/names.h"
#include "gen/spec/schema.h"

enum { COLUMNS = 80 };

struct helper {
  struct arena *arena;
  const json_t *root;
  struct text *out;
  struct names all;
  const char *taker; /* the last key that was found to take a value */
};

static struct helper helper_of(struct text *out, const json_t *root) {
  return (struct helper){.arena = out->arena, .root = root, .out = out, .all = names_of(out->arena, NULL)};
}

/* A sentence as lines of its own. */
static void add_line(struct helper *h, const char *text) {
  const char *end = text[strlen(text) - 1] == '.' ? "" : ".";
  text_fold(h->out, arena_printf(h->arena, "%s%s", text, end), 0, 0, COLUMNS);
  text_puts(h->out, "\n");
}

/* "  split_batches       data.split_batches" */
static void add_row(struct helper *h, const char *name, const char *words) {
  enum { WIDE = 22 }; /* the longest key of the job ends in column 80 */
  if (strlen(name) > WIDE - 4)
    text_printf(h->out, "  %s\n%*s", name, WIDE, "");
  else
    text_printf(h->out, "  %-*s", WIDE - 2, name);
  text_fold(h->out, words, WIDE, WIDE, COLUMNS);
  text_puts(h->out, "\n");
}

static void add_class(struct helper *h, const struct name *class) {
  add_line(h, arena_printf(h->arena, "%s %s", class->word, name_sentence(h->arena, h->root, class)));
  struct names members = names_members(h->arena, &h->all, class);
  text_puts(h->out, members.count > 0 ? "\n" : "");
  for (int i = 0; i < members.count; i++)
    add_row(h, members.items[i]->word, name_brief(h->arena, h->root, members.items[i]));
}

/* What a sentence is about; of a value, the key that others give it to. */
static const char *subject_of(struct helper *h, const struct name *name) {
  if (name->is_value) return arena_printf(h->arena, "'%s' of %s", name->word, name->of);
  return name_full(h->arena, name);
}

/* Every sentence once, with all names of which it is said: "cpu (also Accelerator.cpu) is ...". Returns the number of
 * sentences. */
static int add_sentences(struct helper *h, const struct names *found) {
  int count = 0;
  for (int i = 0; i < found->count; i++) {
    const char *sentence = name_sentence(h->arena, h->root, found->items[i]);
    struct text others = text_in(h->arena);
    bool again = false;
    for (int j = 0; j < found->count; j++) {
      if (strcmp(sentence, name_sentence(h->arena, h->root, found->items[j])) != 0) continue;
      again = again || j < i;
      if (j > i) text_printf(&others, "%s%s", others.length > 0 ? ", " : " (also ", subject_of(h, found->items[j]));
    }
    if (again) continue;
    const char *also = text_string(&others), *end = also[0] != '\0' ? ")" : "";
    add_line(h, arena_printf(h->arena, "%s%s%s %s", subject_of(h, found->items[i]), also, end, sentence));
    count++;
  }
  return count;
}

/* The keys below `schema` that take a value: "parallelism.fsdp.sharding_strategy takes full_shard"; their number. */
static int add_choices(struct helper *h, const json_t *schema, const char *path, const char *word) {
  const json_t *items = schema_keyword(h->root, schema, "items"), *choice;
  const json_t *holder = items != NULL ? items : schema;
  const char *key;
  json_t *inner;
  size_t i;
  int count = 0;
  json_array_foreach(schema_keyword(h->root, holder, "enum"), i, choice) {
    const char *text = json_string_value(choice);
    if (text == NULL || strcmp(names_normal(h->arena, text), word) != 0) continue;
    add_line(h, arena_printf(h->arena, "%s takes %s", path, text));
    h->taker = path;
    count++;
  }
  json_object_foreach((json_t *)schema_keyword(h->root, holder, "properties"), key, inner) count +=
      add_choices(h, inner, arena_printf(h->arena, "%s%s%s", path, path[0] != '\0' ? "." : "", key), word);
  return count;
}

/* The key that a name leads to; NULL for a group, several keys, or something else. */
static const char *key_of(struct helper *h, const struct name *name) {
  if (name->is_value || name->at_count != 1) return NULL;
  const char *key = arena_copy(h->arena, name->at[0], strcspn(name->at[0], "="));
  const json_t *schema = schema_find(h->root, key);
  return schema != NULL && schema_keyword(h->root, schema, "properties") == NULL ? key : NULL;
}

const char *help_add_names(struct text *out, const json_t *root, const char *topic) {
  struct helper h = helper_of(out, root);
  struct names found = names_find(h.arena, &h.all, topic), said = {0};
  int classes = 0;
  for (int i = 0; i < found.count; i++) {
    if (found.items[i]->is_class) {
      if (classes++ > 0) text_puts(out, "\n");
      add_class(&h, found.items[i]);
    } else {
      ARENA_PUSH(h.arena, said, found.items[i]);
    }
  }
  if (classes > 0 && said.count > 0) text_puts(out, "\n");
  int sentences = add_sentences(&h, &said), takers = add_choices(&h, root, "", names_normal(h.arena, topic));
  if (classes > 0 || sentences + takers != 1) return NULL;
  return takers == 1 ? h.taker : key_of(&h, said.items[0]);
}

void help_add_all_names(struct text *out, const json_t *root) {
  struct helper h = helper_of(out, root);
  for (int i = 0; i < h.all.count; i++)
    if (h.all.items[i]->of == NULL) add_row(&h, h.all.items[i]->word, name_sentence(h.arena, root, h.all.items[i]));
}
