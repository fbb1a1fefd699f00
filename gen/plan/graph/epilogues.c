#include "gen/plan/graph/epilogues.h"

#include "gen/ir/op.h"
#include "gen/ir/region.h"
#include "gen/ops/support/nodes.h"
#include "gen/plan/graph/rewrites.h"
#include "gen/plan/graph/uses.h"

/* Columns of what is saved come in such multiples: of gelu's operand, of relu's bits (cuBLASLt's
 * CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD); and bits in such elements. */
enum { GELU_COLUMNS = 8, MASK_COLUMNS = 128, MASK_BITS = 32 };

/* ---- Matmuls ---- */

/* The epilogues of a matmul with one matrix for all rows; false where the node is none. */
static bool is_matmul(const struct node *node, unsigned *epilogues) {
  *epilogues = node->kind->library.epilogues;
  return node->kind->library.epilogues != 0 || (node->kind->library.matmul && node->inputs[1]->shape.rank == 2);
}

/* The matmul, with no more than these epilogues, that makes a value where it is used; NULL: none. */
static struct node *matmul_of(const struct value *value, const struct node *user, unsigned allowed) {
  unsigned has;
  if (value->kind != VALUE_RESULT || value->region != user->region || value->index != 0) return NULL;
  struct node *node = value->producer;
  if (node->again != user->again || !is_matmul(node, &has) || (has & ~allowed) != 0) return NULL;
  return node;
}

static int64_t columns_of(const struct value *value) {
  return value->shape.dim[value->shape.rank - 1];
}

static bool is_used_once(const struct rewriter *rewriter, const struct value *value) {
  return value->id < rewriter->n_values && rewriter->uses[value->id] == 1;
}

/* ---- One node instead of two ---- */

/* Puts a matmul with one more epilogue, over the matmul's inputs and `more` (may be NULL), into the position of `last`,
 * and takes away both `matmul` and `other`. Its first output is y. */
static struct node *fuse_epilogue(struct rewriter *rewriter, struct node *matmul, struct node *other, struct node *last,
                                  unsigned epilogues, struct value *more, struct value *y) {
  struct value *inputs[4];
  int count = matmul->n_inputs;
  for (int i = 0; i < count; i++) inputs[i] = matmul->inputs[i];
  if (more != NULL) inputs[count++] = more;
  struct node *node = node_new(rewriter->graph, op_matmul_with(epilogues), inputs, count, matmul->where);
  node->autocast = matmul->autocast;
  node->again = matmul->again;
  region_insert(rewriter->graph, last->region, region_position(last), node);
  region_remove(last->region, matmul);
  region_remove(last->region, other);
  node_take_output(rewriter->graph, node, y);
  return node;
}

/* ---- Epilogues ---- */

static bool is_vector_of(const struct value *value, const struct value *rows) {
  return shape_count(value->shape) == columns_of(rows) && value->shape.rank == 1 && value->dtype == rows->dtype;
}

bool fuse_bias(struct rewriter *rewriter, struct node *node, const struct rewrite *rule) {
  for (int i = 0; i < 2; i++) {
    struct value *rows = node->inputs[i], *bias = node->inputs[1 - i], *y = node->outputs[0];
    struct node *matmul = matmul_of(rows, node, 0);
    if (matmul == NULL || !is_used_once(rewriter, rows) || rows->dtype != y->dtype || !is_vector_of(bias, rows))
      continue;
    fuse_epilogue(rewriter, matmul, node, node, EPILOGUE_BIT(rule->epilogue), bias, y);
    return true;
  }
  return false;
}

bool fuse_gelu(struct rewriter *rewriter, struct node *node, const struct rewrite *rule) {
  struct value *x = node->inputs[0], *y = node->outputs[0];
  struct node *matmul = matmul_of(x, node, EPILOGUE_BIT(EPILOGUE_BIAS));
  if (matmul == NULL || x->dtype != y->dtype || columns_of(x) % GELU_COLUMNS != 0) return false;
  if (goes_to_loops(node->region, y)) return false; /* which do the curve on their way */
  unsigned epilogues = matmul->kind->library.epilogues | EPILOGUE_BIT(rule->epilogue);
  node_take_output(rewriter->graph, fuse_epilogue(rewriter, matmul, node, node, epilogues, NULL, y), x);
  return true;
}

/* The slope's factor is a matmul that nothing else uses. */
static struct node *factor_of(const struct rewriter *rewriter, const struct node *slope) {
  const struct value *dy = slope->inputs[0];
  bool alone = is_used_once(rewriter, dy) && dy->dtype == slope->outputs[0]->dtype;
  return alone ? matmul_of(dy, slope, 0) : NULL;
}

bool fuse_gelu_slope(struct rewriter *rewriter, struct node *node, const struct rewrite *rule) {
  struct node *matmul = factor_of(rewriter, node);
  struct value *x = node->inputs[1], *dx = node->outputs[0];
  if (matmul == NULL || x->dtype != dx->dtype || columns_of(x) % GELU_COLUMNS != 0) return false;
  fuse_epilogue(rewriter, matmul, node, node, EPILOGUE_BIT(rule->epilogue), x, dx);
  return true;
}

/* Whether a node is the slope of `relu` at x. */
static bool is_slope_at(const struct node *node, const struct op_kind *relu, const struct value *x) {
  return node->kind == relu->slope && node->inputs[1] == x && node->inputs[0] != x;
}

/* Slopes of relu at x get the mask where their factor is a matmul; else y, which is positive where x is. */
static void mask_slopes(struct rewriter *rewriter, const struct op_kind *relu, const struct value *x, struct value *y,
                        struct value *mask) {
  for (int r = 0; r < rewriter->graph->n_regions; r++) {
    struct region *region = rewriter->graph->regions[r];
    for (int i = 0; i < region->nodes.count; i++) {
      struct node *node = region->nodes.items[i];
      if (!is_slope_at(node, relu, x)) continue;
      struct node *matmul = factor_of(rewriter, node);
      node->inputs[1] = y;
      if (matmul == NULL) continue;
      fuse_epilogue(rewriter, matmul, node, node, EPILOGUE_BIT(EPILOGUE_DRELU), mask, node->outputs[0]);
      i--;
    }
  }
}

static int count_slopes(const struct graph *graph, const struct op_kind *relu, const struct value *x) {
  int count = 0;
  for (int r = 0; r < graph->n_regions; r++)
    for (int i = 0; i < graph->regions[r]->nodes.count; i++)
      count += is_slope_at(graph->regions[r]->nodes.items[i], relu, x);
  return count;
}

bool fuse_relu(struct rewriter *rewriter, struct node *node, const struct rewrite *rule) {
  struct value *x = node->inputs[0], *y = node->outputs[0];
  struct node *matmul = matmul_of(x, node, EPILOGUE_BIT(EPILOGUE_BIAS));
  if (matmul == NULL || x->dtype != y->dtype || columns_of(x) % MASK_COLUMNS != 0) return false;
  if (x->id >= rewriter->n_values || rewriter->uses[x->id] != 1 + count_slopes(rewriter->graph, node->kind, x))
    return false;
  unsigned epilogues = matmul->kind->library.epilogues | EPILOGUE_BIT(rule->epilogue);
  struct node *fused = fuse_epilogue(rewriter, matmul, node, node, epilogues, NULL, y);
  struct shape bits = x->shape;
  bits.dim[bits.rank - 1] /= MASK_BITS;
  struct value *mask = node_output(rewriter->graph, fused, bits, DTYPE_INT32);
  mask->name = x->name;
  mask_slopes(rewriter, node->kind, x, y, mask);
  return true;
}

/* ---- The gradient of a bias ---- */

/* Whether a view is its input's elements in their order. */
static bool is_reshape(const struct node *node) {
  int64_t in[MAX_RANK], out[MAX_RANK], dense[MAX_RANK], offset = 0;
  const struct value *x = node->inputs[0], *y = node->outputs[0];
  if (node->kind->class != OP_VIEW || shape_count(x->shape) != shape_count(y->shape)) return false;
  shape_dense_strides(x->shape, in);
  shape_dense_strides(y->shape, dense);
  if (!node->kind->layout.view(node, in, &offset, out) || offset != 0) return false;
  for (int i = 0; i < y->shape.rank; i++)
    if (y->shape.dim[i] > 1 && out[i] != dense[i]) return false;
  return true;
}

static const struct value *without_reshapes(const struct value *value) {
  while (value->producer != NULL && is_reshape(value->producer)) value = value->producer->inputs[0];
  return value;
}

/* Whether a sum is one over all dimensions but the last. */
static bool is_over_rows(const struct node *sum) {
  const struct value *x = sum->inputs[0], *y = sum->outputs[0];
  return y->shape.rank == 1 && x->shape.rank > 1 && op_along(sum, 0, 0) == x->shape.rank - 1;
}

/* A matmul after the sum whose second factor is what is summed, and all of whose result is of the sum's type. */
static struct node *matmul_over(const struct node *sum, const struct value *rows) {
  const struct region *region = sum->region;
  for (int i = region_position(sum) + 1; i < region->nodes.count; i++) {
    struct node *node = region->nodes.items[i];
    if (!node->kind->library.matmul || node->again != sum->again || node->inputs[1]->shape.rank != 2) continue;
    const struct value *factor = node->inputs[1];
    bool fits = columns_of(factor) == columns_of(sum->inputs[0]) && node->inputs[0]->shape.rank == 2;
    if (!fits || without_reshapes(factor) != rows || node->outputs[0]->dtype != sum->outputs[0]->dtype) continue;
    return is_used_before(region, sum->outputs[0], i) ? NULL : node;
  }
  return NULL;
}

/* The matmul that made what is summed, with the slope in it. */
static struct node *slope_matmul(const struct node *sum, const struct value *rows) {
  const unsigned slopes = EPILOGUE_BIT(EPILOGUE_DGELU) | EPILOGUE_BIT(EPILOGUE_DRELU);
  struct node *matmul = matmul_of(rows, sum, slopes);
  bool fits = matmul != NULL && matmul->kind->library.epilogues != 0 && rows->dtype == sum->outputs[0]->dtype;
  return fits && columns_of(rows) == columns_of(sum->inputs[0]) ? matmul : NULL;
}

bool fuse_bias_gradient(struct rewriter *rewriter, struct node *node, const struct rewrite *rule) {
  if (!is_over_rows(node)) return false;
  const struct value *rows = without_reshapes(node->inputs[0]);
  struct node *matmul = matmul_over(node, rows), *slope = slope_matmul(node, rows);
  if (matmul == NULL && slope == NULL) return false;
  struct node *taker = matmul != NULL ? matmul : slope;
  unsigned epilogues = taker->kind->library.epilogues | EPILOGUE_BIT(rule->epilogue);
  struct value *y = taker->outputs[0];
  node_take_output(rewriter->graph, fuse_epilogue(rewriter, taker, node, taker, epilogues, NULL, y), node->outputs[0]);
  return true;
}
