#include "gen/emit/templates.h"

#include <string.h>

#include "gen/base/embedded.h"
#include "gen/base/file.h"

static const char *find_template(const struct templates *templates, const char *name) {
  size_t length;
  if (templates->folder != NULL)
    return read_bytes(templates->arena, arena_printf(templates->arena, "%s/%s", templates->folder, name), &length);
  for (int i = 0; i < accel_template_count; i++)
    if (strcmp(accel_templates[i].name, name) == 0) return accel_templates[i].text;
  return NULL;
}

static const char *load(void *context, const char *name) {
  struct templates *templates = context;
  const char *text = find_template(templates, name);
  if (text == NULL) return NULL;
  templates->read = arena_grow(templates->arena, templates->read, templates->n_read, &templates->read_capacity,
                               sizeof *templates->read);
  templates->read[templates->n_read++] = (struct template_text){arena_string(templates->arena, name), text};
  return text;
}

const char *templates_of_device(const struct templates *templates, const char *name) {
  for (const char *const *folder = templates->devices; *folder != NULL; folder++) {
    const char *whole = arena_printf(templates->arena, "%s/%s", *folder, name);
    if (find_template(templates, whole) != NULL) return whole;
  }
  return NULL;
}

static const char *join_path(void *context, const char *name, const char *parent) {
  static const char device[] = "device/";
  (void)parent;
  if (strncmp(name, device, sizeof device - 1) != 0) return name;
  const char *found = templates_of_device(context, name + sizeof device - 1);
  return found != NULL ? found : name;
}

struct templates *templates_open(struct arena *arena, const char *folder) {
  static const char *const none[] = {NULL};
  struct templates *templates = arena_alloc(arena, sizeof *templates);
  templates->arena = arena;
  templates->folder = folder;
  templates->devices = none;
  struct jinja_options settings = {.undefined = JINJA_STRICT,
                                   .trim_blocks = true,
                                   .lstrip_blocks = true,
                                   .keep_trailing_newline = true,
                                   .load = load,
                                   .join_path = join_path,
                                   .load_context = templates};
  templates->env = jinja_env_new(arena, &settings);
  return templates;
}
