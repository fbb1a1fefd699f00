/* What goes in and out as text: flags, figures, the choice of a token. */
#include "cmocka_all.h"

#include "runtime/base/digits.h"
#include "runtime/generation/sampler.h"
#include "runtime/process/flags.h"
#include "runtime/report/log.h"
#include "runtime/tracking/bytes.h"
#include "runtime/tracking/sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text;
static int64_t count;
static uint64_t seed;
static double real;

static bool parse(struct problem *problem, const char *first, const char *second) {
  const struct flag flags[] = {
      {"--data", "FILE", "", FLAG_TEXT, 0, {.text = &text}}, {"--steps", "N", "", FLAG_COUNT, 1, {.count = &count}},
      {"--seed", "N", "", FLAG_SEED, 0, {.seed = &seed}},    {"--temperature", "T", "", FLAG_REAL, 0, {.real = &real}},
      {"--top-p", "P", "", FLAG_SHARE, 0, {.real = &real}},
  };
  char *argv[] = {"trainer", (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL};
  int argc = first == NULL ? 1 : second == NULL ? 2 : 3;
  return rt_flags_parse(flags, sizeof flags / sizeof *flags, argc, argv, problem);
}

static void good_flags(void **state) {
  struct problem problem;
  (void)state;
  assert_true(parse(&problem, NULL, NULL));
  assert_true(parse(&problem, "--data", "a=b") && strcmp(text, "a=b") == 0);
  assert_true(parse(&problem, "--data=c=d", "--steps=7") && strcmp(text, "c=d") == 0 && count == 7);
  assert_true(parse(&problem, "--seed", "18446744073709551615") && seed == UINT64_MAX);
  assert_true(parse(&problem, "--temperature", ".5") && real == 0.5);
  assert_true(parse(&problem, "--temperature", "0") && real == 0);
  assert_true(parse(&problem, "--temperature", "7") && real == 7);
  assert_true(parse(&problem, "--top-p", "1") && real == 1);
}

static void bad_flags(void **state) {
  static const char *const bad[][3] = {
      {"--step", "3", "unknown flag '--step'; did you mean '--steps'?"},
      {"--verson", NULL, "unknown flag '--verson'; did you mean '--version'?"},
      {"--learning-rate", "1", "unknown flag '--learning-rate'"},
      {"-h", NULL, "unknown flag '-h'"},
      {"corpus.txt", NULL, "unknown argument 'corpus.txt'"},
      {"--steps", NULL, "--steps needs a value: --steps N"},
      {"--steps", "0", "--steps must be a whole number, 1 or more, not '0'"},
      {"--steps", "-3", "--steps must be a whole number, 1 or more, not '-3'"},
      {"--steps", "3x", "--steps must be a whole number, 1 or more, not '3x'"},
      {"--steps", "", "--steps must be a whole number, 1 or more, not ''"},
      {"--steps", "99999999999999999999", "--steps must be a whole number, 1 or more, not '99999999999999999999'"},
      {"--seed", "-1", "--seed must be a whole number, not '-1'"},
      {"--temperature", "nan", "--temperature must be a number, 0 or more, not 'nan'"},
      {"--temperature", "1e999", "--temperature must be a number, 0 or more, not '1e999'"},
      {"--top-p", "7", "--top-p must be a number from 0 to 1, not '7'"},
      {"--top-p", "-1", "--top-p must be a number from 0 to 1, not '-1'"},
  };
  struct problem problem;
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_false(parse(&problem, bad[i][0], bad[i][1]));
    assert_string_equal(problem.what, bad[i][2]);
  }
}

static void digits(void **state) {
  char out[32];
  (void)state;
  static const struct {
    int64_t number;
    const char *text;
  } wanted[] = {{0, "0"}, {999, "999"}, {1000, "1,000"}, {-1234567, "-1,234,567"}, {-123, "-123"}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    rt_digits(out, sizeof out, wanted[i].number);
    assert_string_equal(out, wanted[i].text);
  }
  rt_digits(out, 6, 1234567); /* cut, not past the end */
  assert_true(strlen(out) < 6);
  rt_duration(out, sizeof out, 27.4);
  assert_string_equal(out, "27 s");
  rt_duration(out, sizeof out, 300);
  assert_string_equal(out, "5 min");
}

static const char *metrics_of(const struct figures *figures) {
  static char out[512];
  struct scalars scalars = {0};
  struct bytes line = {0};
  assert_true(rt_scalars_of(&scalars, figures));
  rt_jsonl_line(&line, figures->step, &scalars);
  snprintf(out, sizeof out, "%.*s", (int)line.count, (const char *)line.data);
  rt_bytes_free(&line);
  rt_scalars_free(&scalars);
  return out;
}

static void metrics(void **state) {
  struct figures figures = {.step = 10,
                            .loss = 4.8125,
                            .lr = 6e-5,
                            .grad_norm = INFINITY,
                            .tokens_per_s = 55310.04,
                            .step_ms = 13.9,
                            .first_step_s = 0.25,
                            .weights_s = 0.125};
  (void)state;
  assert_string_equal(metrics_of(&figures),
                      "{\"step\": 10, \"loss\": 4.8125, \"lr\": 6e-05, \"grad_norm\": null, \"tokens_per_s\": "
                      "55310.0, \"step_ms\": 13.9000, \"input_wait_ms\": 0.0000, \"start_to_first_step_s\": 0.250, "
                      "\"weights_s\": 0.1250}\n");
  figures.has_eval = true;
  figures.eval_loss = 1.5;
  figures.first_step_s = -1;
  assert_string_equal(metrics_of(&figures),
                      "{\"step\": 10, \"loss\": 4.8125, \"eval_loss\": 1.5, \"lr\": 6e-05, \"grad_norm\": null, "
                      "\"tokens_per_s\": 55310.0, \"step_ms\": 13.9000, \"input_wait_ms\": 0.0000}\n");
}

/* What a line for people says of numbers that are none, whatever their sign. */
static void nan_without_sign(void **state) {
  struct extras extras = {0};
  struct log log = {.has_header = true};
  struct figures figures = {
      .step = 3, .loss = -NAN, .has_eval = true, .eval_loss = NAN, .grad_norm = -NAN, .extras = &extras};
  char *text = NULL;
  size_t length = 0;
  FILE *own = stdout;
  (void)state;
  assert_true(rt_extras_set(&extras, "noise", -NAN, true));
  stdout = open_memstream(&text, &length);
  rt_log_line(&log, &figures);
  fclose(stdout);
  stdout = own;
  assert_non_null(strstr(text, "       3       nan       nan  0.0e+00      nan "));
  assert_non_null(strstr(text, "noise       nan\n"));
  free(text);
  rt_extras_free(&extras);
}

static void extras_wait_for_a_line(void **state) {
  struct extras extras = {0};
  struct figures figures = {.step = 1, .first_step_s = -1, .extras = &extras};
  double value = 0;
  (void)state;
  assert_true(rt_extras_set(&extras, "a \"name\"\n", 0.5, true));
  assert_true(rt_extras_set(&extras, "b", 2, false) && rt_extras_set(&extras, "b", INFINITY, false));
  assert_true(rt_extras_find(&extras, "b", &value) && isinf(value));
  assert_string_equal(
      metrics_of(&figures),
      "{\"step\": 1, \"loss\": 0, \"a \\\"name\\\"\\u000a\": 0.5, \"b\": null, "
      "\"lr\": 0, \"grad_norm\": 0, \"tokens_per_s\": 0.0, \"step_ms\": 0.0000, \"input_wait_ms\": 0.0000}\n");
  rt_extras_logged(&extras);
  assert_false(rt_extras_find(&extras, "b", &value));
  assert_true(rt_extras_set(&extras, "b", 3, false) && rt_extras_find(&extras, "b", &value) && value == 3);
  rt_extras_free(&extras);
}

/* Frequencies over many draws, against the softmax. */
static void sampling_follows_the_softmax(void **state) {
  enum { N = 100000 };
  static const float logits[] = {0, 1, -INFINITY, 2, 0.5f};
  int drawn[5] = {0};
  double total = 0;
  float scratch[5];
  struct sampler sampler = {.temperature = 0.7, .seed = 3};
  (void)state;
  for (uint64_t i = 0; i < N; i++) drawn[rt_sample(&sampler, logits, 5, i, scratch)]++;
  for (int i = 0; i < 5; i++) total += exp(logits[i] / 0.7);
  for (int i = 0; i < 5; i++) assert_true(fabs(drawn[i] / (double)N - exp(logits[i] / 0.7) / total) < 0.005);
}

static void top_k_keeps_the_largest(void **state) {
  float logits[257], scratch[257];
  (void)state;
  for (int i = 0; i < 257; i++) logits[i] = (float)(i * 101 % 257) * 0.01f; /* each of 0 … 2.56 once */
  for (int64_t k = 1; k <= 257; k += k < 10 ? 1 : 19) {
    struct sampler sampler = {.temperature = 100, .top_k = k, .seed = 1};
    for (uint64_t i = 0; i < 500; i++) {
      int64_t token = rt_sample(&sampler, logits, 257, i, scratch);
      assert_true(logits[token] > (float)(257 - k - 1) * 0.01f + 0.005f);
    }
  }
}

static void special_logits(void **state) {
  float scratch[3];
  struct sampler greedy = {.temperature = 0}, warm = {.temperature = 1};
  (void)state;
  assert_int_equal(rt_sample(&greedy, (float[]){1, 3, 3}, 3, 0, scratch), 1);
  assert_int_equal(rt_sample(&warm, (float[]){1, NAN, 3}, 3, 0, scratch), -1);
  assert_int_equal(rt_sample(&warm, (float[]){1, INFINITY, 3}, 3, 0, scratch), 1);
  assert_int_equal(rt_sample(&warm, (float[]){-1e30f, 1e30f, 0}, 3, 0, scratch), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_flags),
      cmocka_unit_test(bad_flags),
      cmocka_unit_test(digits),
      cmocka_unit_test(metrics),
      cmocka_unit_test(nan_without_sign),
      cmocka_unit_test(extras_wait_for_a_line),
      cmocka_unit_test(sampling_follows_the_softmax),
      cmocka_unit_test(top_k_keeps_the_largest),
      cmocka_unit_test(special_logits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
