/* What a folder of Hugging Face says of chats: its templates, and the special tokens that they use. */
#ifndef ACCEL_COMMANDS_DATA_CHAT_FOLDER_H
#define ACCEL_COMMANDS_DATA_CHAT_FOLDER_H

#include <jansson.h>

#include "gen/jinja/jinja.h"
#include "runtime/base/problem.h"

struct chat_template {
  const char *name, *text; /* name: "default", "tool_use", … */
};

struct chat_folder {
  struct {
    struct chat_template *items;
    int count, capacity;
  } templates;
  struct {
    struct chat_template *items; /* "bos_token" and its text */
    int count, capacity;
  } tokens;
};

/* Reads chat_template.jinja, additional_chat_templates and tokenizer_config.json, as far as they exist. `instead`: a
 * file with the template, or NULL. False with a problem. */
bool chat_folder_read(struct arena *arena, const char *folder, const char *instead, struct chat_folder *found,
                      struct problem *problem);

/* The text of the template of that name, or NULL. */
const char *chat_folder_template(const struct chat_folder *folder, const char *name);

#endif
