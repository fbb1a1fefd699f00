#include "tests/ops/cases.h"

/* ---- Elements ---- */

static void one_in(struct lab *lab, enum range range) {
  lab_tensor(lab, lab_shape(lab, (int)lab_random(lab, 4), MOST), range);
}

static void any(struct lab *lab) {
  one_in(lab, AROUND_ZERO);
}

static void positive(struct lab *lab) {
  one_in(lab, POSITIVE);
}

static void away(struct lab *lab) {
  one_in(lab, AWAY_FROM_ZERO);
}

static void positive_and_number(struct lab *lab) {
  positive(lab);
  lab_real(lab, 1.7);
}

static void any_and_number(struct lab *lab) {
  any(lab);
  lab_real(lab, -1.75);
}

/* `shape` with some extents set to 1 and some leading dimensions dropped, so that it broadcasts to it. */
static struct shape narrower(struct lab *lab, struct shape shape) {
  struct shape result = {0};
  for (int i = (int)lab_random(lab, shape.rank + 1); i < shape.rank; i++)
    result.dim[result.rank++] = lab_random(lab, 3) == 0 ? 1 : shape.dim[i];
  return result;
}

static void pair_in(struct lab *lab, enum range first, enum range second) {
  struct shape whole = lab_shape(lab, (int)lab_random(lab, 4), MOST), part = narrower(lab, whole);
  int64_t order = lab_random(lab, 3); /* either side, or neither, is narrower */
  lab_tensor(lab, order == 0 ? part : whole, first);
  lab_tensor(lab, order == 1 ? part : whole, second);
}

static void pair(struct lab *lab) {
  pair_in(lab, AROUND_ZERO, AROUND_ZERO);
}

static void quotient(struct lab *lab) {
  pair_in(lab, AROUND_ZERO, POSITIVE);
}

static void comb(struct lab *lab) {
  pair_in(lab, COMB_A, COMB_B);
}

/* Both on one comb, so that many are equal: there the gradient is shared, and central differences say so too. */
static void ties(struct lab *lab) {
  pair_in(lab, COMB_A, COMB_A);
}

/* The condition is of whole numbers, 0 among them. */
static void chosen(struct lab *lab) {
  struct shape shape = lab_shape(lab, (int)lab_random(lab, 4), MOST);
  struct lab_tensor *condition = lab_fixed(lab, shape);
  for (int64_t i = 0; i < shape_count(shape); i++) condition->elements[i] = (double)(lab_random(lab, 3) - 1);
  lab_tensor(lab, narrower(lab, shape), AROUND_ZERO);
  lab_tensor(lab, shape, AROUND_ZERO);
}

static void clamped(struct lab *lab) {
  one_in(lab, AWAY_FROM_ZERO);
  lab_real(lab, 0);
  lab_real(lab, 2); /* the other bound is out of reach */
}

/* ---- Losses ---- */

/* Two tensors of one shape of at least `least` dimensions. */
static void twins(struct lab *lab, int least, enum range first, enum range second) {
  struct shape shape = lab_shape(lab, least + (int)lab_random(lab, 4 - least), MOST);
  lab_tensor(lab, shape, first);
  lab_tensor(lab, shape, second);
}

static void errors(struct lab *lab) {
  twins(lab, 0, AROUND_ZERO, AROUND_ZERO);
}

/* No difference is 0. */
static void errors_off_zero(struct lab *lab) {
  twins(lab, 0, COMB_A, COMB_B);
}

/* Differences are multiples of 0.2 and 0.1 more, delta is none of them. */
static void errors_and_delta(struct lab *lab) {
  errors_off_zero(lab);
  lab_real(lab, 0.6);
}

static void probabilities(struct lab *lab) {
  twins(lab, 0, AROUND_ZERO, POSITIVE);
}

static void weighted(struct lab *lab) {
  twins(lab, 1, AROUND_ZERO, POSITIVE);
  struct shape shape = lab->parameters.items[0].shape;
  lab_tensor(lab, (struct shape){1, {shape.dim[shape.rank - 1]}}, POSITIVE);
}

static void row_away(struct lab *lab) {
  lab_tensor(lab, lab_shape(lab, 1 + (int)lab_random(lab, 3), MOST), AWAY_FROM_ZERO);
}

static void row_pairs(struct lab *lab) {
  twins(lab, 1, AWAY_FROM_ZERO, AWAY_FROM_ZERO);
}

static void square_matrix(struct lab *lab) {
  int64_t n = lab_extent(lab);
  lab_tensor(lab, (struct shape){2, {n, n}}, AROUND_ZERO);
}

static void triplets(struct lab *lab) {
  struct shape shape = lab_shape(lab, 1 + (int)lab_random(lab, 3), MOST);
  for (int i = 0; i < 3; i++) lab_tensor(lab, shape, AROUND_ZERO);
  lab_real(lab, 0.37);
}

/* ---- Products ---- */

/* The leading dimensions of a, `rows` and `columns` behind them. */
static struct shape matrix(struct shape leading, int64_t rows, int64_t columns) {
  leading.dim[leading.rank++] = rows;
  leading.dim[leading.rank++] = columns;
  return leading;
}

static void factors(struct lab *lab, bool transposed) {
  struct shape leading = lab_shape(lab, (int)lab_random(lab, 3), 9), none = {0};
  int64_t m = lab_extent(lab), k = lab_extent(lab), n = lab_extent(lab);
  struct shape of_b = lab_random(lab, 2) == 0 ? none : leading;
  lab_tensor(lab, matrix(leading, m, k), AROUND_ZERO);
  lab_tensor(lab, transposed ? matrix(of_b, n, k) : matrix(of_b, k, n), AROUND_ZERO);
}

static void product(struct lab *lab) {
  factors(lab, false);
}

static void product_transposed(struct lab *lab) {
  factors(lab, true);
}

static void layer(struct lab *lab) {
  lab_scope(lab);
  lab_tensor(lab, lab_shape(lab, 1 + (int)lab_random(lab, 3), MOST), AROUND_ZERO);
  lab_int(lab, lab_extent(lab));
}

static void attention_of(struct lab *lab, int64_t causal) {
  struct shape q = lab_shape(lab, 4, 300), k = q;
  k.dim[2] = lab_extent(lab);
  lab_tensor(lab, q, AROUND_ZERO);
  lab_tensor(lab, k, AROUND_ZERO);
  lab_tensor(lab, k, AROUND_ZERO);
  lab_int(lab, causal);
}

static void attention_full(struct lab *lab) {
  attention_of(lab, 0);
}

static void attention_causal(struct lab *lab) {
  attention_of(lab, 1);
}

/* Two heads of queries for each of keys. */
static void attention_grouped(struct lab *lab) {
  struct shape q = lab_shape(lab, 4, 300), k = q;
  q.dim[1] *= 2;
  lab_tensor(lab, q, AROUND_ZERO);
  lab_tensor(lab, k, AROUND_ZERO);
  lab_tensor(lab, k, AROUND_ZERO);
}

static void attention_grouped_causal(struct lab *lab) {
  attention_grouped(lab);
  lab_int(lab, 1);
  lab_real(lab, 0.7);
}

static void attention_windowed(struct lab *lab) {
  attention_grouped(lab);
  lab_int(lab, 1 + lab_random(lab, 6));
}

/* The bias is one for all heads of a batch. */
static void attention_biased(struct lab *lab) {
  attention_grouped(lab);
  struct shape q = lab->parameters.items[0].shape, k = lab->parameters.items[1].shape;
  lab_tensor(lab, shape_of(4, q.dim[0], (int64_t)1, q.dim[2], k.dim[2]), AROUND_ZERO);
}

/* Every place may see from any one before it on, as if documents lay one in the other. */
static void attention_packed(struct lab *lab) {
  attention_grouped(lab);
  struct shape q = lab->parameters.items[0].shape;
  lab_tokens(lab, shape_of(2, q.dim[0], q.dim[2]), 1);
  double *starts = lab->inputs.items[0].elements;
  for (int64_t i = 0; i < q.dim[0] * q.dim[2]; i++) starts[i] = (double)lab_random(lab, i % q.dim[2] + 1);
}

/* Angles are no parameters: they come as cosine and sine of numbers of the model. */
static void turned(struct lab *lab) {
  struct shape x = lab_shape(lab, 4, MOST);
  int64_t angles = 1 + lab_random(lab, 3);
  x.dim[3] = 2 * angles + lab_random(lab, 3);
  lab_tensor(lab, x, AROUND_ZERO);
  lab_fixed(lab, shape_of(2, x.dim[2], angles));
  lab_fixed(lab, shape_of(2, x.dim[2], angles));
}

/* ---- Rows ---- */

static void rows(struct lab *lab) {
  lab_tensor(lab, lab_shape(lab, 1 + (int)lab_random(lab, 3), MOST), AROUND_ZERO);
}

static void norm(struct lab *lab) {
  lab_scope(lab);
  rows(lab);
}

/* With one column, y is nearly the sign of x: off zero, where differences say something. */
static void norm_away(struct lab *lab) {
  lab_scope(lab);
  lab_tensor(lab, lab_shape(lab, 1 + (int)lab_random(lab, 3), MOST), AWAY_FROM_ZERO);
}

static void norm_eps(struct lab *lab) {
  norm(lab);
  lab_real(lab, 0.01);
}

static void lookup_rows(struct lab *lab) {
  int64_t vocabulary = lab_extent(lab);
  lab_scope(lab);
  lab_tokens(lab, lab_shape(lab, (int)lab_random(lab, 3), 60), vocabulary);
  lab_int(lab, vocabulary);
  lab_int(lab, lab_extent(lab));
}

static void classes(struct lab *lab) {
  struct shape logits = lab_shape(lab, 1 + (int)lab_random(lab, 3), MOST), targets = logits;
  targets.rank--;
  lab_tensor(lab, logits, AROUND_ZERO);
  lab_tokens(lab, targets, logits.dim[logits.rank - 1]);
}

/* Class 0 does not count; the first place's target is another one where there is one, so that something counts. */
static void classes_ignoring(struct lab *lab) {
  struct shape logits = {2, {lab_extent(lab), 3 + 2 * lab_random(lab, 3)}};
  lab_tensor(lab, logits, AROUND_ZERO);
  lab_tokens(lab, (struct shape){1, {logits.dim[0]}}, logits.dim[1]);
  lab->inputs.items[0].elements[0] = 1;
  lab_int(lab, 0);
}

static void classes_smooth(struct lab *lab) {
  classes(lab);
  lab_real(lab, 0.1);
}

static void classes_with_all(struct lab *lab) {
  classes_ignoring(lab);
  lab_real(lab, 0.2);
  lab_real(lab, 0.03);
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
    {"matmul", product},
    {"matmul_transposed", product_transposed},
    {"linear", layer},
    {"linear_no_bias", layer},
    {"linear_transposed", layer},
    {"attention", attention_full},
    {"attention", attention_causal},
    {"attention_scaled", attention_grouped_causal},
    {"attention_window", attention_windowed},
    {"attention_bias", attention_biased},
    {"attention_documents", attention_packed},
    {"rotary", turned},
    {"rotary_interleaved", turned},
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
