/* Safetensors: round trips, conversions, names, and a file for everything that a header can get wrong. */
#include "cmocka_all.h"

#include "runtime/base/half.h"
#include "runtime/files/mapping.h"
#include "runtime/weights/safetensors.h"
#include "runtime/weights/weights.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/accel-safetensors-XXXXXX";
static char path[128];
static struct problem problem;

/* Two tensors with a gap between them, listed against the order of their positions. */
static const struct accel_tensor tensors[] = {
    {"h.0.b", 64, 1, {3}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
    {"wte \"q\"", 0, 2, {2, 5}, ACCEL_ZEROS, 0, 0, ACCEL_FLOAT32},
};
static const struct accel_state model = {.file = "model", .name = ""};
static const struct accel_program program = {
    .tensors = tensors, .n_tensors = 2, .states = &model, .n_states = 1, .seed = 1};

static void write_bytes(const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

/* Header and `data_size` bytes of data (0, 1, 2 …). */
static size_t make(uint8_t *out, const char *header, size_t data_size) {
  uint64_t length = strlen(header);
  memcpy(out, &length, 8);
  memcpy(out + 8, header, length);
  for (size_t i = 0; i < data_size; i++) out[8 + length + i] = (uint8_t)i;
  return 8 + length + data_size;
}

static bool read_made(const char *header, size_t data_size) {
  uint8_t bytes[4096];
  struct safetensors file;
  size_t size = make(bytes, header, data_size);
  uint8_t *exact = malloc(size); /* so that a sanitizer sees a byte too far */
  memcpy(exact, bytes, size);
  bool read = rt_safetensors_read(&file, "m.st", exact, size, &problem);
  if (read) rt_safetensors_free(&file);
  free(exact);
  return read;
}

static void round_trip(void **state) {
  float weights[32], again[32] = {0};
  char *arrays[] = {(char *)weights};
  struct tensor_list list;
  struct mapping mapping;
  struct safetensors file;
  (void)state;
  for (int i = 0; i < 32; i++) weights[i] = (float)i + 0.25f;
  assert_true(rt_tensors_of_state(&list, &program, "model", arrays, &problem));
  assert_true(rt_safetensors_write(path, BY_RENAME, list.items, list.count, NULL, NULL, &problem));
  rt_tensors_free(&list);
  assert_true(rt_map(&mapping, path, "", &problem));
  assert_true(rt_safetensors_read(&file, path, mapping.bytes, mapping.size, &problem));
  assert_int_equal(file.count, 2);
  assert_string_equal(file.tensors[0].name, "wte \"q\"");
  assert_int_equal((file.tensors[0].bytes - mapping.bytes) % 8, 0);
  assert_int_equal(file.tensors[1].rank, 1);
  assert_int_equal(file.tensors[1].shape[0], 3);
  rt_safetensors_free(&file);
  rt_unmap(&mapping);
  assert_true(rt_weights_load(&program, path, again, &problem));
  assert_memory_equal(again, weights, 10 * sizeof(float));
  assert_memory_equal(again + 16, weights + 16, 3 * sizeof(float));
  assert_true(again[10] == 0 && again[19] == 0); /* nothing between and after the tensors is touched */
}

/* The names after "transformer.", one tensor as float16, one as bfloat16, and one that the model has not, which the
 * job must allow. */
static void conversions_and_prefix(void **state) {
  uint8_t bytes[1024];
  float weights[32] = {0};
  (void)state;
  size_t size = make(bytes,
                     "{\"transformer.wte \\\"q\\\"\":{\"dtype\":\"F16\",\"shape\":[2,5],\"data_offsets\":[0,20]},"
                     "\"transformer.h.0.b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[20,26]},"
                     "\"lm_head.weight\":{\"dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[26,27]}}",
                     27);
  uint16_t one_half = 0x3800, minus_two = 0xc000;
  memcpy(bytes + size - 27, &one_half, 2);
  memcpy(bytes + size - 7, &minus_two, 2);
  write_bytes(bytes, size);
  assert_false(rt_weights_load(&program, path, weights, &problem));
  assert_non_null(strstr(problem.what, "tensors that this model does not have: lm_head.weight"));
  assert_true(weights[0] == 0);
  struct accel_program lenient = program;
  lenient.start = (struct accel_start_file){.ignored = (const char *const[]){"lm_head.*"}, .n_ignored = 1};
  assert_true(rt_weights_load(&lenient, path, weights, &problem));
  assert_true(weights[0] == 0.5f && weights[16] == -2.0f);
}

static void halves(void **state) {
  (void)state;
  assert_true(rt_widen_float16(0x3c00) == 1 && rt_widen_float16(0xc000) == -2);
  assert_true(rt_widen_float16(0x0001) == 0x1p-24f && rt_widen_float16(0x83ff) == -1023 * 0x1p-24f);
  assert_true(rt_widen_float16(0x7bff) == 65504 && isinf(rt_widen_float16(0x7c00)) && isnan(rt_widen_float16(0x7e00)));
  assert_true(signbit(rt_widen_float16(0x8000)) && rt_widen_float16(0x8000) == 0);
  assert_true(rt_widen_bfloat16(0x3f80) == 1 && isinf(rt_widen_bfloat16(0xff80)));
}

static void mismatches(void **state) {
  float weights[32] = {0};
  uint8_t bytes[1024];
  static const struct {
    const char *header, *what;
  } bad[] = {
      {"{\"wte\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
       "no tensor for the parameters h.0.b, wte \"q\""},
      {"{\"wte \\\"q\\\"\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
       "no tensor for the parameters h.0.b"},
      {"{\"wte \\\"q\\\"\":{\"dtype\":\"I8\",\"shape\":[5],\"data_offsets\":[0,5]},"
       "\"h.0.b\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[5,8]}}",
       "tensor 'h.0.b' is of codes (I8), the model's is of floats"},
      {"{\"wte \\\"q\\\"\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[0,2]},"
       "\"h.0.b\":{\"dtype\":\"I16\",\"shape\":[3],\"data_offsets\":[2,8]}}",
       "tensor 'h.0.b' is of dtype I16; F32, F16 and BF16 are read"},
      {"{\"wte \\\"q\\\"\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
       "\"h.0.b\":{\"dtype\":\"F32\",\"shape\":[1, 1],\"data_offsets\":[4,8]}}",
       "tensor 'h.0.b' has the shape [1, 1], the model's is [3]"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char what[256];
    write_bytes(bytes, make(bytes, bad[i].header, 8));
    assert_false(rt_weights_load(&program, path, weights, &problem));
    snprintf(what, sizeof what, "%s: %s", path, bad[i].what);
    assert_string_equal(problem.what, what);
    for (int k = 0; k < 32; k++) assert_true(weights[k] == 0);
  }
}

#define TENSOR(rest) "{\"a\":{\"dtype\":\"F32\"," rest "}}"

static void good_headers(void **state) {
  (void)state;
  assert_true(read_made("{}", 0));
  assert_true(read_made("{\"__metadata__\":{\"format\":\"pt\"}}   ", 0));
  assert_true(read_made(TENSOR("\"shape\":[],\"data_offsets\":[0,4]"), 4));
  assert_true(read_made(TENSOR("\"shape\":[0,9223372036854775807],\"data_offsets\":[0,0]"), 0));
}

static void bad_headers(void **state) {
  static const struct {
    const char *header;
    size_t data;
    const char *what;
  } bad[] = {
      {"", 0, "m.st: byte 8: the header is not JSON: '[' or '{' expected near end of file"},
      {"[]", 0, "m.st: byte 8: the header is not a JSON object"},
      {"{\"a\":", 0, "m.st: byte 13: the header is not JSON: unexpected token near end of file"},
      {"{\"a\":1}", 0, "m.st: tensor 'a': dtype '(missing)' is not known"},
      {"{\"a\":{\"dtype\":\"F33\"}}", 0, "m.st: tensor 'a': dtype 'F33' is not known"},
      {TENSOR("\"data_offsets\":[0,4]"), 4, "m.st: tensor 'a': the shape must be a list of at most 8 numbers"},
      {TENSOR("\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]"), 4,
       "m.st: tensor 'a': the shape must be a list of at most 8 numbers"},
      {TENSOR("\"shape\":[-1],\"data_offsets\":[0,4]"), 4, "m.st: tensor 'a': dimension 0 of the shape is impossible"},
      {TENSOR("\"shape\":[1.0],\"data_offsets\":[0,4]"), 4, "m.st: tensor 'a': dimension 0 of the shape is impossible"},
      {TENSOR("\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]"), 0,
       "m.st: tensor 'a': dimension 1 of the shape is impossible"},
      {TENSOR("\"shape\":[1],\"data_offsets\":[0]"), 4, "m.st: tensor 'a': data_offsets must be two whole numbers"},
      {TENSOR("\"shape\":[1]"), 4, "m.st: tensor 'a': data_offsets must be two whole numbers"},
      {TENSOR("\"shape\":[1],\"data_offsets\":[0,8]"), 4,
       "m.st: tensor 'a': bytes 0 to 8 are outside the file's data of 4"},
      {TENSOR("\"shape\":[1],\"data_offsets\":[4,0]"), 4,
       "m.st: tensor 'a': bytes 4 to 0 are outside the file's data of 4"},
      {TENSOR("\"shape\":[1],\"data_offsets\":[-4,0]"), 4,
       "m.st: tensor 'a': bytes -4 to 0 are outside the file's data of 4"},
      {TENSOR("\"shape\":[2],\"data_offsets\":[0,4]"), 4, "m.st: tensor 'a': 4 bytes, but its shape and dtype take 8"},
      {TENSOR("\"shape\":[1],\"data_offsets\":[4,8]"), 8,
       "m.st: tensor 'a': begins at byte 4 of the data, where 0 was expected (a hole)"},
      {TENSOR("\"shape\":[1],\"data_offsets\":[0,4]"), 6, "m.st: 6 bytes of data, but its tensors take 4"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
       "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
       12, "m.st: tensor 'b': begins at byte 4 of the data, where 8 was expected (an overlap)"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
       "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
       4, "m.st: byte 65: the header is not JSON: duplicate object key near '\"a\"'"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_false(read_made(bad[i].header, bad[i].data));
    assert_string_equal(problem.what, bad[i].what);
    assert_true(problem.help[0] != '\0');
  }
}

/* Every cut of a good file is refused, and so is every length that the first bytes could claim. */
static void truncations(void **state) {
  uint8_t bytes[256];
  struct safetensors file;
  (void)state;
  size_t size = make(bytes, TENSOR("\"shape\":[1],\"data_offsets\":[0,4]"), 4);
  assert_true(rt_safetensors_read(&file, "m.st", bytes, size, &problem));
  rt_safetensors_free(&file);
  for (size_t cut = 0; cut < size; cut++) {
    uint8_t *exact = malloc(cut + 1);
    memcpy(exact, bytes, cut);
    assert_false(rt_safetensors_read(&file, "m.st", exact, cut, &problem));
    free(exact);
  }
  for (int bit = 0; bit < 64; bit++) {
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    assert_false(rt_safetensors_read(&file, "m.st", bytes, size, &problem));
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
}

static int set_up(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(path, sizeof path, "%s/m.safetensors", folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder); /* fails when anything else was left */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(round_trip),  cmocka_unit_test(conversions_and_prefix), cmocka_unit_test(halves),
      cmocka_unit_test(mismatches),  cmocka_unit_test(good_headers),           cmocka_unit_test(bad_headers),
      cmocka_unit_test(truncations),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
