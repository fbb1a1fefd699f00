/* Errors and limits of a rendering. */
#include "gen/jinja/run.h"

#include <stdarg.h>
#include <string.h>

/* Far below the usual 8 MiB: the deepest expression between two checks needs its stack too. */
enum { STACK_BYTES = 4 << 20 };

static const char *source_line(struct arena *arena, const struct template *template, int line) {
  if (template == NULL || template->source == NULL) return NULL;
  const char *at = template->source, *end = template->source + template->length;
  for (; line > 1; line--) {
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    if (newline == NULL) return NULL;
    at = newline + 1;
  }
  const char *newline = memchr(at, '\n', (size_t)(end - at));
  return arena_copy(arena, at, (size_t)((newline != NULL ? newline : end) - at));
}

static struct jinja_location here(const struct run *run) {
  return (struct jinja_location){run->template != NULL ? run->template->name : "<unknown>",
                                 run->at != NULL ? run->at->line : 1, run->at != NULL ? run->at->column : 1};
}

/* The locations of `inner` (may be NULL), then where the rendering is, then the links outward. */
static void fill_chain(struct run *run, const struct jinja_error *inner) {
  enum { MOST = 64 }; /* of a deep recursion the innermost locations suffice */
  int count = inner != NULL ? inner->chain_count : 0;
  struct jinja_location *chain = arena_alloc(run->env->arena, (size_t)(count + 1 + MOST) * sizeof *chain);
  if (count > 0) memcpy(chain, inner->chain, (size_t)count * sizeof *chain);
  chain[count++] = here(run);
  int most = count + MOST - 1;
  for (const struct link *link = run->link; link != NULL && count < most; link = link->outer)
    chain[count++] = link->location;
  run->error->chain = chain;
  run->error->chain_count = count;
}

void jj_fail(struct run *run, const char *format, ...) {
  va_list args;
  va_start(args, format);
  run->error->message = arena_vprintf(run->env->arena, format, args);
  va_end(args);
  fill_chain(run, NULL);
  run->error->source_line = source_line(run->env->arena, run->template, run->error->chain[0].line);
  longjmp(run->jump, 1);
}

void jj_fail_with(struct run *run, const struct jinja_error *inner) {
  struct jinja_error copy = *inner;
  *run->error = copy;
  fill_chain(run, &copy);
  longjmp(run->jump, 1);
}

void jj_enter(struct run *run) {
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  uintptr_t used = run->stack_base > here ? run->stack_base - here : here - run->stack_base;
  jj_spend(run, 1);
  if (++run->depth > run->max_depth || used > STACK_BYTES) {
    jj_fail(run,
            "the template recurses too deeply: the limit is %d levels of macros, includes, blocks and recursive loops",
            run->max_depth);
  }
}

const struct link *jj_link(struct run *run, const struct node *node) {
  struct link *link = jj_alloc(run->pool, sizeof *link);
  *link = (struct link){.outer = run->link};
  link->location =
      (struct jinja_location){run->template->name, node != NULL ? node->line : 1, node != NULL ? node->column : 1};
  return link;
}
