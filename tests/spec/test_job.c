/* A job's values, defaults, positions, overrides, digest and help. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/base/sha256.h"
#include "gen/spec/job.h"

static struct arena *arena;
static struct diagnostics diags;
static const char folder[] = "build/tests/scratch";

/* A job file's name with this text in it. */
static const char *write_job(const char *text) {
  const char *path = arena_printf(arena, "%s/test_job.yaml", folder);
  if (system("mkdir -p build/tests/scratch") != 0) fail_msg("cannot make %s", folder);
  FILE *stream = fopen(path, "wb");
  assert_non_null(stream);
  fputs(text, stream);
  assert_int_equal(fclose(stream), 0);
  return path;
}

/* The job of a text with the overrides, KEY and VALUE in turn and NULL at the end. */
static struct job *read_job(const char *text, const char *const *settings) {
  struct job_override overrides[8];
  int count = 0;
  for (; settings != NULL && settings[2 * count] != NULL; count++)
    overrides[count] = (struct job_override){settings[2 * count], settings[2 * count + 1]};
  diags = diagnostics_in(arena);
  return job_read(arena, write_job(text), overrides, count, &diags);
}

static const char sketch[] = "# yaml-language-server: $schema=../../schemas/job.schema.json\n"
                             "model:\n"
                             "  source: ../models/gpt2.c\n"
                             "  config: {n_layer: 4, dropout: 0.5, tied: true, kind: \"deep\"}\n"
                             "data:\n"
                             "  train: {path: corpus.txt, format: bytes}\n"
                             "  batch_size: 12\n"
                             "precision: {mixed_precision: no}\n"
                             "optimizer: {name: adamw, lr: 6e-4, weight_decay: 0.1, clip_grad_norm: 1.0}\n"
                             "schedule: {name: cosine, warmup_steps: 1e2}\n"
                             "training: {steps: 2000}\n";

static void values(void **state) {
  const struct job *job = read_job(sketch, NULL);
  (void)state;
  assert_non_null(job);
  assert_string_equal(job->model.source, "build/tests/scratch/../models/gpt2.c");
  assert_null(job->model.weights);
  assert_int_equal(job->model.n_config, 4);
  assert_int_equal(job->model.config[0].kind, CONFIG_INT);
  assert_int_equal(job->model.config[0].integer, 4);
  assert_true(job->model.config[0].real == 4);
  assert_int_equal(job->model.config[1].kind, CONFIG_REAL);
  assert_true(job->model.config[1].real == 0.5);
  assert_int_equal(job->model.config[2].kind, CONFIG_BOOL);
  assert_int_equal(job->model.config[2].integer, 1);
  assert_int_equal(job->model.config[3].kind, CONFIG_STRING);
  assert_string_equal(job->model.config[3].string, "deep");
  assert_int_equal(job->model.config[1].name_where.column, 24);
  assert_int_equal(job->model.config[1].where.column, 33);
  assert_string_equal(job->data.train.parts[0].path, "corpus.txt");
  assert_int_equal(job->data.train.format, DATA_BYTES);
  assert_int_equal(job->data.batch_size, 12);
  assert_true(job->optimizer.lr == 6e-4);
  assert_int_equal(job->schedule.name, SCHEDULE_COSINE);
  assert_int_equal(job->schedule.warmup_steps, 100);
  assert_int_equal(job->training.steps, 2000);
}

static void defaults(void **state) {
  const struct job *job = read_job(sketch, NULL);
  (void)state;
  assert_int_equal(job->data.eval.n_parts, 0);
  assert_true(job->data.eval_fraction == 0.1);
  assert_true(job->data.shuffle);
  assert_int_equal(job->data.sequence_length, 0);
  assert_int_equal(job->accumulation.num_steps, 1);
  assert_int_equal(job->devices.kind, DEVICE_CPU);
  assert_int_equal(job->devices.threads, 0);
  assert_true(job->optimizer.numbers.beta1 == 0.9 && job->optimizer.numbers.beta2 == 0.999 &&
              job->optimizer.numbers.eps == 1e-8);
  assert_true(job->optimizer.numbers.momentum == 0 && job->schedule.min_lr == 0);
  assert_int_equal(job->training.seed, 1337);
  assert_int_equal(job->training.eval_interval, 0);
  assert_int_equal(job->training.eval_iters, 20);
  assert_string_equal(job->checkpoint.project_dir, "runs");
  assert_int_equal(job->checkpoint.every, 0);
  assert_int_equal(job->tracking.every, 10);
}

static void csv(void **state) {
  const struct job *job = read_job("model: {source: /m.c}\n"
                                   "data:\n"
                                   "  train: {path: a.csv, format: csv}\n"
                                   "  eval: {path: b.csv, format: csv}\n"
                                   "  batch_size: 2\n"
                                   "  features: 4\n"
                                   "  label: value\n"
                                   "  shuffle: false\n"
                                   "optimizer: {name: sgd, momentum: 0.9}\n"
                                   "training: {steps: 1, eval_interval: 1}\n",
                                   NULL);
  (void)state;
  assert_non_null(job);
  assert_string_equal(job->model.source, "/m.c");
  assert_int_equal(job->data.train.format, DATA_CSV);
  assert_string_equal(job->data.eval.parts[0].path, "b.csv");
  assert_true(job->data.eval_fraction == 0);
  assert_int_equal(job->data.n_inputs, 2);
  assert_int_equal(job->data.inputs[0].width, 4);
  assert_false(job->data.inputs[1].is_integer);
  assert_false(job->data.shuffle);
  assert_int_equal(job->optimizer.name, OPTIMIZER_SGD);
  assert_true(job->optimizer.numbers.momentum == 0.9 && job->optimizer.numbers.beta1 == 0);
}

static void groups(void **state) {
  const struct job *job = read_job("model: {source: m.c}\n"
                                   "data: {train: {path: t, format: bytes}, batch_size: 1}\n"
                                   "optimizer:\n"
                                   "  lr: 1e-3\n"
                                   "  weight_decay: 0.5\n"
                                   "  param_groups:\n"
                                   "    - {match: '*.bias', lr_scale: 0.25}\n"
                                   "    - {match: wte.weight, lr: 2e-3, weight_decay: 0}\n"
                                   "training: {steps: 1}\n",
                                   NULL);
  (void)state;
  assert_non_null(job);
  assert_int_equal(job->optimizer.n_groups, 2);
  assert_string_equal(job->optimizer.groups[0].match, "*.bias");
  assert_int_equal(job->optimizer.groups[0].where.line, 7);
  assert_true(job->optimizer.groups[0].numbers.lr_scale == 0.25 &&
              job->optimizer.groups[0].numbers.weight_decay == 0.5);
  assert_true(job->optimizer.groups[1].numbers.lr_scale == 2 && job->optimizer.groups[1].numbers.weight_decay == 0);
  assert_int_equal(read_job(sketch, NULL)->optimizer.n_groups, 0);
}

static void assert_place(const struct job *job, const char *key, int line, int column) {
  struct location where = job_where(job, key);
  if (where.line != line || where.column != column) fail_msg("%s is at %d:%d", key, where.line, where.column);
}

static void positions(void **state) {
  static const char *const settings[] = {"data.sequence_length", "8", NULL};
  const struct job *job = read_job(sketch, settings);
  (void)state;
  assert_non_null(job);
  assert_place(job, "data.batch_size", 7, 15);
  assert_place(job, "data.train.format", 6, 37);
  assert_place(job, "data", 5, 1);
  assert_place(job, "data.shuffle", 5, 1);
  assert_place(job, "optimizer.betas", 9, 1);
  assert_place(job, "checkpoint.every", 0, 0);
  assert_place(job, "data.eval.path", 5, 1);
  assert_place(job, "nonsense.key", 0, 0);
  assert_string_equal(job_where(job, "checkpoint.every").file, job->file);
  assert_string_equal(job_where(job, "data.sequence_length").file, "--set data.sequence_length=8");
}

/* An override replaces, makes groups, keeps to its own position where the group is an alias's, and wins by coming last.
 */
static void overrides(void **state) {
  static const char *const settings[] = {"optimizer",
                                         "{name: sgd, lr: 1}",
                                         "devices.threads",
                                         "3",
                                         "training.steps",
                                         "5",
                                         "training.steps",
                                         "6",
                                         "schedule.warmup_steps",
                                         "0",
                                         "optimizer.lr",
                                         "2",
                                         NULL};
  const struct job *job = read_job(sketch, settings);
  (void)state;
  assert_non_null(job);
  assert_int_equal(job->optimizer.name, OPTIMIZER_SGD);
  assert_true(job->optimizer.lr == 2);
  assert_int_equal(job->devices.threads, 3);
  assert_int_equal(job->training.steps, 6);
}

static void override_of_an_alias(void **state) {
  static const char *const settings[] = {"data.train.path", "other", NULL};
  const struct job *job = read_job("model: {source: m.c}\n"
                                   "data: {eval: &e {path: t, format: bytes}, train: *e, batch_size: 1}\n"
                                   "training: {steps: 1}\n",
                                   settings);
  (void)state;
  assert_non_null(job);
  assert_string_equal(job->data.train.parts[0].path, "other");
  assert_string_equal(job->data.eval.parts[0].path, "t");
}

static void bad_overrides(void **state) {
  static const char *const settings[][3] = {
      {"optimizer.lr", "fast", NULL},
      {"optimizer.lr", "", NULL},
      {"optimizer..lr", "1", NULL},
      {"", "1", NULL},
      {"optimizer.lr", "[1", NULL},
      {"optimizer.lr.x", "1", NULL},
      {"optimizr.lr", "1", NULL},
      {"optimizer", "1", NULL},
      {".", "1", NULL},
      {"optimizer.lr", "1\n---\n2", NULL},
      {"optimizer.lr", "\xff", NULL},
      {"data.train", "{path: x}", NULL},
      {"a\nb", "1", NULL},
  };
  (void)state;
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    if (read_job(sketch, settings[i]) != NULL || diags.errors == 0) fail_msg("%s passes", settings[i][0]);
    if (strncmp(diags.items[0].where.file, "--set ", 6) != 0) fail_msg("%s has no position", settings[i][0]);
  }
}

/* The resolved text is a job, and the same one. */
static void resolved(void **state) {
  static const char *const texts[] = {
      sketch,
      "model: {source: 'odd name: #1.c'}\ndata: {train: {path: '12', format: csv}, features: 3, batch_size: 1}\n"
      "optimizer: {name: sgd}\ntraining: {steps: 1}\n",
      "model: {source: m.c}\ndata: {train: {path: t, format: llmc}, eval: {path: u, format: nanogpt}, batch_size: 1}\n"
      "training: {steps: 1}\n",
      "model: {source: m.c}\ndata: {train: {path: t, format: bytes}, batch_size: 1}\ntraining: {steps: 1}\n"
      "optimizer: {param_groups: [{match: '*: {x}', lr_scale: 0}, {match: b, lr: 2e-3}, {match: c, weight_decay: 1}]}\n"
      "schedule: {name: wsd, stable_steps: 0, warmup_fraction: 0.5}\n"};
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const struct job *job = read_job(texts[i], NULL);
    assert_non_null(job);
    const char *text = job_resolved(arena, job);
    const struct job *again = read_job(text, NULL);
    if (again == NULL) fail_msg("not a job: %s", text);
    assert_string_equal(job_resolved(arena, again), text);
    assert_string_equal(again->digest, job->digest);
  }
}

/* Spelling makes no other job; a value does. */
static void digest(void **state) {
  static const char *const texts[] = {
      "model: {source: m.c}\ndata: {train: {path: t, format: bytes}, batch_size: 1}\ntraining: {steps: 100}\n",
      "# a comment\ntraining:\n  steps: 1e2\n  seed: 0x539\noptimizer: {lr: 0.0010, weight_decay: 1e-2, "
      "clip_grad_norm: -0.0}\n"
      "data: {batch_size: 0o1, train: &t {format: 'bytes', path: \"t\"}}\nmodel: {source: m.c}\n",
      "model: {source: m.c}\ndata: {train: {path: t, format: bytes}, batch_size: 1}\ntraining: {steps: 101}\n"};
  const char *digests[3];
  (void)state;
  for (int i = 0; i < 3; i++) {
    const struct job *job = read_job(texts[i], NULL);
    assert_non_null(job);
    digests[i] = job->digest;
  }
  assert_int_equal(strlen(digests[0]), 64);
  assert_string_equal(digests[0], digests[1]);
  assert_string_not_equal(digests[0], digests[2]);
}

static void no_file(void **state) {
  (void)state;
  diags = diagnostics_in(arena);
  assert_null(job_read(arena, "build/tests/scratch/none.yaml", NULL, 0, &diags));
  assert_int_equal(diags.errors, 1);
  assert_null(job_read(arena, "tests/spec", NULL, 0, &diags));
  assert_int_equal(diags.errors, 2);
}

static void help(void **state) {
  (void)state;
  assert_non_null(strstr(job_help(arena, ""), "optimizer"));
  assert_non_null(strstr(job_help(arena, "optimizer"), "lr: a number greater than 0; default 0.001"));
  assert_non_null(strstr(job_help(arena, "optimizer.lr"), "learning rate"));
  assert_non_null(strstr(job_help(arena, "data.train.path"), "required"));
  assert_null(job_help(arena, "optimizer.speed"));
  assert_null(job_help(arena, "nonsense"));
  assert_null(job_help(arena, "optimizer.lr.x"));
}

static const char *sha256(const char *text, int times) {
  char hex[65];
  struct sha256 sum = sha256_start();
  for (int i = 0; i < times; i++) sha256_add(&sum, text, strlen(text));
  sha256_hex(&sum, hex);
  return arena_string(arena, hex);
}

/* FIPS 180-4's examples, and lengths around a block's end. */
static void sha256_vectors(void **state) {
  (void)state;
  assert_string_equal(sha256("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  assert_string_equal(sha256("abc", 1), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  assert_string_equal(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1),
                      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  assert_string_equal(sha256("aaaaaaaaaa", 100000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static int start(void **state) {
  (void)state;
  arena = arena_new();
  return 0;
}

static int stop(void **state) {
  (void)state;
  arena_free(arena);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values),
      cmocka_unit_test(defaults),
      cmocka_unit_test(csv),
      cmocka_unit_test(groups),
      cmocka_unit_test(positions),
      cmocka_unit_test(overrides),
      cmocka_unit_test(override_of_an_alias),
      cmocka_unit_test(bad_overrides),
      cmocka_unit_test(resolved),
      cmocka_unit_test(digest),
      cmocka_unit_test(no_file),
      cmocka_unit_test(help),
      cmocka_unit_test(sha256_vectors),
  };
  return cmocka_run_group_tests_name("job", tests, start, stop);
}
