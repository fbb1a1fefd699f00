"""Processes of PyTorch over gloo beside the ranks of an emitted trainer, on the same rows."""

import json
import multiprocessing
import os
import pathlib
import sys

from rows import SEED, TRAIN, Order, Rows, relative

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

from ranks import free_port, start  # noqa: E402


def peers(train, ranks, *arguments):
    """What rank 0 puts into the queue: train(*arguments, rank, ranks, port, queue) in each of as many processes."""
    context, port = multiprocessing.get_context("fork"), free_port()
    out = context.Queue()
    processes = [context.Process(target=train, args=(*arguments, rank, ranks, port, out)) for rank in range(ranks)]
    for process in processes:
        process.start()
    answer = out.get(timeout=120)
    for process in processes:
        process.join()
    return answer


def accelerated(rank, ranks, port):
    """The Accelerator of one of these processes."""
    from accelerate import Accelerator
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(ranks),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), ACCELERATE_USE_CPU="true")
    return Accelerator(cpu=True)


def rows_of(ranks, batch, steps, micro=1, **groups):
    """Seven steps an epoch, dealt out to ranks."""
    rows = Rows(ranks * batch * 7 * micro, batch, steps=steps, devices={"per_node": ranks},
                accumulation={"num_steps": micro}, **groups)
    rows.order = Order(SEED, TRAIN, True, 0, len(rows.labels), batch=ranks * batch)
    return rows


def own_rows(rows, number, rank, ranks):
    """The rows of a rank's micro-batch."""
    first = (number * ranks + rank) * rows.batch
    return [rows.order.start(first + i) for i in range(rows.batch)]


def trained(rows, ranks):
    """The metrics of a trainer's ranks."""
    rows.trainer.build()
    result = start(rows.trainer.folder / "trainer", ranks, cwd=rows.trainer.folder)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return [json.loads(x) for x in (rows.trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()]


def compare(case, rows, lines, wanted, weights, near, norms, after):
    """Losses, norms and weights against what peers() gave, each relative to it."""
    case.assertEqual(len(lines), len(wanted))
    for line, (loss, norm) in zip(lines, wanted, strict=True):
        case.assertLess(abs(line["loss"] / loss - 1), near, f"loss of step {line['step']}")
        case.assertLess(abs(line["grad_norm"] / norm - 1), norms, f"norm of step {line['step']}")
    trained = rows.trainer.weights()
    for name, value in weights.items():
        case.assertLess(relative(trained[name], value), after, name)


__all__ = ["accelerated", "compare", "own_rows", "peers", "relative", "rows_of", "start", "trained"]
