/* Templates: the text that programs are written with, read and compiled as it is requested, for one program or many. */
#ifndef ACCEL_EMIT_TEMPLATES_H
#define ACCEL_EMIT_TEMPLATES_H

#include "gen/jinja/jinja.h"

struct template_text {
  const char *name, *text;
};

struct templates {
  struct arena *arena;
  const char *folder;         /* NULL: the generator's own */
  const char *const *devices; /* the folders in which "device/NAME" is searched, in this order; ends with NULL */
  struct jinja_env *env;
  struct template_text *read; /* in the order in which they were requested */
  int n_read, read_capacity;
};

/* The name of the template that "device/NAME" resolves to, in the first folder of `devices` that has it: "NAME" in
 * "devices/gpu" or else in "kernels". NULL: no folder has it. It lives in the templates' arena. */
const char *templates_of_device(const struct templates *templates, const char *name);

/* None read yet, from a folder instead of the generator's own ones; NULL: its own. They live in `arena`. */
struct templates *templates_open(struct arena *arena, const char *folder);

#endif
