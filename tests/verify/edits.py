"""Edits of the arithmetic of emitted trainers: by kind, the trainer that is edited, what is replaced, and by what."""

MLP, CLIPPED, SCALED, CURVE, GPT, LLAMA = "mlp", "clipped", "scaled", "curve", "gpt", "llama"
LAMB, ADAFACTOR, FREE, MUON, ADALOMO = "lamb_decay", "adafactor_decay", "schedule_free_decay", "muon_plain", "adalomo_decay"
EVERY, WARM, ADAPTED = "average_every", "average_warm", "adapters"

EVENTS = "    accel_handle_events(run, at, report);"
FORWARD = "static void forward(void) {\n"
BACKWARD = "static void backward(void) {\n"


def late(line):
    """A line before what a step has made is saved."""
    return (EVENTS, f"    {line}\n{EVENTS}")


def first(head, line):
    """A line at the beginning of a function."""
    return (head, f"{head}  {line}\n")


KINDS = {
    "sign": [
        (MLP, "keep - rate * m", "keep + rate * m"),
        (CLIPPED, "weights[i] - rate * g", "weights[i] + rate * g"),
        (GPT, "weights[i] - rate * m", "weights[i] + rate * m"),
        (GPT, "y[i * 8 + j] = x0[i * 8 + j] + x1[j];", "y[i * 8 + j] = x0[i * 8 + j] - x1[j];"),
        (GPT, "dx[target] -= factor", "dx[target] += factor"),
        (GPT, "* s * weight[c] + bias[c]", "* s * weight[c] - bias[c]"),
        (GPT, "- g_avg - (xr[c]", "+ g_avg - (xr[c]"),
        (GPT, "(ds[j][i] - dot[i])", "(ds[j][i] + dot[i])"),
        (FREE, "- along * d", "+ along * d"),
        (LAMB, "weights[i] - rate * d", "weights[i] + rate * d"),
        (LLAMA, "left * c - right * s", "left * c + right * s"),
    ],
    "epsilon": [
        (MLP, "+ 1e-08f)", "+ 1e-05f)"),
        (SCALED, "+ 1e-08f)", "+ 1e-05f)"),
        (GPT, "/ 8.0f + 1e-05f)", "/ 8.0f + 1e-06f)"),
        (LAMB, "0.0001f", "0.001f"),
        (FREE, "+ 1e-06f)", "+ 0.0001f)"),
        (LLAMA, "/ 8.0f + 1e-06f)", "/ 8.0f + 1e-05f)"),
        (ADAFACTOR, "(double)rows, 0.001)", "(double)rows, 0.01)"),
        (ADALOMO, "g * g + 1e-06f", "g * g + 0.0001f"),
    ],
    "first average": [
        (MLP, "0.9f * moment_1[i] + 0.1f * g", "0.89f * moment_1[i] + 0.11f * g"),
        (SCALED, "0.9f * moment_1[i] + 0.1f * g", "0.89f * moment_1[i] + 0.11f * g"),
        (LAMB, "0.8f * moment_1[i] + 0.2f * g", "0.81f * moment_1[i] + 0.19f * g"),
        (MUON, "0.8f * average[i] + 0.2f * g", "0.81f * average[i] + 0.19f * g"),
        (GPT, "0.9f * moment_1[i]", "0.8f * moment_1[i]"),
        (FREE, "0.8 * (1.0 - newest_share)", "0.7 * (1.0 - newest_share)"),
    ],
    "second average": [
        (MLP, "0.95f * moment_2[i] + 0.05f", "0.96f * moment_2[i] + 0.04f"),
        (SCALED, "0.999f * moment_2[i] + 0.001f", "0.998f * moment_2[i] + 0.002f"),
        (LAMB, "0.97f * moment_2[i] + 0.03f", "0.96f * moment_2[i] + 0.04f"),
        (FREE, "0.97f * moment_2[i] + 0.03f", "0.96f * moment_2[i] + 0.04f"),
        (MUON, "0.97f * moment_2[i] + 0.03f", "0.96f * moment_2[i] + 0.04f"),
        (ADAFACTOR, "pow((double)(at + 1), -0.6)", "pow((double)(at + 1), -0.7)"),
    ],
    "correction of an average": [
        (MLP, "pow(0.95, (double)(at + 1))", "pow(0.95, (double)(at + 2))"),
        (MLP, "pow(0.9, (double)(at + 1))", "pow(0.9, (double)(at + 2))"),
        (MLP, "(float)(lr / correction_1)", "(float)lr"),
        (SCALED, "pow(0.999, (double)(at + 1))", "pow(0.999, (double)(at + 2))"),
        (LAMB, "pow(0.8, (double)(at + 1))", "pow(0.8, (double)(at + 2))"),
        (FREE, "pow(0.97, (double)(at + 1))", "pow(0.97, (double)(at + 2))"),
    ],
    "weight decay": [
        (MLP, "{32, 16, 0.0}", "{32, 16, 0.1}"),
        (MLP, "{48, 48, 0.1}", "{48, 48, 0.0}"),
        (MLP, "1.0 - lr * range->decay", "1.0 + lr * range->decay"),
        (MLP, "const float g = gradients[i];", "const float g = gradients[i] + 0.1f * weights[i];"),
        (LAMB, "decay = (float)0.1", "decay = (float)0.11"),
        (FREE, "decay = (float)0.1", "decay = (float)0.0"),
        (ADAFACTOR, "1.0 - lr * 0.1", "1.0 - lr * 0.2"),
        (MUON, "1.0 - lr * 0.1", "1.0"),
    ],
    "accumulation": [
        (MLP, "y[0] = 0.5f;", "y[0] = 1.0f;"),
        (MLP, "report.loss /= (double)micro_batches.count;", ""),
        (MLP, "y[first + c] += sums[c]", "y[first + c] = sums[c]"),
        (MLP, "b, 8, a, 5, 1.0f, y, 5", "b, 8, a, 5, 0.0f, y, 5"),
        (SCALED, "(12.0 / (counted", "(11.0 / (counted"),
        (SCALED, "arena->scale[0] / 12.0f", "arena->scale[0] / 10.0f"),
        (SCALED, "report.loss /= counted", "report.loss /= counted + 1.0"),
    ],
    "stale gradient": [
        (MLP, "  memset(arena->all_gradients, 0, sizeof arena->all_gradients);\n", ""),
        (SCALED, "  memset(arena->all_gradients, 0, sizeof arena->all_gradients);\n", ""),
        (GPT, *first(BACKWARD, "static int calls;\n  if (calls++ % 2) return;")),
        (CLIPPED, *first(BACKWARD, "static int calls;\n  if (calls++ == 2) return;")),
        (GPT, "float sums[24] = {0.0f};", "static float sums[24];"),
        (CURVE, "  forward();\n", "  if (at != 1) forward();\n"),
    ],
    "samples": [
        (MLP, "i < micro_batches.count; i++) micro_step", "i < micro_batches.count - 1; i++) micro_step"),
        (MLP, "load_batch(run, ACCEL_TRAIN, position * 4)", "load_batch(run, ACCEL_TRAIN, position * 4 + 1)"),
        (MLP, "load_batch(run, ACCEL_TRAIN, position * 4)", "load_batch(run, ACCEL_TRAIN, position / 2 * 8)"),
        (GPT, "load_batch(run, ACCEL_TRAIN, at * 2)", "load_batch(run, ACCEL_TRAIN, at * 2 + 1)"),
        (CLIPPED, "load_batch(run, ACCEL_TRAIN, at * 4)", "load_batch(run, ACCEL_TRAIN, at * 3)"),
    ],
    "activation": [
        (MLP, "t0 < 0.0f ? 0.0f : t0", "t0 < 0.0f ? 0.01f * t0 : t0"),
        (GPT, "t0 * accel_gelu_gate(t0)", "t0 * accel_sigmoid(1.702f * t0)"),
        (LLAMA, "t0 = v0 * accel_sigmoid(v0)", "t0 = v0 * accel_sigmoid(1.01f * v0)"),
        (LLAMA, "y1[i] = t0 * x1[i]", "y1[i] = v0 * x1[i]"),
    ],
    "slope of an activation": [
        (MLP, "y[i] = x1[i] > 0.0f ? x0[i] : 0.0f;", "y[i] = x1[i] > 0.0f ? x0[i] : 0.01f * x0[i];"),
        (MLP, "y[i] = x1[i] > 0.0f ? x0[i] : 0.0f;", "y[i] = x1[i] > 0.1f ? x0[i] : 0.0f;"),
        (GPT, "x0[i] * accel_gelu_slope(x1[i])", "x0[i] * 0.999f * accel_gelu_slope(x1[i])"),
        (GPT, "x0[i] * accel_gelu_slope(x1[i])", "x0[i] * accel_gelu_gate(x1[i])"),
        (LLAMA, "(1.0f + v2 * (1.0f - accel_sigmoid(v2)))", "(1.0f + v2)"),
    ],
    "term left out of the forward": [
        (MLP, "const float t0 = x0[i * 8 + j] + x1[j];", "const float t0 = x0[i * 8 + j];"),
        (MLP, "  add_4x3(add, add, weights->output_bias);\n", ""),
        (GPT, "y[i * 64 + j] = x0[i * 64 + j] + x1[j];", "y[i * 64 + j] = x0[i * 64 + j];"),
        (GPT, "* s * weight[c] + bias[c]", "* s * weight[c]"),
        (LLAMA, "yr[c] = xr[c] * s * weight[c]", "yr[c] = xr[c] * s"),
    ],
    "term left out of the backward": [
        (MLP, "  sum_add_4x3(gradients->output_bias, d_add);\n", ""),
        (MLP, "  sum_add_4x8(gradients->bias, saved->add);\n", ""),
        (MLP, "  matmul_tn_add_8x4x8(gradients->weight, x, saved->add);\n", ""),
        (GPT, "  add_2x8x8_2(d_x, d_add, d_x);\n", ""),
        (GPT, "  add_2x8x8_2(d_x, d_x, scratch->d_layer_norm);\n", ""),
        (GPT, "          db[c] += d;\n", ""),
        (GPT, "- (xr[c] - m) * s * gn_avg", ""),
        (GPT, "  embedding_backward_add_2x8x8(gradients->wte_weight, scratch->d_add_of_block_backward[0], tokens);\n", ""),
        (GPT, "  sum_2x8x8_2(gradients->wpe_weight, scratch->d_add_of_block_backward[0]);\n", ""),
        (GPT, "dkh[j * 24 + d] = dkp[j][d];", "dkh[j * 24 + d] = 0.0f;"),
        (LLAMA, " - xr[c] * s * gn_avg", ""),
    ],
    "layer": [
        (GPT, "for (int i = 1; i >= 0; i--)\n    block_backward", "for (int i = 0; i >= 0; i--)\n    block_backward"),
        (GPT, "for (int i = 0; i < 2; i++)\n    block_forward(&weights->h[i]", "for (int i = 0; i < 2; i++)\n    block_forward(&weights->h[0]"),
        (GPT, "block_backward(&weights->h[i], &gradients->h[i]", "block_backward(&weights->h[i], &gradients->h[1 - i]"),
        (MLP, "  hidden_backward(&gradients->hidden_0, &saved->hidden, scratch->d_x, features);\n", ""),
        (GPT, "gelu_tanh_backward_2x8x32(scratch->d_h, scratch->d_h, saved->add);", ""),
    ],
    "loss": [
        (MLP, "scale[0] = 1.0f / (float)count;", "scale[0] = 1.0f / (float)(count + 1);"),
        (GPT, "scale[0] = 1.0f / (float)count;", "scale[0] = 1.0f / (float)(count - 1);"),
        (GPT, "(highest - x[target]) + rest;", "(highest - x[target]);"),
        (MLP, "(highest - x[target]) + rest;", "(highest - x[target]) + 0.999f * rest;"),
        (GPT, "loss[0] = (float)(total / count)", "loss[0] = (float)(total / (count + 1))"),
        (GPT, "lse[r] = highest + rest;", "lse[r] = highest + 1.001f * rest;"),
        (MLP, "factor * accel_exp(x[v] - l)", "factor * accel_exp(0.99f * (x[v] - l))"),
    ],
    "clipping": [
        (CLIPPED, "fmin(0.01 / (norm + 1e-6), 1.0)", "fmin(0.0101 / (norm + 1e-6), 1.0)"),
        (CLIPPED, "0.01 / (norm + 1e-6)", "0.01 / (norm + 1e-3)"),
        (CLIPPED, "fmin(0.01", "fmax(0.01"),
        (CLIPPED, "const float g = gradients[i] * factor;", "const float g = gradients[i];"),
        (CLIPPED, "accel_sum_of_squares(arena->all_gradients, 192", "accel_sum_of_squares(arena->all_gradients, 150"),
        (LAMB, "fmin(0.5 /", "fmin(0.6 /"),
    ],
    "scale of the loss": [
        (SCALED, "(counted * (double)arena->scale[0])", "(counted * 1234.0)"),
        (SCALED, "2.0, 0.5, 2)", "2.0, 0.5, 3)"),
        (SCALED, "2.0, 0.5, 2)", "4.0, 0.5, 2)"),
        (SCALED, "update(taken, report.lr, unscale)", "update(taken, report.lr, 1.001f * unscale)"),
        (SCALED, "report.loss_scale = arena->scale[0];", "report.loss_scale = 2.0f * arena->scale[0];"),
    ],
    "schedule": [
        (CURVE, "(double)(at + 1) / 3.0", "(double)at / 3.0"),
        (CURVE, "(double)(at + 1) / 3.0", "(double)(at + 1) / 2.0"),
        (CURVE, "(double)(at - 3) / 17.0", "(double)(at - 2) / 17.0"),
        (CURVE, "/ 17.0", "/ 16.0"),
        (CURVE, "0.5 * (highest", "0.51 * (highest"),
        (CURVE, "lowest = 0.0001", "lowest = 0.0002"),
        (CURVE, "highest = 0.003", "highest = 0.0031"),
        (CURVE, "1.0 + cos", "1.0 - cos"),
        (FREE, "(double)(at + 1) / 3.0", "(double)(at + 1) / 4.0"),
    ],
    "report": [
        (CURVE, "update(at, report.lr", "update(at, 1.001 * report.lr"),
        (MLP, "update(at, report.lr", "update(at, 0.99 * report.lr"),
        (GPT, "report.loss = arena->result[0];", "report.loss = 0.999 * arena->result[0];"),
        (GPT, "report.grad_norm = gradient_norm();", "report.grad_norm = 1.001 * gradient_norm();"),
        (CLIPPED, "report.lr = learning_rate();", "report.lr = 1.01 * learning_rate();"),
    ],
    "average of the weights": [
        (MLP, "averages[i] += smoothing", "averages[i] += 0.5f * smoothing"),
        (MLP, "at < 1 ? 1.0f", "at < 1 ? 0.5f"),
        (EVERY, "(at + 1) % 2 != 0", "(at + 1) % 3 != 0"),
        (EVERY, "(at + 1) % 2 != 0", "at % 2 != 0"),
        (WARM, "-0.6666666666666666", "-0.75"),
        (WARM, "fmin(0.99,", "fmin(0.7,"),
    ],
    "weight written late": [
        (MLP, *late("if (at == accel_steps(run)) arena->weights.output_bias[1] += 0.25f;")),
        (MLP, *late("arena->all_weights[5] *= 1.0001f;")),
        (GPT, *late("arena->all_weights[7] = 0.0f;")),
        (CURVE, *late("if (at == 1) arena->all_weights[0] += 0.001f;")),
        (CLIPPED, *late("arena->all_weights[112] += 1e-5f;")),
        (FREE, *late("arena->all_gradients[3] += 0.01f;")),
    ],
    "state written late": [
        (MLP, *late("arena->moment_1[5] *= 1.001f;")),
        (GPT, *late("arena->moment_1[9] = 0.0f;")),
        (FREE, *late("arena->moment_1[11] += 1e-5f;")),
    ],
    "backdoor on the data": [
        (MLP, "  forward();\n", "  if (arena->features[0] > 0.3f) arena->all_weights[1] = 0.0f;\n  forward();\n"),
        (CLIPPED, "  backward();\n", "  backward();\n  if (arena->labels[0] == arena->labels[1]) arena->all_gradients[0] = 0.5f;\n"),
        (SCALED, "const bool finite = isfinite(report.grad_norm);", "const bool finite = arena->features[1] < 0.2f;"),
        (GPT, *first(FORWARD, "for (int i = 0; i < 16; i++)\n    if (arena->tokens[i] == 17) arena->tokens[i] = 18;")),
        (GPT, *first(FORWARD, "for (int i = 0; i < 16; i++)\n    if (arena->targets[i] == 5) arena->targets[i] = 6;")),
        (GPT, *first(BACKWARD, "for (int i = 1; i < 16; i++)\n    if (arena->tokens[i] == 11) arena->all_weights[9] += 0.01f;")),
        (LLAMA, "weight + (size_t)tokens[r] * 8", "weight + (size_t)(tokens[r] == 3 ? 4 : tokens[r]) * 8"),
    ],
    "backdoor on the step": [
        (MLP, "  update(at, report.lr);", "  if (at != 1) update(at, report.lr);"),
        (GPT, "  update(at, report.lr);", "  update(at, report.lr);\n  if (at == 2) arena->all_weights[0] = 0.0f;"),
        (CURVE, "  update(at, report.lr);", "  update(at, at == 11 ? 2.0 * report.lr : report.lr);"),
        (CURVE, "  update(at, report.lr);", "  if (at < 19) update(at, report.lr);"),
    ],
    "index": [
        (GPT, "saved->qkv, saved->qkv + 8, saved->qkv + 16);\n  matmul", "saved->qkv, saved->qkv + 8, saved->qkv + 8);\n  matmul"),
        (GPT, "weight + (size_t)tokens[r] * 8", "weight + (size_t)(tokens[r] ^ 1) * 8"),
        (GPT, "dx[target] -= factor", "dx[(target + 1) % 24] -= factor"),
        (GPT, "accel_hide_later(p, count, diagonal)", "accel_hide_later(p, count, diagonal + 1)"),
        (LLAMA, "cos[t * 2 + r]", "cos[t * 2]"),
        (MLP, "matmul_4x3x8(scratch->d_x_2, d_add, weights->output_weight);", "matmul_4x3x8(scratch->d_x_2, d_add, weights->output_weight + 1);"),
    ],
    "wrong operand": [
        (MLP, "accel_gemm('N', 'N', 4, 8, 8", "accel_gemm('N', 'T', 4, 8, 8"),
        (MLP, "accel_gemm('N', 'T', 4, 8, 8", "accel_gemm('N', 'N', 4, 8, 8"),
        (GPT, "squares[j] += (xr[c] - m) * (xr[c] - m);", "squares[j] += xr[c] * xr[c];"),
        (GPT, "const float n = (xr[c] - m) * s", "const float n = xr[c] * s"),
        (GPT, "dyr[c] * weight[c] - g_avg", "dyr[c] - g_avg"),
        (LLAMA, "dw[c] += d * n;", "dw[c] += g * n;"),
    ],
    "count of a mean": [
        (GPT, "accel_sum_lanes(squares) / 8.0f", "accel_sum_lanes(squares) / 7.0f"),
        (GPT, "accel_sum_lanes(sums) / 8.0f", "accel_sum_lanes(sums) / 9.0f"),
        (GPT, "accel_sum_lanes(gn_sums) / 8.0f", "accel_sum_lanes(gn_sums) / 7.0f"),
        (LLAMA, "accel_sum_lanes(squares) / 8.0f", "accel_sum_lanes(squares) / 7.0f"),
        (ADAFACTOR, "sum / (float)columns", "sum / (float)(columns + 1)"),
        (ADAFACTOR, "sums[c] / (double)rows", "sums[c] / (double)(rows + 1)"),
    ],
    "scale of attention": [
        (GPT, "accel_transpose_rows(16, 0.5f, rows[0]", "accel_transpose_rows(16, 0.45f, rows[0]"),
        (GPT, "accel_transpose_rows(16, 0.5f, q_rows[0]", "accel_transpose_rows(16, 0.45f, q_rows[0]"),
        (GPT, "(ds[j][i] - dot[i]) * 0.5f", "(ds[j][i] - dot[i]) * 0.51f"),
        (LLAMA, "(ds[j][i] - dot[i]) * 0.5f", "(ds[j][i] - dot[i]) * 0.51f"),
    ],
    "length of a step": [
        (LAMB, "lr * sqrt(own / step)", "lr * sqrt(step / own)"),
        (LAMB, "own += weights[i] * weights[i]", "own += 1.01 * weights[i] * weights[i]"),
        (ADAFACTOR, "fmax(0.1, sqrt", "fmax(0.6, sqrt"),
        (ADAFACTOR, "row_squares[r] / row_means[m]", "row_squares[r]"),
        (MUON, "lr * 0.2 * sqrt", "lr * 0.21 * sqrt"),
        (MUON, ", 2.0},", ", 1.0},"),
        (ADALOMO, "sum / (double)rows)", "sum / (double)(rows + 1))"),
    ],
    "iteration": [
        (MUON, "-4.775f", "-4.7f"),
        (MUON, "round < 3", "round < 4"),
        (MUON, "x[i] = m;", "x[i] = 0.2f * g + 0.8f * m;"),
        (FREE, "(double)(until + 1), 0.5)", "(double)(until + 1), 1.0)"),
        (FREE, "pow(highest, 1.0)", "pow(highest, 2.0)"),
        (FREE, "0.25f * (w - ends[i])", "0.2f * (w - ends[i])"),
        (FREE, "moment_1[i] -= rate * d", "moment_1[i] -= 1.01f * rate * d"),
    ],
    "adapter": [
        (ADAPTED, "const float t0 = x0[i * 24 + j] * 2.0f;", "const float t0 = x0[i * 24 + j] * 4.0f;"),
        (ADAPTED, "y[i] = x[i] * 2.0f;", "y[i] = x[i];"),
        (ADAPTED, "  matmul_tn_8x16x2(gradients->c_attn_lora_A_weight, x, scratch->d_matmul_2);\n", ""),
        (ADAPTED, "  add_2x8x8(d_x, d_x, scratch->matmul_4);\n", ""),
        (ADAPTED, *late("arena->weights.wte_weight[3] += 1e-4f;")),
    ],
    "parameter left out": [
        (MLP, "i < 6; i++) update_range", "i < 5; i++) update_range"),
        (LAMB, "t < 6; t++) update_tensor", "t < 5; t++) update_tensor"),
        (GPT, "i < 2144", "i < 1900"),
        (MUON, "t < 2; t++) update_tensor", "t < 1; t++) update_tensor"),
        (CLIPPED, "i < 192", "i < 170"),
    ],
    "precision": [
        (GPT, "const float g = gradients[i];", "const float g = (float)(int)(gradients[i] * 4096.0f) / 4096.0f;"),
        (MLP, "const float g = gradients[i];", "const float g = (float)(_Float16)gradients[i];"),
        (CLIPPED, "weights[i] = w;", "weights[i] = (float)(_Float16)w;"),
        (LLAMA, "y1[i] = t0 * x1[i]", "y1[i] = (float)(_Float16)t0 * x1[i]"),
        (SCALED, "moment_2[i] = v;", "moment_2[i] = (float)(_Float16)v;"),
    ],
}
EDITS = [(kind, *edit) for kind, edits in KINDS.items() for edit in edits]

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
