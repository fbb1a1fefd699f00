"""GPT-2 in PyTorch, written out, over a dict of named weights in GPT-2's or nanoGPT's layout."""

import math

import torch
import torch.nn.functional as F


class Gpt:
    """weights: a dict of tensors by published names. layout: "gpt2" (Conv1D, tanh gelu) or "nanogpt" (Linear, erf)."""

    def __init__(self, weights, config, layout, dtype=torch.float32):
        self.w = {k: torch.tensor(v, dtype=dtype, requires_grad=True) for k, v in weights.items()}
        self.c, self.layout = config, layout
        self.prefix = "" if layout == "gpt2" else "transformer."

    def dense(self, name, x):
        weight, bias = self.w[name + ".weight"], self.w.get(name + ".bias")
        y = x @ (weight if self.layout == "gpt2" else weight.T)
        return y if bias is None else y + bias

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.w[name + ".weight"], self.w.get(name + ".bias"), 1e-5)

    def attend(self, name, x):
        B, T, C = x.shape
        q, k, v = (z.view(B, T, self.c["n_head"], -1).transpose(1, 2)
                   for z in self.dense(name + ".c_attn", x).split(C, dim=2))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, C)
        return self.dense(name + ".c_proj", y)

    def mlp(self, name, x):
        kind = "tanh" if self.layout == "gpt2" else "none"
        return self.dense(name + ".c_proj", F.gelu(self.dense(name + ".c_fc", x), approximate=kind))

    def loss(self, tokens, targets):
        p = self.prefix
        x = self.w[p + "wte.weight"][tokens] + self.w[p + "wpe.weight"][:tokens.shape[1]]
        for i in range(self.c["n_layer"]):
            x = x + self.attend(f"{p}h.{i}.attn", self.norm(f"{p}h.{i}.ln_1", x))
            x = x + self.mlp(f"{p}h.{i}.mlp", self.norm(f"{p}h.{i}.ln_2", x))
        logits = self.norm(p + "ln_f", x) @ self.w[p + "wte.weight"].T
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def random_weights(config, layout, seed, bias=True):
    """Random values for every parameter, biases and norms included, as float32 arrays."""
    generator = torch.Generator().manual_seed(seed)
    C, p = config["n_embd"], "" if layout == "gpt2" else "transformer."
    shapes = {p + "wte.weight": (config["vocab_size"], C), p + "wpe.weight": (config["block_size"], C)}

    def dense(name, inputs, outputs):
        shapes[name + ".weight"] = (inputs, outputs) if layout == "gpt2" else (outputs, inputs)
        if bias:
            shapes[name + ".bias"] = (outputs,)

    def norm(name):
        shapes[name + ".weight"] = (C,)
        if bias:
            shapes[name + ".bias"] = (C,)

    for i in range(config["n_layer"]):
        h = f"{p}h.{i}"
        norm(h + ".ln_1"), norm(h + ".ln_2")
        dense(h + ".attn.c_attn", C, 3 * C), dense(h + ".attn.c_proj", C, C)
        dense(h + ".mlp.c_fc", C, 4 * C), dense(h + ".mlp.c_proj", 4 * C, C)
    norm(p + "ln_f")
    weights = {}
    for name, shape in shapes.items():
        value = torch.randn(shape, generator=generator) * 0.05
        if ".ln_" in name and name.endswith("weight"):
            value = value + 1
        weights[name] = value.numpy()
    return weights
