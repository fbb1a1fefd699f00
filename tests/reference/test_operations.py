"""Operations on values against Accelerate's own: the same nested, ragged, scalar and empty values of many types, on one
process and on several, Accelerate's over gloo. What differs on purpose is named here."""

import multiprocessing
import os
import unittest

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import PartialState
from accelerate.utils import operations
from values import (DTYPES, FLOATING, PATIENCE, SEED, Draw, Program, free_port, from_torch, ragged, rows, tensor, to_torch,
                    without)
from rotation import rotating  # isort: skip


def case(op, *args, values):
    return {"op": op, "args": list(args), "values": values}


def alone(draw):
    """Cases that need no other rank."""
    cases = []
    for _ in range(25):
        anything = draw.object()
        for op in ("listify", "convert_to_fp32", "convert_outputs_to_fp32", "get_data_structure", "get_shape",
                   "find_batch_size", "send_to_device"):
            cases.append(case(op, values=anything))
        bounds = [draw.random.choice([None, 0, 1, 2, 7, -1, -2, -9]) for _ in range(2)]
        cases.append(case("slice_tensors", *bounds, draw.random.choice([None, 1, 2, 3]), values=anything))
        build, dim = draw.build(2, lambda: draw.shape(1)), draw.random.choice([0, 0, 0, 1, -1])
        alike = [draw.fill(ragged(draw, build, dim)) for _ in range(draw.random.choice([1, 2, 3]))]
        cases.append(case("concatenate", dim, values=alike))
        types = [(draw.random.choice(list(DTYPES)), (n, 2)) for n in (1, 2, 3)]
        cases.append(case("concatenate", 0, values=[draw.fill(one) for one in types]))
    for odd in ([], [1], [1, 2], [[1], [2]], [["a"]], {"map": []}):
        cases += [case("concatenate", 0, values=odd), case("find_batch_size", values=odd)]
    for shape in ((2, 0), (0,), (3, 0)):
        cases.append(case("concatenate", 0, values=[draw.fill(("float32", shape)), draw.fill(("float16", (2, 4)))]))
    return cases


def together(draw, ranks):
    """Cases of all ranks. A mean of integers and padding of booleans are apart: `Own` has them."""
    cases = []
    for _ in range(12):
        build = without(draw.build(), ("bool",))
        cases.append(case("gather", values=[draw.fill(build) for _ in range(ranks)]))
        cases.append(case("broadcast", draw.random.randrange(ranks), values=[draw.fill(build) for _ in range(ranks)]))
        for kind in ("sum", "none", "max"):
            cases.append(case("reduce", kind, 1.0, values=[draw.fill(build) for _ in range(ranks)]))
        reals = without(build, [dtype for dtype in DTYPES if dtype not in FLOATING])
        cases.append(case("reduce", "mean", 1.0, values=[draw.fill(reals) for _ in range(ranks)]))
        dim = draw.random.choice([0, 0, 1, -1, -2, 2])
        cases.append(case("pad_across_processes", dim, draw.random.choice([0, 0, 3, 7]), draw.random.random() < 0.5,
                          values=[draw.fill(ragged(draw, build, dim)) for _ in range(ranks)]))
        several = [[draw.object() for _ in range(draw.random.randrange(4))] for _ in range(ranks)]
        cases.append(case("gather_object", values=several))
        count = draw.random.randrange(1, 4)  # gloo hangs on none
        cases.append(case("broadcast_object_list", draw.random.randrange(ranks),
                          values=[[draw.object() for _ in range(count)] for _ in range(ranks)]))
        for length in (0, 1, 2, 3, 4, 7):
            cases.append(case("split_between_processes", draw.random.random() < 0.5, values=[rows(draw, length)] * ranks))
    for odd in ("text", [1], {"map": [["a", None]]}, 1.5):
        for op in (["gather"], ["reduce", "sum", 1.0], ["broadcast", 0], ["pad_across_processes", 0, 0, False],
                   ["split_between_processes", False]):
            cases.append(case(*op, values=[odd] * ranks))
    cases.append(case("split_between_processes", False, values=[{"map": [["a", [1, 2]], ["b", [1]]]}] * ranks))
    cases.append(case("split_between_processes", False, values=[{"map": []}] * ranks))
    deeper = {"map": [["a", [1]], ["b", {"map": [["c", [1, 2, 3]]]}]]}
    cases.append(case("split_between_processes", True, values=[deeper] * ranks))
    return cases


# ---- Accelerate ----

REAL = {"convert_outputs_to_fp32": lambda value: operations.convert_outputs_to_fp32(lambda x: x)(value),
        "send_to_device": lambda value: operations.send_to_device(value, "cpu"),
        "slice_tensors": lambda value, *bounds: operations.slice_tensors(value, slice(*bounds)),
        "concatenate": operations.concatenate}


def accelerate(op, args, value):
    if op == "split_between_processes":
        with PartialState().split_between_processes(value, apply_padding=args[0]) as part:
            return part
    return (REAL.get(op) or getattr(operations, op))(value, *args)


def metrics(accelerator, ranks, draw):
    """What an evaluation gathers, batch by batch: [case, result]."""
    found = []
    for length, batch, objects in ((9, 5, False), (10, 2, False), (7, 3, True), (1, 2, False), (12, 2, True)):
        data = [{"x": torch.arange(3) + 10 * i, "y": torch.tensor(float(i))} for i in range(length)]
        for item in accelerator.prepare(torch.utils.data.DataLoader(data, batch_size=batch)):
            state = accelerator.gradient_state
            remainder = state.remainder if state.end_of_dataloader else 0
            value = [str(y) for y in item["y"].tolist()] if objects else item
            all_values = [None] * ranks
            if ranks > 1:
                torch.distributed.all_gather_object(all_values, from_torch(value))
            else:
                all_values = [from_torch(value)]
            found.append([case("gather_for_metrics", max(remainder, 0), False, values=all_values),
                          from_torch(accelerator.gather_for_metrics(value))])
    return found


def peer(rank, ranks, port, cases, out):
    os.environ["OMP_NUM_THREADS"] = "1"
    if ranks > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(ranks),
                          MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    results = []
    for one in cases:
        try:
            results.append({"ok": from_torch(accelerate(one["op"], one["args"], to_torch(one["values"][rank])))})
        except (TypeError, ValueError, IndexError, RuntimeError, KeyError, AttributeError) as error:
            results.append({"error": f"{type(error).__name__}: {error}"})
    out.put((rank, results, metrics(accelerator, ranks, None)))
    if ranks > 1:
        torch.distributed.destroy_process_group()


def peers(ranks, cases):
    """The results of each rank of Accelerate's, and the cases of metrics with theirs."""
    context, port = multiprocessing.get_context("fork"), free_port()
    out = context.Queue()
    processes = [context.Process(target=peer, args=(rank, ranks, port, cases, out), daemon=True) for rank in range(ranks)]
    for process in processes:
        process.start()
    answers = sorted(out.get(timeout=PATIENCE) for _ in processes)
    for process in processes:
        process.join()
    return [answer[1] for answer in answers], [answer[2] for answer in answers]


PROGRAM = Program()


class Comparison(unittest.TestCase):
    def compare(self, ours, theirs, exact, where):
        self.assertIs(type(ours), type(theirs), where)
        if isinstance(ours, list):
            self.assertEqual(len(ours), len(theirs), where)
            for a, b in zip(ours, theirs, strict=True):
                self.compare(a, b, exact, where)
        elif isinstance(ours, dict):
            self.assertEqual(list(ours), list(theirs), where)
            if "tensor" not in ours or exact:
                for name in ours:
                    self.compare(ours[name], theirs[name], exact, where)
                return
            self.assertEqual(ours["tensor"][:2], theirs["tensor"][:2], where)
            a, b = (to_torch(value).double() for value in (ours, theirs))
            near = {"float64": 1e-15, "float32": 4e-7, "float16": 3e-3, "bfloat16": 3e-2}.get(ours["tensor"][0], 0)
            self.assertTrue(torch.all((a - b).abs() <= near * (30 + b.abs())), f"{where}: {a} {b}")
        elif isinstance(ours, float):
            self.assertEqual(np.float64(ours).tobytes(), np.float64(theirs).tobytes(), where)
        else:
            self.assertEqual(ours, theirs, where)

    def check(self, ranks):
        draw = Draw(SEED + ranks)
        cases = [{**one, "values": [one["values"]] * ranks} for one in alone(draw)] if ranks == 1 else []
        cases += together(draw, ranks)
        theirs, metrics_of = peers(ranks, cases)
        more = [one for one, _ in metrics_of[0]]
        ours = PROGRAM.run(ranks, cases + more)
        for rank in range(ranks):
            for one, got, want in zip(cases, ours[rank], theirs[rank]):
                where = f"{one['op']}{one['args']} of {one['values'][rank]} on rank {rank} of {ranks}"
                self.assertEqual(list(got), list(want), f"{where}: {got} {want}")
                if "ok" in want:
                    self.compare(got["ok"], want["ok"], one["op"] != "reduce" or ranks < 3, where)
            for (one, want), got in zip(metrics_of[rank], ours[rank][len(cases):], strict=True):
                self.compare(got["ok"], want, True, f"{one} on rank {rank} of {ranks}")

    def test_one_process(self):
        self.check(1)

    def test_two_processes(self):
        self.check(2)

    def test_three_processes(self):
        self.check(3)


class Own(unittest.TestCase):
    """What Accelerate leaves open, or has otherwise: docs/runtime.md."""

    def results(self, *cases, ranks=3):
        return [[result.get("ok", result.get("error")) for result in of_rank] for of_rank in PROGRAM.run(ranks, list(cases))]

    def tensor(self, dtype, values):
        kept = torch.tensor(values, dtype=torch.float64).to({**DTYPES, "int16": torch.int16}[dtype])
        return tensor(dtype, kept.shape, kept)

    def test_ranks_that_differ(self):
        """Every rank gets the same message: who is not as most are, and how."""
        a, b, c = (self.tensor("float32", [0.0] * n) for n in (2, 3, 2))
        nested = [{"map": [["x", [a, value]]]} for value in (a, a, b)]
        cases = [
            (case("gather", values=[a, b, c]), "accel_gather: rank 1 has float32[3], but rank 0 has float32[2]"),
            (case("gather", values=[b, a, c]), "accel_gather: rank 0 has float32[3], but rank 1 has float32[2]"),
            (case("gather", values=nested),
             'accel_gather: rank 2 has {"x": [float32[2], float32[3]]}, but rank 0 has {"x": [float32[2], float32[2]]}'),
            (case("reduce", "mean", 1.0, values=[a, self.tensor("float64", [0, 0]), a]),
             "accel_reduce: rank 1 has mean times 1 of float64[2], but rank 0 has mean times 1 of float32[2]"),
            (case("broadcast", 1, values=[{"map": [["x", a]]}, {"map": [["y", a]]}, {"map": [["x", a]]}]),
             'accel_broadcast: rank 1 has of rank 1: {"y": float32[2]}, but rank 0 has of rank 1: {"x": float32[2]}'),
            (case("pad_across_processes", 0, 0, False, values=[a, b, self.tensor("float32", [[0.0]])]),
             "accel_pad_across_processes: rank 2 has dimension 0, 0 at the end, of \"float32 of 2 dimensions\", but rank 0 "
             "has dimension 0, 0 at the end, of \"float32 of 1 dimensions\""),
            (case("broadcast_object_list", 0, values=[[1], [1, 2], [3]]),
             "accel_broadcast_object_list: rank 1 has rank 0's list of 2 items, but rank 0 has rank 0's list of 1 items"),
            (case("broadcast", 5, values=[a, a, a]), "rank 5, of 3 ranks"),
        ]
        for of_rank in self.results(*(one for one, _ in cases)):
            for message, (_, wanted) in zip(of_rank, cases, strict=True):
                self.assertIn(wanted, message)

    def test_a_rank_that_failed_before(self):
        """It comes to the operation all the same, and the others hear what it met."""
        a = self.tensor("float32", [0.0])
        for rank, (message,) in enumerate(self.results(case("gather", values=[a, "text", a]))):
            wanted = "a string where nested lists and maps of tensors are wanted"
            self.assertEqual(message, wanted if rank == 1 else f"accel_gather: rank 1 had failed before: {wanted}")

    def test_types_that_gloo_does_not_have(self):
        values = [self.tensor("int16", [i, -i]) for i in range(3)]
        flags = [self.tensor("bool", [0, i == 1]) for i in range(3)]
        ragged_flags = [self.tensor("bool", [1] * i) for i in range(3)]
        for rank, got in enumerate(self.results(
                case("gather", values=values), case("reduce", "sum", 1.0, values=values),
                case("reduce", "max", 1.0, values=values),
                case("reduce", "sum", 1.0, values=flags), case("pad_across_processes", 0, 0, False, values=ragged_flags))):
            self.assertEqual(got[:3], [self.tensor("int16", wanted) for wanted in ([0, 0, 1, -1, 2, -2], [3, -3], [2, 0])])
            self.assertEqual(got[3:], [self.tensor("bool", [0, 1]), self.tensor("bool", [1] * rank + [0] * (2 - rank))])

    def test_reductions(self):
        """Summed in float64 and rounded once; scaled; means and scales of integers are errors."""
        large = [self.tensor("float16", [x]) for x in (60000.0, 60000.0, -60000.0)]
        small = [self.tensor("float32", [x]) for x in (1e8, 1.0, -1e8)]
        whole = [self.tensor("int64", [i]) for i in range(3)]
        huge = [self.tensor("int8", [100])] * 3
        nan = [self.tensor("float32", [x]) for x in (1.0, float("nan"), 2.0)]
        for got in self.results(
                case("reduce", "mean", 1.0, values=large), case("reduce", "sum", 0.5, values=small),
                case("reduce", "mean", 1.0, values=whole), case("reduce", "sum", 2.0, values=whole),
                case("reduce", "sum", 1.0, values=huge), case("reduce", "max", 1.0, values=nan)):
            self.assertEqual(got[:2], [self.tensor("float16", [20000.0]), self.tensor("float32", [0.5])])
            self.assertIn("a mean of int64 tensors, which are no real numbers", got[2])
            self.assertIn("a scale of int64 tensors, which are no real numbers", got[3])
            self.assertEqual(got[4], self.tensor("int8", [300 - 256]))
            self.assertTrue(torch.isnan(to_torch(got[5])).all())

    def test_many_elements(self):
        """More than are in hand at a time."""
        values = [self.tensor("float32", list(range(i, i + 40000))) for i in range(3)]
        wanted = torch.arange(40000, dtype=torch.float32) * 3 + 3
        for got in self.results(case("reduce", "sum", 1.0, values=values)):
            self.assertTrue(torch.equal(to_torch(got[0]), wanted))

    def test_bytes(self):
        draw = Draw(SEED)
        cases = [case("bytes", values=[draw.object()]) for _ in range(50)]
        for one, got in zip(cases, self.results(*cases, ranks=1)[0], strict=True):
            self.assertEqual(got, one["values"][0])


load_tests = rotating(3, always=("Own",))


if __name__ == "__main__":
    print("seed", SEED)
    unittest.main()
