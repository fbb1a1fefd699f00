/* The environment's inside: options, interned names, templates compiled so far, and what is cached between renderings.
 */
#ifndef ACCEL_JINJA_ENV_H
#define ACCEL_JINJA_ENV_H

#include "gen/jinja/ast.h"
#include "gen/jinja/value.h"

struct buffer;

struct jinja_env {
  struct arena *arena;
  struct jinja_options options;
  struct pool pool;            /* direct: templates and their constants live as long as the arena */
  struct jinja_string **names; /* interned, open addressing */
  int name_count, name_capacity;
  struct template **templates;
  int template_count, template_capacity;
  struct pool scratch;    /* the memory of a rendering, used again by the next */
  struct buffer *buffers; /* output buffers that wait for their next use */
  struct buffer *all_buffers;
  struct run *running; /* the rendering under way */
};

/* The one string for a name. */
struct jinja_string *jj_intern(struct jinja_env *env, const char *bytes, size_t length);

/* The template called `name`, compiled; NULL when the loader does not know it (*missing) or it has an error. */
struct template *jj_template(struct jinja_env *env, const char *name, bool *missing, struct jinja_error *error);

#endif
