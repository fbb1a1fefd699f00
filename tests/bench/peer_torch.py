"""The PyTorch side of the benchmark: the same models under Accelerate, eager or compiled.

usage: peer_torch.py JOB TOKENS STEPS eager|compile|tuned THREADS MICRO_BATCHES no|bf16

Prints a JSON object a line: {"step_ms": ...} for every step, the first one as soon as it is done.
"""

import json
import math
import sys
import time
from dataclasses import dataclass


import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    layers: int
    heads: int
    width: int
    length: int  # tokens of a sequence
    positions: int  # rows of the position table
    batch: int
    vocabulary: int
    bias: bool
    gelu: str  # as F.gelu calls it
    lr: float
    betas: tuple


JOBS = {
    "tiny": Config(4, 4, 128, 64, 64, 12, 65, False, "none", 1e-3, (0.9, 0.99)),
    "small": Config(6, 6, 384, 256, 256, 8, 65, False, "none", 1e-3, (0.9, 0.99)),
    "gpt2": Config(12, 12, 768, 64, 1024, 4, 50257, True, "tanh", 3e-4, (0.9, 0.95)),
    "axes": Config(4, 4, 256, 256, 256, 8, 1024, False, "none", 1e-3, (0.9, 0.99)),  # as axes.py has it
}


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attend = causal
        self.head_width = c.width // c.heads
        self.c_attn = nn.Linear(c.width, 3 * c.width, bias=c.bias)
        self.c_proj = nn.Linear(c.width, c.width, bias=c.bias)

    def forward(self, x):
        # As many heads as c_attn's weight has here: a rank of several that divide it has some of them.
        q, k, v = (part.unflatten(2, (-1, self.head_width)).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=2))
        return self.c_proj(self.attend(q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1 = nn.LayerNorm(c.width, bias=c.bias)
        self.attn = Attention(c)
        self.ln_2 = nn.LayerNorm(c.width, bias=c.bias)
        self.c_fc = nn.Linear(c.width, 4 * c.width, bias=c.bias)
        self.c_proj = nn.Linear(4 * c.width, c.width, bias=c.bias)
        self.gelu = c.gelu

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate=self.gelu))


class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.wte = nn.Embedding(c.vocabulary, c.width)
        self.wpe = nn.Embedding(c.positions, c.width)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.ln_f = nn.LayerNorm(c.width, bias=c.bias)
        self.positions = torch.arange(c.length)  # of the tokens: a rank of several that divide sequences has some of them
        self.apply(self.start)
        for name, weight in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * c.layers))

    @staticmethod
    def start(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe(self.positions)
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def batch(data, c):
    at = torch.randint(len(data) - c.length - 1, (c.batch,))
    windows = torch.stack([torch.from_numpy(data[i : i + c.length + 1].astype(np.int64)) for i in at])
    return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def main():
    from accelerate import Accelerator

    name, path, steps, mode, threads, micro_batches, precision = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1337)
    c = JOBS[name]
    data = np.memmap(path, dtype=np.uint16, mode="r")
    accelerator = Accelerator(cpu=True, mixed_precision=precision, gradient_accumulation_steps=int(micro_batches))
    model = GPT(c)
    optimizer = torch.optim.AdamW(model.parameters(), lr=c.lr, betas=c.betas, weight_decay=0.1, fused=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    if mode != "eager":
        model = torch.compile(model, mode="max-autotune" if mode == "tuned" else None)
    for step in range(int(steps)):
        start = time.perf_counter()
        for _ in range(int(micro_batches)):
            tokens, targets = batch(data, c)
            with accelerator.accumulate(model):
                loss = model(tokens, targets)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        end = time.perf_counter()
        print(json.dumps({"step": step + 1, "loss": value, "step_ms": 1e3 * (end - start)}), flush=step == 0)


if __name__ == "__main__":
    main()
