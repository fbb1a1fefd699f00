#include "gen/emit/templates.h"

#include <string.h>

#include "gen/base/embedded.h"
#include "gen/base/file.h"

static const char *find_template(const struct templates *templates, const char *name) {
  size_t length;
  if (templates->folder != NULL)
    return read_bytes(templates->arena, arena_printf(templates->arena, "%s/%s", templates->folder, name), &length);
  return embedded_template(name);
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

/* The names by which all templates know those that many of them use; a name that a template gives to something else is
 * that there. */
static const char *const modules[][2] = {
    {"branches", "device/tree.c.j2"},
    {"c", "device/signature.c.j2"},
    {"channel", "device/channels.c.j2"},
    {"collectives", "program/collectives.c.j2"},
    {"common", "program/program.c.j2"},
    {"compress", "program/compress.c.j2"},
    {"counted", "kernels/counted.c.j2"},
    {"d", "device/primitives.c.j2"},
    {"device_of", "device/device.c.j2"},
    {"draws_of", "device/draws.c.j2"},
    {"hooks_of", "program/hooks.c.j2"},
    {"host", "device/host.c.j2"},
    {"kernels_of", "device/kernels.c.j2"},
    {"launcher", "device/launcher.c.j2"},
    {"n", "program/optimizer/number.c.j2"},
    {"offload", "program/offload.c.j2"},
    {"optimizer_of", "device/optimizer.c.j2"},
    {"packed", "device/packed_rows.c.j2"},
    {"pass_of", "device/optimizer/tensors.c.j2"},
    {"pipeline_of", "program/pipeline.c.j2"},
    {"profiler", "program/profile.c.j2"},
    {"record", "program/record.c.j2"},
    {"row", "kernels/cross_entropy_rows.c.j2"},
    {"rows", "device/rows.c.j2"},
    {"step_end_of", "device/step_end_interface.c.j2"},
    {"t", "program/types.c.j2"},
    {"table", "program/optimizer/table.c.j2"},
    {"threads", "device/threads.c.j2"},
    {"tiles", "device/attention_tiles.c.j2"},
    {"update", "program/optimizer/update.c.j2"},
    {"view", "program/view.c.j2"},
};

static const char *module(void *context, const char *name) {
  (void)context;
  for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
    if (strcmp(modules[i][0], name) == 0) return modules[i][1];
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
                                   .module = module,
                                   .global_values = true,
                                   .load_context = templates};
  templates->env = jinja_env_new(arena, &settings);
  return templates;
}
