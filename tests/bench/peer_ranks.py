"""PyTorch's side of the benchmark of ranks: two processes with a thread each over gloo, under Accelerate or, of tp, by PyTorch alone.

usage: peer_ranks.py JOB TOKENS STEPS ddp|fsdp2|tp|tp-compile

With tp the ranks divide matrices and heads as DTensors and take the same batch; tp-compile is the same model under torch.compile.

Rank 0 prints a JSON object a line: {"step_ms": ...} for every step, the first one as soon as it is done; then each rank
{"rank": ..., "peak_mib": ..., "quiet_ms": [...]}: of ddp the times of further steps without any exchange, every other one.
"""

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import time

RANKS = 2


def start_ranks():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={
        **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"})
        for rank in range(RANKS)]
    sys.exit(max(rank.wait() for rank in ranks))


def divided(model, mesh):
    """The model with matrices and heads of attention divided among the ranks, as Megatron-LM: columns of c_attn and c_fc, rows of the
    products after them; everything else is whole on each rank. The rows of c_attn's weight are first reordered, queries, keys and values
    of a rank's heads side by side, so that it stays one product."""
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    for block in model.blocks:
        for parameter in block.attn.c_attn.parameters():
            parameter.data = parameter.data.unflatten(0, (3, RANKS, -1)).transpose(0, 1).flatten(0, 2)
    plan = {"attn.c_attn": ColwiseParallel(), "attn.c_proj": RowwiseParallel(), "c_fc": ColwiseParallel(), "c_proj": RowwiseParallel()}
    return parallelize_module(model, mesh, {f"blocks.*.{name}": style for name, style in plan.items()})


def tensor_parallel(compiled, model, optimizer_of):
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor

    model = divided(model, init_device_mesh("cpu", (RANKS,)))
    # One fused update, or norm, takes DTensors or tensors, not both.
    parameters = list(model.parameters())
    groups = [[p for p in parameters if isinstance(p, DTensor)], [p for p in parameters if not isinstance(p, DTensor)]]
    optimizer = optimizer_of([{"params": group} for group in groups])

    def clip():
        parts, whole = (torch.nn.utils.get_total_norm([p.grad for p in group]) for group in groups)
        norm = torch.hypot(parts.full_tensor(), whole)
        for group in groups:
            torch.nn.utils.clip_grads_with_norm_(group, 1.0, norm)

    return torch.compile(model) if compiled else model, optimizer, torch.Tensor.backward, clip, None


def under_accelerate(mode, model, optimizer_of):
    from accelerate import Accelerator, FullyShardedDataParallelPlugin

    plugin = None if mode == "ddp" else FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["Block"], reshard_after_forward=True)
    accelerator = Accelerator(cpu=True, fsdp_plugin=plugin)
    model, optimizer = accelerator.prepare(model, optimizer_of(model.parameters()))
    return (model, optimizer, accelerator.backward, lambda: accelerator.clip_grad_norm_(model.parameters(), 1.0),
            lambda: accelerator.no_sync(model))


def main():
    name, path, steps, mode = sys.argv[1:]
    import numpy as np
    import torch
    from peer_torch import GPT, JOBS, batch

    torch.set_num_threads(1)
    torch.manual_seed(1337)  # of every rank: with tp they take the same batches
    c, rank = JOBS[name], int(os.environ["RANK"])
    data = np.memmap(path, dtype=np.uint16, mode="r")

    def optimizer_of(parameters):
        return torch.optim.AdamW(parameters, lr=c.lr, betas=c.betas, weight_decay=0.1, fused=True)

    if mode.startswith("tp"):
        model, optimizer, backward, clip, no_sync = tensor_parallel(mode == "tp-compile", GPT(c), optimizer_of)
    else:
        model, optimizer, backward, clip, no_sync = under_accelerate(mode, GPT(c), optimizer_of)

    def step(exchange):
        start = time.perf_counter()
        tokens, targets = batch(data, c)
        with contextlib.nullcontext() if exchange else no_sync():
            loss = model(tokens, targets)
            backward(loss)
        clip()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        return value, 1e3 * (time.perf_counter() - start)

    for at in range(int(steps)):
        loss, ms = step(True)
        if rank == 0:
            print(json.dumps({"step": at + 1, "loss": loss, "step_ms": ms}), flush=at == 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    quiet = [step(at % 2 == 0)[1] for at in range(int(steps) if mode == "ddp" else 0)][1::2]
    sys.stdout.flush()
    torch.distributed.barrier()
    # In one piece: the ranks write into one pipe.
    os.write(1, (json.dumps({"rank": rank, "peak_mib": peak, "quiet_ms": quiet}) + "\n").encode())
    torch.distributed.destroy_process_group()


if "RANK" in os.environ:
    main()
else:
    start_ranks()
