/* Node: a YAML document as a tree of values, each with its location. */
#ifndef ACCEL_SPEC_NODE_H
#define ACCEL_SPEC_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gen/base/arena.h"
#include "gen/base/diag.h"
#include "gen/base/text.h"

enum spec_kind { SPEC_NULL, SPEC_BOOL, SPEC_INT, SPEC_REAL, SPEC_STRING, SPEC_LIST, SPEC_MAP };

/* A child: of a map with its key, of a list without. */
struct spec_entry {
  const char *key;
  struct location key_where;
  struct spec_node *value;
};

/* A value. Trees share nodes where the document has aliases, so a node is never changed once it is built. */
struct spec_node {
  enum spec_kind kind;
  struct location where;
  const char *text; /* scalars: as written, quotes and escapes undone; may hold a NUL of its own */
  size_t length;    /* bytes of text */
  int64_t integer;  /* SPEC_INT, and SPEC_BOOL as 0 or 1 */
  bool wide;        /* SPEC_INT too large for int64_t; real is near it */
  double real;      /* SPEC_INT, SPEC_REAL */
  bool broken;      /* an error has been reported about it; further ones would follow from that */
  bool is_default;  /* not written in the job */
  bool at_default;  /* what it is where the job does not write it, whatever the other keys are */
  struct spec_entry *entries;
  int count;
};

/* The entry of a map with this key; NULL when there is none or `map` is NULL or no map. */
struct spec_entry *spec_entry(const struct spec_node *map, const char *key);

/* The value of a dotted key such as "optimizer.lr"; the node itself for "". NULL when there is none. */
const struct spec_node *spec_find(const struct spec_node *node, const char *key);

/* A node that is one value or a list of them: how many there are, and the one at an index. 0 and NULL where there is no
 * node, NULL after the last one. */
int spec_count(const struct spec_node *node);
const struct spec_node *spec_at(const struct spec_node *node, int index);

/* Whether a node is this scalar, given as it would be written: "adamw", "true", "0.5". */
bool spec_is(const struct spec_node *node, const char *value);

/* A copy of a map with space for `more` entries; the values are shared. */
struct spec_node *spec_copy_map(struct arena *arena, const struct spec_node *map, int more);

/* The value as a message shows it: 'text', 12, true, nothing, a list, a group. Long texts are cut. */
const char *spec_describe(struct arena *arena, const struct spec_node *node);

/* `value` written so that reading it gives the same number, as short as possible; with `real`, never as an integer. */
const char *spec_number(struct arena *arena, double value, bool real);

/* Writes a value in flow form, on one line. */
void spec_write_value(struct text *out, const struct spec_node *node);

/* Writes a map as YAML block text, one key a line; lists in flow form. */
void spec_write(struct text *out, const struct spec_node *map);

#endif
