/* Terms of formulas: products, sums, embeddings, constants, rotary positions. Their variants are those of the same
 * formulas in numbers (kernel_formulas.c, kernel_attention.c). */
#include <math.h>

#include "gen/verify/proof/proof.h"

/* The sum over a new variable: SUM(k, count, term with k). */
#define SUM(k, count, body)                                                                                            \
  const struct term *k = term_variable(p->terms, count);                                                               \
  const struct term *k##_sum = term_sum(p->terms, body, term_atom(k));

static const struct term *product(struct proof *p, int array, const struct term *e) {
  const int64_t A = proof_count(p, "a"), B = proof_count(p, "b"), Y = proof_count(p, "y");
  if (A == 0 || B == 0) return proof_element(p, "a", e);
  const int64_t m = llround(sqrt((double)A * (double)Y / (double)B)), depth = A / m, n = Y / m;
  const int variant = p->variant;
  const bool adds = variant >= 8, ta = variant & 1, tb = variant >> 1 & 1, ty = variant >> 2 & 1;
  (void)array;
  const struct term *i = ty ? proof_column(p, e, m) : proof_row(p, e, n);
  const struct term *j = ty ? proof_row(p, e, m) : proof_column(p, e, n);
  SUM(k, depth,
      term_multiply(p->terms, proof_element(p, "a", ta ? proof_index(p, k, m, i) : proof_index(p, i, depth, k)),
                    proof_element(p, "b", tb ? proof_index(p, j, depth, k) : proof_index(p, k, n, j))))
  return adds ? term_add(p->terms, proof_element(p, "y", e), k_sum) : k_sum;
}

static const struct term *sums(struct proof *p, int array, const struct term *e) {
  const int64_t X = proof_count(p, "x"), Y = proof_count(p, "y"), among = X / Y;
  const bool adds = p->variant > p->n_dims + 1;
  const int variant = p->variant % (p->n_dims + 2);
  int64_t inner = 1;
  (void)array;
  if (X % Y != 0 || p->variant >= 2 * (p->n_dims + 2)) terms_fail(p->terms, "its arrays do not fit");
  for (int i = 0; i < variant && i < p->n_dims; i++) inner *= p->dims[p->n_dims - 1 - i];
  if (variant == p->n_dims + 1) inner = Y;
  const struct term *outer = inner == Y ? term_number(p->terms, 0) : proof_row(p, e, inner);
  const struct term *within = inner == Y ? e : proof_column(p, e, inner);
  SUM(k, among, proof_element(p, "x", proof_index(p, proof_index(p, outer, among, k), inner, within)))
  return adds ? term_add(p->terms, proof_element(p, "y", e), k_sum) : k_sum;
}

static const struct term *embedding_rows(struct proof *p, int array, const struct term *e) {
  const int64_t width = proof_count(p, "y") / proof_count(p, "tokens");
  (void)array;
  const struct term *token = proof_element(p, "tokens", proof_row(p, e, width));
  return proof_element(p, "weight", proof_index(p, token, width, proof_column(p, e, width)));
}

static const struct term *embedding_sums(struct proof *p, int array, const struct term *e) {
  const int64_t rows = proof_count(p, "tokens"), width = proof_count(p, "dy") / rows;
  const struct term *token = proof_row(p, e, width), *column = proof_column(p, e, width);
  (void)array;
  SUM(r, rows,
      term_multiply(p->terms, term_zero(p->terms, term_subtract(p->terms, token, proof_element(p, "tokens", r))),
                    proof_element(p, "dy", proof_index(p, r, width, column))))
  return p->variant > 0 ? term_add(p->terms, proof_element(p, "dweight", e), r_sum) : r_sum;
}

static const struct term *constants(struct proof *p, int array, const struct term *e) {
  (void)array;
  (void)e;
  return term_number(p->terms, p->known->constants[p->variant]);
}

/* A table that the model has: one number for each place. */
static const struct term *table(struct proof *p, int array, const struct term *e) {
  const struct known_table *known = p->known->tables;
  double at = 0;
  (void)array;
  for (int i = 0; i < p->variant && known != NULL; i++) known = known->next;
  if (known == NULL || !term_is_number(e, &at) || at < 0 || at >= (double)known->count)
    terms_fail(p->terms, "a table is not followed number by number");
  return terms_failure(p->terms) != NULL ? e : term_number(p->terms, known->numbers[(int64_t)at]);
}

static const struct term *counts(struct proof *p, int array, const struct term *e) {
  (void)p;
  (void)array;
  return e;
}

/* Of heads [batch][head][position] or [batch][position][head], with a stride from one position to the next. */
struct heads {
  int64_t heads, positions, width, row;
  bool by_head;
};

static struct heads heads_of(const struct proof *p, int64_t count, bool by_head) {
  const int64_t rows = p->dims[0] * p->dims[2], own = p->dims[1] * p->dims[3];
  struct heads h = {p->dims[1], p->dims[2], p->dims[3], own, by_head};
  if (!by_head && rows > 1) h.row = (count - own) / (rows - 1);
  return h;
}

/* Pairs of columns, turned by their position's angles (Su et al., arXiv:2104.09864). */
static const struct term *rotary_rows(struct proof *p, int array, const struct term *e) {
  const int variant = p->variant;
  const struct heads x = heads_of(p, proof_count(p, "x"), variant >> 2 & 1);
  const struct heads y = heads_of(p, proof_count(p, "y"), variant >> 3 & 1);
  const int64_t angles = proof_count(p, "cos") / p->dims[2];
  const bool alternate = variant & 1;
  (void)array;
  if (2 * angles != y.width || y.row != y.heads * y.width || alternate) {
    terms_fail(p->terms, "there is no term of its formula");
    return e;
  }
  const struct term *column = proof_column(p, e, y.width), *at = proof_row(p, e, y.width);
  const struct term *outer = proof_row(p, at, y.by_head ? y.positions : y.heads);
  const struct term *inner = proof_column(p, at, y.by_head ? y.positions : y.heads);
  const struct term *batch = proof_row(p, outer, y.by_head ? y.heads : y.positions);
  const struct term *middle = proof_column(p, outer, y.by_head ? y.heads : y.positions);
  const struct term *head = y.by_head ? middle : inner, *position = y.by_head ? inner : middle;
  const struct term *first =
      x.by_head ? proof_index(p, proof_index(p, proof_index(p, batch, x.heads, head), x.positions, position), x.width,
                              term_number(p->terms, 0))
                : proof_index(p, proof_index(p, batch, x.positions, position), x.row,
                              term_scale(p->terms, head, (double)x.width));
  const struct term *half = proof_row(p, column, angles), *angle = proof_column(p, column, angles);
  double which = 0;
  if (!term_is_number(half, &which)) terms_fail(p->terms, "its loops go otherwise over pairs than the formula does");
  const double sign = ((variant & 2) != 0) == (which > 0) ? 1 : -1;
  const struct term *other = proof_index(p, term_number(p->terms, 1 - which), angles, angle);
  const struct term *cosine = proof_element(p, "cos", proof_index(p, position, angles, angle));
  const struct term *sine = proof_element(p, "sin", proof_index(p, position, angles, angle));
  const struct term *own = proof_element(p, "x", term_add(p->terms, first, column));
  const struct term *turned = proof_element(p, "x", term_add(p->terms, first, other));
  return term_add(p->terms, term_multiply(p->terms, own, cosine),
                  term_scale(p->terms, term_multiply(p->terms, turned, sine), -sign));
}

const struct proof_named_formula proof_formulas[] = {
    {"matmul", product, 16},
    {"matmul_nt", product, 16},
    {"matmul_tn", product, 16},
    {"matmul_add", product, 16},
    {"matmul_nt_add", product, 16},
    {"matmul_tn_add", product, 16},
    {"sum", sums, 20},
    {"sum_add", sums, 20},
    {"embedding", embedding_rows, 1},
    {"embedding_backward", embedding_sums, 2},
    {"embedding_backward_add", embedding_sums, 2},
    {"constant", constants, 0},
    {"table", table, 8},
    {"arange", counts, 1},
    {"rotary", rotary_rows, 16},
    {NULL, NULL, 0},
};
