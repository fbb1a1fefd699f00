/* What conversions of a value share: reading it, setting keys of the job, and what became of the row. Private to
 * gen/import. */
#ifndef ACCEL_IMPORT_CONVERSION_H
#define ACCEL_IMPORT_CONVERSION_H

#include "gen/import/convert.h"

/* ---- The value ---- */

/* Whether it is this word, in small letters, as a text in letters of any case. */
bool node_is_word(const struct spec_node *node, const char *word);

/* Nothing, false, "no", "none", or a list or group without anything in it. */
bool node_is_off(const struct spec_node *node);

bool node_is_number(const struct spec_node *node);

/* Whether the row's value is a number; else the row is refused. */
bool needs_number(struct conversion *c);

/* The value of a key next to the row's; NULL: there is none, or it is null. */
const struct spec_node *sibling_of(const struct conversion *c, const char *key);

/* ---- Keys of the job ---- */

/* A value from its text in YAML, and from a number, at the row's location. */
struct spec_node *node_of(const struct conversion *c, const char *text);
struct spec_node *number_of(const struct conversion *c, double value);

/* Each of these sets the row's state and returns it. */

/* Sets a key of the job, unless another key of the files has set it otherwise. */
enum import_state take_key(struct conversion *c, const char *key, const struct spec_node *value);

/* Sets a key by "devices.kind=cuda". */
enum import_state take_setting(struct conversion *c, const char *setting);

/* Sets a key to the row's value, by the words of `schema`, the key's own, and to what the row's name sets in
 * addition. */
enum import_state take_value(struct conversion *c, const char *key, const json_t *schema);

enum import_state end_as(struct conversion *c, enum import_state state, const char *says);

/* What names.yaml says of a key, as a sentence's end: "is not needed: ...". */
const char *row_sentence(const struct conversion *c, const struct name *name);

/* ---- The conversions ---- */

typedef enum import_state conversion_function(struct conversion *c);

/* The conversion of a word of convert.h, which `as` begins with. */
conversion_function *conversion_named(const char *as);

#endif
