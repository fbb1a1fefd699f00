"""Times of the kernels at the shapes of three GPT-2 jobs against PyTorch's equivalents: medians of interleaved runs.
`bench_kernels.py [--rounds N] [--threads N] [--shape tiny|small|124M] [KERNEL ...]`; a KERNEL is a part of a name."""

import argparse
import os
import statistics
import time

import numpy as np

SHAPES = {"tiny": (12, 4, 64, 128, 65, 4), "small": (8, 6, 256, 384, 65, 6), "124M": (4, 12, 64, 768, 50257, 12)}


def rows_of(b, h, t, c, v):
    """Name, kernel, PyTorch's function; forward and backward separately."""
    import torch
    import torch.nn.functional as F

    from kernels import Kernel, Operand as O

    d, r = c // h, b * t
    torch.manual_seed(0)
    rows = []

    def operand(array, name, **more):
        return O(name, array.shape, **more)

    def row(name, kernel, peer):
        arrays = []
        for o in kernel.outputs + kernel.inputs:
            if o.type == "int32_t":
                arrays.append(np.random.default_rng(1).integers(0, v, o.elements).astype(np.int32))
            else:
                arrays.append(np.random.default_rng(2).standard_normal(o.elements).astype(np.float32))
        rows.append((name, kernel, arrays, peer))

    def heads(name, part):
        width = {"qkv": 3, "merged": 1}[part]
        return O(name, [b, h, t, d], [t * width * c, d, width * c, 1])

    # Matrix products of a linear layer: forward, input gradient, weight gradient.
    for n, k in ((3 * c, c), (c, c), (4 * c, c), (c, 4 * c), (v, c)):
        x, w, g = torch.randn(r, k), torch.randn(n, k), torch.randn(r, n)
        label = "head" if n == v else f"{k}x{n}"
        row(f"linear {label} y", Kernel("matmul", [O("y", [r, n])], [O("a", [r, k]), O("b", [k, n], [1, k])], f"mm_y_{n}_{k}"),
            lambda x=x, w=w: F.linear(x, w))
        row(f"linear {label} dx", Kernel("matmul", [O("y", [r, k])], [O("a", [r, n]), O("b", [n, k])], f"mm_dx_{n}_{k}"),
            lambda g=g, w=w: g @ w)
        row(f"linear {label} dw", Kernel("matmul", [O("y", [n, k])], [O("a", [n, r], [1, n]), O("b", [r, k])], f"mm_dw_{n}_{k}"),
            lambda g=g, x=x: g.t() @ x)
    x, w, bias, g = torch.randn(r, c), torch.randn(c), torch.randn(c), torch.randn(r, c)
    row("layer_norm", Kernel("layer_norm", [O("y", [r, c]), O("mean", [r]), O("rstd", [r])],
                             [O("x", [r, c]), O("weight", [c]), O("bias", [c])], eps=1e-5),
        lambda: F.layer_norm(x, (c,), w, bias))
    _, mean, rstd = torch.native_layer_norm(x, (c,), w, bias, 1e-5)
    row("layer_norm_backward", Kernel("layer_norm_backward", [O("dx", [r, c]), O("dweight", [c]), O("dbias", [c])],
                                      [O("dy", [r, c]), O("x", [r, c]), O("weight", [c]), O("mean", [r]), O("rstd", [r])], bias=1),
        lambda: torch.ops.aten.native_layer_norm_backward(g, x, (c,), mean, rstd, w, bias, [True] * 3))
    qkv = torch.randn(b, t, 3, h, d).permute(2, 0, 3, 1, 4)
    q, k_, v_ = qkv[0], qkv[1], qkv[2]
    row("attention", Kernel("attention", [heads("y", "merged"), O("lse", [b, h, t])],
                            [heads("q", "qkv"), heads("k", "qkv"), heads("v", "qkv")], causal=1, scale=d**-0.5),
        lambda: F.scaled_dot_product_attention(q, k_, v_, is_causal=True))
    qg, kg, vg = (i.detach().requires_grad_() for i in (q, k_, v_))
    y = F.scaled_dot_product_attention(qg, kg, vg, is_causal=True)
    gy = torch.randn_like(y)
    row("attention_backward", Kernel("attention_backward", [heads("dq", "qkv"), heads("dk", "qkv"), heads("dv", "qkv")],
                                     [heads("dy", "merged"), heads("q", "qkv"), heads("k", "qkv"), heads("v", "qkv"),
                                      heads("y", "merged"), O("lse", [b, h, t])], causal=1, scale=d**-0.5),
        lambda: torch.autograd.grad(y, (qg, kg, vg), gy, retain_graph=True))
    logits, targets = torch.randn(r, v, requires_grad=True), torch.randint(0, v, (r,))
    row("cross_entropy", Kernel("cross_entropy", [O("loss", []), O("lse", [r]), O("scale", [])],
                                [O("logits", [r, v]), O("targets", [r], dtype="int32_t")], ignore=-1),
        lambda: F.cross_entropy(logits.detach(), targets))
    loss = F.cross_entropy(logits, targets)
    row("cross_entropy_backward", Kernel("cross_entropy_backward", [O("dlogits", [r, v])],
                                         [O("d_loss", []), O("logits", [r, v]), O("lse", [r]), O("scale", []),
                                          O("targets", [r], dtype="int32_t")], ignore=-1),
        lambda: torch.autograd.grad(loss, logits, retain_graph=True))
    weight, tokens = torch.randn(v, c, requires_grad=True), torch.randint(0, v, (b, t))
    row("embedding", Kernel("embedding", [O("y", [b, t, c])], [O("weight", [v, c]), O("tokens", [b, t], dtype="int32_t")]),
        lambda: F.embedding(tokens, weight.detach()))
    e = F.embedding(tokens, weight)
    ge = torch.randn_like(e)
    row("embedding_backward", Kernel("embedding_backward", [O("dweight", [v, c])],
                                     [O("dy", [b, t, c]), O("tokens", [b, t], dtype="int32_t")], rows=v),
        lambda: torch.autograd.grad(e, weight, ge, retain_graph=True))
    g4 = torch.randn(r, 4 * c)
    row("sum (bias gradient)", Kernel("sum", [O("y", [4 * c])], [O("x", [r, 4 * c])], axes=[0]), lambda: g4.sum(0))
    row("dropout", Kernel("dropout", [O("y", [r, c])], [O("x", [r, c])], p=0.1, site=1, random=True), lambda: F.dropout(x, 0.1))
    row("softmax", Kernel("softmax", [O("y", [r, c])], [O("x", [r, c])]), lambda: F.softmax(x, -1))
    row("rms_norm", Kernel("rms_norm", [O("y", [r, c]), O("rstd", [r])], [O("x", [r, c]), O("weight", [c])], eps=1e-5),
        lambda: F.rms_norm(x, (c,), w, 1e-5))
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--shape", choices=SHAPES, action="append")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch

    import kernels as kit

    torch.set_num_threads(options.threads)
    for shape in options.shape or SHAPES:
        b, h, t, c, v, layers = SHAPES[shape]
        rows = [r for r in rows_of(b, h, t, c, v) if not options.names or any(n in r[0] for n in options.names)]
        functions = kit.load([kernel for _, kernel, _, _ in rows], options.compiler)
        print(f"{shape}: {layers} layers, B {b}, H {h}, T {t}, C {c}, V {v}, {options.threads} threads")
        print(f"  {'kernel':28} {'ms min':>9} {'median':>9} {'PyTorch':>9} {'median':>9} {'ratio':>7}")
        for name, kernel, arrays, peer in rows:
            ours, theirs = [], []
            stream = {"stream": 5} if kernel.random else {}
            for round_ in range(options.rounds + 2):
                for function, times in ((lambda: functions[kernel.name](*arrays, **stream), ours), (peer, theirs)):
                    if function is peer and options.no_peer:
                        times.append(float("nan"))
                        continue
                    start = time.perf_counter()
                    function()
                    seconds = time.perf_counter() - start
                    repeat = min(20, max(1, int(2e-3 / seconds)))
                    start = time.perf_counter()
                    for _ in range(repeat):
                        function()
                    if round_ >= 2:
                        times.append((time.perf_counter() - start) / repeat * 1e3)
            low, middle = min(ours), statistics.median(ours)
            peer_low, peer_middle = min(theirs), statistics.median(theirs)
            print(f"  {name:28} {low:9.4f} {middle:9.4f} {peer_low:9.4f} {peer_middle:9.4f} {low / peer_low:7.2f}", flush=True)


if __name__ == "__main__":
    main()
