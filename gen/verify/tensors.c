/* Rules that look at a whole parameter: what they have of all elements has a range of its own, from the elements'. */
#include <math.h>
#include <stdlib.h>

#include "gen/verify/ranges.h"
#include "gen/verify/tape/multiply.h"

static const double unit = 0x1p-24;

static struct range range_plus(struct range a, struct range b) {
  return (struct range){a.low + b.low, a.middle + b.middle, a.high + b.high};
}

static struct range range_times(struct range a, double by) {
  return by >= 0 ? (struct range){a.low * by, a.middle * by, a.high * by}
                 : (struct range){a.high * by, a.middle * by, a.low * by};
}

/* The product of any two. */
static struct range range_product(struct range a, struct range b) {
  const double ends[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  return (struct range){fmin(fmin(ends[0], ends[1]), fmin(ends[2], ends[3])), a.middle * b.middle,
                        fmax(fmax(ends[0], ends[1]), fmax(ends[2], ends[3]))};
}

static struct range range_square(struct range a) {
  const double low = a.low > 0 ? a.low : a.high < 0 ? -a.high : 0, high = fmax(fabs(a.low), fabs(a.high));
  return (struct range){low * low, a.middle * a.middle, high * high};
}

/* A sum of so many numbers, none of them negative, as float32 adds it up. */
static struct range rounded_sum(struct range sum, int64_t terms) {
  const double by = 4 * unit * (1 + sqrt((double)terms / 8));
  return (struct range){sum.low * (1 - by), sum.middle, sum.high * (1 + by)};
}

/* 1 / sqrt of a range above 0. */
static struct range inverse_root(struct range a) {
  return (struct range){1 / sqrt(a.high), 1 / sqrt(a.middle), 1 / sqrt(a.low)};
}

static struct range gradient_at(const struct stepping *s, int64_t i) {
  return (struct range){s->gradient[i] - s->bound, s->gradient[i], s->gradient[i] + s->bound};
}

static double state_at(const struct stepping *s, int state, int64_t i) {
  return s->before[state] != NULL ? s->before[state][i] : 0;
}

static double sum_of_squares(const double *x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += x[i] * x[i];
  return sum;
}

/* The ranges of what the rule for one element makes of all of them, as the weights of `stepped`: its sum of squares. */
static struct range step_elements(const struct stepping *s, struct stepped *stepped) {
  struct range sum = {0, 0, 0};
  for (int64_t i = 0; i < s->count; i++) {
    struct element before = {.weight = s->weights[i]};
    struct range states[MOST_STATES];
    for (int k = 0; k < s->n_states; k++) before.states[k] = state_at(s, k, i);
    range_of_element(s, before, s->gradient[i], NULL, &stepped->weights[i], states);
    for (int k = 0; k < s->n_states; k++) stepped->states[k][i] = states[k];
    sum = range_plus(sum, range_square(stepped->weights[i]));
  }
  return rounded_sum(sum, s->count);
}

/* From directions to weights: w keep - rate d. */
static void go(const struct stepping *s, struct stepped *stepped, double keep, struct range rate) {
  for (int64_t i = 0; i < s->count; i++) {
    const double kept = s->weights[i] * keep;
    stepped->weights[i] =
        range_plus((struct range){kept, kept, kept}, range_times(range_product(rate, stepped->weights[i]), -1));
  }
}

/* LAMB: You et al., arXiv:1904.00962, algorithm 2 with phi(z) = z. */
static bool lamb(const struct stepping *s, struct stepped *stepped) {
  const struct range step = step_elements(s, stepped);
  const double own = sqrt(sum_of_squares(s->weights, s->count)), rate = s->numbers->rate;
  struct range by = {rate, rate, rate};
  if (own > 0 && step.middle > 0) by = range_times(inverse_root(step), own * rate);
  go(s, stepped, 1, by);
  return true;
}

/* ---- Averages of squares by rows and columns: Adafactor as torch.optim writes it, AdaLomo as arXiv:2310.10195 ---- */

/* The matrices of a parameter. */
struct matrices {
  int64_t count, rows, columns;
};

static struct matrices matrices_of(const struct stepping *s) {
  const int64_t rows = s->dim[s->rank - 2], columns = s->dim[s->rank - 1];
  return (struct matrices){s->count / (rows * columns), rows, columns};
}

/* What is averaged of an element. */
static struct range squared(const struct stepping *s, int64_t i) {
  const double more = s->numbers->rule == OPTIMIZER_ADALOMO ? s->numbers->of.eps : 0;
  return range_plus(range_square(gradient_at(s, i)), (struct range){more, more, more});
}

/* The new averages of rows (state 0) and columns (state 1). */
static void average_squares(const struct stepping *s, struct matrices m, struct range *rows, struct range *columns) {
  const double fresh = s->numbers->fresh;
  for (int64_t i = 0; i < m.count * m.rows; i++) rows[i] = (struct range){0, 0, 0};
  for (int64_t i = 0; i < m.count * m.columns; i++) columns[i] = (struct range){0, 0, 0};
  for (int64_t i = 0; i < s->count; i++) {
    const int64_t row = i / m.columns, column = row / m.rows * m.columns + i % m.columns;
    rows[row] = range_plus(rows[row], squared(s, i));
    columns[column] = range_plus(columns[column], squared(s, i));
  }
  for (int k = 0; k < 2; k++) {
    const int64_t terms = k == 0 ? m.columns : m.rows, all = s->count / terms;
    struct range *of = k == 0 ? rows : columns;
    for (int64_t i = 0; i < all; i++) {
      const double old = (1 - fresh) * state_at(s, k, i);
      of[i] = range_times(rounded_sum(of[i], terms), fresh / (double)terms);
      of[i] = range_plus(of[i], (struct range){old, old, old});
    }
  }
}

/* The mean of the averages of the rows of matrix k, and what an element's direction is the gradient times of. */
static struct range mean_of_rows(const struct stepping *s, struct matrices m, const struct range *rows, int64_t k) {
  const double least = s->numbers->rule == OPTIMIZER_ADAFACTOR ? s->numbers->of.eps : 0;
  struct range sum = {0, 0, 0};
  for (int64_t r = 0; r < m.rows; r++) sum = range_plus(sum, rows[k * m.rows + r]);
  sum = range_times(sum, 1 / (double)m.rows);
  return (struct range){fmax(sum.low, least), fmax(sum.middle, least), fmax(sum.high, least)};
}

static struct range direction_factor(const struct stepping *s, struct range row, struct range column,
                                     struct range mean) {
  const double least = s->numbers->rule == OPTIMIZER_ADAFACTOR ? s->numbers->of.eps * s->numbers->of.eps : 0;
  const struct range over = {1 / mean.high, 1 / mean.middle, 1 / mean.low};
  const struct range v = range_product(range_product(row, column), over);
  return inverse_root((struct range){fmax(v.low, least), fmax(v.middle, least), fmax(v.high, least)});
}

static struct range direct_matrices(const struct stepping *s, struct stepped *stepped) {
  const struct matrices m = matrices_of(s);
  struct range *rows = stepped->states[0], *columns = stepped->states[1], mean = {0}, sum = {0, 0, 0};
  average_squares(s, m, rows, columns);
  for (int64_t i = 0; i < s->count; i++) {
    const int64_t row = i / m.columns, k = row / m.rows;
    if (i % (m.rows * m.columns) == 0) mean = mean_of_rows(s, m, rows, k);
    const struct range by = direction_factor(s, rows[row], columns[k * m.columns + i % m.columns], mean);
    stepped->weights[i] = range_product(gradient_at(s, i), by);
    sum = range_plus(sum, range_square(stepped->weights[i]));
  }
  return rounded_sum(sum, s->count);
}

static bool factored(const struct stepping *s, struct stepped *stepped) {
  const struct job *job = s->numbers->job;
  const double size = (double)s->count, own = sqrt(sum_of_squares(s->weights, s->count) / size);
  const struct range sum = s->rank > 1 ? direct_matrices(s, stepped) : step_elements(s, stepped);
  const double scale = fmax(job->optimizer.least_scale, own), lr = s->numbers->rate;
  const bool adafactor = s->numbers->rule == OPTIMIZER_ADAFACTOR;
  const double rate = scale * (adafactor ? fmin(lr, 1 / sqrt((double)(s->numbers->at + 1))) : lr);
  const double most = job->optimizer.clip_threshold, keep = 1 - (adafactor ? lr : rate) * s->numbers->of.weight_decay;
  const struct range by = {rate / fmax(1, sqrt(sum.high / size) / most), rate / fmax(1, sqrt(sum.middle / size) / most),
                           rate / fmax(1, sqrt(sum.low / size) / most)};
  go(s, stepped, keep, by);
  return true;
}

/* ---- Muon: torch.optim.Muon, its matrices in float32 ---- */

/* y [rows][columns] = a b with a [rows][inner], b [inner][columns], each number with noise as of a float32 sum. False:
 * there is no memory. */
static bool product(double *y, const double *a, const double *b, int64_t rows, int64_t inner, int64_t columns,
                    double noise) {
  const double by = noise * (1 + sqrt((double)inner / 8));
  for (int64_t i = 0; i < rows * columns; i++) y[i] = 0;
  const struct matrices_at left = {a, 0, inner, 1}, right = {b, 0, columns, 1};
  if (!multiply(y, left, right, rows, inner, columns, 1)) return false;
  tape_move(y, rows * columns, by);
  return true;
}

/* A matrix with its rows and columns exchanged. */
static void exchange(double *to, const double *from, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) to[c * rows + r] = from[r * columns + c];
}

/* Newton and Schulz's iteration of x [rows][columns], rows <= columns; work: [2][rows][rows] and [3][rows][columns].
 * False: there is no memory. */
static bool iterate(const struct job *job, double *x, int64_t rows, int64_t columns, double *work, double noise) {
  const double a = job->optimizer.ns_coefficients[0], b = job->optimizer.ns_coefficients[1];
  double *square = work, *power = work + rows * rows, *turned = power + rows * rows, *next = turned + rows * columns;
  for (int64_t round = 0; round < job->optimizer.ns_steps; round++) {
    exchange(turned, x, rows, columns);
    if (!product(square, x, turned, rows, columns, rows, noise)) return false;
    if (!product(power, square, square, rows, rows, rows, noise)) return false;
    for (int64_t i = 0; i < rows * rows; i++) power[i] = b * square[i] + job->optimizer.ns_coefficients[2] * power[i];
    if (!product(next, power, x, rows, rows, columns, noise)) return false;
    for (int64_t i = 0; i < rows * columns; i++) x[i] = a * x[i] + next[i];
    tape_move(x, rows * columns, noise);
  }
  return true;
}

/* What a matrix is stepped by, from its gradient, whose elements are moved by up to `by`. False: there is no memory. */
static bool orthogonalize(const struct stepping *s, double by, double noise, double *x, double *work) {
  const int64_t R = s->dim[0], C = s->dim[1], least = R < C ? R : C, most = R < C ? C : R;
  const struct job *job = s->numbers->job;
  const double momentum = s->numbers->of.momentum;
  double *matrix = work + 2 * least * least + 2 * least * most;
  for (int64_t i = 0; i < s->count; i++) {
    const double g = s->gradient[i] + by * tape_draw(reading_now);
    const double m = momentum * state_at(s, 0, i) + (1 - momentum) * g;
    matrix[i] = job->optimizer.nesterov ? (1 - momentum) * g + momentum * m : m;
  }
  const double scale = 1 / fmax(sqrt(sum_of_squares(matrix, s->count)), s->numbers->of.eps);
  for (int64_t i = 0; i < s->count; i++) matrix[i] *= scale;
  if (R > C) {
    exchange(x, matrix, R, C);
    if (!iterate(job, x, C, R, work, noise)) return false;
    exchange(matrix, x, C, R);
    for (int64_t i = 0; i < s->count; i++) x[i] = matrix[i];
  } else {
    for (int64_t i = 0; i < s->count; i++) x[i] = matrix[i];
    if (!iterate(job, x, R, C, work, noise)) return false;
  }
  return true;
}

static double muon_rate(const struct stepping *s) {
  const double R = (double)s->dim[0], C = (double)s->dim[1], rate = s->numbers->rate;
  switch (s->numbers->job->optimizer.adjust_lr_fn) {
  case ADJUST_ORIGINAL:
    return rate * sqrt(fmax(1, R / C));
  case ADJUST_MATCH_RMS_ADAMW:
    return rate * 0.2 * sqrt(fmax(R, C));
  case ADJUST_SPECTRAL_UNCLAMPED:
    return rate * sqrt(R / C);
  }
  return NAN;
}

/* The direction is measured as gradients are: exactly, and a few times with gradients anywhere within their bound and
 * products with noise; it may be twice as far off as the farthest element of them. */
static bool muon(const struct stepping *s, struct stepped *stepped) {
  enum { READINGS = 3, MARGIN = 2 };
  const int64_t least = s->dim[0] < s->dim[1] ? s->dim[0] : s->dim[1];
  double *x = malloc((size_t)(5 * s->count + 2 * least * least + 1) * sizeof *x), *noisy = x + s->count;
  double *work = noisy + s->count, far = 0, momentum = s->numbers->of.momentum;
  if (x == NULL) return false;
  bool good = orthogonalize(s, 0, 0, x, work);
  for (int k = 0; k < READINGS && good; k++) {
    good = orthogonalize(s, s->bound, 4 * unit, noisy, work);
    for (int64_t i = 0; i < s->count; i++) far = fmax(far, fabs(noisy[i] - x[i]));
  }
  far *= MARGIN;
  for (int64_t i = 0; i < s->count; i++) {
    const double old = momentum * state_at(s, 0, i);
    stepped->states[0][i] = range_plus(range_times(gradient_at(s, i), 1 - momentum), (struct range){old, old, old});
    stepped->weights[i] = (struct range){x[i] - far, x[i], x[i] + far};
  }
  const double rate = muon_rate(s);
  go(s, stepped, 1 - s->numbers->rate * s->numbers->of.weight_decay, (struct range){rate, rate, rate});
  free(x);
  return good;
}

tensor_rule *tensor_rule_of(const struct step_numbers *numbers) {
  switch (numbers->rule) {
  case OPTIMIZER_LAMB:
    return lamb;
  case OPTIMIZER_ADAFACTOR:
  case OPTIMIZER_ADALOMO:
    return factored;
  case OPTIMIZER_MUON:
    return muon;
  default:
    return NULL;
  }
}
