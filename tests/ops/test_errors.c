/* What a person reads who calls a function of accel/model.h with shapes that do not fit: one sentence that names the
 * operands with their shapes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ops/fixture.h"

/* Letters say the arguments: s scope, t tensor, k tokens, i integer, r real; the shapes and numbers follow in order. */
struct bad_call {
  const char *function, *kinds;
  struct shape shapes[5]; /* one more than a call has, as below */
  double numbers[6];
  const char *message;
};

#define S(...)                                                                                                         \
  {                                                                                                                    \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {                                                              \
      __VA_ARGS__                                                                                                      \
    }                                                                                                                  \
  }

#define CONVOLUTION(NAME)                                                                                              \
  NAME ": stride, dilation and groups must be at least 1, padding at least 0, and output padding below the stride"

static const struct bad_call calls[] = {
    {"add", "tt", {S(3, 4), S(5)}, {0}, "add: a [3][4] and b [5] do not broadcast"},
    {"add",
     "tk",
     {S(3), S(3)},
     {0},
     "add: b ('in0') [3] is int32, where float32 is needed; write cast_float(...) around it"},
    {"mul", "tt", {S(2, 3), S(3, 2)}, {0}, "mul: a [2][3] and b [3][2] do not broadcast"},
    {"gelu",
     "k",
     {S(3)},
     {0},
     "gelu: x ('in0') [3] is int32, where float32 is needed; write cast_float(...) around it"},
    {"where", "ttt", {S(3), S(3), S(4)}, {0}, "where: condition [3] and b [4] do not broadcast"},
    {"gather", "tik", {S(3, 4), S(2, 4)}, {1}, "gather: x [3][4] and index ('in0') [2][4] differ in more than axis 1"},
    {"gather", "tit", {S(3, 4), S(2, 4)}, {0}, "gather: index [2][4] is float32, where int32 is needed"},
    {"scatter_add", "tiki", {S(3), S(3)}, {0, 0}, "scatter_add: the result's extent must be at least 1, not 0"},
    {"index_add", "tki", {S(3, 4), S(3)}, {0}, "index_add: the number of rows must be at least 1, not 0"},
    {"index_add",
     "tki",
     {S(3, 4), S(2)},
     {5},
     "embedding_backward: dy [3][4] and tokens ('in0') [2] differ before the last dimension"},
    {"sparse_matmul",
     "kktti",
     {S(5), S(4), S(5), S(3, 2)},
     {2},
     "sparse_matmul: columns ('in1') [4] must be [5], one for each element, as the rows"},
    {"sparse_matmul",
     "kktti",
     {S(5), S(5), S(5), S(3, 2)},
     {0},
     "sparse_matmul: the number of rows must be at least 1, not 0"},
    {"random_int_of", "iii", {{0}}, {0, 1, 3}, "random_int: the bound must be from 1 to 2147483647, not 0"},
    {"flip", "ti", {S(3)}, {1}, "flip: axis 1 is out of range for [3], which has 1 dimension"},
    {"cumsum", "ti", {S(3)}, {1}, "cumsum: axis 1 is out of range for [3], which has 1 dimension"},
    {"pad", "tiii", {S(3)}, {0, -1, 2}, "pad: -1 and 2 positions; slice takes positions away"},
    {"cast_index",
     "ti",
     {S(3)},
     {1 << 25},
     "cast_index: the numbers must be below 1 to 16777216, which float32 holds exactly, not 33554432; larger ones can "
     "come as the tokens of a token file"},
    {"cast_target",
     "tii",
     {S(3)},
     {3, 1 << 25},
     "cast_target: the number to ignore must be within -16777216 and 16777216, not 33554432"},
    {"one_hot", "ki", {S(3)}, {0}, "one_hot: 0 classes of tokens [3]"},
    {"attention_bias",
     "tttt",
     {S(1, 2, 3, 4), S(1, 2, 5, 4), S(1, 2, 6, 4)},
     {0},
     "attention_bias: q [1][2][3][4], k [1][2][5][4] and v [1][2][6][4] must be [batch][heads][positions][d], q's "
     "heads a "
     "multiple of k's"},
    {"padding_bias", "t", {S(3)}, {0}, "padding_bias: the mask [3] must be [batch][keys]"},
    {"lstm", "stii", {S(3, 4)}, {2, 0}, "lstm: x [3][4] must be [batch][steps][columns], and the width 2 at least 1"},
    {"matmul", "tt", {S(3, 4), S(5, 2)}, {0}, "matmul: a [3][4] and b [5][2]: a has 4 columns but b has 5 rows"},
    {"matmul", "tt", {S(4), S(4, 2)}, {0}, "matmul: a [4] has 1 dimension, where at least 2 are needed"},
    {"matmul",
     "tt",
     {S(2, 3, 4), S(3, 4, 2)},
     {0},
     "matmul: a [2][3][4] and b [3][4][2]: the dimensions before the last two differ"},
    {"matmul",
     "tt",
     {S(3, 4), S(2, 4, 2)},
     {0},
     "matmul: a [3][4] and b [2][4][2]: the dimensions before the last two differ"},
    {"matmul_transposed",
     "tt",
     {S(3, 4), S(5, 3)},
     {0},
     "matmul_transposed: a [3][4] and b [5][3] must have the same number of columns"},
    {"conv2d", "stiiii", {S(3, 4, 5)}, {2, 3, 1, 1}, "conv2d: x [3][4][5] must be [batch][channels][height][width]"},
    {"conv1d", "stiiii", {S(2, 3, 9)}, {4, 3, 0, 1}, CONVOLUTION("conv1d")},
    {"conv2d",
     "stiiii",
     {S(1, 2, 3, 3)},
     {4, 5, 1, 0},
     "convolution: weight [4][2][5][5] is wider than x [1][2][3][3] with its padding"},
    {"convolve2d",
     "ttiiii",
     {S(1, 4, 6, 6), S(3, 2, 3, 3)},
     {1, 0, 1, 1},
     "convolution: x [1][4][6][6] must have 2 channels for weight [3][2][3][3] in 1 group"},
    {"convolve2d",
     "ttiiii",
     {S(1, 4, 6, 6), S(3, 4, 3)},
     {1, 0, 1, 1},
     "convolve2d: the weight [3][4][3] must have as many dimensions as x [1][4][6][6]"},
    {"linear", "sti", {S(3, 4)}, {0}, "linear: out must be at least 1, not 0"},
    {"linear",
     "ski",
     {S(3, 4)},
     {2},
     "linear: x [3][4] is int32, where float32 is needed; write cast_float(...) around it"},
    {"linear", "sti", {{0}}, {2}, "linear: x [] must have at least one dimension"},
    {"embedding", "stii", {S(3)}, {7, 5}, "embedding: tokens [3] is float32, where int32 is needed"},
    {"embedding", "skii", {S(3)}, {0, 5}, "embedding: vocabulary 0 and width 5 must be at least 1"},
    {"layer_norm", "st", {{0}}, {0}, "layer_norm: x [] has 0 dimensions, where at least 1 is needed"},
    {"rms_norm",
     "sk",
     {S(2, 3)},
     {0},
     "rms_norm: x ('in0') [2][3] is int32, where float32 is needed; write cast_float(...) around it"},
    {"softmax", "t", {{0}}, {0}, "softmax: x [] has 0 dimensions, where at least 1 is needed"},
    {"attention",
     "ttti",
     {S(2, 3, 4), S(2, 3, 4), S(2, 3, 4)},
     {1},
     "attention: q [2][3][4] must have 4 dimensions: [batch][heads][positions][columns]"},
    {"attention",
     "ttti",
     {S(1, 2, 3, 4), S(1, 3, 3, 4), S(1, 3, 3, 4)},
     {1},
     "attention: q [1][2][3][4] and k [1][3][3][4] may differ in positions, and in heads where k's divide q's"},
    {"attention",
     "ttti",
     {S(1, 2, 3, 4), S(1, 2, 5, 4), S(1, 2, 3, 4)},
     {1},
     "attention: v [1][2][3][4] must be [1][2][5][4], like k"},
    {"attention_window",
     "ttti",
     {S(1, 2, 3, 4), S(1, 2, 3, 4), S(1, 2, 3, 4)},
     {0},
     "attention_window: a window must hold at least 1 key, not 0"},
    {"attention_window",
     "ttti",
     {S(1, 2, 5, 4), S(1, 2, 3, 4), S(1, 2, 3, 4)},
     {2},
     "attention: q [1][2][5][4] and k [1][2][3][4] must have the same positions, where a window is moved along them"},
    {"attention_capped",
     "tttirr",
     {S(1, 2, 3, 4), S(1, 2, 3, 4), S(1, 2, 3, 4)},
     {0, 1, 1},
     "attention_capped: a window must hold at least 1 key, not 0"},
    {"attention_capped",
     "tttirr",
     {S(1, 2, 3, 4), S(1, 2, 3, 4), S(1, 2, 3, 4)},
     {2, 1, 0},
     "attention_capped: scores are capped at a number above 0, not 0"},
    {"rotary",
     "ttt",
     {S(1, 2, 3, 4), S(3, 3), S(3, 3)},
     {0},
     "rotary: cos [3][3] must be [positions][angles] of x [1][2][3][4], with at most one angle for two columns"},
    {"top_k_mask", "ti", {S(2, 3)}, {4}, "top_k_mask: the 4 largest of the last dimension of x [2][3]"},
    {"table_of", "irr", {{0}}, {3, 1, 2}, "table_of: 3 numbers of an array that has 2"},
    {"cross_entropy",
     "tk",
     {S(3, 4), S(4)},
     {0},
     "cross_entropy: targets ('in0') [4] must be [3], one for each row of logits [3][4]"},
    {"cross_entropy", "tt", {S(3, 4), S(3)}, {0}, "cross_entropy: targets [3] is float32, where int32 is needed"},
    {"cross_entropy_smooth",
     "tkr",
     {S(3, 4), S(3)},
     {1.5},
     "cross_entropy: label smoothing must be within 0 and 1, not 1.5"},
    {"mse_loss", "tt", {S(3, 1), S(3)}, {0}, "mse_loss: [3][1] and [3] must have one shape"},
    {"huber_loss", "ttr", {S(3), S(3)}, {0}, "huber_loss: where the square becomes a line must be above 0, not 0"},
    {"kl_div", "tt", {S(3, 4), S(4)}, {0}, "kl_div: [3][4] and [4] must have one shape"},
    {"binary_cross_entropy_with_logits",
     "tt",
     {S(3, 1), S(3)},
     {0},
     "bce_with_logits: targets [3] must be [3][1], one for each logit"},
    {"binary_cross_entropy_with_logits_weighted",
     "ttt",
     {S(3), S(3), S(2, 3)},
     {0},
     "binary_cross_entropy_with_logits_weighted: the weight [2][3] must broadcast to the logits' [3]"},
    {"clip_loss", "t", {S(3, 4)}, {0}, "clip_loss: similarities [3][4] must be square, of each row with each"},
    {"normalize", "t", {{0}}, {0}, "normalize: a scalar has no rows"},
    {"clamp", "trr", {S(3)}, {2, 1}, "clamp: the lower bound 2 is above the upper bound 1"},
    {"arange", "i", {{0}}, {0}, "arange: the count must be at least 1, not 0"},
    {"sum", "ti", {S(3, 4)}, {2}, "sum: axis 2 is out of range for [3][4], which has 2 dimensions"},
    {"mean", "ti", {S(3)}, {-2}, "mean: axis -2 is out of range for [3], which has 1 dimension"},
    {"reshape_to", "tiii", {S(3, 4)}, {2, 5, 2}, "reshape: x [3][4] has 12 elements, [5][2] has 10"},
    {"reshape_to",
     "tiii",
     {S(3, 4)},
     {2, 5, -1},
     "reshape: x [3][4] has 12 elements, which the other extents (5) do not divide"},
    {"reshape_to", "tiii", {S(3, 4)}, {2, -1, -1}, "reshape: only one extent can be -1"},
    {"reshape_to",
     "tiii",
     {S(3, 4)},
     {2, 12, 0},
     "reshape: an extent must be at least 1, or -1 for what is left, not 0"},
    {"reshape_to", "tiir", {S(3, 4)}, {2, 12, 1}, "reshape: an extent must be an integer"},
    {"reshape_to", "tii", {S(3, 4)}, {2, 12}, "reshape: 2 extents announced but 1 given"},
    {"constant_of", "rii", {{0}}, {1, 1, -1}, "constant: an extent must be at least 1, not -1"},
    {"constant_of", "riiii", {{0}}, {1, 3, 1 << 20, 1 << 20, 3}, "constant: more than 2^40 elements"},
    {"transpose", "tii", {S(3, 4)}, {0, 2}, "transpose: axis 2 is out of range for [3][4], which has 2 dimensions"},
    {"split", "tiii", {S(3, 4)}, {1, 3, 0}, "split: 3 parts do not divide axis 1 of [3][4]"},
    {"split", "tiii", {S(3, 4)}, {1, 2, 2}, "split: part 2 of 2; parts count from 0"},
    {"slice", "tiii", {S(3, 4)}, {1, 2, 3}, "slice: x [3][4] has no positions 2 to 4 along axis 1"},
    {"concat_of",
     "iitt",
     {S(3, 4), S(3, 5)},
     {0, 2},
     "concat: operand 1 [3][4] and operand 2 [3][5] differ in more than axis 0"},
    {"concat_of", "iit", {S(3, 4)}, {0, 2}, "concat: 2 tensors announced but 1 given"},
    {"dropout", "tr", {S(3)}, {1}, "dropout: the probability must be at least 0 and below 1, not 1"},
    {"dropout", "tr", {S(3)}, {-0.1}, "dropout: the probability must be at least 0 and below 1, not -0.1"},
};

static void push_argument(struct fixture *fixture, char kind, struct shape shape, double number) {
  switch (kind) {
  case 's':
    fixture_scope(fixture);
    break;
  case 't':
    fixture_tensor(fixture, shape, AROUND_ZERO);
    break;
  case 'k':
    fixture_tokens(fixture, shape, 1);
    break;
  case 'i':
    fixture_int(fixture, (int64_t)number);
    break;
  default:
    fixture_real(fixture, number);
    break;
  }
}

static void check_call(void **state) {
  const struct bad_call *bad = *state;
  struct fixture *fixture = fixture_new(1);
  int shape = 0, number = 0;
  for (const char *kind = bad->kinds; *kind != '\0'; kind++) {
    push_argument(fixture, *kind, bad->shapes[shape], bad->numbers[number]);
    if (*kind == 't' || *kind == 'k') shape++;
    if (*kind == 'i' || *kind == 'r') number++;
  }
  assert_null(fixture_call(fixture, bad->function));
  assert_int_equal(fixture->diags.errors, 1);
  assert_string_equal(fixture->diags.items[0].message, bad->message);
  fixture_free(fixture);
}

/* A sum of products that its spec or its operands do not allow. */
static void sums_of_products(void **state) {
  (void)state;
  static const struct {
    const char *spec, *message;
  } bad[] = {
      {"ij", "einsum: \"ij\": it must have one part for each of 2 operands"},
      {"ij,jk,kl", "einsum: \"ij,jk,kl\": it must have one part for each of 2 operands"},
      {"ijk,jk", "einsum: \"ijk,jk\": operand 1 has 3 labels, and 2 dimensions: [3][4]"},
      {"ij,jk->im", "einsum: \"ij,jk->im\": no operand has the result's m"},
      {"ij,jk->ii", "einsum: \"ij,jk->ii\": the result has i twice"},
      {"ij,ik", "einsum: \"ij,ik\": i is 4 in [4][5] but 3 elsewhere"},
      {"i2,jk", "einsum: \"i2,jk\": '2' is not a label; labels are letters and one ... an operand"},
      {"ijk...,jk", "einsum: \"ijk...,jk\": a term has more labels than its tensor dimensions"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    struct fixture *fixture = fixture_new(1);
    fixture_string(fixture, bad[i].spec);
    fixture_int(fixture, 2);
    fixture_tensor(fixture, (struct shape){2, {3, 4}}, AROUND_ZERO);
    fixture_tensor(fixture, (struct shape){2, {4, 5}}, AROUND_ZERO);
    assert_null(fixture_call(fixture, "einsum_of"));
    assert_int_equal(fixture->diags.errors, 1);
    assert_string_equal(fixture->diags.items[0].message, bad[i].message);
    fixture_free(fixture);
  }
}

/* What is known of an index when the model is read is checked then. */
static void known_indices_are_checked(void **state) {
  (void)state;
  struct fixture *fixture = fixture_new(1);
  fixture_int(fixture, 5);
  struct value *index = fixture_call(fixture, "arange");
  fixture->count = 0;
  fixture_tensor(fixture, (struct shape){2, {4, 3}}, AROUND_ZERO);
  fixture->arguments[fixture->count++] = (struct argument){.kind = ARGUMENT_TENSOR, .tensor = index};
  assert_null(fixture_call(fixture, "take"));
  assert_string_equal(fixture->diags.items[0].message,
                      "embedding: the index is 4 at one position, where it must be within 0 and 3");
  fixture_free(fixture);
}

/* An argument that went wrong before (NULL) makes no second error. */
static void errors_are_reported_once(void **state) {
  (void)state;
  static const char *const functions[] = {"add",      "matmul", "gelu",      "softmax",   "layer_norm", "sum_all",
                                          "mse_loss", "kl_div", "clip_loss", "normalize", "log_softmax"};
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    struct fixture *fixture = fixture_new(1);
    if (strcmp(functions[i], "layer_norm") == 0) fixture_scope(fixture);
    for (int k = 0; k < 2; k++) fixture->arguments[fixture->count++] = (struct argument){.kind = ARGUMENT_TENSOR};
    assert_null(fixture_call(fixture, functions[i]));
    assert_int_equal(fixture->diags.errors, 0);
    fixture_free(fixture);
  }
}

enum { CALLS = sizeof calls / sizeof calls[0] };

int main(void) {
  struct CMUnitTest tests[CALLS + 3] = {cmocka_unit_test(errors_are_reported_once),
                                        cmocka_unit_test(known_indices_are_checked),
                                        cmocka_unit_test(sums_of_products)};
  for (int i = 0; i < CALLS; i++)
    tests[i + 3] =
        (struct CMUnitTest){.name = calls[i].message, .test_func = check_call, .initial_state = (void *)&calls[i]};
  return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
