/* DeepSeek-V3 (DeepSeek-AI, arXiv:2412.19437): the tensor names and the arithmetic of transformers'
 * DeepseekV3ForCausalLM, so that its checkpoints load from their model.safetensors. Keys and values of all heads are
 * made of one narrow row a token, and one rotated key serves all heads (multi-head latent attention,
 * section 2.1.1). Experts are chosen by sigmoids within the best of their groups, with a bias for the choice alone
 * (section 2.1.2); the first layers have none.
 *
 * B batch, T tokens of a sequence, C hidden_size, H heads, N qk_nope_head_dim, R qk_rope_head_dim, V v_head_dim,
 * E n_routed_experts, G n_group. */
#include <accel/model.h>

#include "rope.h"

struct config {
  int num_hidden_layers, num_attention_heads, hidden_size, vocab_size;
  int q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim; /* q_lora_rank 0: not narrowed */
  int first_k_dense_replace, intermediate_size;                                  /* the layers without experts */
  int n_routed_experts, n_shared_experts, num_experts_per_tok, n_group, topk_group, moe_intermediate_size;
  bool norm_topk_prob, rope_interleave, tie_word_embeddings;
  double routed_scaling_factor, rms_norm_eps, initializer_range;
  struct rope_config rope;
};

const struct config defaults = {
    .q_lora_rank = 0,
    .first_k_dense_replace = 1,
    .n_shared_experts = 1,
    .n_group = 1,
    .topk_group = 1,
    .norm_topk_prob = true,
    .rope_interleave = true,
    .tie_word_embeddings = false,
    .routed_scaling_factor = 1,
    .rms_norm_eps = 1e-6,
    .initializer_range = 0.02,
    .rope = ROPE_DEFAULTS(10000),
};

const char *const architectures[] = {"DeepseekV3ForCausalLM"};

/* The layer after the 61 of the published model, which predicts the token after the next one. */
const char *const other_heads[] = {"model.layers.61.*"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "deepseek_v3"},
    {"q_lora_rank", "q_lora_rank", .absent = "1536", .null = "0"},
    {"n_routed_experts num_local_experts", "n_routed_experts"},
    {"n_group", "n_group", .absent = "8"},
    {"topk_group", "topk_group", .absent = "4"},
    {"first_k_dense_replace", "first_k_dense_replace", .absent = "3"},
    {"routed_scaling_factor", "routed_scaling_factor", .absent = "2.5"},
    {"num_key_value_heads", .is = "num_attention_heads", .null = "num_attention_heads"},
    {"qk_head_dim"}, /* always qk_nope_head_dim + qk_rope_head_dim */
    {"head_dim", .is = "qk_rope_head_dim"},
    {"hidden_act", .is = "silu"},
    {"scoring_func", .is = "sigmoid"},
    {"topk_method", .is = "noaux_tc"},
    {"moe_layer_freq", .is = "1"},
    {"attention_bias", .is = "false"},
    {"num_nextn_predict_layers num_mtp_layers"}, /* layers after those that the class has */
    {"output_router_logits", .is = "false"},
    {"aux_loss_alpha"},
    {"seq_aux"},
    {"ep_size"},
    {"rope_parameters.partial_rotary_factor partial_rotary_factor", .is = "1"},
    ROPE_PUBLISHED("10000"),
};

static tensor norm(scope s, tensor x, struct config c) {
  return rms_norm_eps(s, x, c.rms_norm_eps);
}

/* ---- Attention ---- */

static tensor turned(tensor x, struct rope rope, struct config c) {
  return c.rope_interleave ? rotary_interleaved(x, rope.cos, rope.sin) : rotary(x, rope.cos, rope.sin);
}

/* [B][T][H d] as [B][H][T][d]. */
static tensor heads(tensor x, struct config c) {
  int width = dim(x, 2) / c.num_attention_heads;
  return transpose(reshape(x, dim(x, 0), dim(x, 1), c.num_attention_heads, width), 1, 2);
}

/* [B][H][T][N + R] */
static tensor queries(scope s, tensor x, struct rope rope, struct config c) {
  int width = c.num_attention_heads * (c.qk_nope_head_dim + c.qk_rope_head_dim);
  tensor q;
  if (c.q_lora_rank == 0) {
    q = heads(linear_no_bias(at(s, "q_proj"), x, width), c);
  } else {
    tensor narrow = rms_norm(at(s, "q_a_layernorm"), linear_no_bias(at(s, "q_a_proj"), x, c.q_lora_rank));
    q = heads(linear_no_bias(at(s, "q_b_proj"), narrow, width), c);
  }
  tensor rotated = turned(slice(q, 3, c.qk_nope_head_dim, c.qk_rope_head_dim), rope, c);
  return concat(3, slice(q, 3, 0, c.qk_nope_head_dim), rotated);
}

/* 1 / sqrt(N + R), and the square of what YaRN makes of long texts. */
static double scaling(struct config c) {
  double mscale =
      c.rope.kind != ROPE_DEFAULT && c.rope.mscale_all_dim != 0 ? rope_mscale(c.rope, c.rope.mscale_all_dim) : 1;
  return mscale * mscale / sqrt(c.qk_nope_head_dim + c.qk_rope_head_dim);
}

/* Attention with values of V columns, where queries and keys have others: the narrower ones end in zeros. */
static tensor attend_wide(tensor q, tensor k, tensor v, struct config c) {
  int width = dim(q, 3), values = dim(v, 3);
  if (values < width) v = pad(v, 3, 0, width - values);
  if (values > width) {
    q = pad(q, 3, 0, values - width);
    k = pad(k, 3, 0, values - width);
  }
  tensor y = attention_scaled(q, k, v, CAUSAL, scaling(c));
  return values < width ? slice(y, 3, 0, values) : y;
}

static tensor attend(scope s, tensor x, struct rope rope, struct config c) {
  int width = c.num_attention_heads * (c.qk_nope_head_dim + c.v_head_dim);
  tensor narrow = linear_no_bias(at(s, "kv_a_proj_with_mqa"), x, c.kv_lora_rank + c.qk_rope_head_dim);
  tensor rotated = slice(narrow, 2, c.kv_lora_rank, c.qk_rope_head_dim);
  rotated = turned(reshape(rotated, dim(x, 0), 1, dim(x, 1), c.qk_rope_head_dim), rope, c);
  rotated = add(rotated, constant(0, 1, c.num_attention_heads, 1, 1));
  tensor latent = rms_norm(at(s, "kv_a_layernorm"), slice(narrow, 2, 0, c.kv_lora_rank));
  tensor kv = heads(linear_no_bias(at(s, "kv_b_proj"), latent, width), c);
  tensor k = concat(3, slice(kv, 3, 0, c.qk_nope_head_dim), rotated);
  tensor v = slice(kv, 3, c.qk_nope_head_dim, c.v_head_dim);
  tensor y = transpose(attend_wide(queries(s, x, rope, c), k, v, c), 1, 2);
  y = reshape(y, dim(x, 0), dim(x, 1), c.num_attention_heads * c.v_head_dim);
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
  int n = c.n_routed_experts;
  tensor gate[n], up[n], down[n];
  for (int e = 0; e < n; e++) {
    gate[e] = parameter(at(nth(s, "experts", e), "gate_proj"), "weight", c.moe_intermediate_size, c.hidden_size);
    up[e] = parameter(at(nth(s, "experts", e), "up_proj"), "weight", c.moe_intermediate_size, c.hidden_size);
    down[e] = parameter(at(nth(s, "experts", e), "down_proj"), "weight", c.hidden_size, c.moe_intermediate_size);
  }
  tensor h = mul(silu(grouped_matmul(rows, starts, n, gate)), grouped_matmul(rows, starts, n, up));
  return grouped_matmul(h, starts, n, down);
}

/* The experts of each token, int32 [B][T][k]: the best by score and bias, of the groups whose best two are the best. */
static tensor choices(scope s, tensor scores, struct config c) {
  int each = c.n_routed_experts / c.n_group;
  tensor biased = add(scores, parameter(init_zeros(s), "e_score_correction_bias", c.n_routed_experts));
  if (c.topk_group == c.n_group) return top_k_indices(biased, c.num_experts_per_tok);
  tensor grouped = reshape(biased, dim(scores, 0), dim(scores, 1), c.n_group, each);
  tensor open = top_k_mask(sum(top_k(grouped, 2), 3), c.topk_group);
  open = reshape(open, dim(scores, 0), dim(scores, 1), c.n_group, 1);
  tensor allowed =
      reshape(where(open, grouped, constant(-1e30, 1)), dim(scores, 0), dim(scores, 1), c.n_routed_experts);
  return top_k_indices(allowed, c.num_experts_per_tok);
}

static tensor mixture(scope s, tensor x, struct config c) {
  int tokens = dim(x, 0) * dim(x, 1), k = c.num_experts_per_tok, n = c.n_routed_experts;
  tensor scores = sigmoid(linear_no_bias(at(s, "gate"), x, n)), chosen = choices(at(s, "gate"), scores, c);
  tensor weights = gather(scores, 2, chosen);
  if (c.norm_topk_prob) weights = divide(weights, reshape(shift(sum(weights, 2), 1e-20), dim(x, 0), dim(x, 1), 1));
  weights = scale(weights, c.routed_scaling_factor);
  tensor rows = group_rows(chosen, n, 0);
  tensor h = experts(s, take(reshape(x, tokens, c.hidden_size), rows), group_starts(chosen, n, 0), c);
  h = mul(h, take(reshape(weights, tokens * k, 1), group_positions(chosen, n, 0)));
  h = reshape(index_add(h, rows, tokens), dim(x, 0), dim(x, 1), c.hidden_size);
  return add(h, mlp(at(s, "shared_experts"), x, c.moe_intermediate_size * c.n_shared_experts, c));
}

/* ---- The model ---- */

static tensor block(scope s, tensor x, struct rope rope, bool dense, struct config c) {
  x = add(x, attend(at(s, "self_attn"), norm(at(s, "input_layernorm"), x, c), rope, c));
  tensor m = norm(at(s, "post_attention_layernorm"), x, c);
  return add(x, dense ? mlp(at(s, "mlp"), m, c.intermediate_size, c) : mixture(at(s, "mlp"), m, c));
}

/* tokens [B][T] to logits [B][T][vocab_size]. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  struct rope rope = rope_angles(c.rope, dim(tokens, 1), c.qk_rope_head_dim);
  tensor x = embedding(at(s, "model.embed_tokens"), tokens, c.vocab_size, c.hidden_size);
  for (int i = 0; i < c.num_hidden_layers; i++)
    x = block(nth(s, "model.layers", i), x, rope, i < c.first_k_dense_replace, c);
  x = norm(at(s, "model.norm"), x, c);
  scope head = c.tie_word_embeddings ? at(s, "model.embed_tokens") : at(s, "lm_head");
  return matmul_transposed(x, parameter(head, "weight", c.vocab_size, c.hidden_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. It computes with one head of keys and values, the narrow row, as wide as
 * these keys are. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "deepseek2"},
    {"block_count", "num_hidden_layers"},
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"vocab_size", "vocab_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "1"},
    {"attention.key_length", "kv_lora_rank+qk_rope_head_dim"},
    {"attention.value_length", "kv_lora_rank"},
    {"attention.key_length_mla", "qk_nope_head_dim+qk_rope_head_dim"},
    {"attention.value_length_mla", "v_head_dim"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"attention.q_lora_rank", "q_lora_rank"},
    /* It takes no q_lora_rank of models with as many layers as published ones without it. */
    {.value = "q_lora_rank", .is = "0", .when = "num_hidden_layers=26"},
    {.value = "q_lora_rank", .is = "0", .when = "num_hidden_layers=27"},
    {.value = "q_lora_rank", .is = "0", .when = "num_hidden_layers=48 vocab_size=128256"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps", .is = "1e-6"}, /* the narrow rows have it always */
    {"rope.dimension_count", "qk_rope_head_dim"},
    {.value = "rope_interleave", .is = "true"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"expert_count", "n_routed_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_shared_count", "n_shared_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_group_count", "n_group", .when = "topk_group!=n_group"},
    {"expert_group_used_count", "topk_group", .when = "topk_group!=n_group"},
    {"expert_gating_func", "2"}, /* sigmoids */
    {"expert_weights_scale", "routed_scaling_factor", .type = "f32"},
    {"expert_weights_norm", "norm_topk_prob", .when = "norm_topk_prob=true"},
    {.value = "routed_scaling_factor", .is = "1", .when = "routed_scaling_factor=0"}, /* 0 means 1 there */
    {.value = "initializer_range"},
    {.value = "tie_word_embeddings"},
    GGUF_ROPE("ROPE_DEFAULT ROPE_YARN"),
    GGUF_YARN,
};

const struct gguf_tensor gguf_tensors[] = {
    GGUF_LLAMA_ENDS,
    {"model.layers.#.input_layernorm.weight", "blk.#.attn_norm.weight"},
    {"model.layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight", .when = "q_lora_rank=0"},
    {"model.layers.#.self_attn.q_a_proj.weight", "blk.#.attn_q_a.weight", .when = "q_lora_rank!=0"},
    {"model.layers.#.self_attn.q_a_layernorm.weight", "blk.#.attn_q_a_norm.weight", .when = "q_lora_rank!=0"},
    {"model.layers.#.self_attn.q_b_proj.weight", "blk.#.attn_q_b.weight", .when = "q_lora_rank!=0"},
    {"model.layers.#.self_attn.kv_a_proj_with_mqa.weight", "blk.#.attn_kv_a_mqa.weight"},
    {"model.layers.#.self_attn.kv_a_layernorm.weight", "blk.#.attn_kv_a_norm.weight"},
    {"model.layers.#.self_attn.kv_b_proj.weight", "blk.#.attn_k_b.weight",
     .change = "heads_transposed num_attention_heads 0 qk_nope_head_dim"},
    {"model.layers.#.self_attn.kv_b_proj.weight", "blk.#.attn_v_b.weight",
     .change = "heads num_attention_heads qk_nope_head_dim v_head_dim"},
    {"model.layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight"},
    {"model.layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight"},
    {"model.layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight", .when = "#<first_k_dense_replace"},
    {"model.layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight", .when = "#<first_k_dense_replace"},
    {"model.layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight", .when = "#<first_k_dense_replace"},
    {"model.layers.#.mlp.gate.weight", "blk.#.ffn_gate_inp.weight", .type = "f32", .when = "#>=first_k_dense_replace"},
    {"model.layers.#.mlp.gate.e_score_correction_bias", "blk.#.exp_probs_b.bias", .when = "#>=first_k_dense_replace"},
    {"model.layers.#.mlp.experts.*.gate_proj.weight", "blk.#.ffn_gate_exps.weight", .when = "#>=first_k_dense_replace"},
    {"model.layers.#.mlp.experts.*.up_proj.weight", "blk.#.ffn_up_exps.weight", .when = "#>=first_k_dense_replace"},
    {"model.layers.#.mlp.experts.*.down_proj.weight", "blk.#.ffn_down_exps.weight", .when = "#>=first_k_dense_replace"},
    {"model.layers.#.mlp.shared_experts.gate_proj.weight", "blk.#.ffn_gate_shexp.weight",
     .when = "#>=first_k_dense_replace"},
    {"model.layers.#.mlp.shared_experts.up_proj.weight", "blk.#.ffn_up_shexp.weight",
     .when = "#>=first_k_dense_replace"},
    {"model.layers.#.mlp.shared_experts.down_proj.weight", "blk.#.ffn_down_shexp.weight",
     .when = "#>=first_k_dense_replace"},
};
