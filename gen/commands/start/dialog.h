/* Dialog: a document of a job's keys that grows by answers of a person, or by values without questions. Each value is
 * checked with all before it. */
#ifndef ACCEL_COMMANDS_START_DIALOG_H
#define ACCEL_COMMANDS_START_DIALOG_H

#include <stdbool.h>

#include <jansson.h>

#include "gen/base/diag.h"
#include "gen/spec/node.h"

struct dialog {
  struct arena *arena;
  json_t *schema;                   /* of a job; dialog_close gives it back */
  const struct spec_node *document; /* what has been set */
  const struct spec_node *below;    /* keys that a job needs, with which the document is checked; not a part of it */
  bool asks;                        /* a person answers */
};

/* An empty document. `below`: YAML text of keys for checking; "{}" where the document is to be whole. */
struct dialog dialog_open(struct arena *arena, const char *below, bool asks);
void dialog_close(struct dialog *dialog);

/* Whether a person can be asked: standard input and standard error are a terminal. */
bool dialog_has_person(void);

/* Sets a key to a value, as YAML text. */
void dialog_set(struct dialog *dialog, const char *key, const char *value);

/* Sets it where the job's rules allow the value with all before; else prints the first reason and gives false. */
bool dialog_take(struct dialog *dialog, const char *key, const char *value);

/* Asks for the value of a key that is not set yet, which is `preset` for an empty answer; an answer that the job's
 * rules refuse is requested again with the message, and ? explains the key. Without a person it is `preset`. NULL for a
 * preset: the key stays away. False when the input ends. */
bool dialog_ask(struct dialog *dialog, const char *key, const char *question, const char *preset);

/* Asks whether the value that a key has stays; without a person it does. */
bool dialog_confirm(struct dialog *dialog, const char *key, const char *question);

/* The same of a word that is no key: one of `choices`, each between spaces, or any text for NULL. NULL when the input
 * ends, or where nobody is asked and there is no preset. */
const char *dialog_word(struct dialog *dialog, const char *question, const char *choices, const char *preset);

/* Whether the document is one that a job can have, with the errors in `diags`. `file`: what messages call it. */
bool dialog_check(const struct dialog *dialog, const char *file, struct diagnostics *diags);

#endif
