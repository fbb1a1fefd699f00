/* The job of a checkpoint: what is recorded of it, and which programs continue its run. */
#include "cmocka_all.h"

#include "runtime/checkpoint/keys.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#define LR "optimizer.lr"
#define EPS "optimizer.eps"
#define SEED "training.seed"

/* A job of three keys, of which a program leaves out those at the defaults of its generator. */
struct job {
  const char *lr, *eps, *seed;
};
static const struct job of_0_1 = {"0.001", "1e-08", "1337"}, of_0_2 = {"0.001", "1e-06", "1337"};

struct made {
  struct accel_program program;
  struct accel_key keys[3];
  char digest[100], fixed_digest[17];
};

static void state(struct made *made, const char *name, const char *value, const char *value_left_out, bool may_change) {
  if (value_left_out != NULL && strcmp(value, value_left_out) == 0) return;
  made->keys[made->program.n_keys++] = (struct accel_key){name, value, may_change};
}

/* defaults: NULL where no key is left out. */
static struct accel_program *make(struct made *made, struct job job, const struct job *defaults) {
  *made = (struct made){.program = {.generator = defaults == &of_0_2 ? "accel-gen 0.2.0" : "accel-gen 0.1.0"}};
  state(made, LR, job.lr, defaults != NULL ? defaults->lr : NULL, true);
  state(made, EPS, job.eps, defaults != NULL ? defaults->eps : NULL, false);
  state(made, SEED, job.seed, defaults != NULL ? defaults->seed : NULL, false);
  snprintf(made->digest, sizeof made->digest, "%s, %s, %s", job.lr, job.eps, job.seed);
  snprintf(made->fixed_digest, sizeof made->fixed_digest, "%016" PRIx64,
           rt_key_digest(EPS, job.eps) + rt_key_digest(SEED, job.seed));
  made->program.keys = made->keys;
  made->program.job_digest = made->digest;
  if (defaults != NULL) made->program.fixed_digest = made->fixed_digest;
  return &made->program;
}

/* The message of a run that does not continue, what has changed of one that does. */
static const char *compare(json_t *recorded, const struct accel_program *program) {
  static char changed[500];
  static struct problem problem;
  bool resumes = rt_keys_compare(recorded, "DIR", program, changed, sizeof changed, &problem);
  json_decref(recorded);
  return resumes ? changed : problem.what;
}

#define REFUSED "DIR: the run cannot resume with these changes of the job: "

static const char *between(struct job was, const struct job *old, struct job is, const struct job *new) {
  struct made a, b;
  return compare(rt_keys_json(make(&a, was, old)), make(&b, is, new));
}

static void one_version(void **unused) {
  struct job job = {"0.002", "1e-06", "7"}, other = job;
  (void)unused;
  assert_string_equal(between(job, &of_0_1, job, &of_0_1), "");
  other.lr = "0.001";
  assert_string_equal(between(job, &of_0_1, other, &of_0_1), LR ": 0.002 -> (default)");
  assert_string_equal(between(other, &of_0_1, job, &of_0_1), LR ": (default) -> 0.002");
  other.seed = "1337";
  assert_string_equal(between(job, &of_0_1, other, &of_0_1), REFUSED SEED ": 7 -> (default)");
  assert_string_equal(between(other, &of_0_1, job, &of_0_1), REFUSED SEED ": (default) -> 7");
  other.eps = "1e-05";
  assert_string_equal(between(job, &of_0_1, other, &of_0_1), REFUSED EPS ": 1e-06 -> 1e-05, " SEED ": 7 -> (default)");
}

/* A key that is left out on both sides differs where the versions' defaults do. */
static void other_defaults(void **unused) {
  struct job job = {"0.002", "1e-08", "7"};
  (void)unused;
  assert_string_equal(between(job, &of_0_1, (struct job){"0.002", "1e-06", "7"}, &of_0_2),
                      REFUSED "defaults: accel-gen 0.1.0 -> accel-gen 0.2.0");
  assert_string_equal(between(job, &of_0_1, (struct job){"0.002", "1e-06", "1337"}, &of_0_2),
                      REFUSED SEED ": 7 -> (default), defaults: accel-gen 0.1.0 -> accel-gen 0.2.0");
  assert_string_equal(between(job, &of_0_1, job, &of_0_2), "");
  assert_string_equal(between(job, &of_0_1, (struct job){"0.001", "1e-08", "7"}, &of_0_2),
                      LR ": 0.002 -> (default), defaults: accel-gen 0.1.0 -> accel-gen 0.2.0");
}

/* What checkpoints were before: every key, and nothing else. */
static void no_key_left_out(void **unused) {
  struct job job = {"0.001", "1e-08", "7"}, other = job;
  struct made a, b;
  (void)unused;
  json_t *recorded = rt_keys_json(make(&a, job, NULL)), *whole = json_incref(json_object_get(recorded, "keys"));
  json_decref(recorded);
  assert_string_equal(compare(json_incref(whole), make(&b, job, &of_0_1)), "");
  assert_string_equal(compare(json_incref(whole), make(&b, job, NULL)), "");
  assert_string_equal(between(job, &of_0_1, job, NULL), LR ": (default) -> 0.001");
  other.lr = "0.002";
  assert_string_equal(compare(json_incref(whole), make(&b, other, &of_0_1)), LR ": 0.001 -> 0.002");
  other.seed = "8";
  assert_string_equal(compare(json_incref(whole), make(&b, other, &of_0_1)), REFUSED SEED ": 7 -> 8");
  other.seed = "1337";
  assert_string_equal(compare(json_incref(whole), make(&b, other, &of_0_1)),
                      "DIR: the run cannot resume: a key that this program has at its default had another value");
  json_decref(whole);
}

/* In any order; a name is not a value. */
static void digests(void **unused) {
  (void)unused;
  assert_true(rt_key_digest("a", "b") != rt_key_digest("b", "a"));
  assert_true(rt_key_digest("ab", "c") != rt_key_digest("a", "bc"));
  assert_true(rt_key_digest("a", "1") != rt_key_digest("a", "2"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_version),
      cmocka_unit_test(other_defaults),
      cmocka_unit_test(no_key_left_out),
      cmocka_unit_test(digests),
  };
  return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
