#include "gen/commands/data/chat_folder.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "gen/base/arena.h"
#include "gen/base/file.h"
#include "gen/base/path.h"

const char *chat_folder_template(const struct chat_folder *folder, const char *name) {
  for (int i = 0; i < folder->templates.count; i++)
    if (strcmp(folder->templates.items[i].name, name) == 0) return folder->templates.items[i].text;
  return NULL;
}

/* The first one of a name stays. */
static void add_template(struct arena *arena, struct chat_folder *found, const char *name, const char *text) {
  if (name == NULL || text == NULL || chat_folder_template(found, name) != NULL) return;
  const struct chat_template item = {arena_string(arena, name), arena_string(arena, text)};
  ARENA_PUSH(arena, found->templates, item);
}

static const char *read_text(struct arena *arena, const char *path) {
  size_t length;
  return read_bytes(arena, path, &length);
}

static void read_more_templates(struct arena *arena, const char *folder, struct chat_folder *found) {
  const char *path = arena_printf(arena, "%s/additional_chat_templates", folder);
  DIR *all = opendir(path);
  for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;)
    if (has_ending(entry->d_name, ".jinja"))
      add_template(arena, found, without_ending(arena, entry->d_name, ".jinja"),
                   read_text(arena, arena_printf(arena, "%s/%s", path, entry->d_name)));
  if (all != NULL) closedir(all);
}

/* A token's text: a string, or the content of an object. */
static const char *token_text(const json_t *token) {
  return json_string_value(json_is_object(token) ? json_object_get(token, "content") : token);
}

static void add_token(struct arena *arena, struct chat_folder *found, const char *name, const json_t *token) {
  const char *text = token_text(token);
  if (text == NULL) return;
  const struct chat_template item = {arena_string(arena, name), arena_string(arena, text)};
  ARENA_PUSH(arena, found->tokens, item);
}

static void read_tokens(struct arena *arena, const json_t *config, struct chat_folder *found) {
  const char *name;
  json_t *token;
  json_object_foreach((json_t *)config, name, token) if (has_ending(name, "_token"))
      add_token(arena, found, name, token);
  json_object_foreach(json_object_get(config, "extra_special_tokens"), name, token)
      add_token(arena, found, name, token);
}

/* A string, or a list of named ones. */
static void read_config_templates(struct arena *arena, const json_t *templates, struct chat_folder *found) {
  const json_t *item;
  size_t i;
  add_template(arena, found, "default", json_string_value(templates));
  json_array_foreach(templates, i, item) add_template(arena, found, json_string_value(json_object_get(item, "name")),
                                                      json_string_value(json_object_get(item, "template")));
}

static bool read_config(struct arena *arena, const char *path, bool templates, struct chat_folder *found,
                        struct problem *problem) {
  size_t length;
  const char *bytes = read_bytes(arena, path, &length);
  json_error_t error;
  if (bytes == NULL) return true;
  json_t *config = json_loadb(bytes, length, JSON_DECODE_INT_AS_REAL, &error); /* model_max_length may be 10^30 */
  if (config == NULL) {
    rt_problem(problem, "%s:%d:%d: %s", path, error.line, error.column, error.text);
    return rt_help(problem, "fetch the file again");
  }
  read_tokens(arena, config, found);
  if (templates) read_config_templates(arena, json_object_get(config, "chat_template"), found);
  json_decref(config);
  return true;
}

bool chat_folder_read(struct arena *arena, const char *folder, const char *instead, struct chat_folder *found,
                      struct problem *problem) {
  *found = (struct chat_folder){0};
  if (instead != NULL) {
    const char *text = read_text(arena, instead);
    if (text == NULL) {
      rt_problem(problem, "%s: %s", instead, strerror(errno));
      return rt_help(problem, "--chat-template is the name of a template of the folder, or a file that ends in .jinja");
    }
    add_template(arena, found, "default", text);
  } else {
    add_template(arena, found, "default", read_text(arena, arena_printf(arena, "%s/chat_template.jinja", folder)));
    read_more_templates(arena, folder, found);
  }
  return read_config(arena, arena_printf(arena, "%s/tokenizer_config.json", folder), instead == NULL, found, problem);
}
