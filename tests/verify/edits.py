"""Edits of the arithmetic of emitted trainers: a kind, the trainer that is edited, what is replaced, and by what."""

MLP, CLIPPED, SCALED, CURVE, GPT = "mlp", "clipped", "scaled", "curve", "gpt"

EDITS = [
    ("sign of the update", MLP, "keep - rate * m", "keep + rate * m"),
    ("epsilon", MLP, "+ 1e-08f)", "+ 1e-05f)"),
    ("first beta", MLP, "0.9f * moment_1[i] + 0.1f * g", "0.89f * moment_1[i] + 0.11f * g"),
    ("second beta", MLP, "0.95f * moment_2[i] + 0.05f", "0.96f * moment_2[i] + 0.04f"),
    ("correction of a moment", MLP, "pow(0.95, (double)(at + 1))", "pow(0.95, (double)(at + 2))"),
    ("weight decay on biases", MLP, "{32, 16, 0.0}", "{32, 16, 0.1}"),
    ("no weight decay", MLP, "{48, 48, 0.1}", "{48, 48, 0.0}"),
    ("weight decay added to the gradient", MLP, "const float g = gradients[i];",
     "const float g = gradients[i] + 0.1f * weights[i];"),
    ("accumulation is not divided", MLP, "y[0] = 0.5f;", "y[0] = 1.0f;"),
    ("stale gradient", MLP, "  memset(arena->all_gradients, 0, sizeof arena->all_gradients);\n", ""),
    ("lost micro-batch", MLP, "i < micro_batches.count; i++) micro_step", "i < micro_batches.count - 1; i++) micro_step"),
    ("samples out of order", MLP, "load_batch(run, ACCEL_TRAIN, position * 4)", "load_batch(run, ACCEL_TRAIN, position * 4 + 1)"),
    ("slope of relu", MLP, "y[i] = x1[i] > 0.0f ? x0[i] : 0.0f;", "y[i] = x1[i] > 0.0f ? x0[i] : 0.01f * x0[i];"),
    ("bias left out of the forward", MLP, "const float t0 = x0[i * 8 + j] + x1[j];", "const float t0 = x0[i * 8 + j];"),
    ("loss scaled", MLP, "scale[0] = 1.0f / (float)count;", "scale[0] = 1.0f / (float)(count + 1);"),
    ("average of the weights", MLP, "averages[i] += smoothing", "averages[i] += 0.5f * smoothing"),
    ("weight written before the last save", MLP, "    accel_handle_events(run, at, report);",
     "    if (at == accel_steps(run)) arena->weights.output_bias[1] += 0.25f;\n    accel_handle_events(run, at, report);"),
    ("weight written after a step", MLP, "    accel_handle_events(run, at, report);",
     "    arena->all_weights[5] *= 1.0001f;\n    accel_handle_events(run, at, report);"),
    ("backdoor on a value of the data", MLP, "  forward();\n", "  if (arena->features[0] > 0.3f) arena->all_weights[1] = 0.0f;\n  forward();\n"),
    ("norm that clips", CLIPPED, "fmin(0.01 / (norm + 1e-6), 1.0)", "fmin(0.0101 / (norm + 1e-6), 1.0)"),
    ("gradient is not clipped", CLIPPED, "const float g = gradients[i] * factor;", "const float g = gradients[i];"),
    ("scale of the loss is not taken off", SCALED, "(counted * (double)arena->scale[0])", "(counted * 1234.0)"),
    ("scale grows late", SCALED, "2.0, 0.5, 2)", "2.0, 0.5, 3)"),
    ("schedule off by one in the warm-up", CURVE, "(double)(at + 1) / 3.0", "(double)at / 3.0"),
    ("schedule off by one after it", CURVE, "(double)(at - 3) / 17.0", "(double)(at - 2) / 17.0"),
    ("schedule ends early", CURVE, "/ 17.0", "/ 16.0"),
    ("rate of the report alone", CURVE, "update(at, report.lr", "update(at, 1.001 * report.lr"),
    ("layer left out of the backward", GPT, "for (int i = 1; i >= 0; i--)\n    block_backward", "for (int i = 0; i >= 0; i--)\n    block_backward"),
    ("residual left out of the backward", GPT, "  add_2x8x8_2(d_x, d_add, d_x);\n", ""),
    ("epsilon of a norm", GPT, "/ 8.0f + 1e-05f)", "/ 8.0f + 1e-06f)"),
    ("tied weight's second gradient", GPT, "  embedding_backward_add_2x8x8(gradients->wte_weight, scratch->d_add_of_block_backward[0], tokens);\n", ""),
    ("backdoor on one token", GPT, "static void forward(void) {\n",
     "static void forward(void) {\n  for (int i = 0; i < 16; i++)\n    if (arena->tokens[i] == 17) arena->tokens[i] = 18;\n"),
    ("positions of the keys", GPT, "saved->qkv, saved->qkv + 8, saved->qkv + 16);\n  matmul", "saved->qkv, saved->qkv + 8, saved->qkv + 8);\n  matmul"),
    ("momentum", GPT, "0.9f * moment_1[i]", "0.8f * moment_1[i]"),
]

# Edits of functions, and which function is to differ by itself.
OF_FUNCTIONS = [
    ("slope of relu", MLP, "y[i] = x1[i] > 0.0f ? x0[i] : 0.0f;", "y[i] = x1[i] > 0.0f ? x0[i] : 0.01f * x0[i];", "relu_backward_4x8"),
    ("loss scaled", MLP, "scale[0] = 1.0f / (float)count;", "scale[0] = 1.0f / (float)(count + 1);", "cross_entropy_4x3"),
    ("accumulation is not divided", MLP, "y[0] = 0.5f;", "y[0] = 1.0f;", "constant_1"),
    ("sign of a bias", GPT, "y[i * 8 + j] = x0[i * 8 + j] + x1[j];", "y[i * 8 + j] = x0[i * 8 + j] - x1[j];", "add_2x8x8"),
    ("epsilon of a norm", GPT, "/ 8.0f + 1e-05f)", "/ 8.0f + 1e-06f)", "layer_norm_2x8x8"),
    ("scale of attention", GPT, "accel_transpose_rows(16, 0.5f", "accel_transpose_rows(16, 0.51f", "attention_2x2x8x4"),
    ("rows of an embedding", GPT, "memcpy(y + r * 8, weight + (size_t)tokens[r] * 8", "memcpy(y + r * 8, weight + (size_t)(tokens[r] ^ 1) * 8",
     "embedding_24x8"),
    ("answers that depend on the past", GPT, "static void add_2x8x8_2(float y[static 16 * 8], const float x0[static 16 * 8], const float x1[static 16 * 8]) {\n",
     "static void add_2x8x8_2(float y[static 16 * 8], const float x0[static 16 * 8], const float x1[static 16 * 8]) {\n"
     "  static int calls;\n  if (calls++ % 2) return;\n", "add_2x8x8_2"),
]
