#include "gen/model/foreign.h"

#include "gen/base/text.h"
#include "gen/ir/op.h"

const struct foreign foreign_functions[] = {
    {" top_k_places ", "accel-gen 0.1", "top_k_indices(x, k)", NULL},
    {" group_places ", "accel-gen 0.1", "group_positions(index, groups, capacity)", NULL},
    {" view view_as reshape_as flatten unflatten ravel squeeze unsqueeze ", "PyTorch", "reshape(x, dims...)", NULL},
    {" expand_dims newaxis ", "NumPy", "reshape(x, dims...)", NULL},
    {" expand expand_as broadcast_to broadcast_tensors ", "PyTorch", NULL,
     "functions of elements broadcast by NumPy's rules"},
    {" permute movedim swapaxes swapdims t ", "PyTorch", "transpose(x, a, b), two axes at a time", NULL},
    {" moveaxis rollaxis ", "NumPy", "transpose(x, a, b), two axes at a time", NULL},
    {" rearrange ", "einops", "reshape(x, dims...) and transpose(x, a, b)", NULL},
    {" cat hstack vstack dstack ", "PyTorch", "concat(axis, a, b, ...)", NULL},
    {" concatenate ", "NumPy", "concat(axis, a, b, ...)", NULL},
    {" stack ", "PyTorch", "concat(axis, a, b, ...) of tensors that reshape(x, dims...) gave an axis of 1", NULL},
    {" chunk tensor_split unbind ", "PyTorch", "split(x, axis, parts, which)", NULL},
    {" array_split hsplit vsplit ", "NumPy", "split(x, axis, parts, which)", NULL},
    {" narrow select ", "PyTorch", "slice(x, axis, start, count)", NULL},
    {" dynamic_slice dynamic_slice_in_dim slice_in_dim ", "JAX", "slice(x, axis, start, count)", NULL},
    {" repeat tile ", "PyTorch", "concat(axis, x, x, ...)", NULL},
    {" repeat_interleave ", "PyTorch", "take(x, index), with each index so many times", NULL},
    {" fliplr flipud ", "PyTorch", "flip(x, axis)", NULL},
    {" zero_pad2d constant_pad_nd ", "PyTorch", "pad(x, axis, before, after)", NULL},
    {" size shape ", "PyTorch", "dim(x, axis)", NULL},
    {" numel ", "PyTorch", "dim(x, axis) of all axes, multiplied", NULL},
    {" ndim ndimension ", "PyTorch", "rank(x)", NULL},
    {" contiguous clone ", "PyTorch", NULL, "a tensor of a model is a value; the plan decides where it is in memory"},
    {" mm bmm mv dot tensordot ", "PyTorch", "matmul(a, b)", NULL},
    {" inner vdot ", "NumPy", "matmul(a, b)", NULL},
    {" addmm baddbmm addbmm ", "PyTorch", "add(c, matmul(a, b))", NULL},
    {" outer ger ", "PyTorch", "mul(a, b) of a [n][1] and b [1][m]", NULL},
    {" bilinear ", "PyTorch", "einsum(spec, a, w, b)", NULL},
    {" scaled_dot_product_attention multi_head_attention_forward multihead_attention flash_attn_func ", "PyTorch",
     "attention(q, k, v, mask)", NULL},
    {" dot_product_attention ", "JAX", "attention(q, k, v, mask)", NULL},
    {" multiply ", "NumPy", "mul(a, b)", NULL},
    {" div true_divide ", "PyTorch", "divide(a, b)", NULL},
    {" subtract ", "NumPy", "sub(a, b)", NULL},
    {" negative ", "PyTorch", "neg(x)", NULL},
    {" reciprocal ", "PyTorch", "pow_of(x, -1.0)", NULL},
    {" sqrt ", "PyTorch", "sqrt_of(x)", NULL},
    {" rsqrt ", "PyTorch", "rsqrt_of(x)", NULL},
    {" exp ", "PyTorch", "exp_of(x)", NULL},
    {" log ", "PyTorch", "log_of(x)", NULL},
    {" pow ", "PyTorch", "pow_of(x, exponent)", NULL},
    {" power float_power ", "NumPy", "pow_of(x, exponent)", NULL},
    {" absolute ", "NumPy", "abs_of(x)", NULL},
    {" fabs ", "PyTorch", "abs_of(x)", NULL},
    {" sin ", "PyTorch", "sin_of(x)", NULL},
    {" cos ", "PyTorch", "cos_of(x)", NULL},
    {" tanh ", "PyTorch", "tanh_of(x)", NULL},
    {" tan ", "PyTorch", "divide(sin_of(x), cos_of(x))", NULL},
    {" log1p ", "PyTorch", "log_of(shift(x, 1.0))", NULL},
    {" expm1 ", "PyTorch", "shift(exp_of(x), -1.0)", NULL},
    {" exp2 ", "PyTorch", "exp_of(scale(x, 0.69314718))", NULL},
    {" log2 ", "PyTorch", "scale(log_of(x), 1.44269504)", NULL},
    {" log10 ", "PyTorch", "scale(log_of(x), 0.43429448)", NULL},
    {" clip clamp_min clamp_max hardtanh relu6 ", "PyTorch", "clamp(x, low, high)", NULL},
    {" amax ", "PyTorch", "max_along(x, axis)", NULL},
    {" max ", "PyTorch", "max_along(x, axis), or maximum(a, b)", NULL},
    {" amin ", "PyTorch", "min_along(x, axis)", NULL},
    {" min ", "PyTorch", "min_along(x, axis), or minimum(a, b)", NULL},
    {" argmin ", "PyTorch", "argmax(neg(x), axis)", NULL},
    {" fmax ", "PyTorch", "maximum(a, b)", NULL},
    {" fmin ", "PyTorch", "minimum(a, b)", NULL},
    {" gt greater_than ", "PyTorch", "greater(a, b)", NULL},
    {" ge ", "PyTorch", "greater_equal(a, b)", NULL},
    {" lt less_than ", "PyTorch", "less(a, b)", NULL},
    {" le ", "PyTorch", "less_equal(a, b)", NULL},
    {" eq ", "PyTorch", "equal(a, b)", NULL},
    {" ne not_equal ", "PyTorch", "shift(neg(equal(a, b)), 1.0)", NULL},
    {" logical_and ", "PyTorch", "mul(a, b) of zeros and ones", NULL},
    {" logical_or ", "PyTorch", "maximum(a, b) of zeros and ones", NULL},
    {" logical_not ", "PyTorch", "shift(neg(x), 1.0) of zeros and ones", NULL},
    {" masked_fill masked_fill_ ", "PyTorch", "where(mask, constant(value, 1), x)", NULL},
    {" select_n cond ", "JAX", "where(condition, a, b)", NULL},
    {" lerp ", "PyTorch", "add(a, mul(weight, sub(b, a)))", NULL},
    {" addcmul ", "PyTorch", "add(x, scale(mul(a, b), value))", NULL},
    {" tril triu ", "PyTorch", NULL,
     "attention(q, k, v, CAUSAL) hides the keys that come after the query; greater_equal of two arange makes such a "
     "mask"},
    {" floor ceil round trunc sign fmod remainder erf ", "PyTorch", NULL,
     "of a tensor; of numbers of the config <math.h> has them"},
    {" swish SiLU ", "PyTorch", "silu(x)", NULL},
    {" leaky_relu prelu ", "PyTorch", "maximum(x, scale(x, 0.01))", NULL},
    {" sigmoid_ expit ", "PyTorch", "sigmoid(x)", NULL},
    {" logsigmoid log_sigmoid ", "PyTorch", "neg(softplus(neg(x)))", NULL},
    {" gelu_new gelu_fast gelu_pytorch_tanh NewGELUActivation ", "PyTorch", "gelu_tanh(x)", NULL},
    {" quick_gelu ", "PyTorch", "mul(x, sigmoid(scale(x, 1.702)))", NULL},
    {" mish ", "PyTorch", "mul(x, tanh_of(softplus(x)))", NULL},
    {" softsign ", "PyTorch", "divide(x, shift(abs_of(x), 1.0))", NULL},
    {" tanhshrink ", "PyTorch", "sub(x, tanh_of(x))", NULL},
    {" hardsigmoid ", "PyTorch", "clamp(shift(scale(x, 0.16666667), 0.5), 0.0, 1.0)", NULL},
    {" hardswish ", "PyTorch", "mul(x, clamp(shift(scale(x, 0.16666667), 0.5), 0.0, 1.0))", NULL},
    {" elu selu celu ", "PyTorch",
     "where(greater(x, constant(0.0, 1)), x, shift(exp_of(minimum(x, constant(0.0, 1))), -1.0)), scaled", NULL},
    {" glu ", "PyTorch", "mul(split(x, -1, 2, 0), sigmoid(split(x, -1, 2, 1)))", NULL},
    {" swiglu ", "PyTorch", "mul(silu(split(x, -1, 2, 0)), split(x, -1, 2, 1))", NULL},
    {" softmin ", "PyTorch", "softmax(neg(x))", NULL},
    {" gumbel_softmax multinomial local_response_norm conv3d Conv3d max_pool3d avg_pool3d fold unfold pixel_unshuffle "
     "grid_sample adaptive_max_pool1d adaptive_max_pool2d lp_pool2d prod cumprod cummax cummin logcumsumexp median "
     "quantile mode unique sort argsort nonzero searchsorted bincount histc randperm fft rfft stft svd eig inverse inv "
     "det cholesky qr solve lstsq matrix_exp kron ",
     "PyTorch", NULL, NULL},
    {" logsumexp ", "PyTorch", "log_sum_exp(x)", NULL},
    {" native_layer_norm LayerNorm ", "PyTorch", "layer_norm(s, x)", NULL},
    {" RMSNorm ", "PyTorch", "rms_norm(s, x)", NULL},
    {" GroupNorm ", "PyTorch", "group_norm(s, x, groups)", NULL},
    {" BatchNorm1d BatchNorm2d ", "PyTorch", "batch_norm(s, x)", NULL},
    {" instance_norm InstanceNorm1d InstanceNorm2d ", "PyTorch",
     "group_norm(s, x, groups), with a group for each channel", NULL},
    {" Conv1D ", "PyTorch", "linear_transposed(s, x, out), of transformers", NULL},
    {" Conv1d ", "PyTorch", "conv1d(s, x, out, kernel, stride, padding)", NULL},
    {" Conv2d conv ", "PyTorch", "conv2d(s, x, out, kernel, stride, padding)", NULL},
    {" ConvTranspose1d ", "PyTorch", "conv_transpose1d(s, x, out, kernel, stride, padding)", NULL},
    {" ConvTranspose2d ", "PyTorch", "conv_transpose2d(s, x, out, kernel, stride, padding)", NULL},
    {" Linear dense Dense ", "PyTorch", "linear(s, x, out)", NULL},
    {" Embedding ", "PyTorch", "embedding(s, tokens, vocab, width)", NULL},
    {" Parameter register_parameter ", "PyTorch", "parameter(s, name, dims...)", NULL},
    {" register_buffer ", "PyTorch", "buffer(s, name, dims...), or table_of(count, numbers) for what no file has",
     NULL},
    {" MultiheadAttention ", "PyTorch", "attention(q, k, v, mask), between layers of linear(s, x, out)", NULL},
    {" GRU gru gru_cell RNN rnn_tanh ", "PyTorch", NULL,
     "a loop over steps writes one, as examples/models/gru_bytes.c"},
    {" LSTMCell lstm_cell ", "PyTorch", "lstm(s, x, width, layer)", NULL},
    {" Dropout dropout1d dropout2d alpha_dropout feature_dropout ", "PyTorch", "dropout(x, p)", NULL},
    {" upsample interpolate resize ", "PyTorch", "interpolate_nearest(x, height, width), or interpolate_bilinear",
     NULL},
    {" pixel_shuffle ", "PyTorch", "reshape(x, dims...) and transpose(x, a, b)", NULL},
    {" global_avg_pool AdaptiveAvgPool2d ", "PyTorch", "adaptive_avg_pool2d(x, height, width)", NULL},
    {" MaxPool2d ", "PyTorch", "max_pool2d(x, kernel, stride, padding)", NULL},
    {" AvgPool2d ", "PyTorch", "avg_pool2d(x, kernel, stride, padding)", NULL},
    {" apply_rotary_pos_emb rotary_emb ", "PyTorch", "rotary(x, cos, sin)", NULL},
    {" Sequential ModuleList ModuleDict ", "PyTorch", NULL,
     "functions of C call each other, and nth(s, name, i) is the i-th scope"},
    {" nll_loss CrossEntropyLoss NLLLoss ", "PyTorch", "cross_entropy(logits, targets)", NULL},
    {" binary_cross_entropy BCELoss BCEWithLogitsLoss ", "PyTorch", "binary_cross_entropy_with_logits(logits, targets)",
     NULL},
    {" MSELoss ", "PyTorch", "mse_loss(x, target)", NULL},
    {" L1Loss ", "PyTorch", "l1_loss(x, target)", NULL},
    {" SmoothL1Loss ", "PyTorch", "smooth_l1_loss(x, target, beta)", NULL},
    {" HuberLoss ", "PyTorch", "huber_loss(x, target, delta)", NULL},
    {" KLDivLoss ", "PyTorch", "kl_div(x, target)", NULL},
    {" hinge_embedding_loss margin_ranking_loss multi_margin_loss soft_margin_loss gaussian_nll_loss poisson_nll_loss "
     "ctc_loss cosine_embedding_loss ",
     "PyTorch", NULL, "functions of elements and mean_all(x) write one"},
    {" std ", "PyTorch", "sqrt_of(variance(x, axis)), of all and not of a sample", NULL},
    {" var ", "PyTorch", "variance(x, axis), of all and not of a sample", NULL},
    {" norm vector_norm ", "PyTorch", "sqrt_of(sum(square(x), axis))", NULL},
    {" average ", "NumPy", "mean(x, axis)", NULL},
    {" topk ", "PyTorch", "top_k(x, k)", NULL},
    {" pairwise_distance cdist ", "PyTorch", "sqrt_of(sum(square(sub(a, b)), axis))", NULL},
    {" index_select take_along_rows ", "PyTorch", "take(x, index)", NULL},
    {" take_along_dim take_along_axis ", "PyTorch", "gather(x, axis, index)", NULL},
    {" scatter scatter_ scatter_add_ index_add_ scatter_reduce ", "PyTorch", "scatter_add(x, axis, index, size)", NULL},
    {" segment_sum ", "JAX", "scatter_add(x, axis, index, size)", NULL},
    {" zeros zeros_like new_zeros ", "PyTorch", "constant(0.0, dims...)", NULL},
    {" ones ones_like new_ones ", "PyTorch", "constant(1.0, dims...)", NULL},
    {" full full_like empty empty_like new_full ", "PyTorch", "constant(value, dims...)", NULL},
    {" tensor_of from_numpy as_tensor ", "PyTorch", "table_of(count, numbers), or int_table_of", NULL},
    {" asarray array ", "NumPy", "table_of(count, numbers), or int_table_of", NULL},
    {" linspace eye diag meshgrid ", "PyTorch", "table_of(count, numbers) of an array that a loop fills", NULL},
    {" randn randn_like normal ", "PyTorch", "random_normal(dims...)", NULL},
    {" rand rand_like uniform ", "PyTorch", "random_uniform(dims...)", NULL},
    {" randint ", "PyTorch", "random_int(bound, dims...)", NULL},
    {" bernoulli ", "PyTorch", "less(random_uniform(dims...), p)", NULL},
    {" to_float float32 ", "PyTorch", "cast_float(x)", NULL},
    {" type_as astype ", "PyTorch", "cast_float(x), or cast_index(x, below)", NULL},
    {" to half bfloat16 cuda cpu ", "PyTorch", NULL,
     "the job's precision and devices say where and in which format it is computed"},
    {" requires_grad_ ", "PyTorch", NULL, "model.freeze of the job keeps parameters as they are"},
    {" no_grad ", "PyTorch", "detach(x)", NULL},
    {" stop_gradient ", "JAX", "detach(x)", NULL},
    {" backward zero_grad autograd ", "PyTorch", NULL, "gradients are the generator's matter"},
    {" grad ", "JAX", NULL, "gradients are the generator's matter"},
    {" jit vmap pmap ", "JAX", NULL, "the generator plans the whole program"},
    {" compile ", "PyTorch", NULL, "the generator plans the whole program"},
    {" scan fori_loop while_loop ", "JAX", NULL, "a loop of C does it"},
    {" checkpoint ", "PyTorch", NULL, "memory.activation_checkpointing of the job"},
    {" remat ", "JAX", NULL, "memory.activation_checkpointing of the job"},
    {" item tolist numpy print all_reduce ", "PyTorch", NULL, "a model is read, not run"},
};

const int foreign_count = sizeof foreign_functions / sizeof foreign_functions[0];

/* Case counts for nothing. */
static const struct foreign *find(const char *name) {
  for (int i = 0; i < foreign_count; i++)
    if (text_names(foreign_functions[i].names, name, true)) return &foreign_functions[i];
  return NULL;
}

/* The tensor function with the name nearest to `name`; NULL when none is near. */
static const char *similar_function(struct arena *arena, const char *name) {
  const char **names = NULL;
  int count = 0, capacity = 0;
  for (int i = 0; i < op_file_count; i++) {
    const struct op_function *function = op_files[i]->functions;
    for (; function != NULL && function->name != NULL; function++) {
      names = arena_grow(arena, names, count, &capacity, sizeof *names);
      names[count++] = function->name;
    }
  }
  return nearest_word(name, names, count);
}

bool foreign_help(struct arena *arena, const char *name, struct diagnostics *diags) {
  const struct foreign *foreign = find(name);
  const char *similar = foreign == NULL ? similar_function(arena, name) : NULL;
  if (foreign != NULL && foreign->ours != NULL)
    diag_help(diags, "%s's '%s' is %s here", foreign->whose, name, foreign->ours);
  else if (foreign != NULL)
    diag_help(diags, "%s's '%s' has no counterpart here%s%s", foreign->whose, name, foreign->why != NULL ? ": " : "",
              foreign->why != NULL ? foreign->why : "");
  else if (similar != NULL)
    diag_help(diags, "did you mean '%s'?", similar);
  return foreign != NULL || similar != NULL;
}
