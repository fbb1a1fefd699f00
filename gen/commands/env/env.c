/* accel-gen env: what the machine has, to paste into an issue. */
#include <stdio.h>
#include <string.h>

#include "gen/base/quantity.h"
#include "gen/base/text.h"
#include "gen/base/version.h"
#include "gen/commands/cli/commands.h"
#include "gen/commands/env/facts.h"
#include "runtime/base/terminal.h"

void facts_put(json_t *object, const char *key, const char *text) {
  if (text != NULL && text[0] != '\0') json_object_set_new(object, key, json_string(text));
}

static json_t *own_facts(const struct options *options) {
  json_t *own = json_object();
  facts_put(own, "version", ACCEL_VERSION);
  facts_put(own, "commit", options->commit);
  facts_put(own, "folder", options->binary);
  return own;
}

static json_t *all_facts(const struct options *options) {
  struct arena *arena = options->arena;
  json_t *all = json_object(), *variables = facts_variables(); /* before the command sets one */
  json_object_set_new(all, "accel_gen", own_facts(options));
  json_object_set_new(all, "system", facts_system(arena));
  json_object_set_new(all, "processor", facts_processor(arena));
  json_object_set_new(all, "memory", facts_memory(arena));
  json_object_set_new(all, "gpus", facts_gpus(arena));
  json_object_set_new(all, "tools", facts_tools(options));
  json_object_set_new(all, "libraries_of_programs", facts_libraries(options));
  json_object_set_new(all, "libraries_of_the_command", facts_loaded(arena));
  json_object_set_new(all, "variables", variables);
  return all;
}

/* ---- For people ---- */

enum { NAME = 22 };

/* A key's name with blanks in it, and without the unit that its value has of its own. */
static const char *name_of(struct arena *arena, const char *key) {
  size_t length = strlen(key);
  bool bytes = length > 6 && strcmp(key + length - 6, "_bytes") == 0;
  char *name = arena_copy(arena, key, bytes ? length - 6 : length);
  for (char *at = name; *at != '\0'; at++)
    if (*at == '_') *at = ' ';
  return name;
}

static const char *value_text(struct arena *arena, const char *key, const json_t *value) {
  if (json_is_string(value)) return json_string_value(value);
  if (json_is_real(value)) return arena_printf(arena, "%.3g", json_real_value(value));
  size_t length = strlen(key);
  int64_t number = json_integer_value(value);
  if (length > 6 && strcmp(key + length - 6, "_bytes") == 0) return bytes_text(arena, number);
  return arena_printf(arena, "%lld", (long long)number);
}

/* A group's members, a line each; a group in it takes lines of its own. `as_is`: their names are not words. */
static void add_members(struct text *out, json_t *group, int indent, bool as_is) {
  const char *key;
  json_t *value;
  json_object_foreach(group, key, value) {
    const char *name = as_is ? key : name_of(out->arena, key);
    if (json_is_object(value)) {
      text_printf(out, "%*s%s\n", indent, "", name);
      add_members(out, value, indent + 2, as_is);
    } else {
      text_printf(out, "%*s%-*s %s\n", indent, "", NAME - indent, name, value_text(out->arena, key, value));
    }
  }
}

/* The members of a GPU in one line. */
static void add_gpus(struct text *out, json_t *gpus) {
  size_t i;
  json_t *gpu, *value;
  json_array_foreach(gpus, i, gpu) {
    const char *key;
    text_printf(out, "  %-*zu", NAME - 2, i);
    json_object_foreach(gpu, key, value) {
      bool first = strcmp(key, "name") == 0;
      text_printf(out, "%s%s%s%s", first ? " " : ", ", first ? "" : name_of(out->arena, key), first ? "" : " ",
                  json_string_value(value));
    }
    text_puts(out, "\n");
  }
  if (json_array_size(gpus) == 0) text_puts(out, "  none that nvidia-smi or rocminfo lists\n");
}

static void print_text(struct arena *arena, json_t *all) {
  struct text out = text_in(arena);
  const char *key;
  json_t *value;
  json_object_foreach(all, key, value) {
    bool own = strcmp(key, "accel_gen") == 0;
    bool as_is = strcmp(key, "variables") == 0 || strcmp(key, "tools") == 0 || strncmp(key, "libraries", 9) == 0;
    text_printf(&out, "%s\n", own ? "accel-gen" : name_of(arena, key));
    if (json_is_array(value))
      add_gpus(&out, value);
    else
      add_members(&out, value, 2, as_is);
  }
  rt_print_text(stdout, text_string(&out));
}

int command_env(const struct options *options) {
  json_t *all = all_facts(options);
  if (options->json) {
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
  } else {
    print_text(options->arena, all);
  }
  json_decref(all);
  return STATUS_OK;
}
