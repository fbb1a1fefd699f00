/* DLRM, which says how likely a click is (Naumov et al., arXiv:1906.00091): numbers go through a perceptron, each
 * category through a table, and the products of every two of what comes out, after the numbers, through another
 * perceptron. The tensor names are those of its authors' program. data.inputs names numbers, float32 [numbers],
 * categories, float32 [categories] of whole numbers, each below its table's rows, and clicked, 0 or 1.
 *
 * B batch, F categories and one more, W width of an embedding. */
#include <accel/model.h>

enum { MOST_CATEGORIES = 64, MOST_LAYERS = 8 };

struct config {
  int categories;            /* how many of `rows` count */
  int rows[MOST_CATEGORIES]; /* of each category's table */
  /* Widths of layers; the first 0 ends them. The last one of bottom is W, that of top 1. */
  int bottom[MOST_LAYERS], top[MOST_LAYERS];
};

const struct config defaults = {.rows = {0}, .bottom = {0}, .top = {0}};

static bool is_last(const int *widths, int layer) {
  return layer + 1 == MOST_LAYERS || widths[layer + 1] == 0;
}

/* Layers `name`.0, `name`.2 and so on, with ReLU between them, and after the last one where it is `closed`. */
static tensor perceptron(scope s, const char *name, tensor x, const int *widths, bool closed) {
  for (int i = 0; i < MOST_LAYERS && widths[i] > 0; i++) {
    x = linear(nth(s, name, 2 * i), x, widths[i]);
    if (closed || !is_last(widths, i)) x = relu(x);
  }
  return x;
}

/* The products of every two rows of x [B][F][W]: [B][F (F - 1) / 2]. */
static tensor products(tensor x) {
  int count = dim(x, 1), pairs = 0;
  int below[count * count]; /* the diagonal, row by row */
  for (int i = 0; i < count; i++)
    for (int k = 0; k < i; k++) below[pairs++] = i * count + k;
  tensor all = reshape(matmul_transposed(x, x), dim(x, 0), count * count);
  return transpose(take(transpose(all, 0, 1), int_table_of(pairs, below)), 0, 1);
}

/* x [B][1] chooses rows of a table: [B][1][W]. */
static tensor category(scope s, tensor x, int rows, int width) {
  return embedding(s, cast_index(x, rows), rows, width);
}

/* Logits [B]. */
tensor predict(scope s, struct config c, tensor numbers, tensor categories) {
  tensor x = perceptron(s, "bot_l", numbers, c.bottom, true);
  tensor rows = reshape(x, dim(x, 0), 1, dim(x, 1));
  for (int i = 0; i < c.categories; i++)
    rows = concat(1, rows, category(nth(s, "emb_l", i), slice(categories, 1, i, 1), c.rows[i], dim(x, 1)));
  x = perceptron(s, "top_l", concat(1, x, products(rows)), c.top, false);
  return reshape(x, dim(x, 0));
}

tensor model(scope s, struct config c, tensor numbers, tensor categories, tensor clicked) {
  return binary_cross_entropy_with_logits(predict(s, c, numbers, categories), clicked);
}
