/* Tables of text in a model: the classes of transformers that it is, and tensors of other classes. */
#include <string.h>

#include "gen/model/evaluate.h"
#include "gen/model/published.h"

/* The text after the class, where the text begins with it. */
static const char *after_class(const char *text, const char *architecture) {
  const size_t length = strlen(architecture);
  if (text == NULL || strncmp(text, architecture, length) != 0 || (text[length] != '\0' && text[length] != ' '))
    return NULL;
  return text + length + strspn(text + length, " ");
}

static void read_table(struct evaluator *evaluator, const char *table, struct model_texts *texts) {
  for (int i = 0; i < evaluator->program->n_statics; i++) {
    const struct variable *variable = evaluator->program->statics[i];
    if (strcmp(variable->name, table) != 0 || variable->initial == NULL) continue;
    struct cvalue list = initialize(evaluator, variable->type, variable->initial, false);
    for (int64_t k = 0; list.kind == CVALUE_AGGREGATE && k < list.count; k++)
      if (cvalue_string_of(&list.items[k]) != NULL)
        ARENA_PUSH(evaluator->arena, *texts, cvalue_string_of(&list.items[k]));
  }
}

static void read_guarded(struct evaluator *evaluator, const char *table, struct model_texts *texts) {
  if (setjmp(evaluator->failure) == 0) read_table(evaluator, table, texts);
}

static struct model_texts texts_of(struct arena *arena, const struct tree *model, const char *table) {
  struct diagnostics unread = diagnostics_in(arena);
  struct evaluator evaluator = model_evaluator(arena, model, &unread);
  struct model_texts texts = {0};
  read_guarded(&evaluator, table, &texts);
  builder_abandon(evaluator.builder);
  return texts;
}

struct model_texts model_other_heads(struct arena *arena, const struct tree *model) {
  return texts_of(arena, model, "other_heads");
}

struct model_texts model_published_outputs(struct arena *arena, const struct tree *model) {
  return texts_of(arena, model, "published_outputs");
}

const char *model_class(struct arena *arena, const struct tree *model, const char *architecture) {
  const struct model_texts classes = texts_of(arena, model, "architectures"); /* "A", "B qk_norm=false" */
  const char *after = NULL;
  for (int i = 0; i < classes.count && after == NULL; i++) after = after_class(classes.items[i], architecture);
  return after;
}

const char *model_classes(struct arena *arena, const struct tree *model) {
  const struct model_texts classes = texts_of(arena, model, "architectures"); /* "A", "B qk_norm=false" */
  const char *names = NULL;
  for (int i = 0; i < classes.count; i++) {
    const int length = (int)strcspn(classes.items[i], " ");
    names =
        arena_printf(arena, "%s%s%.*s", names != NULL ? names : "", names != NULL ? " " : "", length, classes.items[i]);
  }
  return names;
}
