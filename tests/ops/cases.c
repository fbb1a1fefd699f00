#include "tests/ops/cases.h"

/* ---- Elements ---- */

static void one_in(struct fixture *fixture, enum range range) {
  fixture_tensor(fixture, fixture_shape(fixture, (int)fixture_random(fixture, 4), MOST), range);
}

static void any(struct fixture *fixture) {
  one_in(fixture, AROUND_ZERO);
}

static void positive(struct fixture *fixture) {
  one_in(fixture, POSITIVE);
}

static void away(struct fixture *fixture) {
  one_in(fixture, AWAY_FROM_ZERO);
}

static void positive_and_number(struct fixture *fixture) {
  positive(fixture);
  fixture_real(fixture, 1.7);
}

static void any_and_number(struct fixture *fixture) {
  any(fixture);
  fixture_real(fixture, -1.75);
}

/* `shape` with some extents set to 1 and some leading dimensions dropped, so that it broadcasts to it. */
static struct shape narrower(struct fixture *fixture, struct shape shape) {
  struct shape result = {0};
  for (int i = (int)fixture_random(fixture, shape.rank + 1); i < shape.rank; i++)
    result.dim[result.rank++] = fixture_random(fixture, 3) == 0 ? 1 : shape.dim[i];
  return result;
}

static void pair_in(struct fixture *fixture, enum range first, enum range second) {
  struct shape whole = fixture_shape(fixture, (int)fixture_random(fixture, 4), MOST), part = narrower(fixture, whole);
  int64_t order = fixture_random(fixture, 3); /* either side, or neither, is narrower */
  fixture_tensor(fixture, order == 0 ? part : whole, first);
  fixture_tensor(fixture, order == 1 ? part : whole, second);
}

static void pair(struct fixture *fixture) {
  pair_in(fixture, AROUND_ZERO, AROUND_ZERO);
}

static void quotient(struct fixture *fixture) {
  pair_in(fixture, AROUND_ZERO, POSITIVE);
}

static void comb(struct fixture *fixture) {
  pair_in(fixture, COMB_A, COMB_B);
}

/* Both on one comb, so that many are equal: there the gradient is shared, and central differences say so too. */
static void ties(struct fixture *fixture) {
  pair_in(fixture, COMB_A, COMB_A);
}

/* The condition is of whole numbers, 0 among them. */
static void chosen(struct fixture *fixture) {
  struct shape shape = fixture_shape(fixture, (int)fixture_random(fixture, 4), MOST);
  struct fixture_tensor *condition = fixture_fixed(fixture, shape);
  for (int64_t i = 0; i < shape_count(shape); i++) condition->elements[i] = (double)(fixture_random(fixture, 3) - 1);
  fixture_tensor(fixture, narrower(fixture, shape), AROUND_ZERO);
  fixture_tensor(fixture, shape, AROUND_ZERO);
}

static void clamped(struct fixture *fixture) {
  one_in(fixture, AWAY_FROM_ZERO);
  fixture_real(fixture, 0);
  fixture_real(fixture, 2); /* the other bound is out of reach */
}

/* ---- Losses ---- */

/* Two tensors of one shape of at least `least` dimensions. */
static void twins(struct fixture *fixture, int least, enum range first, enum range second) {
  struct shape shape = fixture_shape(fixture, least + (int)fixture_random(fixture, 4 - least), MOST);
  fixture_tensor(fixture, shape, first);
  fixture_tensor(fixture, shape, second);
}

static void errors(struct fixture *fixture) {
  twins(fixture, 0, AROUND_ZERO, AROUND_ZERO);
}

/* No difference is 0. */
static void errors_off_zero(struct fixture *fixture) {
  twins(fixture, 0, COMB_A, COMB_B);
}

/* Differences are multiples of 0.2 and 0.1 more, delta is none of them. */
static void errors_and_delta(struct fixture *fixture) {
  errors_off_zero(fixture);
  fixture_real(fixture, 0.6);
}

static void probabilities(struct fixture *fixture) {
  twins(fixture, 0, AROUND_ZERO, POSITIVE);
}

static void weighted(struct fixture *fixture) {
  twins(fixture, 1, AROUND_ZERO, POSITIVE);
  struct shape shape = fixture->parameters.items[0].shape;
  fixture_tensor(fixture, (struct shape){1, {shape.dim[shape.rank - 1]}}, POSITIVE);
}

static void row_away(struct fixture *fixture) {
  fixture_tensor(fixture, fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST), AWAY_FROM_ZERO);
}

static void row_pairs(struct fixture *fixture) {
  twins(fixture, 1, AWAY_FROM_ZERO, AWAY_FROM_ZERO);
}

static void square_matrix(struct fixture *fixture) {
  int64_t n = fixture_extent(fixture);
  fixture_tensor(fixture, (struct shape){2, {n, n}}, AROUND_ZERO);
}

static void triplets(struct fixture *fixture) {
  struct shape shape = fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST);
  for (int i = 0; i < 3; i++) fixture_tensor(fixture, shape, AROUND_ZERO);
  fixture_real(fixture, 0.37);
}

/* ---- Matmuls ---- */

/* The leading dimensions of a, `rows` and `columns` after them. */
static struct shape matrix(struct shape leading, int64_t rows, int64_t columns) {
  leading.dim[leading.rank++] = rows;
  leading.dim[leading.rank++] = columns;
  return leading;
}

static void factors(struct fixture *fixture, bool transposed) {
  struct shape leading = fixture_shape(fixture, (int)fixture_random(fixture, 3), 9), none = {0};
  int64_t m = fixture_extent(fixture), k = fixture_extent(fixture), n = fixture_extent(fixture);
  struct shape of_b = fixture_random(fixture, 2) == 0 ? none : leading;
  fixture_tensor(fixture, matrix(leading, m, k), AROUND_ZERO);
  fixture_tensor(fixture, transposed ? matrix(of_b, n, k) : matrix(of_b, k, n), AROUND_ZERO);
}

static void matmul(struct fixture *fixture) {
  factors(fixture, false);
}

static void matmul_transposed(struct fixture *fixture) {
  factors(fixture, true);
}

static void layer(struct fixture *fixture) {
  fixture_scope(fixture);
  fixture_tensor(fixture, fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST), AROUND_ZERO);
  fixture_int(fixture, fixture_extent(fixture));
}

static void attention_of(struct fixture *fixture, int64_t causal) {
  struct shape q = fixture_shape(fixture, 4, 300), k = q;
  k.dim[2] = fixture_extent(fixture);
  fixture_tensor(fixture, q, AROUND_ZERO);
  fixture_tensor(fixture, k, AROUND_ZERO);
  fixture_tensor(fixture, k, AROUND_ZERO);
  fixture_int(fixture, causal);
}

static void attention_full(struct fixture *fixture) {
  attention_of(fixture, 0);
}

static void attention_causal(struct fixture *fixture) {
  attention_of(fixture, 1);
}

/* Two heads of queries for each of keys. */
static void attention_grouped(struct fixture *fixture) {
  struct shape q = fixture_shape(fixture, 4, 300), k = q;
  q.dim[1] *= 2;
  fixture_tensor(fixture, q, AROUND_ZERO);
  fixture_tensor(fixture, k, AROUND_ZERO);
  fixture_tensor(fixture, k, AROUND_ZERO);
}

static void attention_grouped_causal(struct fixture *fixture) {
  attention_grouped(fixture);
  fixture_int(fixture, 1);
  fixture_real(fixture, 0.7);
}

static void attention_windowed(struct fixture *fixture) {
  attention_grouped(fixture);
  fixture_int(fixture, 1 + fixture_random(fixture, 6));
}

static void attention_capped(struct fixture *fixture) {
  attention_windowed(fixture);
  fixture_real(fixture, 0.7);
  fixture_real(fixture, 0.9);
}

/* The bias is one for all heads of a batch. */
static void attention_biased(struct fixture *fixture) {
  attention_grouped(fixture);
  struct shape q = fixture->parameters.items[0].shape, k = fixture->parameters.items[1].shape;
  fixture_tensor(fixture, shape_of(4, q.dim[0], (int64_t)1, q.dim[2], k.dim[2]), AROUND_ZERO);
}

/* One bias for all samples, as that of distances is. */
static void attention_biased_scaled(struct fixture *fixture) {
  attention_grouped(fixture);
  struct shape q = fixture->parameters.items[0].shape, k = fixture->parameters.items[1].shape;
  fixture_tensor(fixture, shape_of(3, q.dim[1], q.dim[2], k.dim[2]), AROUND_ZERO);
  fixture_int(fixture, 1);
  fixture_real(fixture, 0.7);
}

/* Every position may see from any one before it on, as if documents lay one in the other. */
static void attention_packed(struct fixture *fixture) {
  attention_grouped(fixture);
  struct shape q = fixture->parameters.items[0].shape;
  fixture_tokens(fixture, shape_of(2, q.dim[0], q.dim[2]), 1);
  double *starts = fixture->inputs.items[0].elements;
  for (int64_t i = 0; i < q.dim[0] * q.dim[2]; i++) starts[i] = (double)fixture_random(fixture, i % q.dim[2] + 1);
}

/* Angles are no parameters: they come as cosine and sine of numbers of the model. */
static void rotated(struct fixture *fixture) {
  struct shape x = fixture_shape(fixture, 4, MOST);
  int64_t angles = 1 + fixture_random(fixture, 3);
  x.dim[3] = 2 * angles + fixture_random(fixture, 3);
  fixture_tensor(fixture, x, AROUND_ZERO);
  fixture_fixed(fixture, shape_of(2, x.dim[2], angles));
  fixture_fixed(fixture, shape_of(2, x.dim[2], angles));
}

/* ---- Rows ---- */

static void rows(struct fixture *fixture) {
  fixture_tensor(fixture, fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST), AROUND_ZERO);
}

static void norm(struct fixture *fixture) {
  fixture_scope(fixture);
  rows(fixture);
}

/* With one column, y is nearly the sign of x: off zero, where differences say something. */
static void norm_away(struct fixture *fixture) {
  fixture_scope(fixture);
  fixture_tensor(fixture, fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST), AWAY_FROM_ZERO);
}

static void norm_eps(struct fixture *fixture) {
  norm(fixture);
  fixture_real(fixture, 0.01);
}

static void lookup_rows(struct fixture *fixture) {
  int64_t vocabulary = fixture_extent(fixture);
  fixture_scope(fixture);
  fixture_tokens(fixture, fixture_shape(fixture, (int)fixture_random(fixture, 3), 60), vocabulary);
  fixture_int(fixture, vocabulary);
  fixture_int(fixture, fixture_extent(fixture));
}

static void classes(struct fixture *fixture) {
  struct shape logits = fixture_shape(fixture, 1 + (int)fixture_random(fixture, 3), MOST), targets = logits;
  targets.rank--;
  fixture_tensor(fixture, logits, AROUND_ZERO);
  fixture_tokens(fixture, targets, logits.dim[logits.rank - 1]);
}

/* Class 0 does not count; the first position's target is another one where there is one, so that something counts. */
static void classes_ignoring(struct fixture *fixture) {
  struct shape logits = {2, {fixture_extent(fixture), 3 + 2 * fixture_random(fixture, 3)}};
  fixture_tensor(fixture, logits, AROUND_ZERO);
  fixture_tokens(fixture, (struct shape){1, {logits.dim[0]}}, logits.dim[1]);
  fixture->inputs.items[0].elements[0] = 1;
  fixture_int(fixture, 0);
}

static void classes_smooth(struct fixture *fixture) {
  classes(fixture);
  fixture_real(fixture, 0.1);
}

static void classes_with_all(struct fixture *fixture) {
  classes_ignoring(fixture);
  fixture_real(fixture, 0.2);
  fixture_real(fixture, 0.03);
}

const struct op_case op_cases[] = {
    {"neg", any},
    {"square", any},
    {"sqrt_of", positive},
    {"rsqrt_of", positive},
    {"exp_of", any},
    {"log_of", positive},
    {"sin_of", any},
    {"cos_of", any},
    {"tanh_of", any},
    {"sigmoid", any},
    {"relu", away},
    {"silu", any},
    {"gelu", any},
    {"gelu_tanh", any},
    {"abs_of", away},
    {"pow_of", positive_and_number},
    {"where", chosen},
    {"clamp", clamped},
    {"softplus", any},
    {"scale", any_and_number},
    {"shift", any_and_number},
    {"add", pair},
    {"sub", pair},
    {"mul", pair},
    {"divide", quotient},
    {"maximum", comb},
    {"maximum", ties},
    {"minimum", comb},
    {"minimum", ties},
    {"matmul", matmul},
    {"matmul_transposed", matmul_transposed},
    {"linear", layer},
    {"linear_no_bias", layer},
    {"linear_transposed", layer},
    {"attention", attention_full},
    {"attention", attention_causal},
    {"attention_scaled", attention_grouped_causal},
    {"attention_window", attention_windowed},
    {"attention_capped", attention_capped},
    {"attention_bias", attention_biased},
    {"attention_bias_scaled", attention_biased_scaled},
    {"attention_documents", attention_packed},
    {"rotary", rotated},
    {"rotary_interleaved", rotated},
    {"softmax", rows},
    {"layer_norm", norm},
    {"layer_norm_no_bias", norm},
    {"layer_norm_eps", norm_eps},
    {"rms_norm", norm_away},
    {"rms_norm_eps", norm_eps},
    {"embedding", lookup_rows},
    {"cross_entropy", classes},
    {"cross_entropy_ignore", classes_ignoring},
    {"cross_entropy_smooth", classes_smooth},
    {"cross_entropy_z", classes_smooth},
    {"cross_entropy_with", classes_with_all},
    {"log_sum_exp", rows},
    {"log_softmax", rows},
    {"normalize", row_away},
    {"cosine_similarity", row_pairs},
    {"binary_cross_entropy_with_logits", errors},
    {"binary_cross_entropy_with_logits_weighted", weighted},
    {"mse_loss", errors},
    {"l1_loss", errors_off_zero},
    {"huber_loss", errors_and_delta},
    {"smooth_l1_loss", errors_and_delta},
    {"kl_div", probabilities},
    {"kl_div_log_target", errors},
    {"contrastive_loss", square_matrix},
    {"clip_loss", square_matrix},
    {"triplet_margin_loss", triplets},
    {"sum_all", any},
    {"mean_all", any},
    {0},
};
