/* accel/model.h: what a model is written with.
 *
 * A model is an ordinary C file of functions over `tensor` values. accel-gen reads it with a C compiler's front end,
 * evaluates it over the numbers of the job, and so learns the model's operations, shapes and parameters. It is never
 * run. docs/models.md is the tutorial; docs/operations.md says what each operation becomes. This header is all that a
 * model includes: convolutions and what else is for images are in accel/images.h, losses in accel/losses.h.
 *
 * The entry point returns the loss, a scalar:
 *
 *   tensor model(scope s, struct config c, tensor tokens, tensor targets);
 *
 * `struct config` is the model's own; its fields are filled from the job's model.config, and those that a job may leave
 * out from `const struct config defaults = {.dropout = 0.0};` where the model has that. Tensors come by name from the
 * job's data. Token files give `tokens` and `targets`, int32 [batch][sequence]; tables give `features`, float32
 * [batch][columns], and `labels`, [batch], int32 for classes and float32 for values, or the tensors that data.inputs
 * names.
 *
 * Shapes below are row-major; [...] is any number of leading dimensions. An axis counts from 0, or from the last one
 * backwards when it is negative. */
#ifndef ACCEL_MODEL_H
#define ACCEL_MODEL_H

#include <stdbool.h>

/* What the config.json next to published weights calls what a model has. A model that starts from such weights may have
 * a table `const struct published published[]` of what is not called by its field's own name:
 *
 *   {"n_positions n_ctx", "block_size"},            the field that is one of these keys, the first that is there
 *   {"activation_function", .is = "gelu_new"},      what the model computes with: one of these words
 *   {"n_inner", .is = "4*n_embd", .null = "4*n_embd"},  numbers and fields, by * and /
 *   {"max_position_embeddings"},                    nothing that the model computes depends on it
 *   {"feed_forward_proj", "gated", .is = "relu gated-gelu"},   the field has the number of the word: 0, 1, ...
 *   {.field = "capacity_factor", .is = "0"},        a field that no key says: the class computes as with this value
 *
 * A key within an object is "rope_scaling.factor", an item of a list "hidden_sizes.0", each of them "layer_types.*",
 * and the number of an object's keys or a list's items "id2label.#". `absent` and `null` are what it means that the key
 * is not there, or is null; without `null` that is what `absent` says.
 *
 * The same rows write the config.json of a run that starts from no folder: each under the first of its keys, `.is` as
 * the first of its words. Of {"block_types.*", .is = "Block"} they write as many items as a row of "block_types.#"
 * says. */
struct published {
  const char *key, *field, *is, *absent, *null;
};

/* A tensor that a model takes: the shape of a sample, whose extents end with a 0, and whether it is int32. */
struct published_input {
  const char *name;
  int shape[6];
  bool whole;
};

/* What a sample of published weights is, where it follows from their config: a model may have a function
 *
 *   struct published_inputs published_inputs(struct config c) {
 *     return (struct published_inputs){{{"features", {c.num_channels, c.image_size, c.image_size}}}};
 *   }
 *
 * of the tensors that it takes; `tokens` has the length of the longest sequence, and a row of `features` as many
 * numbers as the product of the extents. */
struct published_inputs {
  struct published_input items[8];
};

/* A model may also list the classes of transformers whose checkpoints it loads. `accel-gen estimate` finds it by them:
 * const char *const architectures[] = {"GPT2LMHeadModel"}; values of the config that make it the class may follow:
 * "Qwen2MoeForCausalLM qk_norm=false". Classes of diffusers have a row {"_class_name", .is = "AutoencoderKL"} in
 * `published`, too: where config.json has their name.
 *
 * Published files of these classes may have the heads of other classes, too, which from_pretrained leaves out:
 * const char *const other_heads[] = {"bert.pooler.*", "cls.seq_relationship.*"}; names with * and ?. `accel-gen init`
 * writes those that a file has to model.ignore. */

/* What `predict` returns is `logits` in transformers, or else its parts along axis 1 have names there:
 * const char *const published_outputs[] = {"start_logits", "end_logits"}. */

/* A model may say what its weights are in a file of GGUF, which `accel-gen export` writes. `const struct gguf_key
 * gguf_keys[]` has the file's metadata, below "llama." where "general.architecture" is "llama":
 *
 *   {"general.architecture", .text = "llama"},
 *   {"block_count", "num_hidden_layers"},        a field of the config, else a key of the config.json, else a number or
 *                                                such ones with +, * and /; as uint32, float32 or bool, as it is
 *   {"feed_forward_length", "4*n_embd"},
 *   {"rope.freq_base", "rope.theta", .type = "f32"},
 *   {"rope.dimension_count", "rotary_pct*head_dim", .type = "u32"},     refused where it is no whole number
 *   {.value = "rope.kind", .is = "ROPE_DEFAULT ROPE_LINEAR"},   the values of a field that such a file can have, or
 *                                                one number
 *   {"attention.sliding_window_pattern", "layer_types.*", .is = "LAYER_SLIDING_ATTENTION", .type = "bools"},
 *                                                for each layer, whether its item of a list is the one of `is`
 *   {.value = "initializer_range"},              a field without meaning for it, with * and ?
 *
 * Each field of the config is in a row, or the model is refused. A row holds only where all comparisons of `when` do,
 * "A=B A!=B A<B A>B A>=B" of fields, numbers and words.
 *
 * `const struct gguf_tensor gguf_tensors[]` has the tensors: # is a layer's number, * are the numbers of parts that
 * become one tensor with an axis more. What is done with the elements is one of
 *
 *   .change = "transpose"            a matrix
 *   .change = "swap A B"             rows [A][B][rest] as [B][A][rest], numbers or fields
 *   .change = "swap_each N A"        rows [N][A][rest] as [N][rest][A]: halves of heads as pairs, A = 2
 *   .change = "part I N"             the Ith of N equal parts of the rows
 *   .change = "plus 1"               1 added
 *   .change = "squeeze"              [A][1][B] as [A][B]
 *   .change = "minus_exp"            -exp(x)
 *   .change = "heads H A N"          of each of H heads the rows A to A + N, as [H][N][columns]
 *   .change = "heads_transposed H A N"   the same as [H][columns][N]
 *
 * `.type = "f32"` for what is never narrowed. # is the layer's number in `when`, too. A row without a tensor of the
 * weights is computed: "rope_factors WIDTH", of the angles of Llama 3. A row without a name, or with a `when` that does
 * not hold, leaves its tensor out. */
struct gguf_key {
  const char *key, *value, *is, *type, *text, *when;
};
struct gguf_tensor {
  const char *tensor, *name, *change, *type, *when;
};

/* A value of the model: a tensor with a shape that is known when the model is read, and elements that are not. */
typedef struct accel_tensor *tensor;

/* A scope for parameters: a prefix of their names, and how they start. */
typedef struct accel_scope *scope;

/* Which keys a query of attention sees: all of them, or those at its own position and before. */
enum accel_mask { FULL, CAUSAL };

/* ---- Scopes: known when the model is read ---- */

/* The scope `name` below s. at(s, "attn.c_proj") is at(at(s, "attn"), "c_proj"). */
scope at(scope s, const char *name);

/* The i-th scope `name` below s: nth(s, "h", 3) is at(s, "h.3"). */
scope nth(scope s, const char *name, int i);

/* s with another start for the weights of linear, embedding and parameter below it: normal with mean 0. Biases of
 * linear then start at zero; norms keep their ones and zeros. Without any, these are PyTorch's: linear uniform within
 * 1/sqrt(inputs), embedding normal with deviation 1; a bare parameter starts at zero. */
scope init_normal(scope s, double deviation);

/* The same with a uniform start within [-bound, bound). */
scope init_uniform(scope s, double bound);

/* The same with a start at zero. */
scope init_zeros(scope s);

/* The same with a start at one. */
scope init_ones(scope s);

/* The same with a start at `value`. */
scope init_constant(scope s, double value);

/* The same with a start at waves over the positions, which are the rows (Vaswani et al., arXiv:1706.03762,
 * section 3.5): element [r][j] is sin(r ratio^-j) in the first half of the columns, [r][half + j] the cosine. */
scope init_sinusoid(scope s, double ratio);

/* The same of positions in a grid, row by row, `side` of them in a row: the first half of the columns has the waves
 * over r % side, the second those over r / side. */
scope init_sinusoid_grid(scope s, double ratio, int side);

/* ---- Shapes: known when the model is read ---- */

/* The extent of x along an axis. */
int dim(tensor x, int axis);

/* The number of axes of x. */
int rank(tensor x);

/* ---- Parameters and layers that have them ---- */

/* parameter(s, "weight", 50257, 768): the parameter `name` below s with these extents. The same full name is the same
 * parameter wherever it is written; so weights are tied. One number is parameter_of(s, "scale", 0), of no extents. */
#define parameter(s, name, ...) parameter_of((s), (name), ACCEL_COUNT(__VA_ARGS__), __VA_ARGS__)

/* What `parameter` calls: `rank` extents, ints, follow it. */
tensor parameter_of(scope s, const char *name, int rank, ...);

/* buffer(s, "positions", 1500, 384): the same for numbers that are not trained, as what PyTorch's register_buffer
 * keeps: saved and loaded with the parameters, never changed. The scope says how it starts. */
#define buffer(s, name, ...) buffer_of((s), (name), ACCEL_COUNT(__VA_ARGS__), __VA_ARGS__)

/* What `buffer` calls: `rank` extents, ints, follow it. */
tensor buffer_of(scope s, const char *name, int rank, ...);

/* Row tokens[...] of the parameter weight [vocab][width]: tokens [...] gives [...][width]. */
tensor embedding(scope s, tensor tokens, int vocab, int width);

/* y = x weight^T + bias: x [...][in] gives [...][out]; weight [out][in], bias [out], as torch.nn.Linear. */
tensor linear(scope s, tensor x, int out);

/* The same without the bias. */
tensor linear_no_bias(scope s, tensor x, int out);

/* y = x weight + bias, with weight [in][out]: GPT-2's published layout (transformers' Conv1D). */
tensor linear_transposed(scope s, tensor x, int out);

/* y = (x - mean) / sqrt(variance + eps) * weight + bias over the last axis; weight and bias are [columns], eps is 1e-5
 * (Ba, Kiros, Hinton, arXiv:1607.06450). */
tensor layer_norm(scope s, tensor x);

/* The same without the bias. */
tensor layer_norm_no_bias(scope s, tensor x);

/* With this eps, above 0. */
tensor layer_norm_eps(scope s, tensor x, double eps);

/* y = x / sqrt(mean of squares + eps) * weight over the last axis; eps is 1e-6 (Zhang, Sennrich, arXiv:1910.07467). */
tensor rms_norm(scope s, tensor x);

/* With this eps, above 0. */
tensor rms_norm_eps(scope s, tensor x, double eps);

/* Layer number `layer` of torch.nn.LSTM (batch_first): x [batch][steps][columns] from a zero state gives [batch][steps]
 * [width]. Its parameters are weight_ih_l0 [4 width][columns], weight_hh_l0 [4 width][width], bias_ih_l0 and bias_hh_l0
 * [4 width], for layer 0. */
tensor lstm(scope s, tensor x, int width, int layer);

/* Mamba's scan (arXiv:2312.00752): u and delta [batch][steps][channels], a [channels][states], b and c [batch][steps]
 * [states]. Each channel's states h, zero at first, become exp(delta a) h + delta b u in each step, and y is the sum of
 * c h. */
tensor selective_scan(tensor u, tensor delta, tensor a, tensor b, tensor c);

/* ---- Matrix products ---- */

/* a [...][m][k] times b [...][k][n], or b [k][n] for all: [...][m][n]. */
tensor matmul(tensor a, tensor b);

/* a times the transpose of b: b is [...][n][k] or [n][k]. */
tensor matmul_transposed(tensor a, tensor b);

/* einsum("bij,bjk->bik", a, b): the sum of products by labels of dimensions, as NumPy's: a letter for each dimension of
 * each operand, "..." for any number of leading ones; after the arrow those of the result, all others are summed over.
 * A label that an operand has twice takes its diagonal; extents of 1 broadcast. */
#define einsum(spec, ...) einsum_of((spec), ACCEL_COUNT(__VA_ARGS__), __VA_ARGS__)

/* What `einsum` calls: `count` tensors follow it. */
tensor einsum_of(const char *spec, int count, ...);

/* A sparse matrix of `count` rows times x [columns][n]: y[rows[e]], of [count][n], is the sum of values[e]
 * x[columns[e]]. Rows and columns are int32 [elements], values [elements]. */
tensor sparse_matmul(tensor rows, tensor columns, tensor values, tensor x, int count);

/* The same of elements in the order of their rows: those of row r from starts[r] to starts[r + 1]; starts is int32
 * [rows + 1] (compressed sparse rows). */
tensor sparse_matmul_csr(tensor starts, tensor columns, tensor values, tensor x);

/* softmax(q k^T / sqrt(d)) v: q [batch][heads][t][d], k and v [batch][heads][u][d] give [batch][heads][t][d]. CAUSAL
 * hides the keys that come after the query (Vaswani et al., arXiv:1706.03762, section 3.2.1). k and v may have fewer
 * heads: each then serves as many of q's in a row (grouped queries, arXiv:2305.13245). */
tensor attention(tensor q, tensor k, tensor v, enum accel_mask mask);

/* With `scale` instead of 1 / sqrt(d). */
tensor attention_scaled(tensor q, tensor k, tensor v, enum accel_mask mask, double scale);

/* Causal, and a query sees the last `window` keys alone, its own among them (arXiv:2004.05150, section 3.1). */
tensor attention_window(tensor q, tensor k, tensor v, int window);

/* The same with `scale`, and scores of cap tanh(score / cap), which are within (-cap, cap) (arXiv:2408.00118, section
 * 2). */
tensor attention_capped(tensor q, tensor k, tensor v, int window, double scale, double cap);

/* softmax(q k^T / sqrt(d) + bias) v, with a bias that broadcasts to [batch][heads][t][u]. */
tensor attention_bias(tensor q, tensor k, tensor v, tensor bias);

/* With a mask, and with `scale` instead of 1 / sqrt(d). */
tensor attention_bias_scaled(tensor q, tensor k, tensor v, tensor bias, enum accel_mask mask, double scale);

/* A bias that hides keys: of a mask [batch][keys], 1 for a key and 0 for padding, [batch][1][1][keys] with 0 and the
 * lowest float32. */
tensor padding_bias(tensor mask);

/* Causal attention within documents: the query at position t of a sample sees the keys from starts[t] to t. starts is
 * int32 [batch][t], at most t in each position; data.packing gives one of that name. */
tensor attention_documents(tensor q, tensor k, tensor v, tensor starts);

/* Rotary position embedding of x [batch][heads][t][d], with cos and sin of the positions' angles, [t][angles], which no
 * parameter may make (arXiv:2104.09864): columns r and r + angles are turned by angle r, as in Llama.
 * Columns from 2 angles on stay as they are. */
tensor rotary(tensor x, tensor cos, tensor sin);

/* The same with columns 2 r and 2 r + 1 turned by angle r, as in GPT-J. */
tensor rotary_interleaved(tensor x, tensor cos, tensor sin);

/* ---- Elements: one result for each position; NumPy's rule of broadcasting ---- */

/* a + b */
tensor add(tensor a, tensor b);

/* a - b */
tensor sub(tensor a, tensor b);

/* a * b */
tensor mul(tensor a, tensor b);

/* a / b */
tensor divide(tensor a, tensor b);

/* The larger of a and b. */
tensor maximum(tensor a, tensor b);

/* The smaller of a and b. */
tensor minimum(tensor a, tensor b);

/* 1 where a > b, else 0. */
tensor greater(tensor a, tensor b);

/* 1 where a >= b, else 0. */
tensor greater_equal(tensor a, tensor b);

/* 1 where a < b, else 0. */
tensor less(tensor a, tensor b);

/* 1 where a <= b, else 0. */
tensor less_equal(tensor a, tensor b);

/* 1 where a = b, else 0. */
tensor equal(tensor a, tensor b);

/* a where the condition is not 0, else b. */
tensor where(tensor condition, tensor a, tensor b);

/* x * factor */
tensor scale(tensor x, double factor);

/* x + offset */
tensor shift(tensor x, double offset);

/* -x */
tensor neg(tensor x);

/* x * x */
tensor square(tensor x);

/* sqrt(x) */
tensor sqrt_of(tensor x);

/* 1 / sqrt(x) */
tensor rsqrt_of(tensor x);

/* exp(x) */
tensor exp_of(tensor x);

/* The natural logarithm of x. */
tensor log_of(tensor x);

/* |x| */
tensor abs_of(tensor x);

/* x to the power of `exponent`. */
tensor pow_of(tensor x, double exponent);

/* x clamped to [low, high]. */
tensor clamp(tensor x, double low, double high);

/* log(1 + exp(x)) */
tensor softplus(tensor x);

/* x, through which no gradient flows back: PyTorch's Tensor.detach. */
tensor detach(tensor x);

/* sin(x), of radians. */
tensor sin_of(tensor x);

/* cos(x), of radians. */
tensor cos_of(tensor x);

/* tanh(x) */
tensor tanh_of(tensor x);

/* 1 / (1 + exp(-x)) */
tensor sigmoid(tensor x);

/* max(x, 0) */
tensor relu(tensor x);

/* x * sigmoid(x) (Elfwing, Uchibe, Doya, arXiv:1702.03118). */
tensor silu(tensor x);

/* x * (1 + erf(x / sqrt(2))) / 2 (Hendrycks, Gimpel, arXiv:1606.08415). */
tensor gelu(tensor x);

/* Its approximation by tanh, as in GPT-2: x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (section 2 of that
 * paper). */
tensor gelu_tanh(tensor x);

/* Whole numbers that float32 holds, as int32 from 0 on below `below`: columns of a table that name rows of another. A
 * trainer refuses data that holds another number there; what the model computes is cut to such a number. */
tensor cast_index(tensor x, int below);

/* The same for a loss that leaves `ignored` out, such as -100: that number is allowed, too, and stays as it is. */
tensor cast_target(tensor x, int classes, int ignored);

/* int32 as float32. */
tensor cast_float(tensor x);

/* In training each element becomes 0 with probability p and is scaled by 1 / (1 - p) otherwise; else it is x. */
tensor dropout(tensor x, double p);

/* random_normal(3, 4): float32 [3][4], drawn again in each run of the model: normal with mean 0 and deviation 1.
 * random_uniform: uniform in [0, 1). random_int: integers from 0 on below a bound, int32. They follow from
 * training.seed and the step, as dropout's; an evaluation draws the same ones each time. */
#define random_normal(...) random_normal_of(ACCEL_COUNT(__VA_ARGS__), __VA_ARGS__)
#define random_uniform(...) random_uniform_of(ACCEL_COUNT(__VA_ARGS__), __VA_ARGS__)
#define random_int(bound, ...) random_int_of((bound), ACCEL_COUNT(__VA_ARGS__), __VA_ARGS__)

/* What `random_normal` calls: `rank` extents, ints, follow it. */
tensor random_normal_of(int rank, ...);

/* What `random_uniform` calls. */
tensor random_uniform_of(int rank, ...);

/* What `random_int` calls; bound is above 0. */
tensor random_int_of(int bound, int rank, ...);

/* constant(0.5, 3, 4): float32 [3][4], each element 0.5. */
#define constant(value, ...) constant_of((value), ACCEL_COUNT(__VA_ARGS__), __VA_ARGS__)

/* What `constant` calls: `rank` extents, ints, follow it. */
tensor constant_of(double value, int rank, ...);

/* 0, 1, 2, ...: int32 [count]. */
tensor arange(int count);

/* The first `count` numbers of an array that the model has filled: float32 [count]. */
tensor table_of(int count, const double *numbers);

/* The same of integers: int32 [count]. */
tensor int_table_of(int count, const int *numbers);

/* ---- Shapes ---- */

/* reshape(x, 12, 64, 4, 32): the same elements in row-major order under other extents; one of them may be -1: what is
 * left. */
#define reshape(x, ...) reshape_to((x), ACCEL_COUNT(__VA_ARGS__), __VA_ARGS__)

/* What `reshape` calls: `rank` extents, ints, follow it. */
tensor reshape_to(tensor x, int rank, ...);

/* Axes a and b exchanged. */
tensor transpose(tensor x, int a, int b);

/* Part number `which` of x cut into `parts` equal parts along an axis. */
tensor split(tensor x, int axis, int parts, int which);

/* `count` positions along an axis from `start` on. */
tensor slice(tensor x, int axis, int start, int count);

/* concat(1, a, b, c): one after the other along an axis. */
#define concat(axis, ...) concat_of((axis), ACCEL_COUNT(__VA_ARGS__), __VA_ARGS__)

/* What `concat` calls: `count` tensors follow it, of the same extents along all other axes. */
tensor concat_of(int axis, int count, ...);

/* x backwards along an axis. */
tensor flip(tensor x, int axis);

/* x moved by `shift` positions along an axis: what leaves one end comes in at the other, as torch.roll. A negative
 * shift moves towards position 0. */
tensor roll(tensor x, int axis, int shift);

/* Zeros around x along an axis: so many before it and after it. */
tensor pad(tensor x, int axis, int before, int after);

/* ---- Positions: an index is int32 ---- */

/* Rows of a matrix: x [rows][columns] at index [...] gives [...][columns]. */
tensor take(tensor x, tensor index);

/* The other way: x [...][columns] added to zeros [rows][columns] where index [...] says. */
tensor index_add(tensor x, tensor index, int rows);

/* y[..., e, ...] = x[..., index[..., e, ...], ...]: the index has x's shape but along the axis (torch.gather).
 */
tensor gather(tensor x, int axis, tensor index);

/* The other way: x added into `size` zeros along the axis where the index says (torch.scatter_add). */
tensor scatter_add(tensor x, int axis, tensor index, int size);

/* The index of the largest along an axis, which is then gone, int32. Of equal ones the first counts. */
tensor argmax(tensor x, int axis);

/* The largest along an axis, which is then gone. Of equal ones the first has the gradient (torch.max along an axis;
 * torch.amax shares it among them). */
tensor max_along(tensor x, int axis);

/* The smallest, likewise. */
tensor min_along(tensor x, int axis);

/* The k largest along the last axis, from the largest down: [...][k]. Of equal ones the first comes first. */
tensor top_k(tensor x, int k);

/* The indices of these along the last axis: int32 [...][k]. */
tensor top_k_indices(tensor x, int k);

/* tokens [...] as [...][classes]: 1 in the token's position, else 0. */
tensor one_hot(tensor tokens, int classes);

/* Positions by what was chosen there: index int32 [...][rows][k] says which of `groups` each row chose, k times. Where
 * `capacity` is not 0, a group takes so many of each of the leading dimensions: first choices in the order of the rows,
 * then second ones; what comes too late is dropped. The result: the positions in the order of the groups, the dropped
 * ones last, counted in index, int32 [all]. */
tensor group_positions(tensor index, int groups, int capacity);

/* The rows that these positions are of: int32 [all]. */
tensor group_rows(tensor index, int groups, int capacity);

/* Where each group starts among them: int32 [groups + 1]. */
tensor group_starts(tensor index, int groups, int capacity);

/* Rows starts[g] to starts[g + 1] of x [rows][in] times the transpose of weights[g] [out][in], for each of `count`
 * groups; rows after the last one give 0. */
tensor grouped_matmul(tensor x, tensor starts, int count, const tensor *weights);

/* ---- Sums ---- */

/* The sum over one axis, which is then gone. */
tensor sum(tensor x, int axis);

/* The mean over one axis, which is then gone. */
tensor mean(tensor x, int axis);

/* The variance over one axis, which is then gone: of all, not of a sample, so the mean of (x - mean)^2. */
tensor variance(tensor x, int axis);

/* The sum over all axes: a scalar. */
tensor sum_all(tensor x);

/* The mean over all axes: a scalar. */
tensor mean_all(tensor x);

/* y[i] = x[0] + ... + x[i] along an axis. */
tensor cumsum(tensor x, int axis);

/* exp(x) / sum of exp(x), over the last axis. */
tensor softmax(tensor x);

/* Its logarithm: x - log_sum_exp(x). */
tensor log_softmax(tensor x);

/* log of the sum of exp(x) over the last axis, which is then gone. */
tensor log_sum_exp(tensor x);

/* 1 in the positions of the k largest along the last axis, else 0; of equal ones the first count. */
tensor top_k_mask(tensor x, int k);

/* Rows of length 1: x / max(|x|, 1e-12) over the last axis. */
tensor normalize(tensor x);

/* The cosine of the angle between rows: [...][columns] and the same give [...]. */
tensor cosine_similarity(tensor a, tensor b);

/* ---- How the functions above count their arguments: 1 to 16 ---- */

#define ACCEL_COUNT(...) ACCEL_PICK(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define ACCEL_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count

/* ---- The other parts of the vocabulary ---- */

#include <accel/images.h>
#include <accel/losses.h>

#endif
