/* Chats: a record of messages (or of ShareGPT's conversations), or of a prompt and its completion, becomes a text, and
 * the ranges of the text that a model is trained on. Messages go through the chat template of a folder of Hugging Face,
 * as transformers' apply_chat_template renders them.
 *
 * Trained are the blocks `generation` of the template, where it has them. Of another template, an assistant's message
 * is what rendering adds to the messages before it with the prompt for a generation: from the length of that to the
 * length of the messages up to this one. Both must be how the text of all messages begins. */
#ifndef ACCEL_COMMANDS_DATA_CHAT_H
#define ACCEL_COMMANDS_DATA_CHAT_H

#include "gen/tokenizer/documents.h"

enum train_on { TRAIN_ON_ASSISTANT, TRAIN_ON_LAST, TRAIN_ON_ALL };

struct chat;

/* Reads what the folder says of chats. `template`: the name of a template of the folder or a file, that ends in
 * .jinja; NULL: the one named "default", or "tool_use" for records with tools. NULL with a problem. */
struct chat *chat_new(const char *folder, const char *template, enum train_on train_on, struct problem *problem);

void chat_free(struct chat *chat);

/* What its texts depend on besides the records: templates, special tokens, and what is trained on. Two chats of the
 * same identity make the same texts of a record, but for dates. The text lives as long as the chat. */
const char *chat_identity(struct chat *chat);

/* A text_maker of documents.h; context: the chat. The text stays until the next one. */
bool chat_make(void *context, struct json_t *record, struct made_text *made, struct problem *problem);

#endif
