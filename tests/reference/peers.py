"""Processes of PyTorch over gloo against the ranks of an emitted trainer, on the same rows."""

import contextlib
import multiprocessing
import os
import pathlib
import queue
import sys

import torch
import torch._dynamo  # noqa: F401 (else by what wraps a model, in each process)
import torch.distributed as dist
import torch.nn.functional as F
from rows import SEED, TRAIN, Order, Rows, relative

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

from ranks import FAST, free_port, json_lines, start  # noqa: E402


def answers(count, train, ranks, *arguments):
    """What rank 0 puts into the queue: train(*arguments, rank, ranks, port, queue) in each of as many processes."""
    context, port = multiprocessing.get_context("fork"), free_port()
    out = context.Queue()
    processes = [context.Process(target=train, args=(*arguments, rank, ranks, port, out), daemon=True) for rank in range(ranks)]
    for process in processes:
        process.start()
    found = [answer(out, processes) for _ in range(count)]
    for process in processes:
        process.join()
    return found


def answer(out, processes):
    while True:
        with contextlib.suppress(queue.Empty):
            return out.get(timeout=5)
        if any(process.exitcode for process in processes):
            raise AssertionError("a process of PyTorch's has failed")


def peers(train, ranks, *arguments):
    return answers(1, train, ranks, *arguments)[0]


@contextlib.contextmanager
def group(rank, ranks, port):
    """One of as many processes that gloo joins."""
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    yield
    dist.barrier()
    dist.destroy_process_group()


def accelerated(rank, ranks, port):
    """The Accelerator of one of these processes."""
    from accelerate import Accelerator
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(ranks),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), ACCELERATE_USE_CPU="true")
    return Accelerator(cpu=True)


CLIP = 0.5  # of norms


def rows_of(ranks, batch, steps, micro=1, accumulation=None, **groups):
    """Seven steps an epoch, distributed to ranks."""
    rows = Rows(ranks * batch * 7 * micro, batch, steps=steps, devices={"per_node": ranks},
                accumulation={"num_steps": micro, **(accumulation or {})}, **groups)
    rows.order = Order(SEED, TRAIN, True, 0, len(rows.labels), batch=ranks * batch)
    return rows


def own_rows(rows, number, rank, ranks):
    """The rows of a rank's micro-batch."""
    first = (number * ranks + rank) * rows.batch
    return [rows.order.start(first + i) for i in range(rows.batch)]


# ---- PyTorch ----

def add_gradients(rows, batches, model, quiet=contextlib.nullcontext, cast=contextlib.nullcontext, backward=torch.Tensor.backward):
    """Those of a step's batches, each a list of rows; the mean of their losses. quiet: what all but the last one are in."""
    total = 0.0
    for i, own in enumerate(batches):
        with quiet() if i + 1 < len(batches) else contextlib.nullcontext():
            with cast():
                loss = F.cross_entropy(model(torch.tensor(rows.features[own])), torch.tensor(rows.labels[own])) / len(batches)
            backward(loss)
        total += loss.item()
    return total


def mean_of(value):
    """Over ranks."""
    mean = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


def whole(value):
    """A tensor that ranks may have in parts."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def take_steps(rows, count, micro, model, optimizer, before=lambda step: None, exchange=lambda: None, scaler=None, **how):
    """(loss, norm) of each step of this rank. exchange: what follows the backward; how: what add_gradients takes."""
    scaler = scaler or torch.amp.GradScaler("cpu", enabled=False)
    lines = []
    for step in range(count):
        before(step)
        optimizer.zero_grad()
        batches = [own_rows(rows, step * micro + i, dist.get_rank(), dist.get_world_size()) for i in range(micro)]
        loss = add_gradients(rows, batches, model, backward=lambda loss: scaler.scale(loss).backward(), **how)
        exchange()
        scaler.unscale_(optimizer)
        norm = whole(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)).item()
        scaler.step(optimizer)
        scaler.update()
        lines.append((mean_of(loss), norm))
    return lines


def arrays(model):
    return {name: whole(value).numpy() for name, value in model.state_dict().items()}


# ---- Ours ----

def trained(rows, ranks):
    """The metrics of a trainer's ranks."""
    rows.trainer.build(CFLAGS=FAST)
    if ranks == 1:
        return rows.trainer.run(OMP_NUM_THREADS="1")
    result = start(rows.trainer.folder / "trainer", ranks, cwd=rows.trainer.folder)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return json_lines(rows.trainer.folder / "run")


def compare(case, rows, lines, wanted, weights, near, norms, after):
    """Losses, norms and weights against what peers() gave, each relative to it."""
    case.assertEqual(len(lines), len(wanted))
    for line, (loss, norm) in zip(lines, wanted, strict=True):
        case.assertLess(abs(line["loss"] / loss - 1), near, f"loss of step {line['step']}")
        case.assertLess(abs(line["grad_norm"] / norm - 1), norms, f"norm of step {line['step']}")
    trained = rows.trainer.weights()
    for name, value in weights.items():
        case.assertLess(relative(trained[name], value), after, name)


__all__ = ["CLIP", "accelerated", "add_gradients", "answers", "arrays", "compare", "group", "own_rows", "peers", "relative", "rows_of", "start",
           "take_steps", "trained"]
