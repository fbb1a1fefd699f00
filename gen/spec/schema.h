/* Schema: JSON Schema 2020-12, as much of it as schemas/job.schema.json uses, over YAML trees.
 *
 * Keywords: $ref into $defs, type, const, enum, minimum, exclusiveMinimum, maximum, exclusiveMaximum, minLength,
 * pattern (see pattern.h), items, minItems, maxItems, properties, required, minProperties,
 * maxProperties, propertyNames, additionalProperties,
 * dependentSchemas, allOf, if, then, else, and false as a schema. patternErrorMessage, which editors know too, words
 * the message of a pattern; mayChange is for gen/spec/keys.h; noun, at the root, is what messages call
 * the document. What other trainers call keys and values is in names.h. A number that is not finite is none, as in
 * JSON. */
#ifndef ACCEL_SPEC_SCHEMA_H
#define ACCEL_SPEC_SCHEMA_H

#include <jansson.h>

#include "gen/base/diag.h"
#include "gen/spec/node.h"

/* The schema of a job, parsed from accel_job_schema. The caller gives it back with json_decref. */
json_t *schema_of_job(void);

/* The same of a table of measurements, from accel_tuning_schema. */
json_t *schema_of_tuning(void);

/* The same of what a trainer for GPUs has measured, from accel_measured_schema. */
json_t *schema_of_measured(void);

/* The schema itself, or what its $ref leads to. A keyword next to $ref (a description, a default) stays with it. */
const json_t *schema_target(const json_t *root, const json_t *schema);

/* A keyword's value: of the schema, else of what its $ref leads to; NULL when neither has it. */
const json_t *schema_keyword(const json_t *root, const json_t *schema, const char *keyword);

/* The schema of a dotted key such as "data.train.path"; root for "", NULL when it is not among the properties. */
const json_t *schema_find(const json_t *root, const char *key);

/* The groups that have a key, at any depth: dotted paths, "" for the root. Of a list of groups, its own path. */
struct schema_owners {
  const char **paths;
  int count, capacity;
};
struct schema_owners schema_owners_of(struct arena *arena, const json_t *root, const char *key);

/* Whether `path` is `group` or within it. */
bool schema_is_within(const char *path, const char *group);

/* Validates a document; false with all its errors in `diags`. */
bool schema_validate(struct arena *arena, const json_t *root, const struct spec_node *document,
                     struct diagnostics *diags);

/* Whether a key that is not written may be a group: its type is object, or can be and it has no default. */
bool schema_is_group(const json_t *root, const json_t *schema);

/* Whether a group without a key is one that its schema allows. */
bool schema_allows_empty(struct arena *arena, const json_t *root, const json_t *schema);

/* Whether the conditions of a group's schema forbid a key, given the other keys that `group` holds: any value of it
 * (value: NULL), or this one. */
bool schema_forbids(struct arena *arena, const json_t *root, const json_t *schema, const struct spec_node *group,
                    const char *key, struct spec_node *value);

/* The default of a group's key, given the keys that `group` holds: the last of its schema's allOf whose condition holds
 * and that has one for it, else the key's own. NULL for none. */
const json_t *schema_default(struct arena *arena, const json_t *root, const json_t *schema,
                             const struct spec_node *group, const char *key);

#endif
