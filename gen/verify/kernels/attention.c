/* Formulas of attention and of rotary positions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gen/verify/kernels/case.h"

/* ---- Attention ---- */

enum { MOST_SCORES = 30000000 }; /* of a variant, times the width of a head */

/* An array of heads: of each batch and position so many numbers in a row, rows with a stride of `row`; or, of
 * `by_head`, of each batch and head so many positions. */
struct heads {
  int64_t row, heads, positions, width;
  bool by_head;
};

static int64_t head_at(struct heads h, int64_t b, int64_t head, int64_t t) {
  return h.by_head ? ((b * h.heads + head) * h.positions + t) * h.width
                   : (b * h.positions + t) * h.row + head * h.width;
}

/* The shape of attention: batches, heads, positions and the width of a head, as the name has them. */
struct attending {
  int64_t batches, heads, positions, width;
  double scale;
  bool causal;
  const double *starts; /* [batches][positions]: the first key that a query sees; NULL: the first of all */
};

/* How an array of `count` numbers lies; false: it does not fit. */
static bool heads_of(const struct attending *a, int64_t count, int64_t heads, bool by_head, struct heads *h) {
  const int64_t rows = a->batches * a->positions, own = heads * a->width;
  *h = (struct heads){own, heads, a->positions, a->width, by_head};
  if (by_head || rows == 1) return count == rows * own;
  h->row = (count - own) / (rows - 1);
  return (count - own) % (rows - 1) == 0 && h->row >= own;
}

/* The scale that is tried at a place: the usual one, none, those of the model. 0: there is none left. */
static double scale_of(const struct kernel_case *c, int at) {
  if (at < 2) return at == 0 ? 1 / sqrt((double)c->dims[3]) : 1;
  for (int i = 0; i < c->known->n_constants; i++)
    if (c->known->constants[i] > 0 && c->known->constants[i] < 1 && at-- == 2) return c->known->constants[i];
  return 0;
}

/* How often heads are halved for keys that several queries share. */
static int halvings(int64_t heads) {
  int count = 0;
  while (heads >> count > 0 && heads % (heads >> count) == 0) count++;
  return count;
}

/* Variants: causal or not; queries, keys, values and the result by position or by head; the keys' heads as many as the
 * queries' or a part of them; the scale. */
static bool attending_of(struct kernel_case *c, int variant, struct attending *a, bool by_head[4], int64_t *keys) {
  if (c->n_dims != 4) return false;
  const int each = 32 * halvings(c->dims[1]);
  c->is_open = true;
  int64_t S;
  *a = (struct attending){c->dims[0],
                          c->dims[1],
                          c->dims[2],
                          c->dims[3],
                          scale_of(c, variant / each),
                          variant % 2 == 0,
                          given(c, "starts", &S)};
  if (a->starts != NULL && S != a->batches * a->positions) a->starts = NULL;
  for (int i = 0; i < 4; i++) by_head[i] = variant >> (1 + i) & 1;
  *keys = a->heads >> (variant % each / 32);
  return a->scale > 0;
}

static int64_t first_key(const struct attending *a, int64_t b, int64_t t) {
  return a->starts != NULL ? (int64_t)a->starts[b * a->positions + t] : 0;
}

/* What a line says of the keys that a query sees. */
static const char *keys_of(const struct attending *a) {
  return a->causal && a->starts != NULL ? ", causal, in documents"
         : a->causal                    ? ", causal"
         : a->starts != NULL            ? ", in documents"
                                        : "";
}

static double dot(const double *x, const double *y, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++) sum += x[i] * y[i];
  return sum;
}

static void attend_row(const struct attending *a, const double *q, const double *k, const double *v,
                       struct heads of_keys, struct heads of_values, int64_t b, int64_t head, int64_t t, double *scores,
                       double *y, double *lse) {
  const int64_t most = a->causal ? t + 1 : a->positions, first = first_key(a, b, t);
  for (int64_t s = first; s < most; s++) scores[s] = a->scale * dot(q, k + head_at(of_keys, b, head, s), a->width);
  *lse = kernel_log_of_sum(scores + first, most - first);
  for (int64_t d = 0; d < a->width; d++) y[d] = 0;
  for (int64_t s = first; s < most; s++)
    for (int64_t d = 0; d < a->width; d++) y[d] += exp(scores[s] - *lse) * v[head_at(of_values, b, head, s) + d];
}

static bool attention_rows(struct kernel_case *c, int variant) {
  int64_t Q, K, V, Y, L;
  const double *q = given(c, "q", &Q), *k = given(c, "k", &K), *v = given(c, "v", &V);
  double *y = made(c, "y", &Y), *lse = made(c, "lse", &L);
  struct attending a;
  struct heads hq, hk, hv, hy;
  bool by_head[4];
  int64_t keys;
  if (!attending_of(c, variant, &a, by_head, &keys)) return false;
  if (q == NULL || k == NULL || v == NULL || y == NULL || lse == NULL || !has_all(c, 5 + (a.starts != NULL)))
    return true;
  if (!heads_of(&a, Q, a.heads, by_head[0], &hq) || !heads_of(&a, K, keys, by_head[1], &hk) ||
      !heads_of(&a, V, keys, by_head[2], &hv) || !heads_of(&a, Y, a.heads, by_head[3], &hy) ||
      L != a.batches * a.heads * a.positions || Q * a.positions > MOST_SCORES)
    return true;
  double *scores = malloc((size_t)a.positions * sizeof *scores);
  const double *before = given(c, "y", NULL);
  memcpy(y, before, (size_t)Y * sizeof *y);
  for (int64_t i = 0; i < L && scores != NULL; i++) {
    const int64_t b = i / (a.heads * a.positions), head = i / a.positions % a.heads, t = i % a.positions;
    attend_row(&a, q + head_at(hq, b, head, t), k, v, hk, hv, b, head * keys / a.heads, t, scores,
               y + head_at(hy, b, head, t), &lse[i]);
  }
  free(scores);
  c->terms = a.positions;
  snprintf(c->formula, sizeof c->formula, "y = softmax(%g q k^T%s) v", a.scale, keys_of(&a));
  c->fits = true;
  return true;
}

/* The arrays of a backward. */
struct slopes {
  const double *dy, *q, *k, *v, *y, *lse;
  double *dq, *dk, *dv;
  struct heads hq, hk, hv, hy, hdy, hdq, hdk, hdv;
  int64_t keys;
};

static void attend_back(const struct attending *a, const struct slopes *s, int64_t i) {
  const int64_t b = i / (a->heads * a->positions), head = i / a->positions % a->heads, t = i % a->positions;
  const int64_t most = a->causal ? t + 1 : a->positions, key = head * s->keys / a->heads;
  const double *q = s->q + head_at(s->hq, b, head, t), *dy = s->dy + head_at(s->hdy, b, head, t);
  const double along = dot(dy, s->y + head_at(s->hy, b, head, t), a->width);
  double *dq = s->dq + head_at(s->hdq, b, head, t);
  for (int64_t u = first_key(a, b, t); u < most; u++) {
    const int64_t at = head_at(s->hk, b, key, u), to = head_at(s->hdk, b, key, u);
    const int64_t at_v = head_at(s->hv, b, key, u), to_v = head_at(s->hdv, b, key, u);
    const double p = exp(a->scale * dot(q, s->k + at, a->width) - s->lse[i]);
    const double ds = a->scale * p * (dot(dy, s->v + at_v, a->width) - along);
    for (int64_t d = 0; d < a->width; d++) {
      dq[d] += ds * s->k[at + d];
      s->dk[to + d] += ds * q[d];
      s->dv[to_v + d] += p * dy[d];
    }
  }
}

/* What a backward writes begins at 0, and the rest of these arrays stays as it was. */
static void clear_heads(const struct attending *a, struct heads h, double *x) {
  for (int64_t b = 0; b < a->batches; b++)
    for (int64_t head = 0; head < h.heads; head++)
      for (int64_t t = 0; t < a->positions; t++) memset(x + head_at(h, b, head, t), 0, (size_t)a->width * sizeof *x);
}

/* Variants: those of attention, and for each whether gradients of queries, keys and values lie the other way than
 * these, and that of the result. */
static bool attention_slopes(struct kernel_case *c, int variant) {
  int64_t Q, K, V, Y, L, dY, dQ, dK, dV;
  struct slopes s = {.dy = given(c, "dy", &dY), .q = given(c, "q", &Q), .k = given(c, "k", &K), .v = given(c, "v", &V)};
  s.y = given(c, "y", &Y);
  s.lse = given(c, "lse", &L);
  s.dq = made(c, "dq", &dQ);
  s.dk = made(c, "dk", &dK);
  s.dv = made(c, "dv", &dV);
  struct attending a;
  bool by_head[4];
  if (!attending_of(c, variant / 4, &a, by_head, &s.keys)) return false;
  const bool turned = variant & 1, dy_turned = variant & 2;
  if (s.dy == NULL || s.q == NULL || s.k == NULL || s.v == NULL || s.y == NULL || s.lse == NULL || s.dq == NULL ||
      s.dk == NULL || s.dv == NULL || !has_all(c, 9 + (a.starts != NULL)))
    return true;
  if (!heads_of(&a, Q, a.heads, by_head[0], &s.hq) || !heads_of(&a, K, s.keys, by_head[1], &s.hk) ||
      !heads_of(&a, V, s.keys, by_head[2], &s.hv) || !heads_of(&a, Y, a.heads, by_head[3], &s.hy) ||
      !heads_of(&a, dY, a.heads, by_head[3] != dy_turned, &s.hdy) ||
      !heads_of(&a, dQ, a.heads, by_head[0] != turned, &s.hdq) ||
      !heads_of(&a, dK, s.keys, by_head[1] != turned, &s.hdk) ||
      !heads_of(&a, dV, s.keys, by_head[2] != turned, &s.hdv) || L != a.batches * a.heads * a.positions ||
      Q * a.positions > MOST_SCORES)
    return true;
  memcpy(s.dq, given(c, "dq", NULL), (size_t)dQ * sizeof(double));
  memcpy(s.dk, given(c, "dk", NULL), (size_t)dK * sizeof(double));
  memcpy(s.dv, given(c, "dv", NULL), (size_t)dV * sizeof(double));
  clear_heads(&a, s.hdq, s.dq);
  clear_heads(&a, s.hdk, s.dk);
  clear_heads(&a, s.hdv, s.dv);
  for (int64_t i = 0; i < L; i++) attend_back(&a, &s, i);
  c->terms = a.positions;
  snprintf(c->formula, sizeof c->formula, "dq = ds k, dk = ds^T q, dv = p^T dy, ds = %g p (dy v^T - rowsum(dy y))%s",
           a.scale, keys_of(&a));
  c->fits = true;
  return true;
}

/* ---- Rotary positions ---- */

/* How the pairs of columns lie, and which way they are turned. */
struct turning {
  const double *cosine, *sine;
  int64_t angles;
  bool alternate; /* columns 2 r and 2 r + 1; else r and angles + r */
  double sign;    /* -1: back */
};

static void turn_row(const struct turning *t, const double *x, double *y, int64_t at, int64_t width) {
  for (int64_t k = 2 * t->angles; k < width; k++) y[k] = x[k];
  for (int64_t r = 0; r < t->angles; r++) {
    const int64_t left = t->alternate ? 2 * r : r, right = t->alternate ? 2 * r + 1 : t->angles + r;
    const double c = t->cosine[at * t->angles + r], s = t->sign * t->sine[at * t->angles + r];
    y[left] = x[left] * c - x[right] * s;
    y[right] = x[right] * c + x[left] * s;
  }
}

/* Variants: halves or alternating columns; forth or back; x and y by position or by head. */
static bool rotary_rows(struct kernel_case *c, int variant) {
  int64_t X, Y, C, S;
  const double *x = given(c, "x", &X);
  double *y = made(c, "y", &Y);
  struct turning t = {.cosine = given(c, "cos", &C), .sine = given(c, "sin", &S)};
  struct heads hx, hy;
  if (variant >= 16 || c->n_dims != 4) return false;
  const struct attending a = {c->dims[0], c->dims[1], c->dims[2], c->dims[3], 1, false, NULL};
  c->is_open = true;
  if (x == NULL || y == NULL || t.cosine == NULL || t.sine == NULL || !has_all(c, 4) || C != S ||
      C % a.positions != 0 || !heads_of(&a, X, a.heads, variant >> 2 & 1, &hx) ||
      !heads_of(&a, Y, a.heads, variant >> 3 & 1, &hy))
    return true;
  t.angles = C / a.positions;
  t.alternate = variant & 1;
  t.sign = variant & 2 ? -1 : 1;
  if (2 * t.angles > a.width) return true;
  memcpy(y, given(c, "y", NULL), (size_t)Y * sizeof *y);
  for (int64_t i = 0; i < a.batches * a.heads * a.positions; i++) {
    const int64_t b = i / (a.heads * a.positions), head = i / a.positions % a.heads, at = i % a.positions;
    turn_row(&t, x + head_at(hx, b, head, at), y + head_at(hy, b, head, at), at, a.width);
  }
  snprintf(c->formula, sizeof c->formula, "pairs of columns %s turned%s by %lld angles of their position: cos, sin",
           t.alternate ? "2 r, 2 r + 1" : "r, r + half", t.sign < 0 ? " back" : "", (long long)t.angles);
  c->fits = true;
  return true;
}

const struct kernel_named_formula kernel_attention_formulas[] = {
    {"attention", attention_rows},
    {"attention_backward", attention_slopes},
    {"rotary", rotary_rows},
    {NULL, NULL},
};
