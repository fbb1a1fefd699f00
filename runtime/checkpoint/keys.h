/* The job of a checkpoint, key by key: its job.json.
 *
 *   {"generator": "accel-gen 0.1.0", "digest": ..., "fixed_digest": ..., "keys": {NAME: {"value": ..., "may_change":
 *   ...}}}
 *
 * `keys` are those that differ from the defaults of that generator, of which `digest` and `fixed_digest` also cover the
 * others. In a checkpoint of before, the whole file is the keys, all of them. */
#ifndef RUNTIME_CHECKPOINT_KEYS_H
#define RUNTIME_CHECKPOINT_KEYS_H

#include "include/accel/trainer.h"
#include "runtime/base/problem.h"

struct json_t;

/* The key of this name; NULL: none. */
const struct accel_key *rt_key_find(const struct accel_key *keys, int count, const char *name);

/* What a key adds to a digest of keys in any order. */
uint64_t rt_key_digest(const char *name, const char *value);

/* The program's job, for a checkpoint's job.json. */
struct json_t *rt_keys_json(const struct accel_program *program);

/* Whether the run of a job.json can be continued by this program: whether the keys that may not change are the same,
 * defaults included. What has changed and may, in `changed`: "optimizer.lr: 0.001 -> (default)" lines. */
bool rt_keys_compare(struct json_t *recorded, const char *folder, const struct accel_program *program, char *changed,
                     size_t size, struct problem *problem);

#endif
