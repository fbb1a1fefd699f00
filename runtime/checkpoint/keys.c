#include "runtime/checkpoint/keys.h"

#include "runtime/files/checksum.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

const struct accel_key *rt_key_find(const struct accel_key *keys, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(keys[i].name, name) == 0) return &keys[i];
  return NULL;
}

uint64_t rt_key_digest(const char *name, const char *value) {
  struct checksum sum = rt_checksum_start();
  rt_checksum_add(&sum, name, strlen(name) + 1);
  rt_checksum_add(&sum, value, strlen(value));
  return rt_checksum_end(&sum);
}

/* Of a program, as 16 hexadecimal digits. */
static void write_fixed_digest(const struct accel_program *program, char digest[17]) {
  uint64_t sum = 0;
  if (program->fixed_digest != NULL) {
    snprintf(digest, 17, "%s", program->fixed_digest);
    return;
  }
  for (int i = 0; i < program->n_keys; i++)
    if (!program->keys[i].may_change) sum += rt_key_digest(program->keys[i].name, program->keys[i].value);
  snprintf(digest, 17, "%016" PRIx64, sum);
}

json_t *rt_keys_json(const struct accel_program *program) {
  char fixed_digest[17];
  json_t *keys = json_object();
  write_fixed_digest(program, fixed_digest);
  for (int i = 0; i < program->n_keys; i++) {
    const struct accel_key *key = &program->keys[i];
    json_object_set_new(keys, key->name, json_pack("{s:s, s:b}", "value", key->value, "may_change", key->may_change));
  }
  return json_pack("{s:s, s:s, s:s, s:o}", "generator", program->generator, "digest", program->job_digest,
                   "fixed_digest", fixed_digest, "keys", keys);
}

/* A job.json as it was read. */
struct recorded {
  json_t *keys;
  bool whole; /* no key is left out */
  const char *generator, *digest;
  char fixed_digest[17];
};

static const char *text_of(const json_t *root, const char *name) {
  const char *text = json_string_value(json_object_get(root, name));
  return text != NULL ? text : "";
}

static uint64_t sum_of_fixed(json_t *keys) {
  const char *name;
  json_t *entry;
  uint64_t sum = 0;
  json_object_foreach(keys, name, entry) {
    if (!json_is_true(json_object_get(entry, "may_change"))) sum += rt_key_digest(name, text_of(entry, "value"));
  }
  return sum;
}

static struct recorded read_recorded(json_t *root) {
  struct recorded job = {.keys = json_object_get(root, "keys")};
  job.whole = job.keys == NULL;
  if (job.whole) job.keys = root;
  job.generator = text_of(root, "generator");
  job.digest = text_of(root, "digest");
  if (job.whole)
    snprintf(job.fixed_digest, sizeof job.fixed_digest, "%016" PRIx64, sum_of_fixed(job.keys));
  else
    snprintf(job.fixed_digest, sizeof job.fixed_digest, "%s", text_of(root, "fixed_digest"));
  return job;
}

/* Changes as a text, which stays whole when it is full. */
struct changes {
  char *text;
  size_t size;
};

static void add(const struct changes *to, const char *name, const char *was, const char *is) {
  size_t at = strlen(to->text);
  int length = snprintf(to->text + at, to->size - at, "%s%s: %s -> %s", at > 0 ? ", " : "", name, was, is);
  if (length < 0 || (size_t)length >= to->size - at) to->text[at] = '\0';
}

/* Sorts the keys that differ into what may change and what may not. Of a key that the program has at its default, a
 * checkpoint that leaves out no key may have that very value. */
static void compare_keys(const struct recorded *job, const struct accel_program *program, const struct changes *free,
                         const struct changes *fixed) {
  const char *name;
  json_t *entry;
  for (int i = 0; i < program->n_keys; i++) {
    const struct accel_key *key = &program->keys[i];
    const char *was = json_string_value(json_object_get(json_object_get(job->keys, key->name), "value"));
    if (was == NULL || strcmp(was, key->value) != 0)
      add(key->may_change ? free : fixed, key->name,
          was != NULL  ? was
          : job->whole ? "(none)"
                       : "(default)",
          key->value);
  }
  if (job->whole) return;
  json_object_foreach(job->keys, name, entry) {
    bool may_change = json_is_true(json_object_get(entry, "may_change"));
    if (rt_key_find(program->keys, program->n_keys, name) == NULL)
      add(may_change ? free : fixed, name, text_of(entry, "value"), "(default)");
  }
}

/* Defaults differ where those of another version were left out. */
static void compare_defaults(const struct recorded *job, const struct accel_program *program,
                             const struct changes *to) {
  if (!job->whole && strcmp(job->generator, program->generator) != 0)
    add(to, "defaults", job->generator, program->generator);
}

bool rt_keys_compare(json_t *recorded, const char *folder, const struct accel_program *program, char *changed,
                     size_t size, struct problem *problem) {
  char text[700] = "", fixed_digest[17];
  const struct recorded job = read_recorded(recorded);
  const struct changes free = {changed, size}, fixed = {text, sizeof text};
  changed[0] = '\0';
  compare_keys(&job, program, &free, &fixed);
  if (strcmp(job.digest, program->job_digest) != 0) compare_defaults(&job, program, &free);
  write_fixed_digest(program, fixed_digest);
  if (strcmp(job.fixed_digest, fixed_digest) == 0) return true;
  compare_defaults(&job, program, &fixed);
  if (text[0] == '\0') {
    rt_problem(problem, "%s: the run cannot resume: a key that this program has at its default had another value",
               folder);
    return rt_help(problem, "compare job.json there with what 'accel-gen check --resolved' prints");
  }
  rt_problem(problem, "%s: the run cannot resume with these changes of the job: %s", folder, text);
  return rt_help(problem, "set these keys back, or start from scratch with --resume never and another --project-dir");
}
