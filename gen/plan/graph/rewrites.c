#include "gen/plan/graph/rewrites.h"

#include <string.h>

#include "gen/plan/graph/epilogues.h"
#include "gen/plan/graph/sums.h"
#include "gen/plan/graph/uses.h"

/* In the order in which they are tried at a node. `<-` names the outputs of a node; what is not named stays as it is.
 */
const struct rewrite rewrites[] = {
    /* ---- Loss and gradient: loss <- cross_entropy(x weight, targets); dx, dweight <- its gradient ----
     * Becomes: loss, dx, dweight <- one kernel, which computes each logit once.
     * If: nothing of the backward but this gradient reads the loss, and the optimizer does not update in it. */
    {"loss_backward", REWRITE_LOSS_BACKWARD, "linear_cross_entropy", .result = "linear_cross_entropy_forward_backward"},
    {"loss_backward", REWRITE_LOSS_BACKWARD, "saved_cross_entropy", .result = "linear_cross_entropy_forward_backward"},

    /* ---- Epilogues: p <- matmul(a, b), with one matrix b for all rows ---- */

    /* y <- p + bias. Becomes: y <- matmul with the epilogue. If: nothing else reads p, and bias is a vector of its
     * columns in its type. */
    {"bias", REWRITE_EPILOGUES, "add", .apply = fuse_bias, .epilogue = EPILOGUE_BIAS},

    /* y <- gelu_tanh(p). Becomes: y, p <- matmul with the epilogue. If: the library can store p (cuBLASLt: 8 divides
     * its columns), and no loop over elements reads y, which would compute gelu on the way. */
    {"gelu", REWRITE_EPILOGUES, "gelu_tanh", .apply = fuse_gelu, .epilogue = EPILOGUE_GELU},

    /* dx <- gelu_tanh_backward(p, x). Becomes: dx <- matmul with the epilogue, over x. If: nothing else reads p. */
    {"gelu", REWRITE_EPILOGUES, "gelu_tanh_backward", .apply = fuse_gelu_slope, .epilogue = EPILOGUE_DGELU},

    /* y <- relu(p). Becomes: y, mask <- matmul with the epilogue; and dx <- relu_backward(q, p), where q is a matmul
     * that nothing else reads, becomes matmul with the epilogue EPILOGUE_DRELU over the mask. If: only such slopes and
     * this node read p, and the library can store the mask (cuBLASLt: 128 divides its columns). */
    {"relu", REWRITE_EPILOGUES, "relu", .apply = fuse_relu, .epilogue = EPILOGUE_RELU},

    /* dbias <- sum of dy over its rows. Becomes: dweight, dbias <- matmul with the epilogue, for dweight <- a matmul
     * whose second factor is dy; or dy, dbias <- the matmul that makes dy, if it has the epilogue of a slope. */
    {"bias", REWRITE_EPILOGUES, "sum", .apply = fuse_bias_gradient, .epilogue = EPILOGUE_SUM},

    /* ---- Sums: what a kernel over rows reads or writes anyway ----
     * If: the sum and its operands have one shape and one type, and no loop over elements makes an operand, which would
     * add on the way. */

    /* x <- a + b; y <- norm(x). Becomes: y, x <- norm over a and b. If: nothing reads x before the norm. */
    {"sum_before", REWRITE_SUMS, "layer_norm", "add_layer_norm", .apply = fuse_sum_before},
    {"sum_before_rms", REWRITE_SUMS, "rms_norm", "add_rms_norm", .apply = fuse_sum_before},

    /* dx <- the gradient of a norm; s <- dx + other. Becomes: s <- the gradient with `other` added. If: nothing else
     * reads dx, and nothing reads the other gradients before s. */
    {"sum_after", REWRITE_SUMS, "layer_norm_backward", "layer_norm_plus_backward", .apply = fuse_sum_after},
    {"sum_after_rms", REWRITE_SUMS, "rms_norm_backward", "rms_norm_plus_backward", .apply = fuse_sum_after},

    /* y <- embedding(weight, tokens); s <- y + positions. Becomes: s <- embedding_plus. If: nothing else reads y;
     * positions may have the last dimensions alone. */
    {"sum_after_embedding", REWRITE_SUMS, "embedding", "embedding_plus", .apply = fuse_repeated_sum_after},

    /* s <- the gradient with `other` added; c <- s in 16 bits. Becomes: s, c <- one kernel. If: c is written to memory
     * in any case, since no loop over elements reads it. */
    {"copy_after", REWRITE_SUMS, "layer_norm_plus_backward", "layer_norm_plus_bits16_backward",
     .apply = fuse_copy_after},
    {"copy_after_rms", REWRITE_SUMS, "rms_norm_plus_backward", "rms_norm_plus_bits16_backward",
     .apply = fuse_copy_after},

    {0},
};

const struct op_kind *rewrite_kind(const struct rewrite *rule) {
  return op_kind_find(rule->result);
}

const struct op_kind *rewrite_result(enum rewrite_phase phase, const struct op_kind *kind) {
  for (const struct rewrite *rule = rewrites; rule->name != NULL; rule++)
    if (rule->phase == phase && strcmp(rule->kind, kind->name) == 0) return rewrite_kind(rule);
  return NULL;
}

bool rewrite_begins_at(bool (*apply)(struct rewriter *, struct node *, const struct rewrite *),
                       const struct op_kind *kind) {
  for (const struct rewrite *rule = rewrites; rule->name != NULL; rule++)
    if (rule->apply == apply && strcmp(rule->kind, kind->name) == 0) return true;
  return false;
}

static bool apply_one(struct rewriter *rewriter, enum rewrite_phase phase, unsigned epilogues, struct node *node) {
  for (const struct rewrite *rule = rewrites; rule->name != NULL; rule++) {
    if (rule->phase != phase || strcmp(rule->kind, node->kind->name) != 0) continue;
    if (rule->epilogue != EPILOGUE_NONE && (epilogues & EPILOGUE_BIT(rule->epilogue)) == 0) continue;
    if (rule->apply(rewriter, node, rule)) return true;
  }
  return false;
}

void rewrite_graph(struct graph *graph, enum rewrite_phase phase, unsigned epilogues) {
  struct rewriter rewriter = {graph, count_uses(graph->arena, graph), graph->next_value};
  for (int r = 0; r < graph->n_regions; r++) {
    struct region *region = graph->regions[r];
    for (int i = 0; i < region->nodes.count; i++)
      if (apply_one(&rewriter, phase, epilogues, region->nodes.items[i])) i = -1; /* nodes before it may match now */
  }
}
