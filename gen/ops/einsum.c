/* Sums of products by labels of dimensions (Einstein's convention, in NumPy's spelling), written with views, sums and
 * matrix products. Operands are taken from the left, two at a time: what only one of them has is summed first; the
 * labels of both that are still needed lead a batch of matmuls, those that are not are its inner dimension. */
#include <ctype.h>
#include <string.h>

#include "gen/ops/support/support.h"

/* Labels: letters, and after them the dimensions of "...", counted from the last one. */
enum { ELLIPSIS = 128, LABELS = ELLIPSIS + MAX_RANK };

/* An operand, or what became of it, with a label for each dimension. */
struct term {
  struct value *x;
  int labels[MAX_RANK];
};

struct labels {
  int count, items[2 * MAX_RANK];
};

struct einsum {
  struct builder *builder;
  const char *spec;
  struct term *terms;
  int n;
  struct labels result;
  int64_t extents[LABELS]; /* 0: not there */
  int times[LABELS];       /* how often each label is written */
  int dots;                /* dimensions of "..." */
};

static struct arena *arena_of(const struct einsum *e) {
  return builder_arena(e->builder);
}

static const char *label_text(const struct einsum *e, int label) {
  return label >= ELLIPSIS ? "..." : arena_printf(arena_of(e), "%c", label);
}

static bool fail(const struct einsum *e, const char *what) {
  builder_error(e->builder, "einsum: \"%s\": %s", e->spec, what);
  return false;
}

/* ---- Terms ---- */

static int position_of(const struct term *term, int label) {
  for (int i = 0; i < term->x->shape.rank; i++)
    if (term->labels[i] == label) return i;
  return -1;
}

static bool among(const struct labels *labels, int label) {
  for (int i = 0; i < labels->count; i++)
    if (labels->items[i] == label) return true;
  return false;
}

/* The term without dimension `axis`, which `x` lacks already. */
static void drop_label(struct term *term, struct value *x, int axis) {
  for (int i = axis; i + 1 < term->x->shape.rank; i++) term->labels[i] = term->labels[i + 1];
  term->x = x;
}

static struct shape shape_without(struct shape shape, int axis) {
  for (int i = axis; i + 1 < shape.rank; i++) shape.dim[i] = shape.dim[i + 1];
  shape.rank--;
  return shape;
}

/* Dimensions of extent 1 whose label is wider elsewhere broadcast: they are dropped. */
static bool squeeze(const struct einsum *e, struct term *term) {
  for (int i = term->x->shape.rank - 1; i >= 0; i--) {
    int64_t extent = term->x->shape.dim[i], all = e->extents[term->labels[i]];
    if (extent == all) continue;
    if (extent != 1)
      return fail(e, arena_printf(arena_of(e), "%s is %lld in %s but %lld elsewhere", label_text(e, term->labels[i]),
                                  (long long)extent, shape_text(arena_of(e), term->x->shape), (long long)all));
    drop_label(term, op_reshape(e->builder, term->x, shape_without(term->x->shape, i)), i);
  }
  return true;
}

static void swap_axes(const struct einsum *e, struct term *term, int a, int b) {
  if (a == b) return;
  int label = term->labels[a];
  term->labels[a] = term->labels[b];
  term->labels[b] = label;
  term->x = op_transpose(e->builder, term->x, a, b);
}

/* A label that occurs twice is a diagonal: all else is zero and summed away. */
static void take_diagonals(const struct einsum *e, struct term *term) {
  for (int a = 0; a < term->x->shape.rank; a++)
    for (int b = term->x->shape.rank - 1; b > a; b--) {
      if (term->labels[a] != term->labels[b]) continue;
      int64_t n = term->x->shape.dim[a];
      struct shape column = {.rank = term->x->shape.rank}, row = {.rank = term->x->shape.rank};
      for (int i = 0; i < column.rank; i++) column.dim[i] = row.dim[i] = 1;
      column.dim[a] = row.dim[b] = n;
      struct value *positions = builder_cast(e->builder, op_arange(e->builder, n), DTYPE_FLOAT32);
      struct value *same = builder_binary(e->builder, "equal", op_reshape(e->builder, positions, column),
                                          op_reshape(e->builder, positions, row));
      struct value *parts[] = {same, term->x, op_constant(e->builder, 0, (struct shape){0})};
      struct value *kept = builder_op(e->builder, "where", parts, 3, NULL, 0);
      drop_label(term, op_sum(e->builder, kept, shape_of(1, (int64_t)b)), b);
    }
}

/* Sums over the labels that are in none of these. */
static void sum_out(const struct einsum *e, struct term *term, const struct labels *kept, const struct term *other) {
  for (int i = term->x->shape.rank - 1; i >= 0; i--) {
    int label = term->labels[i];
    if (among(kept, label) || (other != NULL && position_of(other, label) >= 0)) continue;
    drop_label(term, op_sum(e->builder, term->x, shape_of(1, (int64_t)i)), i);
  }
}

/* Brings the term's dimensions into this order. */
static void arrange(const struct einsum *e, struct term *term, const struct labels *order) {
  for (int i = 0; i < order->count; i++) swap_axes(e, term, i, position_of(term, order->items[i]));
}

/* ---- Two terms ---- */

static int64_t extent_of(const struct einsum *e, const struct labels *labels) {
  int64_t product = 1;
  for (int i = 0; i < labels->count; i++) product *= e->extents[labels->items[i]];
  return product;
}

static void append(struct labels *to, const struct labels *from) {
  for (int i = 0; i < from->count; i++) to->items[to->count++] = from->items[i];
}

/* The labels of a that are in b, or are not, and are kept, or are not. */
static struct labels chosen(const struct term *a, const struct term *b, bool in_b, const struct labels *kept,
                            bool is_kept) {
  struct labels labels = {0};
  for (int i = 0; i < a->x->shape.rank; i++)
    if ((position_of(b, a->labels[i]) >= 0) == in_b && among(kept, a->labels[i]) == is_kept)
      labels.items[labels.count++] = a->labels[i];
  return labels;
}

/* The term as a batch of matrices, or one where there is no batch, of these rows and columns. */
static struct value *matrices(const struct einsum *e, struct term *term, const struct labels *batch,
                              const struct labels *rows, const struct labels *columns) {
  struct labels order = {0};
  append(&order, batch);
  append(&order, rows);
  append(&order, columns);
  arrange(e, term, &order);
  int64_t m = extent_of(e, rows), n = extent_of(e, columns);
  struct shape shape = batch->count > 0 ? shape_of(3, extent_of(e, batch), m, n) : shape_of(2, m, n);
  return op_reshape(e->builder, term->x, shape);
}

/* a b over the labels that are not kept. False after an error. */
static bool contract(const struct einsum *e, struct term *a, struct term *b, const struct labels *kept) {
  sum_out(e, a, kept, b);
  sum_out(e, b, kept, a);
  struct labels batch = chosen(a, b, true, kept, true), inner = chosen(a, b, true, kept, false);
  struct labels left = chosen(a, b, false, kept, true), right = chosen(b, a, false, kept, true), all = {0};
  append(&all, &batch);
  append(&all, &left);
  append(&all, &right);
  if (all.count > MAX_RANK)
    return fail(
        e, arena_printf(arena_of(e), "a matmul has %d dimensions, where at most %d are possible", all.count, MAX_RANK));
  struct shape shape = {.rank = all.count};
  for (int i = 0; i < all.count; i++) shape.dim[i] = e->extents[all.items[i]];
  struct value *x = matrices(e, a, &batch, &left, &inner), *y = matrices(e, b, &batch, &inner, &right);
  x = inner.count > 0 ? op_matmul(e->builder, x, y) : op_mul(e->builder, x, y);
  a->x = op_reshape(e->builder, x, shape);
  for (int i = 0; i < all.count; i++) a->labels[i] = all.items[i];
  return true;
}

/* ---- Reading ---- */

/* Appends the labels of one part of the spec up to `end`; "..." as `dots` dimensions, -1: as what is left of `rank`. */
static bool read_labels(struct einsum *e, const char *at, const char *end, int rank, int dots, struct labels *labels) {
  bool seen = false;
  int letters = 0;
  for (const char *c = at; c < end; c++) letters += isalpha((unsigned char)*c) != 0;
  if (dots < 0) dots = rank - letters;
  for (; at < end; at++) {
    if (*at == ' ') continue;
    bool ellipsis = end - at >= 3 && strncmp(at, "...", 3) == 0 && !seen;
    if (!ellipsis && !isalpha((unsigned char)*at))
      return fail(e, arena_printf(arena_of(e), "'%c' is not a label; labels are letters and one ... an operand", *at));
    if (labels->count + (ellipsis ? dots : 1) > MAX_RANK || (ellipsis && dots < 0))
      return fail(e, "a term has more labels than its tensor dimensions");
    if (!ellipsis) labels->items[labels->count++] = (unsigned char)*at;
    if (!ellipsis) continue;
    for (int i = dots; i-- > 0;) labels->items[labels->count++] = ELLIPSIS + i;
    if (dots > e->dots) e->dots = dots;
    seen = true;
    at += 2;
  }
  return true;
}

static bool read_operand(struct einsum *e, int index, const char *at, const char *end) {
  struct term *term = &e->terms[index];
  struct labels labels = {0};
  int rank = term->x->shape.rank;
  if (!read_labels(e, at, end, rank, -1, &labels)) return false;
  if (labels.count != rank)
    return fail(e, arena_printf(arena_of(e), "operand %d has %d labels, and %d dimensions: %s", index + 1, labels.count,
                                rank, shape_text(arena_of(e), term->x->shape)));
  for (int i = 0; i < rank; i++) {
    int label = term->labels[i] = labels.items[i];
    if (e->extents[label] <= 1) e->extents[label] = term->x->shape.dim[i];
    e->times[label]++;
  }
  return true;
}

/* Without an arrow: "..." and the labels that are written once, in their order. */
static void imply_result(struct einsum *e) {
  for (int i = e->dots; i-- > 0;) e->result.items[e->result.count++] = ELLIPSIS + i;
  for (int label = 0; label < ELLIPSIS; label++)
    if (e->times[label] == 1 && e->result.count < MAX_RANK) e->result.items[e->result.count++] = label;
}

static bool read_result(struct einsum *e, const char *at) {
  if (!read_labels(e, at, at + strlen(at), 0, e->dots, &e->result)) return false;
  for (int i = 0; i < e->result.count; i++) {
    int label = e->result.items[i];
    struct labels before = {.count = i};
    memcpy(before.items, e->result.items, sizeof before.items);
    if (among(&before, label))
      return fail(e, arena_printf(arena_of(e), "the result has %s twice", label_text(e, label)));
    if (e->extents[label] == 0)
      return fail(e, arena_printf(arena_of(e), "no operand has the result's %s", label_text(e, label)));
  }
  return true;
}

static bool read_spec(struct einsum *e) {
  const char *arrow = strstr(e->spec, "->"), *at = e->spec;
  const char *stop = arrow != NULL ? arrow : e->spec + strlen(e->spec);
  for (int i = 0; i < e->n; i++) {
    const char *comma = memchr(at, ',', (size_t)(stop - at));
    if ((comma == NULL) != (i + 1 == e->n))
      return fail(
          e, arena_printf(arena_of(e), "it must have one part for each of %d operand%s", e->n, e->n == 1 ? "" : "s"));
    if (!read_operand(e, i, at, comma != NULL ? comma : stop)) return false;
    if (comma != NULL) at = comma + 1;
  }
  if (arrow != NULL) return read_result(e, arrow + 2);
  imply_result(e);
  return true;
}

/* ---- The function ---- */

/* What the result and the terms from `next` on have. */
static struct labels needed(const struct einsum *e, int next) {
  struct labels labels = {0};
  for (int label = 0; label < LABELS; label++) {
    bool wanted = among(&e->result, label);
    for (int i = next; i < e->n; i++) wanted |= position_of(&e->terms[i], label) >= 0;
    if (wanted && labels.count < 2 * MAX_RANK) labels.items[labels.count++] = label;
  }
  return labels;
}

/* einsum_of(spec, n, tensors…) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  struct einsum e = {.builder = builder, .spec = arguments[0].string, .n = count - 2};
  e.terms = arena_alloc(builder_arena(builder), (size_t)count * sizeof *e.terms);
  for (int i = 0; i < e.n; i++) {
    if (arguments[2 + i].kind != ARGUMENT_TENSOR) {
      builder_error(builder, "einsum: argument %d is not a tensor", i + 2);
      return NULL;
    }
    if ((e.terms[i].x = op_tensor(arguments, 2 + i)) == NULL) return NULL;
    if (e.terms[i].x->dtype == DTYPE_INT32) {
      builder_error(builder, "einsum: operand %d is int32, where float32 is needed; write cast_float(...) around it",
                    i + 1);
      return NULL;
    }
  }
  if (!read_spec(&e)) return NULL;
  for (int i = 0; i < e.n; i++) {
    if (!squeeze(&e, &e.terms[i])) return NULL;
    take_diagonals(&e, &e.terms[i]);
  }
  for (int i = 1; i < e.n; i++) {
    struct labels kept = needed(&e, i + 1);
    if (!contract(&e, &e.terms[0], &e.terms[i], &kept)) return NULL;
  }
  sum_out(&e, &e.terms[0], &e.result, NULL);
  arrange(&e, &e.terms[0], &e.result);
  return e.terms[0].x;
}

const struct op_file op_file_einsum = {
    .name = "einsum",
    .functions = (const struct op_function[]){{"einsum_of", .build = build}, {0}},
};
