"""GPT-2 as nanoGPT trains it, under Accelerate in bf16 with torch.compile and fused AdamW: tokens a second, seconds to
the first step, peak memory. `product`: the rate of a product of 8192 x 8192 matrices in bf16.

usage: peer.py 124m|350m BATCH default|max-autotune
       peer.py product"""

import statistics
import sys
import time

BEGAN = time.perf_counter()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

SIZES = {"124m": (12, 12, 768), "350m": (24, 16, 1024)}
VOCABULARY, LENGTH, STEPS, WARM_UP = 50257, 1024, 30, 10


class Block(torch.nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.attn, self.proj = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.attn(self.ln_1(x)).split(width, 2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT(torch.nn.Module):
    def __init__(self, layers, heads, width):
        super().__init__()
        self.tokens = torch.nn.Embedding(VOCABULARY, width)
        self.places = torch.nn.Embedding(LENGTH, width)
        self.blocks = torch.nn.ModuleList(Block(heads, width) for _ in range(layers))
        self.ln = torch.nn.LayerNorm(width)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.view(-1))


def train(size, batch, mode):
    from accelerate import Accelerator

    torch.set_float32_matmul_precision("high")
    accelerator = Accelerator(mixed_precision="bf16")
    torch.manual_seed(7)
    model = GPT(*SIZES[size])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    model = torch.compile(model, mode=mode)
    data = torch.randint(256, (batch, LENGTH + 1), device=accelerator.device)
    times, first = [], 0.0
    for step in range(STEPS):
        began = time.perf_counter()
        loss = model(data[:, :-1], data[:, 1:])
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
        first = first or time.perf_counter() - BEGAN
    rate = batch * LENGTH / statistics.median(times[WARM_UP:])
    print(f"{rate:.0f} tokens/s, first step after {first:.2f} s, peak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


def product():
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(30):
        torch.cuda.synchronize()
        began = time.perf_counter()
        a @ b
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    print(f"{2 * n**3 / statistics.median(times[5:]) / 1e12:.0f} TFLOP/s in bf16")


if __name__ == "__main__":
    if sys.argv[1:] == ["product"]:
        product()
    else:
        train(sys.argv[1], int(sys.argv[2]), sys.argv[3])
