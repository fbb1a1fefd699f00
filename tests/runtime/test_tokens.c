/* Token files: what is found in their bytes, and the messages for damaged ones. */
#include "cmocka_all.h"

#include "runtime/data/tokens.h"

#include <string.h>

static struct problem problem;
static struct tokens tokens;

static bool check(int64_t vocabulary) {
  return rt_tokens_need_no_check(&tokens, vocabulary) ||
         rt_tokens_check(&tokens, 0, tokens.count, "t.bin", vocabulary, &problem);
}

static bool find(enum accel_format format, const void *bytes, size_t size) {
  return rt_tokens_find(&tokens, format, "t.bin", bytes, size, &problem);
}

/* An llm.c file of `count` tokens 10, 11, …; returns its size. */
static size_t make_llmc(uint8_t out[2048], uint32_t magic, uint32_t version, int32_t count) {
  memset(out, 0, 2048);
  memcpy(out, &magic, 4);
  memcpy(out + 4, &version, 4);
  memcpy(out + 8, &count, 4);
  for (int32_t i = 0; i < count; i++) out[1024 + 2 * i] = (uint8_t)(10 + i);
  return 1024 + 2 * (size_t)count;
}

static void bytes_are_tokens(void **state) {
  int32_t out[3];
  (void)state;
  assert_true(find(ACCEL_BYTES,
                   "a\xff"
                   "c",
                   3));
  assert_int_equal(tokens.count, 3);
  assert_int_equal(rt_tokens_copy(&tokens, 1, 2, out), 255);
  assert_true(out[0] == 255 && out[1] == 'c');
  assert_true(check(256));
  assert_false(check(255));
  assert_string_equal(problem.what, "t.bin: byte 1: token 255 is not below the model's vocabulary of 255");
}

static void nanogpt(void **state) {
  static const uint8_t bytes[] = {1, 0, 0x51, 0xc3, 0xff, 0xff};
  int32_t out[3];
  (void)state;
  assert_true(find(ACCEL_NANOGPT, bytes, sizeof bytes));
  assert_int_equal(tokens.count, 3);
  assert_int_equal(rt_tokens_copy(&tokens, 0, 3, out), 65535);
  assert_true(out[0] == 1 && out[1] == 50001 && out[2] == 65535);
  assert_true(check(0));
  assert_false(check(50001));
  assert_string_equal(problem.what, "t.bin: byte 2: token 50001 is not below the model's vocabulary of 50001");
  assert_false(find(ACCEL_NANOGPT, bytes, 5));
  assert_string_equal(problem.what, "t.bin: byte 4: half a token at the end of a list of uint16");
}

static void llmc(void **state) {
  uint8_t bytes[2048];
  int32_t out[4];
  (void)state;
  size_t size = make_llmc(bytes, 20240520, 1, 4);
  assert_true(find(ACCEL_LLMC, bytes, size));
  assert_int_equal(tokens.count, 4);
  assert_int_equal(rt_tokens_copy(&tokens, 0, 4, out), 13);
  assert_false(check(12));
  assert_string_equal(problem.what, "t.bin: byte 1028: token 12 is not below the model's vocabulary of 12");
}

static void damaged_llmc(void **state) {
  uint8_t bytes[2048];
  (void)state;
  size_t size = make_llmc(bytes, 20240520, 1, 4);
  assert_false(find(ACCEL_LLMC, bytes, size - 1));
  assert_string_equal(problem.what, "t.bin: byte 8: the header says 4 tokens (8 bytes), but 7 bytes follow it");
  assert_false(find(ACCEL_LLMC, bytes, size + 2));
  assert_false(find(ACCEL_LLMC, bytes, 1023));
  assert_string_equal(problem.what, "t.bin: 1023 bytes are too few for llm.c's header of 1024");
  assert_false(find(ACCEL_LLMC, bytes, 0));
  make_llmc(bytes, 20240521, 1, 4);
  assert_false(find(ACCEL_LLMC, bytes, size));
  assert_string_equal(problem.what, "t.bin: byte 0: magic 20240521 instead of llm.c's 20240520 or 20240801");
  make_llmc(bytes, 20240520, 2, 4);
  assert_false(find(ACCEL_LLMC, bytes, size));
  assert_string_equal(problem.what, "t.bin: byte 4: version 2 of llm.c's format; 1 is read");
  make_llmc(bytes, 20240520, 1, -4);
  assert_false(find(ACCEL_LLMC, bytes, size));
}

/* Llama 3's kind. A token above what int32 holds is no negative number. */
static void wide_llmc(void **state) {
  static const uint32_t held[] = {7, 128255, 0x80000000u};
  uint8_t bytes[2048];
  int32_t out[3];
  (void)state;
  make_llmc(bytes, 20240801, 7, 3);
  memcpy(bytes + 1024, held, sizeof held);
  assert_true(find(ACCEL_LLMC, bytes, 1024 + sizeof held));
  assert_int_equal(tokens.count, 3);
  assert_int_equal(rt_tokens_copy(&tokens, 0, 2, out), 128255);
  assert_true(out[0] == 7 && out[1] == 128255);
  assert_true(rt_tokens_copy(&tokens, 2, 1, out) == 0x80000000);
  assert_true(rt_tokens_check(&tokens, 0, 2, "t.bin", 128256, &problem));
  assert_false(check(128256));
  assert_string_equal(problem.what, "t.bin: byte 1032: token 2147483648 is not below the model's vocabulary of 128256");
  assert_false(find(ACCEL_LLMC, bytes, 1024 + sizeof held - 2));
}

/* A header of the project's own format alone, with so many tokens and documents. */
static bool find_own(uint64_t count, uint64_t documents) {
  uint8_t bytes[64] = "ACCELTOK";
  bytes[8] = 1, bytes[12] = 2;
  memcpy(bytes + 16, &count, 8);
  memcpy(bytes + 40, &documents, 8);
  return find(ACCEL_TOKENS, bytes, sizeof bytes);
}

/* What no file can hold is no empty file. tests/commands/test_data.py has the others. */
static void impossible_counts(void **state) {
  (void)state;
  assert_true(find_own(0, 0));
  assert_int_equal(tokens.count, 0);
  assert_false(find_own(1, 0));
  assert_false(find_own(0, 1));
  assert_false(find_own(UINT64_MAX, 0));
  assert_false(find_own((uint64_t)1 << 63, 0));
  assert_false(find_own((uint64_t)1 << 56, (uint64_t)1 << 61));
  assert_non_null(strstr(problem.what, "t.bin: byte 16: the header says 72057594037927936 tokens of 2 bytes"));
}

/* A file of eight bytes as tokens, with spans of what is trained on. */
static bool find_marked(const uint64_t *ends, uint64_t spans, uint64_t trained) {
  uint64_t count = 8;
  static uint8_t bytes[256];
  memset(bytes, 0, sizeof bytes);
  memcpy(bytes, "ACCELTOK", 8);
  bytes[8] = 2, bytes[12] = 1;
  memcpy(bytes + 16, &count, 8);
  memcpy(bytes + 48, &spans, 8);
  memcpy(bytes + 56, &trained, 8);
  for (uint8_t i = 0; i < 8; i++) bytes[64 + i] = i;
  if (spans <= 8) memcpy(bytes + 72, ends, 16 * spans);
  return find(ACCEL_TOKENS, bytes, 72 + (spans <= 8 ? 16 * spans : 0));
}

static void targets_that_are_trained_on(void **state) {
  static const uint64_t ends[] = {1, 3, 4, 8};
  static const int32_t wanted[] = {-1, 1, 2, -1, 4, 5, 6, 7};
  int32_t out[8];
  (void)state;
  assert_true(find_marked(ends, 2, 6));
  assert_int_equal(tokens.trained, 6);
  for (int64_t first = 0; first < 8; first++)
    for (int64_t count = 1; first + count <= 8; count++) {
      rt_tokens_copy(&tokens, first, count, out);
      rt_tokens_leave_out(&tokens, first, count, -1, out);
      assert_memory_equal(out, wanted + first, (size_t)count * sizeof *out);
    }
  assert_true(find_marked(ends, 0, 0)); /* none is */
  rt_tokens_leave_out(&tokens, 0, 8, -1, out);
  for (int i = 0; i < 8; i++) assert_int_equal(out[i], -1);
}

static void damaged_spans(void **state) {
  static const uint64_t empty[] = {1, 1}, touching[] = {1, 3, 3, 4}, backward[] = {4, 5, 1, 2}, outside[] = {1, 9},
                        huge[] = {1, UINT64_MAX};
  (void)state;
  assert_false(find_marked(empty, 1, 0));
  assert_string_equal(problem.what, "t.bin: span 0 of trained tokens is 1 to 1, out of order");
  assert_false(find_marked(touching, 2, 3));
  assert_string_equal(problem.what, "t.bin: span 1 of trained tokens is 3 to 4, out of order");
  assert_false(find_marked(backward, 2, 2));
  assert_false(find_marked(outside, 1, 8));
  assert_false(find_marked(huge, 1, UINT64_MAX - 1));
  assert_false(find_marked(empty, UINT64_MAX, 0));
  assert_false(find_marked(empty, (uint64_t)1 << 60, 0));
  static const uint64_t good[] = {1, 3};
  assert_false(find_marked(good, 1, 3));
  assert_string_equal(problem.what, "t.bin: byte 56: 3 trained tokens, but the spans have 2");
}

static void llmc_taken_for_nanogpt(void **state) {
  uint8_t bytes[2048];
  (void)state;
  size_t size = make_llmc(bytes, 20240520, 1, 4);
  assert_false(find(ACCEL_NANOGPT, bytes, size));
  assert_string_equal(problem.what, "t.bin: byte 0: this is llm.c's token format, read as nanoGPT's");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bytes_are_tokens),
                                     cmocka_unit_test(nanogpt),
                                     cmocka_unit_test(llmc),
                                     cmocka_unit_test(damaged_llmc),
                                     cmocka_unit_test(wide_llmc),
                                     cmocka_unit_test(impossible_counts),
                                     cmocka_unit_test(llmc_taken_for_nanogpt),
                                     cmocka_unit_test(targets_that_are_trained_on),
                                     cmocka_unit_test(damaged_spans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
