/* A checkpoint's manifest and the sum that it holds: published values, round trips, and what is refused. */
#include "cmocka_all.h"

#include "runtime/files/checksum.h"
#include "runtime/files/manifest.h"
#include "runtime/files/mapping.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/accel-manifest-XXXXXX";
static struct problem problem;

/* From the test vectors that implementations of XXH64 share. */
static void published_sums(void **state) {
  static const struct {
    const char *text;
    uint64_t sum;
  } known[] = {
      {"", 0xef46db3751d8e999u},
      {"a", 0xd24ec4f1a98c6e5bu},
      {"abc", 0x44bc2cf5ad770999u},
      {"Call me Ishmael. Some years ago--never mind how long precisely-", 0x02a2e85470d6fd96u},
  };
  (void)state;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    assert_true(rt_checksum(known[i].text, strlen(known[i].text)) == known[i].sum);
}

/* In pieces of any size, as at once. */
static void sums_of_pieces(void **state) {
  uint8_t bytes[257];
  (void)state;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 37);
  for (size_t size = 0; size <= sizeof bytes; size += 13) {
    for (size_t piece = 1; piece < 70; piece++) {
      struct checksum sum = rt_checksum_start();
      for (size_t at = 0; at < size; at += piece)
        rt_checksum_add(&sum, bytes + at, size - at < piece ? size - at : piece);
      assert_true(rt_checksum_end(&sum) == rt_checksum(bytes, size));
    }
  }
}

static void round_trip(void **state) {
  struct manifest written = {.step = 123456789012}, read;
  struct mapping mapping;
  char path[64];
  (void)state;
  for (int i = 0; i < 40; i++) {
    char name[16];
    snprintf(name, sizeof name, "file_%d", i);
    assert_true(rt_manifest_add(&written, name,
                                (struct file_sum){.size = (uint64_t)i << 40,
                                                  .xxh64 = 0xfedcba9876543210u + (unsigned)i,
                                                  .marks = {.count = 2, .sums = {7, (uint64_t)i}}},
                                &problem));
  }
  assert_true(rt_manifest_write(&written, folder, "manifest.json", IN_PLACE, "accel-gen", "job", &problem));
  snprintf(path, sizeof path, "%s/manifest.json", folder);
  assert_true(rt_map(&mapping, path, "", &problem));
  assert_true(rt_manifest_read(&read, path, (const char *)mapping.bytes, mapping.size, &problem));
  assert_true(read.step == written.step && read.count == written.count);
  for (int i = 0; i < read.count; i++) {
    const struct manifest_file *found = rt_manifest_find(&read, written.files[i].name);
    assert_non_null(found);
    assert_memory_equal(&found->sum, &written.files[i].sum, sizeof found->sum);
  }
  assert_null(rt_manifest_find(&read, "file_40"));
  rt_unmap(&mapping);
  rt_manifest_free(&read);
  rt_manifest_free(&written);
  unlink(path);
}

/* The first byte that changes is found among the bytes that are named, which are few. */
static void located_changes(void **state) {
  enum { MOST = 300000 };
  static uint8_t bytes[MOST];
  (void)state;
  for (size_t i = 0; i < MOST; i++) bytes[i] = (uint8_t)(i * 37 + i / 251);
  for (size_t size = 1; size < MOST; size = size * 3 + 5) {
    struct prefix_checksums checksums = rt_prefix_checksums_start();
    for (size_t at = 0; at < size; at += 777)
      rt_prefix_checksums_add(&checksums, bytes + at, size - at < 777 ? size - at : 777);
    assert_true(rt_checksum_end(&checksums.checksum) == rt_checksum(bytes, size));
    for (size_t at = 0; at < size; at += 1 + size / 97) {
      uint64_t first, end;
      bytes[at] ^= 4;
      rt_prefix_checksums_locate(&checksums.marks, bytes, size, &first, &end);
      assert_true(first <= at && at < end && end <= size && end - first <= (size < 8192 ? 256 : size / 16));
      bytes[at] ^= 4;
    }
  }
}

/* A manifest without its last brace, with the sum that closes it. */
static void summed(char *out, size_t size, const char *text) {
  size_t length = strlen(text);
  snprintf(out, size, "%s", text);
  if (length < 2 || text[length - 1] != '}') return;
  length--;
  snprintf(out + length, size - length, ",\n  \"manifest\": \"%016" PRIx64 "\"\n}\n", rt_checksum(text, length));
}

static void refusals(void **state) {
#define HEAD "{\"format\": \"accel-gen checkpoint\", \"version\": 2, \"step\": 3, \"files\": {"
#define SUM "\"marks\": \"\", \"xxh64\": \"0123456789abcdef\"}"
  static const char *const bad[] = {
      "",
      "{",
      "{\"format\": \"other\"}",
      "{\"format\": \"accel-gen checkpoint\", \"version\": 1, \"step\": 3}",
      "{\"format\": \"accel-gen checkpoint\", \"version\": 2, \"step\": -3}",
      "{\"format\": \"accel-gen checkpoint\", \"version\": 2, \"step\": \"3\"}",
      HEAD "\"a\": {\"size\": -1, " SUM "}}",
      HEAD "\"a\": {\"size\": 1.5, " SUM "}}",
      HEAD "\"a\": {\"size\": 1, \"marks\": \"\", \"xxh64\": \"0123\"}}}",
      HEAD "\"a\": {\"size\": 1, \"marks\": \"\", \"xxh64\": \"0123456789ABCDEF\"}}}",
      HEAD "\"a\": {\"size\": 1, \"marks\": \"0\", \"xxh64\": \"0123456789abcdef\"}}}",
      HEAD "\"a\": {\"size\": 1, \"marks\": \"0123456789abcdefg123456789abcdef\", \"xxh64\": \"0123456789abcdef\"}}}",
      HEAD "\"a\": 3}}",
      HEAD "\"../a\": {\"size\": 1, " SUM "}}",
      HEAD "\"..\": {\"size\": 1, " SUM "}}",
      HEAD "\"\": {\"size\": 1, " SUM "}}",
      HEAD "\"a\": {\"size\": 1, " SUM ", \"a\": {\"size\": 1, " SUM "}}",
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct manifest manifest;
    char text[1024];
    summed(text, sizeof text, bad[i]);
    if (rt_manifest_read(&manifest, "m.json", text, strlen(text), &problem)) fail_msg("accepted: %s", text);
    assert_non_null(strstr(problem.what, "m.json"));
    assert_null(strstr(problem.what, "have changed"));
    if (strstr(problem.what, "not JSON") != NULL) continue;
    text[strlen(text) - 6] ^= 1; /* of the sum */
    assert_false(rt_manifest_read(&manifest, "m.json", text, strlen(text), &problem));
    assert_non_null(strstr(problem.what, "have changed"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(published_sums),  cmocka_unit_test(sums_of_pieces), cmocka_unit_test(round_trip),
      cmocka_unit_test(located_changes), cmocka_unit_test(refusals),
  };
  if (mkdtemp(folder) == NULL) return 1;
  int failed = cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
  rmdir(folder);
  return failed;
}
