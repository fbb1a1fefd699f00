"""PyTorch's side of the benchmark of ranks: two processes with a thread each under Accelerate, over gloo.

usage: peer_ranks.py JOB TOKENS STEPS ddp|fsdp2

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


def accelerator_of(mode):
    from accelerate import Accelerator, FullyShardedDataParallelPlugin

    if mode == "ddp":
        return Accelerator(cpu=True)
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, auto_wrap_policy="transformer_based_wrap",
                                            transformer_cls_names_to_wrap=["Block"], reshard_after_forward=True)
    return Accelerator(cpu=True, fsdp_plugin=plugin)


def main():
    name, path, steps, mode = sys.argv[1:]
    import numpy as np
    import torch
    from peer_torch import GPT, JOBS, batch

    torch.set_num_threads(1)
    torch.manual_seed(1337)
    c = JOBS[name]
    data = np.memmap(path, dtype=np.uint16, mode="r")
    accelerator = accelerator_of(mode)
    model = GPT(c)
    optimizer = torch.optim.AdamW(model.parameters(), lr=c.lr, betas=c.betas, weight_decay=0.1, fused=True)
    model, optimizer = accelerator.prepare(model, optimizer)

    def step(exchange):
        start = time.perf_counter()
        tokens, targets = batch(data, c)
        with contextlib.nullcontext() if exchange else accelerator.no_sync(model):
            loss = model(tokens, targets)
            accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        value = loss.item()
        return value, 1e3 * (time.perf_counter() - start)

    for at in range(int(steps)):
        loss, ms = step(True)
        if accelerator.is_main_process:
            print(json.dumps({"step": at + 1, "loss": loss, "step_ms": ms}), flush=at == 0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    quiet = [step(at % 2 == 0)[1] for at in range(int(steps) if mode == "ddp" else 0)][1::2]
    sys.stdout.flush()
    accelerator.wait_for_everyone()
    # In one piece: the ranks write into one pipe.
    os.write(1, (json.dumps({"rank": accelerator.process_index, "peak_mib": peak, "quiet_ms": quiet}) + "\n").encode())
    torch.distributed.destroy_process_group()


if "RANK" in os.environ:
    main()
else:
    start_ranks()
