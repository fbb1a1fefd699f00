/* Messages of the interpreter: failures, and the names of slots and expressions in them. */
#include <stdarg.h>

#include <string.h>

#include "gen/audit/interp/region.h"
#include "gen/base/text.h"

void interp_fail(struct interp *interp, enum failure_kind kind, enum verdict verdict, const struct syntax *node,
                 uint64_t loops, const char *format, ...) {
  bool everywhere = kind == FAILURE_RACE || kind == FAILURE_COLLECTIVE || kind == FAILURE_DEADLOCK ||
                    kind == FAILURE_TRANSFER || kind == FAILURE_OUTSIDE;
  if ((!interp->in_step_path && !everywhere) || interp->region != NULL) return;
  va_list args;
  va_start(args, format);
  struct failure failure = {kind, verdict, node->where, arena_vprintf(interp->memory, format, args), loops};
  va_end(args);
  ARENA_PUSH(interp->memory, interp->failures, failure);
}

void interp_lose_track(struct interp *interp, const struct syntax *node, const char *what) {
  if (interp->region != NULL) {
    interp_region_lost(interp, node, what);
    return;
  }
  interp_unknown_write(interp);
  if (!interp->in_step_path) return;
  if (interp->untracked == NULL) interp->untracked = node;
  for (int kind = FAILURE_LOOP; kind <= FAILURE_UNWRITTEN; kind++)
    interp_fail(interp, (enum failure_kind)kind, VERDICT_CANNOT_TELL, node, 0, "%s is not followed", what);
}

uint64_t interp_imprecision(const struct interp *interp, struct value value) {
  return value.blame | interp->guards;
}

const char *interp_origin_word(unsigned origin) {
  if (origin & ORIGIN_RANK) return "the rank";
  if (origin & ORIGIN_CONFIG) return "what was set, or asked of a function, outside of the step path";
  if (origin & ORIGIN_UNTRACKED) return "what is not followed: memory, or what a loop changes";
  if (origin & ORIGIN_DATA) return "data";
  return origin & ORIGIN_CHOSEN ? "a choice by more than constants and counters" : "what the step is called with";
}

static void add_path(struct text *text, const struct path *path) {
  if (path == NULL) return;
  add_path(text, path->parent);
  if (path->record == NULL)
    text_printf(text, "[%lld]", (long long)path->index);
  else if (path->record->members[path->member].name[0] != '\0')
    text_printf(text, ".%s", path->record->members[path->member].name);
}

const char *interp_slot_name(const struct interp *interp, struct value pointer) {
  if (pointer.object < 0) return "what is not known";
  struct text text = text_in(interp->memory);
  text_puts(&text, interp->objects[pointer.object].name);
  add_path(&text, pointer.path);
  return text_string(&text);
}

static void spell(struct text *text, const struct syntax *node, int depth) {
  if (depth > 6) {
    text_puts(text, "...");
    return;
  }
  switch (node->kind) {
  case SYNTAX_INTEGER:
    text_printf(text, "%lld", (long long)node->integer);
    break;
  case SYNTAX_VARIABLE:
    text_puts(text, node->variable->name);
    break;
  case SYNTAX_MEMBER: {
    const struct syntax *base = node->parts[0];
    bool arrow = base->kind == SYNTAX_UNARY && base->operation == OPERATOR_DEREFERENCE;
    spell(text, arrow ? base->parts[0] : base, depth + 1);
    if (node->text[0] != '\0') text_printf(text, "%s%s", arrow ? "->" : ".", node->text);
    break;
  }
  case SYNTAX_INDEX:
    spell(text, node->parts[0], depth + 1);
    text_puts(text, "[");
    spell(text, node->parts[1], depth + 1);
    text_puts(text, "]");
    break;
  case SYNTAX_CAST:
    spell(text, node->parts[0], depth);
    break;
  case SYNTAX_UNARY:
    text_puts(text, operator_spelling(node->operation));
    spell(text, node->parts[0], depth + 1);
    break;
  case SYNTAX_BINARY:
    spell(text, node->parts[0], depth + 1);
    text_printf(text, " %s ", operator_spelling(node->operation));
    spell(text, node->parts[1], depth + 1);
    break;
  case SYNTAX_SELECT:
    spell(text, node->parts[0], depth + 1);
    text_puts(text, " ? ");
    spell(text, node->parts[1], depth + 1);
    text_puts(text, " : ");
    spell(text, node->parts[2], depth + 1);
    break;
  case SYNTAX_ASSIGN:
    spell(text, node->parts[0], depth + 1);
    break;
  case SYNTAX_CALL:
    text_printf(text, "%s(...)", node->function != NULL ? node->function->name : "?");
    break;
  default:
    text_puts(text, "...");
  }
}

bool interp_is_own(const struct interp *interp, struct location where) {
  return strcmp(where.file, interp->tree->file) == 0;
}

const char *interp_spell(struct interp *interp, const struct syntax *node) {
  struct text text = text_in(interp->memory);
  spell(&text, node, 0);
  return text_string(&text);
}
