/* Rendering: what the tests of the engine's interface share. */
#ifndef TESTS_JINJA_RENDERING_H
#define TESTS_JINJA_RENDERING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gen/jinja/jinja.h"

struct texts {
  const char *names[8], *items[8];
};

struct bench {
  struct arena *arena;
  struct texts texts;
  struct jinja_options options;
  struct jinja_env *env;
  struct jinja_value values;
  struct jinja_output output;
  struct jinja_error error;
};

/* A bench whose template "main" is this text, with an arena of its own; and one more template. */
struct bench *start(const char *text);
void add(struct bench *bench, const char *name, const char *text);

/* Renders "main"; with spans: and says who wrote which part. */
bool render(struct bench *bench, bool spans);

/* "template:line:column" of each position, innermost first. */
const char *chain_text(struct arena *arena, const struct jinja_location *chain, int count);

#endif
