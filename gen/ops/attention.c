/* Scaled dot-product attention (Vaswani et al., arXiv:1706.03762, eq. 1): y = P v, P = softmax(scale q k^T) over the
 * keys; causal: query t sees the keys s <= t, and where there is a window only the last `window` of them (Beltagy,
 * Peters, Cohan, arXiv:2004.05150, section 3.1); given `starts` [batch][t], query t of a sample sees no key before
 * starts[t], which is at most t: where its document begins, when several are in one row. Where keys and values have
 * fewer heads, each serves as many heads of queries in a row (Ainslie et al., arXiv:2305.13245). lse is the logarithm
 * of each softmax's sum, so that backward makes P again instead of keeping it (Dao et al., arXiv:2205.14135,
 * section 3.1 and appendix B.2): dv = P^T dy, dS = P (dy v^T
 * - rowsum(dy y)), dq = scale dS k, dk = scale dS^T q. */
#include <math.h>
#include <stdlib.h>

#include "gen/onnx/onnx.h"
#include "gen/ops/support/attention.h"
#include "gen/stablehlo/stablehlo.h"

/* The problem's size: batch and heads together, heads of queries for one of keys, queries, keys, columns. */
struct size {
  int64_t heads, group, queries, keys, columns;
};

static struct size size_of(struct shape q, struct shape k) {
  return (struct size){q.dim[0] * q.dim[1], q.dim[1] / k.dim[1], q.dim[2], k.dim[2], q.dim[3]};
}

/* The first element of the keys, and of the values, of head h. */
static int64_t keys_of(struct size size, int64_t h) {
  return h / size.group * size.keys * size.columns;
}

/* Input `index`, where it is there: for each sample and query the first key that it may see. */
static bool check_starts(struct arena *arena, const struct node *node, int index, struct shape q, struct shape k,
                         const char **error) {
  if (node->n_inputs <= index) return true;
  if (node_int(node, "causal") && q.dim[2] != k.dim[2])
    return op_fail(arena, node, error, "%s and %s must have the same positions, where documents begin at some of them",
                   op_operand_text(arena, node, index - 3), op_operand_text(arena, node, index - 2));
  return op_check_dtype(arena, node, index, DTYPE_INT32, error) &&
         op_check_shape(arena, node, index, shape_of(2, q.dim[0], q.dim[2]), "a number for each sample and position",
                        error);
}

int op_infer_attended(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                      const char **error) {
  struct shape q = node->inputs[0]->shape, k = node->inputs[1]->shape;
  if (!op_check_same_float(arena, node, 3, error)) return 0;
  for (int i = 0; i < 3; i++) {
    if (node->inputs[i]->shape.rank != 4)
      return op_fail(arena, node, error, "%s must have 4 dimensions: [batch][heads][positions][columns]",
                     op_operand_text(arena, node, i));
  }
  if (q.dim[0] != k.dim[0] || q.dim[3] != k.dim[3] || q.dim[1] % k.dim[1] != 0)
    return op_fail(arena, node, error, "%s and %s may differ in positions, and in heads where k's divide q's",
                   op_operand_text(arena, node, 0), op_operand_text(arena, node, 1));
  if (node_int(node, "window") > 0 && q.dim[2] != k.dim[2])
    return op_fail(arena, node, error, "%s and %s must have the same positions, where a window is moved along them",
                   op_operand_text(arena, node, 0), op_operand_text(arena, node, 1));
  if (!op_check_shape(arena, node, 2, k, "like k", error)) return 0;
  shapes[0] = q;
  shapes[1] = op_leading(q);
  dtypes[0] = node->inputs[0]->dtype;
  dtypes[1] = DTYPE_FLOAT32;
  return 2;
}

int op_infer_attention(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                       const char **error) {
  int count = op_infer_attended(arena, node, shapes, dtypes, error);
  bool fits = count > 0 && check_starts(arena, node, 3, node->inputs[0]->shape, node->inputs[1]->shape, error);
  return fits ? count : 0;
}

/* A score within (-cap, cap); 0: as it is. */
static double capped(double score, double cap) {
  return cap > 0 ? cap * tanh(score / cap) : score;
}

/* The keys that a query sees: [first, end). */
struct seen {
  int64_t first, end;
};

/* `starts`: of the query's sample; NULL: there are none. */
static struct seen seen_keys(const struct node *node, struct size size, const double *starts, int64_t query) {
  int64_t window = node_int(node, "window"), first = window > 0 && query + 1 > window ? query + 1 - window : 0;
  if (starts != NULL && (int64_t)starts[query] > first) first = (int64_t)starts[query];
  int64_t end = node_int(node, "causal") && query + 1 < size.keys ? query + 1 : size.keys;
  return (struct seen){first, end};
}

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* y += factor x */
static void add_scaled(double *y, double factor, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] += factor * x[i];
}

/* One query: y and the logarithm of the sum of its softmax. */
static double attend(const double *q, const double *k, const double *v, double *y, struct seen seen, int64_t columns,
                     const struct node *node) {
  const double scale = node_real(node, "scale"), cap = op_attention_cap(node);
  double highest = -INFINITY, sum = 0;
  for (int64_t c = 0; c < columns; c++) y[c] = 0;
  for (int pass = 0; pass < 3; pass++)
    for (int64_t s = seen.first; s < seen.end; s++) {
      const double score = capped(scale * dot(q, k + s * columns, columns), cap);
      if (pass == 0) highest = fmax(highest, score);
      if (pass == 1) sum += exp(score - highest);
      if (pass == 2) add_scaled(y, exp(score - highest) / sum, v + s * columns, columns);
    }
  return highest + log(sum);
}

/* Those of the sample that a head of queries belongs to. */
static const double *starts_of(const struct node *node, const double *const *inputs, int index, struct size size,
                               int64_t head) {
  if (node->n_inputs <= index) return NULL;
  int64_t heads = size.heads / node->inputs[index]->shape.dim[0];
  return inputs[index] + head / heads * size.queries;
}

void op_attention_reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct size size = size_of(node->inputs[0]->shape, node->inputs[1]->shape);
  for (int64_t h = 0; h < size.heads; h++)
    for (int64_t t = 0; t < size.queries; t++) {
      int64_t row = h * size.queries + t, first_key = keys_of(size, h);
      struct seen seen = seen_keys(node, size, starts_of(node, inputs, 3, size, h), t);
      outputs[1][row] = attend(inputs[0] + row * size.columns, inputs[1] + first_key, inputs[2] + first_key,
                               outputs[0] + row * size.columns, seen, size.columns, node);
    }
}

static void gradient(struct builder *builder, const struct node *node, struct value *const *dy, struct value **dx) {
  struct value *inputs[] = {dy[0],
                            node->inputs[0],
                            node->inputs[1],
                            node->inputs[2],
                            node->outputs[0],
                            node->outputs[1],
                            node->n_inputs > 3 ? node->inputs[3] : NULL};
  struct node *backward =
      builder_node(builder, "attention_backward", inputs, 3 + node->n_inputs, node->attributes, node->n_attributes);
  for (int i = 0; i < 3 && backward != NULL; i++) dx[i] = backward->outputs[i];
}

/* Rows of columns may be anywhere; the columns of a row are together. */
static bool accepts_rows(struct shape shape, const int64_t *strides) {
  for (int i = 0; i < 3; i++)
    if (strides[i] < 0) return false;
  return strides[3] == 1 || shape.dim[3] == 1;
}

bool op_attention_accepts(const struct node *node, bool output, int index, const int64_t *strides) {
  struct shape shape = output ? node->outputs[index]->shape : node->inputs[index]->shape;
  return shape.rank == 4 ? accepts_rows(shape, strides) : op_is_dense(shape, strides);
}

/* Two matmuls of queries x keys x columns; a causal mask leaves half of them, and a window what it is wide. */
static double matmul_flops(const struct node *node, struct size size) {
  double each = 4.0 * (double)size.heads * (double)size.queries * (double)size.columns, keys = (double)size.keys;
  double window = (double)node_int(node, "window");
  if (node_int(node, "causal")) keys /= 2;
  return each * (window > 0 && window < keys ? window : keys);
}

double op_attention_flops(const struct node *node) {
  return matmul_flops(node, size_of(node->inputs[0]->shape, node->inputs[1]->shape));
}

/* A query depends on all keys of its sample and head, and on no other query; samples and heads are independent. */
static int along(const struct node *node, int axis, int input) {
  bool causal = node_int(node, "causal") || node_int(node, "window") > 0 || node->n_inputs > 3;
  if (axis == 2) return input == 0 ? 2 : causal ? AXIS_MIXED : AXIS_WHOLE;
  return axis == 0 && input < 3 ? 0 : AXIS_MIXED;
}

/* Samples are independent, and so are heads where a rank has the heads of keys of its heads of queries: both are split
 * into as many parts, or one head of keys serves all. */
bool op_place_attention(const struct node *node, int seed, int64_t ranks, struct placement *placements) {
  const struct placement split = placements[seed];
  int64_t key_heads = node->inputs[1]->shape.dim[1];
  const bool starts = node->n_inputs > 3 && node->inputs[3]->dtype == DTYPE_INT32;
  (void)ranks;
  if (split.dim > 1 || split.blocks > 1 || (split.dim == 1 && seed == 3 && starts)) return false;
  bool shared = split.dim == 1 && key_heads == 1;
  if (shared && (seed == 1 || seed == 2)) return false;
  for (int i = 0; i <= node->n_inputs; i++) placements[i] = split;
  if (shared) placements[1] = placements[2] = (struct placement){.form = PLACED_WHOLE};
  if (split.dim == 1 && starts) placements[3] = (struct placement){.form = PLACED_WHOLE};
  return true;
}

/* ---- Over a rank's positions ---- */

/* x of all ranks, [batch][heads][positions][columns], in the order of the sequence or, `backwards`, the other way. */
static struct value *of_all_ranks(struct builder *builder, struct value *x, int64_t ranks, int64_t axis,
                                  bool backwards) {
  struct attribute along = attribute_int("axis", 2);
  struct value *whole = op_gather_chunks(builder, x, 2, axis, ranks);
  return backwards ? builder_op(builder, "flip", &whole, 1, &along, 1) : whole;
}

/* Of keys that are backwards, the first that each query of a rank's chunk sees: among the keys of the sequence's first
 * half where that has the chunk, else among all. */
static struct value *starts_of_chunk(struct builder *builder, int64_t batch, int64_t half, int64_t ranks, int64_t axis,
                                     bool from_end) {
  const struct op_parts parted = {.axis = axis, .ranks = ranks, .dim = 0, .blocks = 1, .partial = true};
  struct attribute along = attribute_int("axis", 0);
  struct value *numbers = op_arange(builder, half);
  if (!from_end) numbers = builder_op(builder, "flip", &numbers, 1, &along, 1);
  numbers = op_exchange_parts(builder, "part_of", numbers, parted);
  if (from_end) numbers = builder_op(builder, "flip", &numbers, 1, &along, 1);
  return op_broadcast(builder, numbers, shape_of(2, batch, half / ranks));
}

/* Sliding windows and documents have bounds on both sides of a query's keys. */
static bool gathers(const struct node *node, bool ring) {
  bool one_side = node_int(node, "window") == 0 && node->n_inputs == 3;
  bool same = node->inputs[0]->shape.dim[2] == node->inputs[1]->shape.dim[2];
  return ring ? same : one_side;
}

/* Keys and values are gathered (Grattafiori et al., arXiv:2407.21783, section 3.3.2). Where keys are backwards, a
 * causal mask hides those before a query's first, so that what a rank runs does not depend on its number: its first
 * chunk takes the keys of half the sequence, its other one all. */
static struct value *over_gathered(struct builder *builder, const struct node *node, int64_t ranks, int64_t axis) {
  struct value *q = node->inputs[0], *chunks[2];
  const bool causal = node_int(node, "causal") != 0;
  const int64_t length = q->shape.dim[2] / 2, half = length * ranks;
  struct attribute attributes[] = {attribute_int("causal", 0), attribute_int("window", 0),
                                   attribute_real("scale", node_real(node, "scale"))};
  struct value *k = of_all_ranks(builder, node->inputs[1], ranks, axis, causal);
  struct value *v = of_all_ranks(builder, node->inputs[2], ranks, axis, causal);
  if (!causal) return builder_op(builder, "attention", (struct value *[]){q, k, v}, 3, attributes, 3);
  for (int64_t h = 0; h < 2; h++) {
    struct value *inputs[] = {op_slice(builder, q, 2, h * length, length), k, v,
                              starts_of_chunk(builder, q->shape.dim[0], half, ranks, axis, h == 1)};
    for (int i = 1; i < 3 && h == 0; i++) inputs[i] = op_slice(builder, inputs[i], 2, half, half);
    chunks[h] = builder_op(builder, "attention", inputs, 4, attributes, 3);
  }
  struct attribute along = attribute_int("axis", 2);
  return builder_op(builder, "concat", chunks, 2, &along, 1);
}

static struct value *over_positions(struct builder *builder, const struct node *node, int64_t ranks, int64_t axis,
                                    bool ring) {
  return ring ? op_ring_attention(builder, node, ranks, axis) : over_gathered(builder, node, ranks, axis);
}

/* Each query sees earlier positions alone: the KV cache holds the keys and values of all positions so far. */
static struct value *incremental(struct builder *builder, const struct node *node, struct new_positions *new) {
  if (!node_int(node, "causal") || node->n_inputs > 3) return NULL;
  for (int i = 0; i < 3; i++)
    if (!op_is_at(new->timelines[i], 2)) return NULL;
  struct shape cache = op_with_extent(new->inputs[1]->shape, 2, new->most);
  struct value *inputs[] = {new->inputs[0],
                            new->inputs[1],
                            new->inputs[2],
                            op_cache(builder, new, "k_cache", cache),
                            op_cache(builder, new, "v_cache", cache),
                            new->at};
  struct attribute attributes[] = {attribute_int("window", node_int(node, "window")),
                                   attribute_real("scale", node_real(node, "scale")),
                                   attribute_real("cap", op_attention_cap(node))};
  new->timeline = (struct timeline){.axis = 2};
  new->limited = true;
  return builder_op(builder, "attention_cached", inputs, 6, attributes, 3);
}

/* KV block sizes: `words`, the usual number first, of which each makes other blocks of `keys` than the first. */
static int key_variants(int64_t keys, const char *const words[3], const char **variants) {
  int64_t usual = atoll(words[0]);
  int count = 1;
  variants[0] = words[0];
  for (int i = 1; i < 3; i++) {
    int64_t number = atoll(words[i]);
    if ((number < keys ? number : keys) != (usual < keys ? usual : keys)) variants[count++] = words[i];
  }
  return count;
}

int op_attention_variants(int64_t keys, const char **variants) {
  return key_variants(keys, (const char *const[3]){"256", "128", "64"}, variants);
}

static int variants(const struct node *node, const int64_t *const *strides, const char **variants) {
  (void)strides;
  return op_attention_variants(node->inputs[1]->shape.dim[2], variants);
}

/* cuDNN's: 16 bits, heads of up to 128 columns that 8 divides, no documents, and no window that leaves keys out. `q`:
 * which input it is, with k after it; `starts` likewise. */
static bool is_in_library(const struct node *node, int q, int starts) {
  int64_t columns = op_columns(node->inputs[q]->shape), window = node_int(node, "window");
  bool narrow = window > 0 && window < node->inputs[q + 1]->shape.dim[2];
  return dtype_is_bits16(node->inputs[q]->dtype) && columns % 8 == 0 && columns <= 128 && !narrow &&
         node->n_inputs <= starts;
}

static bool in_library(const struct node *node) {
  return is_in_library(node, 0, 3);
}

static bool in_library_backward(const struct node *node) {
  return is_in_library(node, 1, 6);
}

/* ---- ONNX ---- */

/* [batch][heads][positions][columns] with the heads of keys and those of queries that share one as two dimensions. */
static const char *by_group(struct onnx *onnx, int input, int64_t groups) {
  struct onnx_extent extents[5];
  for (int i = 0; i < 4; i++) extents[i < 2 ? i : i + 1] = onnx_dim(onnx, input, i);
  extents[1] = onnx_dim(onnx, 1, 1);
  extents[2] = onnx_fixed(input == 0 ? groups : 1);
  return groups == 1 ? onnx_input(onnx, input) : onnx_reshape(onnx, onnx_input(onnx, input), extents, 5);
}

static const char *both(struct onnx *onnx, const char *a, const char *b) {
  return a == NULL ? b : onnx_binary(onnx, "And", a, b);
}

/* Which keys a query sees; NULL: all. `starts`: the input that says where documents start; 0: none. */
static const char *seen_onnx(struct onnx *onnx, int starts) {
  const int64_t window = onnx_window(onnx, "window", 1, 2);
  const struct onnx_extent column[] = {onnx_dim(onnx, 0, 2), onnx_fixed(1)};
  const char *seen = NULL, *keys = onnx_range(onnx, onnx_dim(onnx, 1, 2));
  const char *queries = onnx_reshape(onnx, onnx_range(onnx, column[0]), column, 2);
  if (onnx_int(onnx, "causal") != 0) seen = onnx_binary(onnx, "LessOrEqual", keys, queries);
  if (window > 0) {
    const char *first = onnx_binary(onnx, "Sub", queries, onnx_whole(onnx, window));
    seen = both(onnx, seen, onnx_binary(onnx, "Greater", keys, first));
  }
  if (starts > 0) {
    const struct onnx_extent each[] = {onnx_dim(onnx, 0, 0), onnx_fixed(1), onnx_dim(onnx, 0, 2), onnx_fixed(1)};
    const char *first = onnx_cast(onnx, onnx_input(onnx, starts), DTYPE_INT64);
    seen = both(onnx, seen, onnx_binary(onnx, "GreaterOrEqual", keys, onnx_reshape(onnx, first, each, 4)));
  }
  return seen;
}

/* A score as it is, or within (-cap, cap). */
static const char *capped_onnx(struct onnx *onnx, const char *score) {
  if (!onnx_has(onnx, "cap")) return score;
  const char *cap = onnx_real_tensor(onnx, "cap"), *part = onnx_binary(onnx, "Div", score, cap);
  return onnx_binary(onnx, "Mul", onnx_unary(onnx, "Tanh", part), cap);
}

void op_attention_onnx(struct onnx *onnx, int bias, int starts) {
  const struct onnx_extent keys = onnx_dim(onnx, 1, 2);
  const struct onnx_extent heads = onnx_dim(onnx, 0, 1), shared = onnx_dim(onnx, 1, 1);
  if (!onnx_is_same(heads, shared) && (!onnx_is_fixed(heads) || !onnx_is_fixed(shared) || shared.base < 1)) {
    onnx_fail(onnx, "heads that follow the length or the batch, and share keys");
    return;
  }
  const int64_t groups = onnx_is_same(heads, shared) ? 1 : heads.base / shared.base;
  const int rank = groups == 1 ? 4 : 5;
  struct onnx_extent scores[4], result[4], grouped[5];
  for (int i = 0; i < 4; i++) result[i] = onnx_dim(onnx, 0, i);
  for (int i = 0; i < 4; i++) scores[i] = i < 3 ? result[i] : keys;
  for (int i = 0; i < 5; i++) grouped[i] = i < 1 ? result[0] : i == 1 ? onnx_dim(onnx, 1, 1) : scores[i - 1];
  grouped[2] = onnx_fixed(groups);
  const char *k = onnx_exchange(onnx, by_group(onnx, 1, groups), rank, rank - 2, rank - 1);
  const char *x = onnx_binary(onnx, "MatMul", by_group(onnx, 0, groups), k), *seen = seen_onnx(onnx, starts);
  x = capped_onnx(onnx, onnx_binary(onnx, "Mul", x, onnx_real_tensor(onnx, "scale")));
  if (groups > 1) x = onnx_reshape(onnx, x, scores, 4);
  if (bias > 0) x = onnx_binary(onnx, "Add", x, onnx_input(onnx, bias));
  if (seen != NULL) x = onnx_ternary(onnx, "Where", seen, x, onnx_float(onnx, -INFINITY));
  x = onnx_with(onnx, "Softmax", x, "axis", -1);
  if (groups > 1) x = onnx_reshape(onnx, x, grouped, 5);
  x = onnx_binary(onnx, "MatMul", x, by_group(onnx, 2, groups));
  onnx_result(onnx, 0, groups > 1 ? onnx_reshape(onnx, x, result, 4) : x);
}

static void write_onnx(struct onnx *onnx) {
  op_attention_onnx(onnx, 0, onnx_n_inputs(onnx) > 3 ? 3 : 0);
}

/* ---- StableHLO ---- */

/* [batch][heads of keys][queries of all heads that share them][columns] */
static struct hlo lower_grouped(struct stablehlo *hlo, struct hlo x, int64_t shared) {
  const struct shape s = x.shape;
  return hlo_reshape(hlo, x, shape_of(4, s.dim[0], shared, s.dim[1] / shared * s.dim[2], s.dim[3]));
}

/* Which keys a query sees: [queries][keys], or with `starts`, the input that says where documents start (0: none),
 * [batch][1][queries][keys]. False: all. */
static bool lower_seen(struct stablehlo *hlo, int64_t queries, int64_t keys, int starts, struct hlo *seen) {
  const struct node *node = hlo_node(hlo);
  const int64_t window = node_int(node, "window");
  const struct shape square = shape_of(2, queries, keys);
  const struct hlo query = hlo_iota(hlo, square, 0, HLO_I32), key = hlo_iota(hlo, square, 1, HLO_I32);
  struct hlo parts[3];
  int count = 0;
  if (node_int(node, "causal")) parts[count++] = hlo_compare(hlo, "LE", key, query);
  if (window > 0) parts[count++] = hlo_compare(hlo, "GT", key, hlo_sub(hlo, query, hlo_number((double)window)));
  if (starts > 0) {
    const struct hlo first = hlo_raw_input(hlo, starts);
    const struct shape each = shape_of(4, first.shape.dim[0], (int64_t)1, queries, (int64_t)1);
    parts[count++] = hlo_compare(hlo, "GE", key, hlo_reshape(hlo, first, each));
  }
  for (int i = 1; i < count; i++) parts[0] = hlo_binary(hlo, "and", parts[0], parts[i]);
  if (count > 0) *seen = parts[0];
  return count > 0;
}

/* Scores [batch][heads][queries][keys], within the cap where there is one. */
static struct hlo lower_scores(struct stablehlo *hlo, struct hlo q, struct hlo k) {
  const struct shape shape = shape_of(4, q.shape.dim[0], q.shape.dim[1], q.shape.dim[2], k.shape.dim[2]);
  const struct hlo products = hlo_dot(hlo, lower_grouped(hlo, q, k.shape.dim[1]), k, 2, 3, 3);
  const double scale = node_real(hlo_node(hlo), "scale"), cap = op_attention_cap(hlo_node(hlo));
  const struct hlo scores = hlo_mul(hlo, hlo_reshape(hlo, products, shape), hlo_number(cap > 0 ? scale / cap : scale));
  return cap > 0 ? hlo_mul(hlo, hlo_unary(hlo, "tanh", scores), hlo_number(cap)) : scores;
}

/* The same, -infinity where a key is not seen. */
static struct hlo lower_masked(struct stablehlo *hlo, struct hlo scores, int starts) {
  struct hlo seen;
  if (!lower_seen(hlo, scores.shape.dim[2], scores.shape.dim[3], starts, &seen)) return scores;
  return hlo_select(hlo, seen, scores, hlo_number(-INFINITY));
}

/* Scores with the bias, which kernels let sink no lower than the least float32, and without keys that are not seen. */
static struct hlo lower_biased(struct stablehlo *hlo, struct hlo scores) {
  const struct hlo sum = hlo_add(hlo, scores, hlo_input(hlo, hlo_node(hlo)->n_inputs - 1));
  return lower_masked(hlo, hlo_binary(hlo, "maximum", sum, hlo_number(-3e38)), 0);
}

void op_lower_attention(struct stablehlo *hlo, bool biased) {
  const struct hlo q = hlo_raw_input(hlo, 0), k = hlo_raw_input(hlo, 1), v = hlo_input(hlo, 2);
  const int64_t shared = k.shape.dim[1];
  const struct hlo products = lower_scores(hlo, q, k);
  const struct hlo scores =
      biased ? lower_biased(hlo, products) : lower_masked(hlo, products, hlo_node(hlo)->n_inputs > 3 ? 3 : 0);
  const struct hlo highest = hlo_reduce_rows(hlo, "maximum", scores), above = hlo_sub(hlo, scores, highest);
  const struct hlo sum = hlo_unary(hlo, "log", hlo_reduce_rows(hlo, "add", hlo_unary(hlo, "exponential", above)));
  const struct hlo weights = hlo_unary(hlo, "exponential", hlo_sub(hlo, above, sum));
  hlo_result(hlo, 0, hlo_dot(hlo, lower_grouped(hlo, weights, shared), v, 2, 3, 2));
  const struct shape rows = shape_of(3, (int64_t)1, q.shape.dim[0] * q.shape.dim[1], q.shape.dim[2]);
  const struct hlo parts[] = {hlo_reshape(hlo, highest, rows), hlo_reshape(hlo, sum, rows)};
  hlo_result(hlo, 1, biased ? hlo_concat(hlo, parts, 2, 0) : hlo_add(hlo, highest, sum));
}

static void lower(struct stablehlo *hlo) {
  op_lower_attention(hlo, false);
}

static const struct op_kind kind = {
    .name = "attention",
    .lower.write = lower,
    .onnx.write = write_onnx,
    .class = OP_KERNEL,
    .input_names = {"q", "k", "v", "starts"},
    .output_names = {"y", "lse"},
    .infer = op_infer_attention,
    .sequence.along = along,
    .sequence.incremental = incremental,
    .ranks.place = op_place_attention,
    .ranks.divided_dim = 1 + 1,
    .ranks.gathers = gathers,
    .ranks.over_positions = over_positions,
    .gradient = gradient,
    .written_out = op_attention_written_out,
    .lacks_kernel = op_attention_lacks_kernel,
    .layout.accepts = op_attention_accepts,
    .choice.variants = variants,
    .choice.what = "KV block size",
    .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16},
    .cost.flops = op_attention_flops,
    .library.part = LIBRARY_ATTENTION,
    .library.offers = in_library,
    .reference.evaluate = op_attention_reference,
};

/* ---- Backward ---- */

int op_infer_attention_backward(struct arena *arena, const struct node *node, struct shape *shapes, enum dtype *dtypes,
                                const char **error) {
  if (!op_check_shape(arena, node, 0, node->inputs[1]->shape, "like q", error)) return 0;
  if (!op_check_same_float(arena, node, 4, error)) return 0;
  for (int i = 0; i < 3; i++) {
    shapes[i] = node->inputs[1 + i]->shape;
    dtypes[i] = node->inputs[1 + i]->dtype;
  }
  return 3;
}

/* Rows of one query, and the keys of its head. */
struct query {
  const double *dy, *q, *y, *k, *v;
  double *dq, *dk, *dv;
  double lse;
};

static void attend_backward(const struct query *at, struct seen seen, int64_t columns, const struct node *node) {
  const double scale = node_real(node, "scale"), cap = op_attention_cap(node);
  double delta = dot(at->dy, at->y, columns);
  for (int64_t s = seen.first; s < seen.end; s++) {
    const double *k = at->k + s * columns, *v = at->v + s * columns;
    double score = capped(scale * dot(at->q, k, columns), cap), p = exp(score - at->lse);
    double ds = p * (dot(at->dy, v, columns) - delta) * (cap > 0 ? 1 - score / cap * (score / cap) : 1);
    add_scaled(at->dv + s * columns, p, at->dy, columns);
    add_scaled(at->dk + s * columns, scale * ds, at->q, columns);
    add_scaled(at->dq, scale * ds, k, columns);
  }
}

void op_attention_backward_reference(const struct node *node, const double *const *inputs, double *const *outputs) {
  struct size size = size_of(node->inputs[1]->shape, node->inputs[2]->shape);
  for (int o = 0; o < 3; o++)
    for (int64_t i = 0; i < shape_count(node->outputs[o]->shape); i++) outputs[o][i] = 0;
  for (int64_t h = 0; h < size.heads; h++)
    for (int64_t t = 0; t < size.queries; t++) {
      int64_t row = h * size.queries + t, at = row * size.columns, key = keys_of(size, h);
      struct query query = {.dy = inputs[0] + at,
                            .q = inputs[1] + at,
                            .y = inputs[4] + at,
                            .k = inputs[2] + key,
                            .v = inputs[3] + key,
                            .dq = outputs[0] + at,
                            .dk = outputs[1] + key,
                            .dv = outputs[2] + key,
                            .lse = inputs[5][row]};
      struct seen seen = seen_keys(node, size, starts_of(node, inputs, 6, size, h), t);
      attend_backward(&query, seen, size.columns, node);
    }
}

/* Five matmuls where forward has two: P again, dv, dP, dq, dk. */
double op_attention_backward_flops(const struct node *node) {
  return 2.5 * matmul_flops(node, size_of(node->inputs[1]->shape, node->inputs[2]->shape));
}

/* The least multiple of `step` that is not below `length`. */
static int64_t up_to(int64_t length, int64_t step) {
  return (length + step - 1) / step * step;
}

/* Of a backward by cuDNN. The runtime's own: the sum of dy y for each query in float32, and dq where it is added up in
 * parts. The engines', as cuDNN 9.19 and 9.26 report it for compute capabilities 8.0, 9.0 and 10.0: dq in float32, or
 * the slopes of all weights where sums have one order; dk and dv of each head of q where heads share them. */
static int64_t library_workspace(const struct node *node, bool deterministic) {
  struct shape q = node->inputs[1]->shape, k = node->inputs[2]->shape;
  const int64_t heads = q.dim[0] * q.dim[1], columns = q.dim[3];
  int64_t workspace = 4 * heads * q.dim[2] + (8 << 20);
  if (q.dim[1] != k.dim[1]) workspace += 4 * heads * k.dim[2] * columns;
  if (deterministic) return workspace + 2 * heads * up_to(q.dim[2], 64) * up_to(k.dim[2], 64);
  return workspace + 4 * heads * columns * (q.dim[2] + up_to(q.dim[2], 8));
}

int op_attention_backward_variants(int64_t keys, const char **variants) {
  return key_variants(keys, (const char *const[3]){"64", "32", "128"}, variants);
}

static int variants_backward(const struct node *node, const int64_t *const *strides, const char **variants) {
  (void)strides;
  return op_attention_backward_variants(node->inputs[2]->shape.dim[2], variants);
}

/* ln of the sum of e^score of each query is taken from scores in one part or in two. */
static struct hlo lower_above(struct stablehlo *hlo, struct hlo scores, struct hlo lse, bool biased) {
  struct shape column = scores.shape;
  column.dim[3] = 1;
  if (!biased) return hlo_sub(hlo, scores, hlo_reshape(hlo, lse, column));
  for (int part = 0; part < 2; part++)
    scores = hlo_sub(hlo, scores, hlo_reshape(hlo, hlo_slice(hlo, lse, 0, part, 1), column));
  return scores;
}

/* The bias's gradient, where it is learnt: over all samples, where they have one bias. */
static void lower_bias_gradient(struct stablehlo *hlo, struct hlo slope) {
  const struct node *node = hlo_node(hlo);
  const bool one = node->inputs[node->n_inputs - 1]->shape.dim[0] == 1;
  if (!node_int(node, "learnt")) return;
  hlo_result(hlo, 3, one ? hlo_reduce(hlo, "add", slope, shape_of(1, (int64_t)0), true) : slope);
}

void op_lower_attention_backward(struct stablehlo *hlo, bool biased) {
  const struct hlo dy = hlo_input(hlo, 0), q = hlo_raw_input(hlo, 1), k = hlo_raw_input(hlo, 2), v = hlo_input(hlo, 3);
  const struct hlo y = hlo_input(hlo, 4), scores = lower_scores(hlo, q, k);
  const double cap = op_attention_cap(hlo_node(hlo));
  const int64_t shared = k.shape.dim[1];
  const struct hlo masked =
      biased ? lower_biased(hlo, scores) : lower_masked(hlo, scores, hlo_node(hlo)->n_inputs > 6 ? 6 : 0);
  const struct hlo p = hlo_unary(hlo, "exponential", lower_above(hlo, masked, hlo_input(hlo, 5), biased));
  const struct hlo rows = lower_grouped(hlo, dy, shared);
  const struct hlo dp = hlo_reshape(hlo, hlo_dot(hlo, rows, v, 2, 3, 3), p.shape);
  const struct hlo delta = hlo_reduce_rows(hlo, "add", hlo_mul(hlo, dy, y));
  struct hlo slope = hlo_mul(hlo, p, hlo_sub(hlo, dp, delta));
  if (cap > 0) {
    const struct hlo part = hlo_mul(hlo, scores, hlo_number(1 / cap));
    slope = hlo_mul(hlo, slope, hlo_sub(hlo, hlo_number(1), hlo_mul(hlo, part, part)));
  }
  const struct hlo ds = lower_grouped(hlo, hlo_mul(hlo, slope, hlo_number(node_real(hlo_node(hlo), "scale"))), shared);
  hlo_result(hlo, 0, hlo_dot(hlo, ds, hlo_input(hlo, 2), 2, 3, 2));
  hlo_result(hlo, 1, hlo_dot(hlo, ds, lower_grouped(hlo, hlo_input(hlo, 1), shared), 2, 2, 2));
  hlo_result(hlo, 2, hlo_dot(hlo, lower_grouped(hlo, p, shared), rows, 2, 2, 2));
  if (biased) lower_bias_gradient(hlo, slope);
}

static void lower_backward(struct stablehlo *hlo) {
  op_lower_attention_backward(hlo, false);
}

static const struct op_kind kind_backward = {
    .name = "attention_backward",
    .lower.write = lower_backward,
    .class = OP_KERNEL,
    .template_name = "attention",
    .input_names = {"dy", "q", "k", "v", "y", "lse", "starts"},
    .output_names = {"dq", "dk", "dv"},
    .infer = op_infer_attention_backward,
    .layout.accepts = op_attention_accepts,
    .choice.variants = variants_backward,
    .choice.what = "KV block size",
    .memory.accumulates = 1 | 2 | 4,
    .types.autocast = {AUTOCAST_BITS16, AUTOCAST_BITS16},
    .cost.flops = op_attention_backward_flops,
    .library.part = LIBRARY_ATTENTION,
    .library.offers = in_library_backward,
    .library.workspace = library_workspace,
    .reference.evaluate = op_attention_backward_reference,
};

static struct value *attention_from(struct builder *builder, const struct argument *arguments, struct value *starts,
                                    bool causal, int64_t window, double scale) {
  struct value *inputs[] = {op_tensor(arguments, 0), op_tensor(arguments, 1), op_tensor(arguments, 2), starts};
  struct attribute attributes[] = {attribute_int("causal", causal), attribute_int("window", window),
                                   attribute_real("scale", scale)};
  return builder_op(builder, "attention", inputs, starts != NULL ? 4 : 3, attributes, 3);
}

static struct value *attention(struct builder *builder, const struct argument *arguments, bool causal, int64_t window,
                               double scale) {
  return attention_from(builder, arguments, NULL, causal, window, scale);
}

/* 1 / sqrt(columns of q). */
static double usual_scale(const struct argument *arguments) {
  const struct value *q = op_tensor(arguments, 0);
  return q == NULL ? 1 : 1 / sqrt((double)op_columns(q->shape));
}

/* attention(q, k, v, mask) */
static struct value *build(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return attention(builder, arguments, arguments[3].integer != 0, 0, usual_scale(arguments));
}

/* attention_scaled(q, k, v, mask, scale) */
static struct value *build_scaled(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  return attention(builder, arguments, arguments[3].integer != 0, 0, arguments[4].real);
}

/* attention_window(q, k, v, window) */
static struct value *build_window(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  int64_t window = arguments[3].integer;
  if (window >= 1) return attention(builder, arguments, true, window, usual_scale(arguments));
  builder_error(builder, "attention_window: a window must hold at least 1 key, not %lld", (long long)window);
  return NULL;
}

/* attention_documents(q, k, v, starts) */
static struct value *build_documents(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  if (op_tensor(arguments, 3) == NULL) return NULL;
  return attention_from(builder, arguments, op_tensor(arguments, 3), true, 0, usual_scale(arguments));
}

const struct op_file op_file_attention = {
    .name = "attention",
    .kinds = (const struct op_kind *const[]){&kind, &kind_backward, NULL},
    .functions = (const struct op_function[]){{"attention", .build = build},
                                              {"attention_scaled", .build = build_scaled},
                                              {"attention_window", .build = build_window},
                                              {"attention_documents", .build = build_documents},
                                              {0}},
};
