/* A checkpoint of which any byte has changed, or which was cut anywhere, is refused, with the file and the position. */
#include "cmocka_all.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/files/folders.h"
#include "runtime/files/mapping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char base[] = "/tmp/accel-damage-XXXXXX", folder[64];
static float weights[40], moments[40];
static uint64_t random_state;

static const struct accel_tensor tensors[] = {
    {"first.weight", 0, 2, {4, 6}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
    {"second.weight", 24 * sizeof(float), 1, {16}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
};
static const struct accel_state states[] = {
    {"model", "", ACCEL_FLOAT32, 0, 40, NULL, 0},
    {"optimizer", "exp_avg", ACCEL_FLOAT32, 0, 40, NULL, 0},
};
static const struct accel_key keys[] = {{"optimizer.lr", "0.001", true}, {"training.seed", "7", false}};
static const struct accel_program program = {.job_digest = "0123",
                                             .generator = "accel-gen",
                                             .seed = 7,
                                             .tensors = tensors,
                                             .n_tensors = 2,
                                             .states = states,
                                             .n_states = 2,
                                             .keys = keys,
                                             .n_keys = 2,
                                             .checkpoint.max_shard_bytes = 100};

static unsigned drawn(unsigned below) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(random_state >> 33) % below;
}

static void put(const char *path, const uint8_t *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

/* The first and the last byte of those that a message names; false when it names none. */
static bool named_bytes(const char *what, unsigned long *first, unsigned long *last) {
  const char *at = strstr(what, "among bytes ");
  return at != NULL && sscanf(at, "among bytes %lu to %lu", first, last) == 2;
}

static void refused(const char *path, const char *how, size_t at) {
  struct manifest manifest;
  struct problem problem;
  unsigned long first, last;
  if (rt_checkpoint_verify(folder, &manifest, NULL, &problem)) fail_msg("%s: accepted with byte %zu %s", path, at, how);
  if (strncmp(problem.what, path, strlen(path)) != 0 || strstr(problem.what, "byte") == NULL)
    fail_msg("%s: byte %zu %s: %s", path, at, how, problem.what);
  if (strcmp(how, "changed") == 0 && named_bytes(problem.what, &first, &last) && (at < first || at > last))
    fail_msg("%s: byte %zu changed: %s", path, at, problem.what);
}

static void damage(const char *name) {
  char path[400];
  struct mapping mapping;
  struct problem problem;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_true(rt_map(&mapping, path, "", &problem));
  size_t size = mapping.size;
  uint8_t *bytes = malloc(size + 1);
  assert_non_null(bytes);
  memcpy(bytes, mapping.bytes, size);
  rt_unmap(&mapping);
  for (size_t at = 0; at < size; at++) {
    uint8_t was = bytes[at];
    bytes[at] ^= (uint8_t)(1u << drawn(8));
    put(path, bytes, size);
    refused(path, "changed", at);
    bytes[at] = was;
    put(path, bytes, at);
    refused(path, "cut", at);
  }
  bytes[size] = ' ';
  put(path, bytes, size + 1);
  refused(path, "added", size);
  put(path, bytes, size);
  free(bytes);
}

static void every_byte(void **state) {
  struct problem problem;
  struct manifest manifest;
  char *arrays[] = {(char *)weights, (char *)moments};
  const struct checkpoint what = {.step = 12, .epoch = 1, .index = 8, .lr = 0.001};
  (void)state;
  for (int i = 0; i < 40; i++) weights[i] = (float)i / 7, moments[i] = (float)i * 3;
  assert_true(rt_checkpoint_begin(folder, &problem));
  assert_true(rt_checkpoint_write(folder, &program, arrays, &what, &problem));
  assert_true(rt_checkpoint_verify(folder, &manifest, NULL, &problem));
  assert_int_equal(manifest.count, 3 + 3 + 4); /* two shards and an index, twice; scheduler, sampler, random, job */
  for (int i = 0; i < manifest.count; i++) damage(manifest.files[i].name);
  damage("manifest.json");
  rt_manifest_free(&manifest);
  assert_true(rt_checkpoint_verify(folder, &manifest, NULL, &problem)); /* all is back in its position */
  rt_manifest_free(&manifest);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_byte)};
  const char *seed = getenv("SEED");
  if (mkdtemp(base) == NULL) return 1;
  random_state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)getpid();
  printf("# seed %llu\n", (unsigned long long)random_state);
  snprintf(folder, sizeof folder, "%s/checkpoint_0", base);
  int failed = cmocka_run_group_tests_name("damage", tests, NULL, NULL);
  struct problem problem;
  rt_folder_remove(folder, &problem);
  rmdir(base);
  return failed;
}
