#include "gen/plan/report/print.h"
#include "gen/base/text.h"
#include "gen/ir/op.h"
#include "gen/program/storage.h"

static void print_view(struct text *text, const struct view *view, int rank) {
  static const char *const kinds[] = {"input", "result", "weight", "gradient", "saved", "scratch"};
  const struct storage *storage = view->storage;
  if (storage == NULL) {
    text_puts(text, "nowhere");
    return;
  }
  if (storage->alias != NULL)
    text_printf(text, "aliased.%s", storage->alias->name);
  else
    text_printf(text, "%s.%s", kinds[storage->kind], storage->name);
  if (view->offset != 0) text_printf(text, "+%lld", (long long)view->offset);
  for (int i = 0; i < rank; i++) text_printf(text, "%c%lld", i == 0 ? '(' : ',', (long long)view->strides[i]);
  if (rank > 0) text_puts(text, ")");
}

static void print_step(struct text *text, const struct step *step) {
  const struct node *node = step->node;
  text_puts(text, "  ");
  for (int i = 0; i < node->n_outputs; i++) {
    if (i > 0) text_puts(text, ", ");
    print_view(text, &step->outputs[i], node->outputs[i]->shape.rank);
    if (step->accumulate[i]) text_puts(text, "+");
  }
  const char *name = step->callee != NULL ? step->callee->name : node->kind->name;
  text_printf(text, " = %s(", step->kernel != NULL ? step->kernel->name : name);
  for (int i = 0; i < node->n_inputs; i++) {
    if (i > 0) text_puts(text, ", ");
    print_view(text, &step->inputs[i], node->inputs[i]->shape.rank);
  }
  text_puts(text, ")");
  if (node->call != NULL && node->call->count > 1) text_printf(text, " times %d", node->call->count);
  text_puts(text, "\n");
}

static void print_function(struct text *text, const struct function *function) {
  text_printf(text, "function %s: saved %lld bytes, scratch %lld bytes\n", function->name,
              (long long)function->saved_bytes, (long long)function->scratch_bytes);
  for (int i = 0; i < function->n_slots; i++) {
    text_printf(text, "  slot %d, %lld bytes:", i, (long long)function->slots[i].bytes);
    for (int k = 0; k < function->slots[i].storages.count; k++) {
      const struct storage *storage = function->slots[i].storages.items[k];
      text_printf(text, " %s@%d-%d", storage->name, storage->first, storage->last);
    }
    for (int k = 0; k < function->slots[i].n_callees; k++)
      text_printf(text, " %s", function->slots[i].callees[k]->name);
    text_puts(text, "\n");
  }
  for (int i = 0; i < function->n_steps; i++) print_step(text, &function->steps[i]);
}

static void print_aliases(struct text *text, const struct program *program) {
  for (int i = 0; i < program->aliases.count; i++) {
    const struct alias *alias = &program->aliases.items[i];
    text_printf(text, "%saliased.%s: bytes %lld to %lld of the gradients\n", i == 0 ? "\n" : "", alias->name,
                (long long)alias->at, (long long)(alias->at + storage_bytes(alias->storage)));
  }
}

const char *program_text(struct arena *arena, struct program *program) {
  struct text text = text_in(arena);
  for (int i = 0; i < program->functions.count; i++) {
    if (i > 0) text_puts(&text, "\n");
    print_function(&text, program->functions.items[i]);
  }
  print_aliases(&text, program);
  return text_string(&text);
}
