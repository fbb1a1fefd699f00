/* Where directives are. */
#include <string.h>

#include "gen/audit/interp/region.h"
#include "gen/base/file.h"

struct files {
  struct interp *interp;
  struct directives *items;
  int count, capacity;
};

static void place(struct syntax *node, const struct directive *directive, bool at_end, void *data) {
  struct interp *interp = data;
  struct note *note = interp_note(interp, node);
  if (at_end)
    note->barrier_at_end = true;
  else
    note->directive = directive;
}

/* The text of a file of the program; NULL: it is in memory alone, as the audit's own headers are. */
static const char *text_of(struct interp *interp, const char *file) {
  for (int i = 0; i < interp->tree->n_written; i++)
    if (strcmp(interp->tree->written[i].file, file) == 0) return interp->tree->written[i].text;
  size_t length;
  return read_bytes(interp->memory, file, &length);
}

static struct directives *directives_of(struct files *files, const char *file) {
  for (int i = 0; i < files->count; i++)
    if (strcmp(files->items[i].file, file) == 0) return &files->items[i];
  const char *text = text_of(files->interp, file);
  struct directives read = directives_read(files->interp->memory, file, text == NULL ? "" : text);
  read.file = file;
  ARENA_PUSH(files->interp->memory, *files, read);
  return &files->items[files->count - 1];
}

static bool find_directive(struct syntax *node, void *data) {
  const struct syntax **found = data;
  if (*found == NULL && node->note != NULL && node->note->directive != NULL) *found = node;
  return *found == NULL;
}

void interp_find_unfollowed_regions(struct interp *interp) {
  for (int i = 0; i < interp->tree->n_functions; i++) {
    struct function *function = interp->tree->functions[i];
    const struct syntax *found = NULL;
    if (function->role->is_followed || !function->role->is_used || !interp_is_own(interp, function->where)) continue;
    syntax_visit(function->body, find_directive, &found);
    if (found != NULL)
      interp_region_fail(interp, VERDICT_CANNOT_TELL, found,
                         arena_printf(interp->memory, "where '%s' is called is not followed", function->name));
  }
}

static void report_unplaced(struct interp *interp, const struct directive *directive) {
  const int line = directive->where.line;
  for (int i = 0; i < interp->tree->n_skipped; i++) {
    const struct skipped *skipped = &interp->tree->skipped[i];
    if (strcmp(skipped->where.file, directive->where.file) == 0 && skipped->where.line <= line &&
        line <= skipped->last_line)
      return;
  }
  const struct syntax at = {.where = directive->where};
  if (!directive->is_placed)
    interp_region_fail(interp, VERDICT_CANNOT_TELL, &at,
                       arena_printf(interp->memory, "which statement 'omp %s' is for", directive->text));
}

void interp_place_directives(struct interp *interp) {
  struct files files = {.interp = interp};
  for (int i = 0; i < interp->tree->n_functions; i++) {
    struct function *function = interp->tree->functions[i];
    if (function->body == NULL || function->is_system || function->where.file == NULL) continue;
    directives_place(directives_of(&files, function->where.file), function, place, interp);
  }
  /* One without a statement is in text that is left out for this processor, which nothing-hidden lists, or in what the
   * program does not use. */
  for (int i = 0; i < files.count; i++)
    if (interp_is_own(interp, (struct location){.file = files.items[i].file}))
      for (int j = 0; j < files.items[i].count; j++) report_unplaced(interp, &files.items[i].items[j]);
}
