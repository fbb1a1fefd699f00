/* GPT-2 as published (Radford et al., 2019): the tensor names and layouts of its Hugging Face checkpoint, so that
 * "gpt2", "gpt2-medium", … load from their model.safetensors.
 *
 * B batch, T tokens of a sequence, C n_embd, H n_head, D = C / H. */
#include <accel/model.h>
#include <math.h>

struct config {
  int n_layer, n_head, n_embd;
  int vocab_size, block_size;
  double dropout;
};

const struct config defaults = {.dropout = 0.0};

const char *const architectures[] = {"GPT2LMHeadModel"};

/* What a published config.json says otherwise than by a field's own name. */
const struct published published[] = {
    {"model_type", .is = "gpt2"},
    {"n_positions n_ctx", "block_size", .absent = "1024"},
    {"n_inner", .is = "4*n_embd", .absent = "4*n_embd"},
    {"activation_function", .is = "gelu_new gelu_pytorch_tanh", .absent = "gelu_new"},
    {"layer_norm_epsilon", .is = "1e-5"},
    {"scale_attn_weights", .is = "true"},
    {"scale_attn_by_inverse_layer_idx", .is = "false"},
    {"add_cross_attention", .is = "false"},
    {"tie_word_embeddings", .is = "true"},
    {.field = "dropout"}, /* of training alone */
    {"summary_*"},
    {"reorder_and_upcast_attn"},
};

static double residual_deviation(struct config c) {
  return 0.02 / sqrt(2.0 * c.n_layer);
}

/* One of the three parts of qkv [B][T][3 C] as [B][H][T][D]. */
static tensor heads(tensor qkv, int part, struct config c) {
  tensor x = split(qkv, 2, 3, part);
  x = reshape(x, dim(x, 0), dim(x, 1), c.n_head, c.n_embd / c.n_head);
  return transpose(x, 1, 2);
}

/* [B][H][T][D] as [B][T][C]. */
static tensor merge(tensor x, struct config c) {
  x = transpose(x, 1, 2);
  return reshape(x, dim(x, 0), dim(x, 1), c.n_embd);
}

static tensor attend(scope s, tensor x, struct config c) {
  tensor qkv = linear_transposed(at(s, "c_attn"), x, 3 * c.n_embd);
  tensor y = attention(heads(qkv, 0, c), heads(qkv, 1, c), heads(qkv, 2, c), CAUSAL);
  return linear_transposed(at(init_normal(s, residual_deviation(c)), "c_proj"), merge(y, c), c.n_embd);
}

static tensor mlp(scope s, tensor x, struct config c) {
  tensor h = gelu_tanh(linear_transposed(at(s, "c_fc"), x, 4 * c.n_embd));
  return linear_transposed(at(init_normal(s, residual_deviation(c)), "c_proj"), h, c.n_embd);
}

static tensor block(scope s, tensor x, struct config c) {
  tensor a = attend(at(s, "attn"), layer_norm(at(s, "ln_1"), x), c);
  x = add(x, dropout(a, c.dropout));
  tensor m = mlp(at(s, "mlp"), layer_norm(at(s, "ln_2"), x), c);
  return add(x, dropout(m, c.dropout));
}

/* tokens [B][T] to logits [B][T][vocab_size]. The last layer is the token table again. */
tensor predict(scope s, struct config c, tensor tokens) {
  s = init_normal(s, 0.02);
  tensor positions = parameter(at(s, "wpe"), "weight", c.block_size, c.n_embd);
  tensor x = embedding(at(s, "wte"), tokens, c.vocab_size, c.n_embd);
  x = dropout(add(x, slice(positions, 0, 0, dim(tokens, 1))), c.dropout);
  for (int i = 0; i < c.n_layer; i++) x = block(nth(s, "h", i), x, c);
  x = layer_norm(at(s, "ln_f"), x);
  return matmul_transposed(x, parameter(at(s, "wte"), "weight", c.vocab_size, c.n_embd));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  return cross_entropy(predict(s, c, tokens), targets);
}

/* What llama.cpp calls it in a file of GGUF. */
const struct gguf_key gguf_keys[] = {
    {"general.architecture", .text = "gpt2"},
    {"block_count", "n_layer"},
    {"context_length", "block_size"},
    {"embedding_length", "n_embd"},
    {"feed_forward_length", "4*n_embd"},
    {"attention.head_count", "n_head"},
    {"attention.layer_norm_epsilon", "1e-5", .type = "f32"},
    {.value = "dropout"},
    {.value = "vocab_size"},
};

const struct gguf_tensor gguf_tensors[] = {
    {"transformer.wte.weight", "token_embd.weight"},
    {"transformer.wpe.weight", "position_embd.weight", .type = "f32"},
    {"transformer.ln_f.weight", "output_norm.weight"},
    {"transformer.ln_f.bias", "output_norm.bias"},
    {"transformer.h.#.ln_1.weight", "blk.#.attn_norm.weight"},
    {"transformer.h.#.ln_1.bias", "blk.#.attn_norm.bias"},
    {"transformer.h.#.attn.c_attn.weight", "blk.#.attn_qkv.weight", .change = "transpose"},
    {"transformer.h.#.attn.c_attn.bias", "blk.#.attn_qkv.bias"},
    {"transformer.h.#.attn.c_proj.weight", "blk.#.attn_output.weight", .change = "transpose"},
    {"transformer.h.#.attn.c_proj.bias", "blk.#.attn_output.bias"},
    {"transformer.h.#.ln_2.weight", "blk.#.ffn_norm.weight"},
    {"transformer.h.#.ln_2.bias", "blk.#.ffn_norm.bias"},
    {"transformer.h.#.mlp.c_fc.weight", "blk.#.ffn_up.weight", .change = "transpose"},
    {"transformer.h.#.mlp.c_fc.bias", "blk.#.ffn_up.bias"},
    {"transformer.h.#.mlp.c_proj.weight", "blk.#.ffn_down.weight", .change = "transpose"},
    {"transformer.h.#.mlp.c_proj.bias", "blk.#.ffn_down.bias"},
    {"transformer.h.#.attn.bias"},
    {"transformer.h.#.attn.masked_bias"},
    {"lm_head.weight"}, /* a copy of the embedding */
};
