"""PyTorch's side of the benchmark of ranks: two processes with a thread each over gloo, under Accelerate or by PyTorch alone.

usage: peer_ranks.py JOB TOKENS STEPS ddp|fsdp2|one|tp|tp-compile|sp|cp|pp-gpipe|pp-1f1b [WEIGHTS]

In all modes after fsdp2 the ranks take the same batch and divide the model, or its sequences, as peer_axes.py says; `one` is one
process. With WEIGHTS the model starts from that file of safetensors, under nanoGPT's names, and samples come in the order of TOKENS.

Rank 0 prints a JSON object a line: {"step_ms": ...} for every step, the first one as soon as it is done; then each rank
{"rank": ..., "peak_mib": ..., "imported_mib": ..., "quiet_ms": [...]}: peak memory of the steps and of importing torch; of ddp the times of
further steps without any exchange, every other one.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

RANKS = 2


def start_ranks():
    count = 1 if sys.argv[4] == "one" else RANKS
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={
        **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"})
        for rank in range(count)]
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


def peak_mib():
    with open("/proc/self/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def load(model, path):
    from safetensors.torch import load_file

    model.load_state_dict({name.removeprefix("transformer.").replace("h.", "blocks.", 1).replace("mlp.", ""): value
                           for name, value in load_file(path).items()})


def in_order(data, c, number):
    """Batch NUMBER of the samples that come one after the other."""
    import numpy as np
    import torch

    first = number * c.batch * c.length
    tokens = torch.from_numpy(data[first : first + c.batch * c.length + 1].astype(np.int64))
    return tokens[:-1].view(c.batch, c.length), tokens[1:].view(c.batch, c.length)


def main():
    name, path, steps, mode, *weights = sys.argv[1:]
    import numpy as np
    import torch

    imported = peak_mib()
    from peer_axes import AXES
    from peer_torch import GPT, JOBS, batch

    torch.set_num_threads(1)
    torch.manual_seed(1337)  # of every rank: with tp they take the same batches
    c, rank = JOBS[name], int(os.environ["RANK"])
    data = np.memmap(path, dtype=np.uint16, mode="r")

    def optimizer_of(parameters):
        return torch.optim.AdamW(parameters, lr=c.lr, betas=c.betas, weight_decay=0.1, fused=True)

    model, no_sync = GPT(c), None
    for file in weights:
        load(model, file)
    if mode in AXES:
        torch.distributed.init_process_group("gloo")
        divided = AXES[mode](model, c, optimizer_of)
    else:
        divided, no_sync = under_accelerate(mode, model, optimizer_of)

    def step(exchange, number=0):
        start = time.perf_counter()
        tokens, targets = in_order(data, c, number) if weights else batch(data, c)
        with contextlib.nullcontext() if exchange else no_sync():
            loss = divided.step(tokens, targets)
        divided.clip()
        divided.optimizer.step()
        divided.optimizer.zero_grad(set_to_none=True)
        return loss, 1e3 * (time.perf_counter() - start)

    for at in range(int(steps)):
        loss, ms = step(True, at)
        if rank == 0:
            print(json.dumps({"step": at + 1, "loss": loss, "step_ms": ms}), flush=at == 0)
    peak = peak_mib()
    quiet = [step(at % 2 == 0)[1] for at in range(int(steps) if mode == "ddp" else 0)][1::2]
    sys.stdout.flush()
    torch.distributed.barrier()
    # In one piece: the ranks write into one pipe.
    os.write(1, (json.dumps({"rank": rank, "peak_mib": peak, "imported_mib": imported, "quiet_ms": quiet}) + "\n").encode())
    torch.distributed.destroy_process_group()


if "RANK" in os.environ:
    main()
else:
    start_ranks()
