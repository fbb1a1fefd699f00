/* Mamba (Gu, Dao, arXiv:2312.00752): the tensor names and the arithmetic of transformers' MambaForCausalLM, so that its
 * checkpoints load from their model.safetensors. Without one, A_log starts uniform within [-1, 1), not at log n.
 *
 * B batch, T tokens of a sequence, C hidden_size, D = expand C channels, N state_size, R time_step_rank. */
#include <accel/model.h>
#include <math.h>

struct config {
  int num_hidden_layers, hidden_size, state_size, expand, conv_kernel;
  int time_step_rank; /* 0: C / 16, rounded up */
  int vocab_size;
  double layer_norm_epsilon, initializer_range;
};

const struct config defaults = {
    .state_size = 16,
    .expand = 2,
    .conv_kernel = 4,
    .time_step_rank = 0,
    .layer_norm_epsilon = 1e-5,
    .initializer_range = 0.1,
};

const char *const architectures[] = {"MambaForCausalLM"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "mamba"},
    {"intermediate_size", .is = "expand*hidden_size"},
    {"hidden_act", .is = "silu"},
    {"use_bias", .is = "false"},
    {"use_conv_bias", .is = "true"},
    {"tie_word_embeddings", .is = "true"},
    {"time_step_rank", "time_step_rank"},
    {"time_step_min time_step_max time_step_floor time_step_scale time_step_init_scheme"},
    {"rescale_prenorm_residual"},
    {"residual_in_fp32"},
    {"use_mambapy"},
    {"use_associative_scan"},
};

/* Each channel of x [B][T][D] with its own weights over the last conv_kernel steps. */
static tensor convolve(scope s, tensor x, struct config c) {
  int steps = dim(x, 1), width = dim(x, 2);
  tensor weight = reshape(parameter(s, "weight", width, 1, c.conv_kernel), width, c.conv_kernel);
  tensor y = parameter(init_zeros(s), "bias", width);
  x = pad(x, 1, c.conv_kernel - 1, 0);
  for (int k = 0; k < c.conv_kernel; k++)
    y = add(y, mul(slice(x, 1, k, steps), reshape(slice(weight, 1, k, 1), width)));
  return y;
}

static tensor mixer(scope s, tensor x, struct config c) {
  int width = c.expand * c.hidden_size, states = c.state_size;
  int rank = c.time_step_rank > 0 ? c.time_step_rank : (c.hidden_size + 15) / 16;
  tensor both = linear_no_bias(at(s, "in_proj"), x, 2 * width);
  tensor u = silu(convolve(at(s, "conv1d"), split(both, 2, 2, 0), c)), gate = silu(split(both, 2, 2, 1));
  tensor chosen = linear_no_bias(at(s, "x_proj"), u, rank + 2 * states);
  tensor delta = softplus(linear(at(s, "dt_proj"), slice(chosen, 2, 0, rank), width));
  tensor a = neg(exp_of(parameter(init_uniform(s, 1), "A_log", width, states)));
  tensor b = slice(chosen, 2, rank, states), read = slice(chosen, 2, rank + states, states);
  tensor y = add(selective_scan(u, delta, a, b, read), mul(u, parameter(init_ones(s), "D", width)));
  return linear_no_bias(at(s, "out_proj"), mul(y, gate), c.hidden_size);
}

static tensor block(scope s, tensor x, struct config c) {
  return add(x, mixer(at(s, "mixer"), rms_norm_eps(at(s, "norm"), x, c.layer_norm_epsilon), c));
}

/* tokens [B][T] to logits [B][T][vocab_size]. The last layer is the token table again. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, c.initializer_range);
  tensor x = embedding(at(s, "backbone.embeddings"), tokens, c.vocab_size, c.hidden_size);
  for (int i = 0; i < c.num_hidden_layers; i++) x = block(nth(s, "backbone.layers", i), x, c);
  x = rms_norm_eps(at(s, "backbone.norm_f"), x, c.layer_norm_epsilon);
  return matmul_transposed(x, parameter(at(s, "backbone.embeddings"), "weight", c.vocab_size, c.hidden_size));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}

#include "gguf.h" /* of the tables below alone */

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "mamba"},
    {"block_count", "num_hidden_layers"},
    {"context_length", "1048576"}, /* it has none */
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "0"},
    {"attention.head_count", "0"},
    {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
    {"ssm.conv_kernel", "conv_kernel"},
    {"ssm.inner_size", "expand*hidden_size"},
    {"ssm.state_size", "state_size"},
    {"ssm.time_step_rank", "time_step_rank", .when = "time_step_rank!=0"},
    {"ssm.time_step_rank", "hidden_size/16", .when = "time_step_rank=0"},
    {.value = "expand", .is = "2"},
    {.value = "initializer_range"},
    {.value = "vocab_size"},
};

const struct gguf_tensor gguf_tensors[] = {
    {"backbone.embeddings.weight", "token_embd.weight"},
    {"backbone.norm_f.weight", "output_norm.weight"},
    {"backbone.layers.#.norm.weight", "blk.#.attn_norm.weight"},
    {"backbone.layers.#.mixer.in_proj.weight", "blk.#.ssm_in.weight"},
    {"backbone.layers.#.mixer.conv1d.weight", "blk.#.ssm_conv1d.weight", .change = "squeeze", .type = "f32"},
    {"backbone.layers.#.mixer.conv1d.bias", "blk.#.ssm_conv1d.bias"},
    {"backbone.layers.#.mixer.x_proj.weight", "blk.#.ssm_x.weight"},
    {"backbone.layers.#.mixer.dt_proj.weight", "blk.#.ssm_dt.weight"},
    {"backbone.layers.#.mixer.dt_proj.bias", "blk.#.ssm_dt.bias"},
    {"backbone.layers.#.mixer.A_log", "blk.#.ssm_a", .change = "minus_exp", .type = "f32"},
    {"backbone.layers.#.mixer.D", "blk.#.ssm_d"},
    {"backbone.layers.#.mixer.out_proj.weight", "blk.#.ssm_out.weight"},
};
