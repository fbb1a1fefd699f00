/* Losses of pairs. Row i of one side belongs to row i of the other, and all other rows of the batch are its negatives:
 * cross-entropy over similarities [n][n] with the diagonal as targets (InfoNCE: van den Oord, Li, Vinyals,
 * arXiv:1807.03748, eq. 4), and its mean over both sides (CLIP: Radford et al., arXiv:2103.00020, figure 3). */
#include "gen/ops/support/support.h"

/* The cross-entropy of each row's own column. */
static struct value *over_rows(struct builder *builder, struct value *similarity) {
  if (similarity == NULL) return NULL;
  struct value *targets = op_arange(builder, similarity->shape.dim[0]);
  return op_apply(builder, "cross_entropy", (struct value *[]){similarity, targets}, 2);
}

static bool is_square(struct builder *builder, const char *function, const struct value *similarity) {
  if (similarity == NULL) return false;
  struct shape shape = similarity->shape;
  if (shape.rank == 2 && shape.dim[0] == shape.dim[1]) return true;
  builder_error(builder, "%s: similarities %s must be square, of each row with each", function,
                shape_text(builder_arena(builder), shape));
  return false;
}

static struct value *build_contrastive(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *similarity = op_tensor(arguments, 0);
  return is_square(builder, "contrastive_loss", similarity) ? over_rows(builder, similarity) : NULL;
}

static struct value *build_clip(struct builder *builder, const struct argument *arguments, int count) {
  (void)count;
  struct value *similarity = op_tensor(arguments, 0);
  if (!is_square(builder, "clip_loss", similarity)) return NULL;
  struct value *columns = over_rows(builder, op_matrix_transpose(builder, similarity));
  return op_scale(builder, op_add(builder, over_rows(builder, similarity), columns), 0.5);
}

const struct op_file op_file_contrastive_loss = {
    .name = "contrastive_loss",
    .functions = (const struct op_function[]){{"contrastive_loss", .build = build_contrastive},
                                              {"clip_loss", .build = build_clip},
                                              {0}},
};
