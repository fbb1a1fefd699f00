/* Qwen's mixtures of experts: the tensor names and the arithmetic of transformers' Qwen3MoeForCausalLM, and with
 * qk_norm, qkv_bias and shared_expert_intermediate_size set so, of Qwen2MoeForCausalLM. Each token goes to
 * `num_experts_per_tok` of E experts, weighted by the router; an expert's tokens are one product of matrices. With a
 * capacity_factor an expert takes no more than that many times its even part of a sequence's choices, and what comes
 * too late is dropped (arXiv:2101.03961, section 2.2); without, none is.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads of queries, K heads of keys and values, D head_dim. */
#include <accel/model.h>
#include <math.h>

#include "rope.h"

struct config {
  int num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim;
  int hidden_size, vocab_size;
  int num_experts, num_experts_per_tok, moe_intermediate_size;
  int decoder_sparse_step, intermediate_size; /* layers whose number is no multiple of it have no experts */
  int shared_expert_intermediate_size;        /* 0: no expert that all tokens go to */
  bool norm_topk_prob, qk_norm, qkv_bias, tie_word_embeddings;
  double router_aux_loss_coef, capacity_factor;
  double rms_norm_eps, initializer_range;
  struct rope_config rope;
};

const struct config defaults = {
    .decoder_sparse_step = 1,
    .intermediate_size = 0,
    .shared_expert_intermediate_size = 0,
    .norm_topk_prob = true,
    .qk_norm = true,
    .qkv_bias = false,
    .tie_word_embeddings = false,
    .router_aux_loss_coef = 0,
    .capacity_factor = 0,
    .rms_norm_eps = 1e-6,
    .initializer_range = 0.02,
    .rope = ROPE_DEFAULTS(10000),
};

const char *const architectures[] = {
    "Qwen3MoeForCausalLM qk_norm=true qkv_bias=false shared_expert_intermediate_size=0",
    "Qwen2MoeForCausalLM qk_norm=false"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", "qk_norm", .is = "qwen2_moe qwen3_moe"},
    {"head_dim", "head_dim", .absent = "hidden_size/num_attention_heads"},
    {"num_key_value_heads", "num_key_value_heads", .absent = "num_attention_heads"},
    {.field = "capacity_factor", .is = "0"}, /* of training alone */
    {"num_experts num_local_experts", "num_experts"},
    {"norm_topk_prob", "norm_topk_prob", .absent = "false"},
    {"mlp_only_layers.*", .is = "null"},
    {"intermediate_size", "intermediate_size"},
    {"hidden_act", .is = "silu"},
    {"attention_bias", .is = "false"},
    {"use_sliding_window", .is = "false"},
    {"sliding_window"},
    {"max_window_layers"},
    {"layer_types.*", .is = "full_attention"},
    {"rope_parameters.partial_rotary_factor partial_rotary_factor", .is = "1"},
    ROPE_PUBLISHED("10000"),
};

/* ---- Attention ---- */

/* x through a layer as [B][n][T][D]. */
static tensor heads(scope s, tensor x, int n, struct config c) {
  x = c.qkv_bias ? linear(s, x, n * c.head_dim) : linear_no_bias(s, x, n * c.head_dim);
  return transpose(reshape(x, dim(x, 0), dim(x, 1), n, c.head_dim), 1, 2);
}

static tensor attend(scope s, tensor x, struct rope rope, struct config c) {
  tensor q = heads(at(s, "q_proj"), x, c.num_attention_heads, c);
  tensor k = heads(at(s, "k_proj"), x, c.num_key_value_heads, c);
  tensor v = heads(at(s, "v_proj"), x, c.num_key_value_heads, c);
  if (c.qk_norm) {
    q = rms_norm_eps(at(s, "q_norm"), q, c.rms_norm_eps);
    k = rms_norm_eps(at(s, "k_norm"), k, c.rms_norm_eps);
  }
  tensor y = attention(rotary(q, rope.cos, rope.sin), rotary(k, rope.cos, rope.sin), v, CAUSAL);
  y = reshape(transpose(y, 1, 2), dim(x, 0), dim(x, 1), c.num_attention_heads * c.head_dim);
  return linear_no_bias(at(s, "o_proj"), y, c.hidden_size);
}

/* ---- Experts ---- */

/* SwiGLU (Shazeer, arXiv:2002.05202). */
static tensor mlp(scope s, tensor x, int width, struct config c) {
  tensor h = mul(silu(linear_no_bias(at(s, "gate_proj"), x, width)), linear_no_bias(at(s, "up_proj"), x, width));
  return linear_no_bias(at(s, "down_proj"), h, c.hidden_size);
}

/* The same of each expert for the rows that are its own. */
static tensor experts(scope s, tensor rows, tensor starts, struct config c) {
  tensor gate[c.num_experts], up[c.num_experts], down[c.num_experts];
  for (int e = 0; e < c.num_experts; e++) {
    gate[e] = parameter(at(nth(s, "experts", e), "gate_proj"), "weight", c.moe_intermediate_size, c.hidden_size);
    up[e] = parameter(at(nth(s, "experts", e), "up_proj"), "weight", c.moe_intermediate_size, c.hidden_size);
    down[e] = parameter(at(nth(s, "experts", e), "down_proj"), "weight", c.hidden_size, c.moe_intermediate_size);
  }
  tensor h =
      mul(silu(grouped_matmul(rows, starts, c.num_experts, gate)), grouped_matmul(rows, starts, c.num_experts, up));
  return grouped_matmul(h, starts, c.num_experts, down);
}

/* The choices that an expert takes of a sequence. */
static int capacity(int tokens, struct config c) {
  return (int)ceil(c.capacity_factor * tokens * c.num_experts_per_tok / c.num_experts);
}

/* What the layers give, and the sums over those with experts of how often each expert was chosen and of how likely it
 * was, [E] each, as fractions of the tokens. */
struct routed {
  tensor x, chosen, likely;
};

static tensor share_of_tokens(tensor x) {
  return mean(mean(x, 0), 0);
}

static struct routed mixture(scope s, struct routed r, tensor x, struct config c) {
  int tokens = dim(x, 0) * dim(x, 1), k = c.num_experts_per_tok, most = capacity(dim(x, 1), c);
  tensor likely = softmax(linear_no_bias(at(s, "gate"), x, c.num_experts));
  tensor choices = top_k_indices(likely, k), weights = top_k(likely, k);
  if (c.norm_topk_prob) weights = divide(weights, reshape(sum(weights, 2), dim(x, 0), dim(x, 1), 1));
  tensor starts = group_starts(choices, c.num_experts, most), rows = group_rows(choices, c.num_experts, most);
  tensor positions = group_positions(choices, c.num_experts, most);
  tensor h = experts(s, take(reshape(x, tokens, c.hidden_size), rows), starts, c);
  h = mul(h, take(reshape(weights, tokens * k, 1), positions));
  r.x = add(r.x, reshape(index_add(h, rows, tokens), dim(x, 0), dim(x, 1), c.hidden_size));
  if (c.router_aux_loss_coef != 0) {
    r.chosen = add(r.chosen, share_of_tokens(top_k_mask(likely, k)));
    r.likely = add(r.likely, share_of_tokens(likely));
  }
  if (c.shared_expert_intermediate_size == 0) return r;
  tensor shared = mlp(at(s, "shared_expert"), x, c.shared_expert_intermediate_size, c);
  r.x = add(r.x, mul(sigmoid(linear_no_bias(at(s, "shared_expert_gate"), x, 1)), shared));
  return r;
}

/* ---- The model ---- */

static struct routed block(scope s, struct routed r, struct rope rope, bool sparse, struct config c) {
  tensor a = rms_norm_eps(at(s, "input_layernorm"), r.x, c.rms_norm_eps);
  r.x = add(r.x, attend(at(s, "self_attn"), a, rope, c));
  tensor m = rms_norm_eps(at(s, "post_attention_layernorm"), r.x, c.rms_norm_eps);
  if (sparse) return mixture(at(s, "mlp"), r, m, c);
  r.x = add(r.x, mlp(at(s, "mlp"), m, c.intermediate_size, c));
  return r;
}

static inline struct routed layers(scope s, struct config c, tensor tokens) {
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), c.head_dim);
  tensor none = constant(0, c.num_experts);
  struct routed r = {
      .x = embedding(at(s, "model.embed_tokens"), tokens, c.vocab_size, c.hidden_size), .chosen = none, .likely = none};
  for (int i = 0; i < c.num_hidden_layers; i++)
    r = block(nth(s, "model.layers", i), r, rope, (i + 1) % c.decoder_sparse_step == 0, c);
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

/* The second part is the load-balancing loss (arXiv:2101.03961, eq. 4). */
tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  s = init_normal(s, c.initializer_range);
  struct routed r = layers(s, c, tokens);
  tensor loss = cross_entropy(output(s, c, r.x), targets);
  if (c.router_aux_loss_coef == 0) return loss;
  double n = c.num_hidden_layers / c.decoder_sparse_step;
  tensor balance = scale(sum_all(mul(r.chosen, r.likely)), c.num_experts / (n * n));
  return add(loss, scale(balance, c.router_aux_loss_coef));
}

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "qwen3moe", .when = "qk_norm=true"},
    {"general.architecture", .text = "qwen2moe", .when = "qk_norm=false"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {.value = "decoder_sparse_step", .is = "1"},
    {.value = "shared_expert_intermediate_size", .is = "0", .when = "qk_norm=true"},
    {.value = "norm_topk_prob", .is = "true", .when = "qk_norm=true"},
    {.value = "qkv_bias", .is = "false", .when = "qk_norm=true"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size", .when = "qk_norm=false"},
    {.value = "norm_topk_prob", .is = "false", .when = "qk_norm=false"},
    {.value = "qkv_bias", .is = "true", .when = "qk_norm=false"},
    {.value = "qk_norm"},
    {.value = "capacity_factor", .is = "0"},
    {.value = "router_aux_loss_coef"},
    GGUF_LLAMA_KEYS("head_dim", GGUF_KINDS),
};

const struct gguf_tensor gguf_tensors[] = {
    GGUF_LLAMA_ENDS,
    GGUF_LLAMA_ATTENTION("", ""),
    {"model.layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight", .when = "qk_norm=true"},
    {"model.layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight", .when = "qk_norm=true"},
    {"model.layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias", .when = "qk_norm=false"},
    {"model.layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias", .when = "qk_norm=false"},
    {"model.layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias", .when = "qk_norm=false"},
    {"model.layers.#.mlp.gate.weight", "blk.#.ffn_gate_inp.weight", .type = "f32"},
    {"model.layers.#.mlp.experts.*.gate_proj.weight", "blk.#.ffn_gate_exps.weight"},
    {"model.layers.#.mlp.experts.*.up_proj.weight", "blk.#.ffn_up_exps.weight"},
    {"model.layers.#.mlp.experts.*.down_proj.weight", "blk.#.ffn_down_exps.weight"},
    {"model.layers.#.mlp.shared_expert.gate_proj.weight", "blk.#.ffn_gate_shexp.weight", .when = "qk_norm=false"},
    {"model.layers.#.mlp.shared_expert.up_proj.weight", "blk.#.ffn_up_shexp.weight", .when = "qk_norm=false"},
    {"model.layers.#.mlp.shared_expert.down_proj.weight", "blk.#.ffn_down_shexp.weight", .when = "qk_norm=false"},
    {"model.layers.#.mlp.shared_expert_gate.weight", "blk.#.ffn_gate_inp_shexp.weight", .type = "f32",
     .when = "qk_norm=false"},
};
