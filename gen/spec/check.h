/* Check: what the parts of the validator share: its state, and the words of its messages. Private to gen/spec. */
#ifndef ACCEL_SPEC_CHECK_H
#define ACCEL_SPEC_CHECK_H

#include <jansson.h>

#include "gen/base/diag.h"
#include "gen/spec/node.h"

/* Why a conditional schema applies: the other key, for messages about two keys that contradict. */
struct cause {
  const char *path;  /* "train.format" from the group of the condition; NULL: no condition */
  const char *value; /* as a message shows it; NULL: that it is there at all */
  bool written;      /* in the job; else it is the default */
  struct location where;
  bool unknown; /* what the condition is about is no group, which has its own message */
};

struct names;

struct check {
  struct arena *arena;
  struct diagnostics *diags; /* NULL: the answer only, no messages */
  const json_t *root;
  const struct spec_node *document; /* the whole; NULL where a part is tried */
  struct names *names;              /* what other trainers call things; NULL until something is not known */
  struct cause cause;
};

/* The value under validation. */
struct subject {
  const struct spec_node *node;
  const char *name; /* its key; "job" for the document */
  const char *path; /* dotted, from the document; "" for the document */
  struct location key_where;
};

/* Reports an error; the cause, if any, goes after it and into a note. */
void check_report(struct check *c, struct location where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports that a key is not there which `schema` requires of the group (unless an unknown key was meant to be it, whose
 * own message says so), that a key is unknown, that a condition forbids one. */
void check_missing(struct check *c, const struct subject *group, const json_t *schema, const char *key);
void check_unknown(struct check *c, const struct subject *group, const json_t *properties,
                   const struct spec_entry *entry);
void check_forbidden(struct check *c, const struct subject *s);

/* Whether some unknown key of the document is taken for the missing one: by its spelling, its group, or as another
 * trainer's name of it. */
bool check_is_meant(struct check *c, const struct subject *group, const char *key);

/* A help on a word instead of a group: the key of the group that takes it. */
void check_meant_member(struct check *c, const json_t *schema, const struct subject *s);

/* A help on a value that is none of the schema's enum: what it is to other trainers, else the nearest. */
void check_meant_choice(struct check *c, const json_t *schema, const struct subject *s);

/* The keywords type; const and enum. False with a message where the value does not hold to them. */
bool check_type(struct check *c, const json_t *schema, const struct subject *s);
bool check_choice(struct check *c, const json_t *schema, const struct subject *s);

/* The cause of an `if` that holds for a group, or of its `else`: the first key that it compares. Of a dependentSchemas:
 * its key. */
struct cause check_cause(const struct check *c, const json_t *condition, const struct subject *group);
struct cause check_key_cause(const struct check *c, const struct subject *group, const struct spec_entry *entry);

/* What messages call the group at a path: the path, or the document's noun. */
const char *check_group_words(const struct check *c, const char *path);

/* A value of the schema as a message shows it. */
const char *schema_value_text(struct arena *arena, const json_t *value);

/* A list of the schema's values with commas. */
const char *schema_list_text(struct arena *arena, const json_t *values);

/* A type's name in a sentence: "an integer". */
const char *schema_type_words(const char *type);

#endif
