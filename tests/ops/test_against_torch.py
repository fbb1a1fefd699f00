"""The operations' float64 references and gradients against PyTorch in float64.

test_gradients --print SEED calls every function of accel/model.h on random shapes and writes what came out; here the
same calls go to PyTorch. usage: test_against_torch.py [--seed N] [--program PATH]
"""

import argparse
import json
import os
import random
import subprocess
import sys

import torch
import torch.nn.functional as F

TOLERANCE = 1e-11


def linear(p, x, out, transposed=False, bias=True):
    weight = p["weight"].T if transposed else p["weight"]
    return F.linear(x, weight, p["bias"] if bias else None)


def layer_norm(p, x, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], p["weight"], p.get("bias"), eps)


def rms_norm(p, x, eps=1e-6):
    return F.rms_norm(x, x.shape[-1:], p["weight"], eps)


def attention(p, q, k, v, causal, scale=None):
    return F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal), enable_gqa=True, scale=scale)


def attention_window(p, q, k, v, window):
    position = torch.arange(q.shape[2])
    seen = (position[:, None] >= position) & (position[:, None] - position < window)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)


def attention_capped(p, q, k, v, window, scale, cap):
    position = torch.arange(q.shape[2])
    hidden = (position[:, None] < position) | (position[:, None] - position >= window)
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = cap * torch.tanh(scale * q @ k.transpose(-1, -2) / cap)
    return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v


def attention_bias_scaled(p, q, k, v, bias, causal, scale):
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1) if causal else torch.zeros(1, 1, dtype=torch.bool)
    mask = bias.masked_fill(hidden, -torch.inf)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True, scale=scale)


def attention_documents(p, q, k, v, starts):
    position = torch.arange(q.shape[2])
    seen = (position[:, None] >= position) & (position >= starts[:, None, :, None])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)


def rotary(p, x, cos, sin, interleaved=False):
    """Pairs as complex numbers, rotated by cos + i sin."""
    n = cos.shape[1]
    a, b = (x[..., : 2 * n : 2], x[..., 1 : 2 * n : 2]) if interleaved else (x[..., :n], x[..., n : 2 * n])
    rotated = torch.complex(a, b) * torch.complex(cos, sin)
    pairs = torch.stack((rotated.real, rotated.imag), -1) if interleaved else torch.stack((rotated.real, rotated.imag), -2)
    return torch.cat((pairs.flatten(-2), x[..., 2 * n :]), -1)


def convolution(of):
    """A layer that convolves: of(x, weight, bias, ...) is PyTorch's function."""
    return lambda p, x, out, kernel, stride, padding, *rest: of(
        x, p["weight"], p.get("bias"), stride=stride, padding=padding,
        **dict(zip(("dilation", "groups"), rest)))


def convolved(of):
    """The same of a weight that is given."""
    def function(p, x, weight, stride, padding, *rest):
        names = ("dilation", "groups") if len(rest) == 2 else ("output_padding", "dilation", "groups")
        return of(x, weight, stride=stride, padding=padding, **dict(zip(names, rest)))

    return function


def cross_entropy(p, logits, targets, ignored=-100, smoothing=0, z=0):
    rows = logits.reshape(-1, logits.shape[-1])
    targets = targets.reshape(-1)
    loss = F.cross_entropy(rows, targets, ignore_index=ignored, label_smoothing=smoothing)
    return loss + z * torch.logsumexp(rows, -1)[targets != ignored].square().mean()


def weighted_entropy(p, x, z, weight):
    """PyTorch's, and the same written out, because PyTorch's has no gradient for the weight."""
    loss = -(weight * z * F.logsigmoid(x) + (1 - z) * F.logsigmoid(-x)).mean()
    torch.testing.assert_close(loss, F.binary_cross_entropy_with_logits(x, z, pos_weight=weight.detach()))
    return loss


def pad(p, x, axis, before, after):
    trailing = x.dim() - 1 - axis % x.dim()
    return F.pad(x, [0, 0] * trailing + [before, after])


def scatter_add(p, x, axis, index, size):
    shape = list(x.shape)
    shape[axis] = size
    return torch.zeros(shape, dtype=x.dtype).scatter_add(axis, index, x)


def lstm(p, x, width, layer):
    start = torch.zeros(1, x.shape[0], width, dtype=x.dtype)
    weights = [p[name] for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")]
    return torch.lstm(x, (start, start), weights, True, 1, 0.0, False, False, True)[0]


def selective_scan(p, u, delta, a, b, c):
    state, steps = torch.zeros(u.shape[0], *a.shape, dtype=u.dtype), []
    for t in range(u.shape[1]):
        state = torch.exp(delta[:, t, :, None] * a) * state + (delta[:, t] * u[:, t])[..., None] * b[:, t, None]
        steps.append((state * c[:, t, None]).sum(-1))
    return torch.stack(steps, 1)


def sparse_matmul(p, rows, columns, values, x, count):
    return torch.sparse.mm(torch.sparse_coo_tensor(torch.stack((rows, columns)), values, (count, len(x))), x)


def grouped_matmul(p, x, starts, count, *weights):
    parts = [x[a:b] @ weight.T for a, b, weight in zip(starts, starts[1:], weights)]
    return torch.cat([*parts, torch.zeros(len(x) - starts[-1], len(weights[0]), dtype=x.dtype)])


def contrastive(p, similarity):
    return F.cross_entropy(similarity, torch.arange(len(similarity)))


# By the function's name: the parameters that it made, then its arguments (a scope is left out).
FUNCTIONS = {
    "neg": lambda p, x: -x,
    "square": lambda p, x: torch.square(x),
    "sqrt_of": lambda p, x: torch.sqrt(x),
    "rsqrt_of": lambda p, x: torch.rsqrt(x),
    "exp_of": lambda p, x: torch.exp(x),
    "log_of": lambda p, x: torch.log(x),
    "sin_of": lambda p, x: torch.sin(x),
    "cos_of": lambda p, x: torch.cos(x),
    "tanh_of": lambda p, x: torch.tanh(x),
    "sigmoid": lambda p, x: torch.sigmoid(x),
    "relu": lambda p, x: F.relu(x),
    "silu": lambda p, x: F.silu(x),
    "gelu": lambda p, x: F.gelu(x),
    "gelu_tanh": lambda p, x: F.gelu(x, approximate="tanh"),
    "abs_of": lambda p, x: torch.abs(x),
    "pow_of": lambda p, x, exponent: x**exponent,
    "where": lambda p, condition, a, b: torch.where(condition != 0, a, b),
    "clamp": lambda p, x, low, high: torch.clamp(x, low, high),
    "softplus": lambda p, x: F.softplus(x, threshold=1e9),
    "scale": lambda p, x, value: x * value,
    "shift": lambda p, x, value: x + value,
    "add": lambda p, a, b: a + b,
    "sub": lambda p, a, b: a - b,
    "mul": lambda p, a, b: a * b,
    "divide": lambda p, a, b: a / b,
    "maximum": lambda p, a, b: torch.maximum(a, b),
    "minimum": lambda p, a, b: torch.minimum(a, b),
    "matmul": lambda p, a, b: a @ b,
    "matmul_transposed": lambda p, a, b: a @ b.mT,
    "linear": linear,
    "linear_no_bias": lambda p, x, out: linear(p, x, out, bias=False),
    "linear_transposed": lambda p, x, out: linear(p, x, out, transposed=True),
    **{name + end: convolution(getattr(F, name)) for name in ("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d")
       for end in ("", "_no_bias", "_grouped", "_grouped_no_bias")},
    "convolve1d": convolved(F.conv1d),
    "convolve2d": convolved(F.conv2d),
    "convolve2d_pairs": lambda p, x, w, *n: F.conv2d(x, w, None, n[:2], n[2:4], n[4:6], n[6]),
    "convolve_transposed1d": convolved(F.conv_transpose1d),
    "convolve_transposed2d": convolved(F.conv_transpose2d),
    "batch_norm": lambda p, x: F.batch_norm(x, None, None, p["weight"], p["bias"], True),
    "batch_norm_with": lambda p, x, eps, momentum: F.batch_norm(x, None, None, p["weight"], p["bias"], True, momentum, eps),
    "group_norm": lambda p, x, groups: F.group_norm(x, groups, p["weight"], p["bias"]),
    "group_norm_eps": lambda p, x, groups, eps: F.group_norm(x, groups, p["weight"], p["bias"], eps),
    "max_pool1d": lambda p, x, *how: F.max_pool1d(x, *how),
    "max_pool2d": lambda p, x, *how: F.max_pool2d(x, *how),
    "avg_pool1d": lambda p, x, *how: F.avg_pool1d(x, *how),
    "avg_pool2d": lambda p, x, *how: F.avg_pool2d(x, *how),
    "adaptive_avg_pool1d": lambda p, x, size: F.adaptive_avg_pool1d(x, size),
    "adaptive_avg_pool2d": lambda p, x, *size: F.adaptive_avg_pool2d(x, size),
    "interpolate_nearest": lambda p, x, *size: F.interpolate(x, size),
    "interpolate_bilinear": lambda p, x, *size: F.interpolate(x, size, mode="bilinear"),
    "interpolate_bilinear_corners": lambda p, x, *size: F.interpolate(x, size, mode="bilinear", align_corners=True),
    "attention": attention,
    "attention_scaled": attention,
    "attention_window": attention_window,
    "attention_capped": attention_capped,
    "attention_bias": lambda p, q, k, v, bias: F.scaled_dot_product_attention(q, k, v, attn_mask=bias, enable_gqa=True),
    "attention_bias_scaled": attention_bias_scaled,
    "attention_documents": attention_documents,
    "rotary": rotary,
    "rotary_interleaved": lambda p, x, cos, sin: rotary(p, x, cos, sin, interleaved=True),
    "softmax": lambda p, x: torch.softmax(x, -1),
    "layer_norm": layer_norm,
    "layer_norm_no_bias": layer_norm,
    "layer_norm_eps": layer_norm,
    "rms_norm": rms_norm,
    "rms_norm_eps": rms_norm,
    "embedding": lambda p, tokens, vocab, width: F.embedding(tokens, p["weight"]),
    "cross_entropy": cross_entropy,
    "cross_entropy_ignore": cross_entropy,
    "cross_entropy_smooth": lambda p, x, t, smoothing: cross_entropy(p, x, t, smoothing=smoothing),
    "cross_entropy_z": lambda p, x, t, z: cross_entropy(p, x, t, z=z),
    "cross_entropy_with": cross_entropy,
    "log_sum_exp": lambda p, x: torch.logsumexp(x, -1),
    "log_softmax": lambda p, x: torch.log_softmax(x, -1),
    "normalize": lambda p, x: F.normalize(x, dim=-1),
    "cosine_similarity": lambda p, a, b: F.cosine_similarity(a, b, dim=-1),
    "binary_cross_entropy_with_logits": lambda p, x, z: F.binary_cross_entropy_with_logits(x, z),
    "binary_cross_entropy_with_logits_weighted": weighted_entropy,
    "mse_loss": lambda p, x, t: F.mse_loss(x, t),
    "l1_loss": lambda p, x, t: F.l1_loss(x, t),
    "huber_loss": lambda p, x, t, delta: F.huber_loss(x, t, delta=delta),
    "smooth_l1_loss": lambda p, x, t, beta: F.smooth_l1_loss(x, t, beta=beta),
    "kl_div": lambda p, x, t: F.kl_div(x, t),
    "kl_div_log_target": lambda p, x, t: F.kl_div(x, t, log_target=True),
    "contrastive_loss": contrastive,
    "clip_loss": lambda p, x: (contrastive(p, x) + contrastive(p, x.T)) / 2,
    "triplet_margin_loss": lambda p, a, b, c, margin: F.triplet_margin_loss(a, b, c, margin=margin),
    "lstm": lstm,
    "selective_scan": selective_scan,
    "sum": lambda p, x, axis: x.sum(axis),
    "variance": lambda p, x, axis: x.var(axis, correction=0),
    "cumsum": lambda p, x, axis: x.cumsum(axis),
    "max_along": lambda p, x, axis: x.max(axis).values,
    "min_along": lambda p, x, axis: x.min(axis).values,
    "top_k": lambda p, x, k: x.topk(k).values,
    "pad": pad,
    "gather": lambda p, x, axis, index: x.gather(axis, index),
    "scatter_add": scatter_add,
    "take": lambda p, x, index: x[index],
    "index_add": lambda p, x, index, rows: torch.zeros(rows, x.shape[-1], dtype=x.dtype).index_add(0, index.reshape(-1), x.reshape(-1, x.shape[-1])),
    "mean": lambda p, x, axis: x.mean(axis),
    "sum_all": lambda p, x: x.sum(),
    "mean_all": lambda p, x: x.mean(),
    "reshape_to": lambda p, x, rank, *dims: x.reshape(dims),
    "transpose": lambda p, x, a, b: x.transpose(a, b),
    "slice": lambda p, x, axis, start, count: x.narrow(axis, start, count),
    "split": lambda p, x, axis, parts, which: torch.chunk(x, parts, axis)[which],
    "flip": lambda p, x, axis: x.flip(axis),
    "roll": lambda p, x, axis, shift: x.roll(shift, axis),
    "sparse_matmul": sparse_matmul,
    "sparse_matmul_csr": lambda p, starts, columns, values, x: sparse_matmul(
        p, torch.repeat_interleave(starts.diff()), columns, values, x, len(starts) - 1),
    "grouped_matmul": grouped_matmul,
    "einsum_of": lambda p, spec, count, *operands: torch.einsum(spec, *operands),
    "concat_of": lambda p, axis, count, *parts: torch.cat(parts, axis),
    # The random numbers are ours: what was not dropped is read off the result, and its scale is checked.
    "dropout": lambda p, x, probability: torch.where(p["y"] != 0, x / (1 - probability), torch.zeros_like(x)),
}


def tensor_of(name, data):
    if name.startswith("in") and all(type(x) is int for x in data["elements"]):
        return torch.tensor(data["elements"], dtype=torch.int64).reshape(data["shape"])
    return torch.tensor(data["elements"], dtype=torch.float64).reshape(data["shape"])


def deviation(ours, theirs):
    """The largest difference, relative to the size of what is compared."""
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)}, not {list(theirs.shape)}"
    worst = ((ours - theirs).abs() / (1 + theirs.abs())).max().item()
    return None if worst < TOLERANCE else f"{worst:.3g} off"


def check(case):
    """What is wrong with a case; None when nothing is."""
    tensors = {name: tensor_of(name, data) for name, data in case["tensors"].items()}
    weights = tensors.pop("weights")
    floats = {name: t.requires_grad_() for name, t in tensors.items() if not name.startswith("in")}
    made = {**floats, "y": tensor_of("y", case["y"])}
    arguments = [tensors.get(a, a) if isinstance(a, str) else a for a in case["arguments"] if a is not None]
    theirs = FUNCTIONS[case["function"]](made, *arguments)
    wrong = deviation(made["y"], theirs)
    if wrong:
        return f"y: {wrong}"
    (theirs * weights).sum().backward()
    for name, tensor in floats.items():
        gradient = case["gradients"].get(name)
        ours = tensor_of(name, gradient) if gradient else torch.zeros_like(tensor)
        wrong = deviation(ours, tensor.grad if tensor.grad is not None else torch.zeros_like(tensor))
        if wrong:
            return f"gradient of {name}: {wrong}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED") or random.randrange(1_000_000)))
    parser.add_argument("--program", default="build/tests/ops/test_gradients")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    run = subprocess.run([options.program, "--print", str(options.seed)], capture_output=True, text=True, check=True)
    cases = [json.loads(line) for line in run.stdout.splitlines()]
    by_function = {}
    for case in cases:
        by_function.setdefault(case["function"], []).append(case)
    failures = 0
    for name, group in by_function.items():
        wrong = [message for message in map(check, group) if message]
        print(f"not ok {name}: {'; '.join(wrong)}" if wrong else f"ok {name}")
        failures += bool(wrong)
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
