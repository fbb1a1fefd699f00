/* Mixtral (Jiang et al., arXiv:2401.04088): the tensor names and the arithmetic of transformers' MixtralForCausalLM, so
 * that its checkpoints load from their model.safetensors. Each token goes to `num_experts_per_tok` of E experts,
 * weighted by the router. Every expert is computed for every token, and counts where it was chosen; or with
 * grouped_experts for its own tokens alone, whose number is known when the program runs.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads of queries, K heads of keys and values, D head_dim. */
#include <accel/model.h>

#include "rope.h"

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
  int hidden_size, intermediate_size, vocab_size;
  int num_local_experts, num_experts_per_tok;
  double rms_norm_eps, initializer_range;
  double router_aux_loss_coef; /* 0: the router is not asked to use all experts alike */
  bool tie_word_embeddings, grouped_experts;
  struct rope_config rope;
};

const struct config defaults = {
    .num_local_experts = 8,
    .num_experts_per_tok = 2,
    .router_aux_loss_coef = 0,
    .rms_norm_eps = 1e-6,
    .initializer_range = 0.02,
    .tie_word_embeddings = false,
    .grouped_experts = false,
    .rope = ROPE_DEFAULTS(10000),
};

const char *const architectures[] = {"MixtralForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "mixtral"},
    {"head_dim", "head_dim", .absent = "hidden_size/num_attention_heads"},
    {"num_key_value_heads", "num_key_value_heads", .absent = "num_attention_heads"},
    {"sliding_window", .is = "null"},
    {"rms_norm_eps", "rms_norm_eps", .absent = "1e-5"},
    {"hidden_act", .is = "silu"},
    {"router_jitter_noise"},
    {.field = "grouped_experts"}, /* the same, one expert after the other */
    {"rope_parameters.partial_rotary_factor partial_rotary_factor", .is = "1"},
    ROPE_PUBLISHED("1000000"),
};

/* [B][T][n D] as [B][n][T][D]. */
static tensor heads(tensor x, int n) {
  return transpose(reshape(x, dim(x, 0), dim(x, 1), n, dim(x, 2) / n), 1, 2);
}

/* [B][H][T][D] as [B][T][H D]. */
static tensor merge(tensor x) {
  x = transpose(x, 1, 2);
  return reshape(x, dim(x, 0), dim(x, 1), dim(x, 2) * dim(x, 3));
}

static tensor attend(scope s, tensor x, struct rope rope, struct config c) {
  tensor q = linear_no_bias(at(s, "q_proj"), x, c.num_attention_heads * c.head_dim);
  tensor k = linear_no_bias(at(s, "k_proj"), x, c.num_key_value_heads * c.head_dim);
  tensor v = linear_no_bias(at(s, "v_proj"), x, c.num_key_value_heads * c.head_dim);
  q = rotary(heads(q, c.num_attention_heads), rope.cos, rope.sin);
  k = rotary(heads(k, c.num_key_value_heads), rope.cos, rope.sin);
  tensor y = attention(q, k, heads(v, c.num_key_value_heads), CAUSAL);
  return linear_no_bias(at(s, "o_proj"), merge(y), c.hidden_size);
}

/* SwiGLU (Shazeer, arXiv:2002.05202), each token's row times its weight [B][T][1]. */
static tensor expert(scope s, tensor x, tensor weight, struct config c) {
  tensor gate = silu(linear_no_bias(at(s, "w1"), x, c.intermediate_size));
  tensor up = linear_no_bias(at(s, "w3"), x, c.intermediate_size);
  return mul(linear_no_bias(at(s, "w2"), mul(gate, up), c.hidden_size), weight);
}

/* The sum of what each expert makes of the rows of x that are its own, times their weights [B][T][E]. */
static tensor by_groups(scope s, tensor x, tensor likely, tensor weights, struct config c) {
  int tokens = dim(x, 0) * dim(x, 1), k = c.num_experts_per_tok, n = c.num_local_experts;
  tensor choices = top_k_indices(likely, k), starts = group_starts(choices, n, 0), rows = group_rows(choices, n, 0);
  tensor w1[n], w2[n], w3[n];
  for (int e = 0; e < n; e++) {
    scope own = nth(s, "experts", e);
    w1[e] = parameter(at(own, "w1"), "weight", c.intermediate_size, c.hidden_size);
    w3[e] = parameter(at(own, "w3"), "weight", c.intermediate_size, c.hidden_size);
    w2[e] = parameter(at(own, "w2"), "weight", c.hidden_size, c.intermediate_size);
  }
  tensor own = take(reshape(x, tokens, c.hidden_size), rows);
  tensor h = mul(silu(grouped_matmul(own, starts, n, w1)), grouped_matmul(own, starts, n, w3));
  tensor chosen = take(reshape(top_k(weights, k), tokens * k, 1), group_positions(choices, n, 0));
  h = mul(grouped_matmul(h, starts, n, w2), chosen);
  return reshape(index_add(h, rows, tokens), dim(x, 0), dim(x, 1), c.hidden_size);
}

/* A stream of tokens, and over the layers so far the sums of how often each expert was chosen and of how likely it was,
 * [E] each, as fractions of the tokens. */
struct routed {
  tensor x, chosen, likely;
};

static tensor share_of_tokens(tensor x) {
  return mean(mean(x, 0), 0);
}

static struct routed moe(scope s, struct routed r, tensor x, struct config c) {
  tensor likely = softmax(linear_no_bias(at(s, "gate"), x, c.num_local_experts));
  tensor chosen = top_k_mask(likely, c.num_experts_per_tok);
  tensor weights = mul(likely, chosen);
  weights = divide(weights, reshape(sum(weights, 2), dim(x, 0), dim(x, 1), 1));
  if (c.grouped_experts)
    r.x = add(r.x, by_groups(s, x, likely, weights, c));
  else
    for (int e = 0; e < c.num_local_experts; e++)
      r.x = add(r.x, expert(nth(s, "experts", e), x, slice(weights, 2, e, 1), c));
  r.chosen = add(r.chosen, share_of_tokens(chosen));
  r.likely = add(r.likely, share_of_tokens(likely));
  return r;
}

static struct routed block(scope s, struct routed r, struct rope rope, struct config c) {
  tensor a = rms_norm_eps(at(s, "input_layernorm"), r.x, c.rms_norm_eps);
  r.x = add(r.x, attend(at(s, "self_attn"), a, rope, c));
  tensor m = rms_norm_eps(at(s, "post_attention_layernorm"), r.x, c.rms_norm_eps);
  return moe(at(s, "block_sparse_moe"), r, m, c);
}

static inline struct routed layers(scope s, struct config c, tensor tokens) {
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), c.head_dim);
  tensor none = constant(0, c.num_local_experts);
  struct routed r = {
      .x = embedding(at(s, "model.embed_tokens"), tokens, c.vocab_size, c.hidden_size), .chosen = none, .likely = none};
  for (int i = 0; i < c.num_hidden_layers; i++) r = block(nth(s, "model.layers", i), r, rope, c);
  return r;
}

static tensor output(scope s, struct config c, tensor x) {
  x = rms_norm_eps(at(s, "model.norm"), x, c.rms_norm_eps);
  scope head = c.tie_word_embeddings ? at(s, "model.embed_tokens") : at(s, "lm_head");
  return matmul_transposed(x, parameter(head, "weight", c.vocab_size, c.hidden_size));
}

/* tokens [B][T] to logits [B][T][vocab_size]. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  return output(s, c, layers(s, c, tokens).x);
}

/* The second part is the load-balancing loss (Fedus, Zoph, Shazeer, arXiv:2101.03961, eq. 4). */
tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  s = init_normal(s, c.initializer_range);
  struct routed r = layers(s, c, tokens);
  tensor loss = cross_entropy(output(s, c, r.x), targets);
  if (c.router_aux_loss_coef == 0) return loss;
  double n = c.num_hidden_layers;
  tensor balance = scale(sum_all(mul(r.chosen, r.likely)), c.num_local_experts / (n * n));
  return add(loss, scale(balance, c.router_aux_loss_coef));
}

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "llama"},
    {"expert_count", "num_local_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {.value = "router_aux_loss_coef"},
    {.value = "grouped_experts"},
    GGUF_LLAMA_KEYS("head_dim", GGUF_KINDS),
};

const struct gguf_tensor gguf_tensors[] = {
    GGUF_LLAMA_ENDS,
    GGUF_LLAMA_ATTENTION(GGUF_PAIRS("num_attention_heads"), GGUF_PAIRS("num_key_value_heads")),
    {"model.layers.#.block_sparse_moe.gate.weight", "blk.#.ffn_gate_inp.weight", .type = "f32"},
    {"model.layers.#.block_sparse_moe.experts.*.w1.weight", "blk.#.ffn_gate_exps.weight"},
    {"model.layers.#.block_sparse_moe.experts.*.w2.weight", "blk.#.ffn_down_exps.weight"},
    {"model.layers.#.block_sparse_moe.experts.*.w3.weight", "blk.#.ffn_up_exps.weight"},
};
