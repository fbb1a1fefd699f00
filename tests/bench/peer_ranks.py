"""PyTorch's side of the benchmark of ranks: two processes with a thread each over gloo, under Accelerate or by PyTorch alone.

usage: peer_ranks.py JOB TOKENS STEPS ddp|fsdp2|tp|tp-compile|sp|cp|pp-gpipe|pp-1f1b

In all modes after fsdp2 the ranks take the same batch and divide the model, or its sequences, as peer_axes.py says.

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


def under_accelerate(mode, model, optimizer_of):
    from accelerate import Accelerator, FullyShardedDataParallelPlugin
    from peer_axes import Divided, trained_by

    plugin = None if mode == "ddp" else FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["Block"], reshard_after_forward=True)
    accelerator = Accelerator(cpu=True, fsdp_plugin=plugin)
    model, optimizer = accelerator.prepare(model, optimizer_of(model.parameters()))
    return (Divided(optimizer, lambda: accelerator.clip_grad_norm_(model.parameters(), 1.0), trained_by(model, accelerator.backward)),
            lambda: accelerator.no_sync(model))


def main():
    name, path, steps, mode = sys.argv[1:]
    import numpy as np
    import torch
    from peer_axes import AXES
    from peer_torch import GPT, JOBS, batch

    torch.set_num_threads(1)
    torch.manual_seed(1337)  # of every rank: with tp they take the same batches
    c, rank = JOBS[name], int(os.environ["RANK"])
    data = np.memmap(path, dtype=np.uint16, mode="r")

    def optimizer_of(parameters):
        return torch.optim.AdamW(parameters, lr=c.lr, betas=c.betas, weight_decay=0.1, fused=True)

    no_sync = None
    if mode in AXES:
        torch.distributed.init_process_group("gloo")
        divided = AXES[mode](GPT(c), c, optimizer_of)
    else:
        divided, no_sync = under_accelerate(mode, GPT(c), optimizer_of)

    def step(exchange):
        start = time.perf_counter()
        tokens, targets = batch(data, c)
        with contextlib.nullcontext() if exchange else no_sync():
            loss = divided.step(tokens, targets)
        divided.clip()
        divided.optimizer.step()
        divided.optimizer.zero_grad(set_to_none=True)
        return loss, 1e3 * (time.perf_counter() - start)

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
