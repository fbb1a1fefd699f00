/* DeBERTa v2 and v3 (He et al., arXiv:2006.03654; arXiv:2111.09543) with a head that labels a text: the tensor names
 * and the arithmetic of transformers' DebertaV2ForSequenceClassification, and its losses. A score of attention adds to
 * that of two tokens those of each with their distance (disentangled attention, section 3.1 of the first). Its
 * inputs are the arrays that `accel-gen data --label` writes.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads, D = C / H, S distances each way, L num_labels. */
#include <accel/model.h>
#include <math.h>
#include <stdlib.h>

enum norm_rel { NORM_REL_NONE, NORM_REL_LAYER_NORM };

struct config {
  int num_hidden_layers, num_attention_heads, hidden_size, intermediate_size, vocab_size, num_labels;
  int max_position_embeddings, max_relative_positions, position_buckets; /* -1: as many as positions; none */
  int conv_kernel_size;                                                  /* 0: no convolution after the first layer */
  bool position_biased_input, share_att_key;
  enum norm_rel norm_rel_ebd;
  double layer_norm_eps, initializer_range, hidden_dropout_prob;
};

const struct config defaults = {
    .max_position_embeddings = 512,
    .max_relative_positions = -1,
    .position_buckets = -1,
    .conv_kernel_size = 0,
    .position_biased_input = true,
    .share_att_key = false,
    .norm_rel_ebd = NORM_REL_NONE,
    .layer_norm_eps = 1e-7,
    .initializer_range = 0.02,
    .hidden_dropout_prob = 0,
};

const char *const architectures[] = {"DebertaV2ForSequenceClassification"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "deberta-v2"},
    {"num_labels id2label.#", "num_labels"},
    {"norm_rel_ebd", "norm_rel_ebd", .absent = "none"},
    {"position_biased_input", "position_biased_input", .absent = "true"},
    {"relative_attention", .is = "true", .absent = "false"},
    {"pos_att_type.#", .is = "2"},
    {"pos_att_type pos_att_type.*", .is = "p2c|c2p c2p|p2c p2c c2p", .absent = "none"},
    {"embedding_size", .is = "hidden_size"},
    {"attention_head_size", .is = "hidden_size/num_attention_heads"},
    {"type_vocab_size", .is = "0"},
    {"hidden_act", .is = "gelu"},
    {"conv_act", .is = "gelu"},
    {"conv_groups", .is = "1"},
    {"pooler_hidden_act", .is = "gelu"},
    {"pooler_hidden_size", .is = "hidden_size"},
    {"tie_word_embeddings"},
    {"legacy"}, /* of another head */
};

struct published_inputs published_inputs(struct config c) {
  return (struct published_inputs){{{"input_ids", {c.max_position_embeddings}, .whole = true},
                                    {"attention_mask", {c.max_position_embeddings}},
                                    {"labels", .whole = c.num_labels > 1}}};
}

static tensor norm(scope s, tensor x, struct config c) {
  return layer_norm_eps(s, x, c.layer_norm_eps);
}

/* ---- Distances ---- */

static int farthest(struct config c) {
  return c.max_relative_positions < 1 ? c.max_position_embeddings : c.max_relative_positions;
}

/* Rows of the table of distances each way: S. */
static int span(struct config c) {
  return c.position_buckets > 0 ? c.position_buckets : farthest(c);
}

/* The row of a query that is `distance` positions after its key: one each when near, then by the logarithm. */
static int row_of(int distance, struct config c) {
  int middle = c.position_buckets / 2, far = abs(distance), rows = span(c);
  if (c.position_buckets > 0 && far > middle) {
    float ratio = logf((float)far / (float)middle) / logf((float)(farthest(c) - 1) / (float)middle);
    far = (int)ceilf(ratio * (float)(middle - 1)) + middle;
  }
  int row = rows + (distance < 0 ? -far : far);
  return row < 0 ? 0 : row > 2 * rows - 1 ? 2 * rows - 1 : row;
}

/* Rows of x [2 S][H D] for 2 T - 1 distances from `first` on, by `step`: [H][2 T - 1][D]. */
static tensor by_distance(tensor x, int positions, int first, int step, struct config c) {
  int count = 2 * positions - 1;
  int rows[count];
  for (int i = 0; i < count; i++) rows[i] = row_of(first + i * step, c);
  x = take(x, int_table_of(count, rows));
  return transpose(reshape(x, count, c.num_attention_heads, c.hidden_size / c.num_attention_heads), 0, 1);
}

/* Columns T - 1 - t to 2 T - 2 - t of each row t, [B][H][T][2 T - 1] to [B][H][T][T]: all rows are one list, from which
 * each takes one number less than it has. */
static tensor slide(tensor x) {
  int batch = dim(x, 0), count = dim(x, 1), positions = dim(x, 2), columns = dim(x, 3);
  x = reshape(pad(x, 3, 1, 0), batch, count, positions * (columns + 1));
  x = reshape(slice(x, 2, positions, positions * columns), batch, count, positions, columns);
  return slice(x, 3, 0, positions);
}

/* ---- Layers ---- */

/* [B][T][C] as [B][H][T][D]. */
static tensor heads(tensor x, struct config c) {
  x = reshape(x, dim(x, 0), dim(x, 1), c.num_attention_heads, c.hidden_size / c.num_attention_heads);
  return transpose(x, 1, 2);
}

/* What follows every part: a layer, and the norm of its sum with x. */
static tensor output(scope s, tensor y, tensor x, struct config c) {
  y = dropout(linear(at(s, "dense"), y, c.hidden_size), c.hidden_dropout_prob);
  return norm(at(s, "LayerNorm"), add(y, x), c);
}

/* [B][H][T][T]: what scores gain by distances, of which `table` [2 S][C] has the rows, times sqrt(D). */
static tensor by_distances(scope s, tensor q, tensor k, tensor table, struct config c) {
  int positions = dim(q, 2);
  table = dropout(table, c.hidden_dropout_prob);
  scope of_keys = at(s, c.share_att_key ? "key_proj" : "pos_key_proj");
  scope of_queries = at(s, c.share_att_key ? "query_proj" : "pos_query_proj");
  tensor keys = by_distance(linear(of_keys, table, c.hidden_size), positions, positions - 1, -1, c);
  tensor queries = by_distance(linear(of_queries, table, c.hidden_size), positions, 1 - positions, 1, c);
  tensor of_query = slide(einsum("bhtd,hcd->bhtc", q, keys)), of_key = slide(einsum("bhtd,hcd->bhtc", k, queries));
  return add(of_query, transpose(of_key, 2, 3));
}

static tensor attend(scope s, tensor x, tensor table, tensor hidden, struct config c) {
  tensor q = heads(linear(at(s, "self.query_proj"), x, c.hidden_size), c);
  tensor k = heads(linear(at(s, "self.key_proj"), x, c.hidden_size), c);
  tensor v = heads(linear(at(s, "self.value_proj"), x, c.hidden_size), c);
  double parts = 3; /* of a score, by which all of it is scaled */
  tensor distances = scale(by_distances(at(s, "self"), q, k, table, c), 1 / sqrt(dim(q, 3) * parts));
  tensor y = attention_bias(scale(q, 1 / sqrt(parts)), k, v, add(distances, hidden));
  y = reshape(transpose(y, 1, 2), dim(x, 0), dim(x, 1), c.hidden_size);
  return output(at(s, "output"), y, x, c);
}

static tensor layer(scope s, tensor x, tensor table, tensor hidden, struct config c) {
  x = attend(at(s, "attention"), x, table, hidden, c);
  tensor h = gelu(linear(at(s, "intermediate.dense"), x, c.intermediate_size));
  return output(at(s, "output"), h, x, c);
}

/* After the first layer, what a convolution over the words adds: x is what the layer gives, mask [B][T][1]. */
static tensor convolve(scope s, tensor words, tensor x, tensor mask, struct config c) {
  tensor y =
      conv1d(at(s, "conv"), transpose(words, 1, 2), c.hidden_size, c.conv_kernel_size, 1, (c.conv_kernel_size - 1) / 2);
  y = gelu(dropout(mul(transpose(y, 1, 2), mask), c.hidden_dropout_prob));
  return mul(norm(at(s, "LayerNorm"), add(x, y), c), mask);
}

static tensor embed(scope s, tensor tokens, tensor mask, struct config c) {
  tensor x = embedding(at(s, "word_embeddings"), tokens, c.vocab_size, c.hidden_size);
  if (c.position_biased_input) {
    tensor table = parameter(at(s, "position_embeddings"), "weight", c.max_position_embeddings, c.hidden_size);
    x = add(x, slice(table, 0, 0, dim(tokens, 1)));
  }
  return dropout(mul(norm(at(s, "LayerNorm"), x, c), mask), c.hidden_dropout_prob);
}

/* input_ids [B][T] to what the last layer gives, [B][T][C]. */
static tensor encode(scope s, tensor tokens, tensor attention_mask, struct config c) {
  tensor mask = reshape(attention_mask, dim(tokens, 0), dim(tokens, 1), 1), hidden = padding_bias(attention_mask);
  tensor table = parameter(at(s, "encoder.rel_embeddings"), "weight", 2 * span(c), c.hidden_size);
  if (c.norm_rel_ebd == NORM_REL_LAYER_NORM) table = norm(at(s, "encoder.LayerNorm"), table, c);
  tensor words = embed(at(s, "embeddings"), tokens, mask, c), x = words;
  for (int i = 0; i < c.num_hidden_layers; i++) {
    x = layer(nth(s, "encoder.layer", i), x, table, hidden, c);
    if (i == 0 && c.conv_kernel_size > 0) x = convolve(at(s, "encoder.conv"), words, x, mask, c);
  }
  return x;
}

/* input_ids [B][T], attention_mask [B][T], 1 for a token and 0 for padding, to logits [B][L], from what the encoder
 * makes of the first token. */
tensor predict(scope s, struct config c, tensor input_ids, tensor attention_mask) {
  s = init_normal(s, c.initializer_range);
  tensor x = encode(at(s, "deberta"), input_ids, attention_mask, c);
  x = reshape(slice(x, 1, 0, 1), dim(x, 0), c.hidden_size);
  x = gelu(linear(at(s, "pooler.dense"), x, c.hidden_size));
  return linear(at(s, "classifier"), dropout(x, c.hidden_dropout_prob), c.num_labels);
}

/* labels [B], the number of a class or, with one label, a value; or [B][L], 1 for each label that is right. */
tensor model(scope s, struct config c, tensor input_ids, tensor attention_mask, tensor labels) {
  tensor logits = predict(s, c, input_ids, attention_mask);
  if (rank(labels) == 2) return binary_cross_entropy_with_logits(logits, labels);
  if (c.num_labels == 1) return mse_loss(reshape(logits, dim(logits, 0)), labels);
  return cross_entropy(logits, labels);
}
