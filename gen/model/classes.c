/* The classes of transformers that a model is: its table `architectures`. */
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

struct classes {
  const char **items; /* "A", "B qk_norm=false" */
  int count, capacity;
};

static void read_classes(struct evaluator *evaluator, struct classes *classes) {
  for (int i = 0; i < evaluator->program->n_statics; i++) {
    const struct variable *variable = evaluator->program->statics[i];
    if (strcmp(variable->name, "architectures") != 0 || variable->initial == NULL) continue;
    struct cvalue list = initialize(evaluator, variable->type, variable->initial, false);
    for (int64_t k = 0; list.kind == CVALUE_AGGREGATE && k < list.count; k++)
      if (cvalue_string_of(&list.items[k]) != NULL)
        ARENA_PUSH(evaluator->arena, *classes, cvalue_string_of(&list.items[k]));
  }
}

static void read_guarded(struct evaluator *evaluator, struct classes *classes) {
  if (setjmp(evaluator->failure) == 0) read_classes(evaluator, classes);
}

static struct classes classes_of(struct arena *arena, const struct tree *model) {
  struct diagnostics unread = diagnostics_in(arena);
  struct evaluator evaluator = model_evaluator(arena, model, &unread);
  struct classes classes = {0};
  read_guarded(&evaluator, &classes);
  builder_abandon(evaluator.builder);
  return classes;
}

const char *model_class(struct arena *arena, const struct tree *model, const char *architecture) {
  const struct classes classes = classes_of(arena, model);
  const char *after = NULL;
  for (int i = 0; i < classes.count && after == NULL; i++) after = after_class(classes.items[i], architecture);
  return after;
}

const char *model_classes(struct arena *arena, const struct tree *model) {
  const struct classes classes = classes_of(arena, model);
  const char *names = NULL;
  for (int i = 0; i < classes.count; i++) {
    const int length = (int)strcspn(classes.items[i], " ");
    names =
        arena_printf(arena, "%s%s%.*s", names != NULL ? names : "", names != NULL ? " " : "", length, classes.items[i]);
  }
  return names;
}
