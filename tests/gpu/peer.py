"""GPT-2 as nanoGPT trains it, under Accelerate in bf16 with torch.compile and fused AdamW: tokens a second, seconds to
the first step, peak memory. `matmul`: the rate of a matmul of 8192 x 8192 matrices in bf16. `curve`: the losses of the
small jobs of pack.sh, a line of JSON a step, from the same weights and the same batches.

usage: peer.py 124m|350m|tiny BATCH default|max-autotune|none    none: without torch.compile
       peer.py matmul
       peer.py curve float32|tf32|bf16|fp16

With PEER_DEVICE=cpu all of it runs without a GPU, to see that it does; `tiny` is for that."""

import json
import os
import statistics
import sys
import time

BEGAN = time.perf_counter()

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

DEVICE = os.environ.get("PEER_DEVICE", "cuda")
SIZES = {"124m": (12, 12, 768), "350m": (24, 16, 1024), "tiny": (1, 2, 16)}
WARM_UP = 10
# nanoGPT rounds GPT-2's 50257 tokens up, as matmuls are faster then.
VOCABULARY, LENGTH = (300, 32) if sys.argv[1:2] == ["tiny"] else (50304, 1024)


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
        self.positions = torch.nn.Embedding(LENGTH, width)
        self.blocks = torch.nn.ModuleList(Block(heads, width) for _ in range(layers))
        self.ln = torch.nn.LayerNorm(width)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCABULARY), targets.reshape(-1))


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def peak():
    return torch.cuda.max_memory_allocated() / 2**30 if DEVICE == "cuda" else 0.0


def train(size, batch, mode):
    from accelerate import Accelerator

    torch.set_float32_matmul_precision("high")
    accelerator = Accelerator(mixed_precision="bf16", cpu=DEVICE == "cpu")
    torch.manual_seed(7)
    model = GPT(*SIZES[size])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    model, optimizer = accelerator.prepare(model, optimizer)
    if mode != "none":
        model = torch.compile(model, mode=mode)
    data = torch.randint(256, (batch, LENGTH + 1), device=accelerator.device)
    times, first = [], 0.0
    for step in range(30 if batch > 4 else 100):
        began = time.perf_counter()
        loss = model(data[:, :-1], data[:, 1:])
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        synchronize()
        times.append(time.perf_counter() - began)
        first = first or time.perf_counter() - BEGAN
    rate = batch * LENGTH / statistics.median(times[WARM_UP:])
    print(f"{rate:.0f} tokens/s, first step after {first:.2f} s, peak {peak():.2f} GiB")


def read_tensors(path):
    """The float32 tensors of a safetensors file, by name."""
    data = open(path, "rb").read()
    length = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8:8 + length]), bytearray(data[8 + length:])
    return {name: torch.frombuffer(body, dtype=torch.float32, offset=entry["data_offsets"][0],
                                   count=(entry["data_offsets"][1] - entry["data_offsets"][0]) // 4).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"}


def curve(precision):
    from torch_gpt import Gpt  # of tests/program

    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    config, steps, batch = {"n_layer": 2, "n_head": 4}, 200, 8
    weights = {name: value.numpy() for name, value in read_tensors("start.safetensors").items()}
    tokens = torch.frombuffer(bytearray(open("batches.bin", "rb").read()), dtype=torch.int16).long().view(steps, batch, -1)
    torch.set_default_device(DEVICE)
    model, tokens = Gpt(weights, config, "nanogpt"), tokens.to(DEVICE)
    parameters = list(model.w.values())
    optimizer = torch.optim.AdamW(parameters, lr=3e-4, weight_decay=0.01)
    scaler = torch.amp.GradScaler(DEVICE, enabled=precision == "fp16")
    half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)
    for step in range(steps):
        with torch.autocast(DEVICE, dtype=half or torch.bfloat16, enabled=half is not None):
            loss = model.loss(tokens[step, :, :-1], tokens[step, :, 1:])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(json.dumps({"step": step + 1, "loss": loss.item()}))


def matmul():
    n = 8192 if DEVICE == "cuda" else 64
    a, b = (torch.randn(n, n, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(30):
        synchronize()
        began = time.perf_counter()
        a @ b
        synchronize()
        times.append(time.perf_counter() - began)
    print(f"{2 * n**3 / statistics.median(times[5:]) / 1e12:.0f} TFLOP/s in bf16")


if __name__ == "__main__":
    if sys.argv[1:] == ["matmul"]:
        matmul()
    elif sys.argv[1] == "curve":
        curve(sys.argv[2])
    else:
        train(sys.argv[1], int(sys.argv[2]), sys.argv[3])
