"""Who sees which sample: the runtime's rule against Accelerate's own classes, fed with the same order, over random lengths,
batches, ranks and flags; and a run whose epochs end with a short batch against Accelerate's."""

import os
import pathlib
import random
import subprocess
import unittest

import test_accumulation
import torch
from accelerate import data_loader
from accelerate.state import AcceleratorState, GradientState, PartialState
from rows import GENERATOR, Rows
from support import program
from torch.utils.data import BatchSampler, DataLoader, SequentialSampler

MODELS = pathlib.Path(__file__).resolve().parent / "models"
EXPONENTIAL = test_accumulation.Accumulation.EXPONENTIAL
DRAW = int(os.environ.get("SEED", "1"))


def draw_case(generator):
    ranks = generator.choice([1, 1, 2, 3, 4, 5, 8])
    batch = generator.randint(1, 6)
    samples = generator.choice([generator.randint(1, 3 * ranks * batch), generator.randint(1, 90)])
    flags = [generator.random() < 0.7, generator.random() < 0.5, generator.random() < 0.4]
    return samples, batch, ranks, *flags


def distributed(cases, rank_of=lambda case: range(case[2]), first=lambda case: 0):
    """The runtime's batches: for each case a list over ranks, of lists of batches without the empty ones."""
    lines = [(case[0], case[1], case[2], rank, *map(int, case[3:]), first(case)) for case in cases for rank in rank_of(case)]
    done = subprocess.run([program("batch_sharding")], input="\n".join(" ".join(map(str, line)) for line in lines), text=True,
                          capture_output=True, check=True)
    answers = iter(done.stdout.split("\n"))
    return [[[[int(i) for i in batch.split(",")] for batch in next(answers).split(";") if batch] for _ in rank_of(case)]
            for case in cases]


class Shards(unittest.TestCase):
    """Without dispatch_batches every rank draws its own batches. On one rank Accelerate leaves PyTorch's DataLoader alone."""

    def sampler(self, samples, batch, ranks, keeps, even, rank, split):
        whole = BatchSampler(SequentialSampler(range(samples)), batch * (ranks if split else 1), drop_last=not keeps)
        if ranks == 1:
            return whole
        return data_loader.BatchSamplerShard(whole, ranks, rank, split_batches=split, even_batches=even)

    def test_all(self):
        generator = random.Random(DRAW)
        print("SEED", DRAW)
        cases = [(*draw_case(generator)[:5], False) for _ in range(4000)]
        for case, ours in zip(cases, distributed(cases), strict=True):
            for rank, batches in enumerate(ours):
                for split in (False, True):  # batch_size of all ranks together gives the same, once it is divided
                    self.assertEqual(batches, [list(b) for b in self.sampler(*case[:5], rank, split)], (case, rank, split))


def order_of(samples, epoch):
    return random.Random(1000 * samples + epoch).sample(range(samples), samples)


def dispatched(samples, batch, ranks, keeps, rank, split, skip=0):
    for state in (AcceleratorState, GradientState, PartialState):
        state._reset_state()
    PartialState(cpu=True).num_processes = ranks  # only the first runs, and cuts what the asked one gets
    calls = []

    def cut(tensor, part, process_index=None, num_processes=None):
        calls.append(part)
        if keeps and len(calls) == 1:  # what is held back of the first batch, to fill the last
            return tensor[part]
        return tensor[rank * part.stop:(rank + 1) * part.stop]

    whole = BatchSampler(SequentialSampler(range(samples)), batch * (ranks if split else 1), drop_last=not keeps)
    loader = data_loader.DataLoaderDispatcher(torch.arange(samples), split_batches=split, batch_sampler=whole,
                                              _drop_last=not keeps, slice_fn=cut, skip_batches=skip)
    return [[int(i) for i in b] for b in loader]


class Dispatchers(unittest.TestCase):
    def test_all(self):
        generator = random.Random(DRAW + 1)
        cases = [(*draw_case(generator)[:4], False, True) for _ in range(200)]
        cases = [case for case in cases if case[0] >= case[1] * case[2] or case[0] >= case[2] and case[3]]
        self.assertGreater(len(cases), 100)
        for case, ours in zip(cases, distributed(cases), strict=True):
            rank = generator.randrange(case[2])
            for split in (False, True):
                self.assertEqual(ours[rank], dispatched(*case[:4], rank, split), (case, rank, split))


class Loaders(unittest.TestCase):
    """The whole of prepare_data_loader, over an order that each epoch draws again, and with batches skipped."""

    class Order(torch.utils.data.Sampler):
        def __init__(self, samples):
            self.samples, self.epoch = samples, 0

        def set_epoch(self, epoch):
            self.epoch = epoch

        def __iter__(self):
            return iter(order_of(self.samples, self.epoch))

        def __len__(self):
            return self.samples

    def test_all(self):
        generator = random.Random(DRAW + 2)
        cases = [(*draw_case(generator)[:5], False) for _ in range(60)]
        skipped = {case: generator.randint(0, 4) for case in cases}
        whole, later = distributed(cases), distributed(cases, first=lambda case: skipped[case])
        for case, ours, ours_later in zip(cases, whole, later, strict=True):
            for state in (AcceleratorState, GradientState, PartialState):
                state._reset_state()
            samples, batch, ranks, keeps, even, _ = case
            rank = generator.randrange(ranks)
            sampler = self.Order(samples)
            loader = DataLoader(torch.arange(samples), batch_size=batch, sampler=sampler, drop_last=not keeps)
            loader = data_loader.prepare_data_loader(loader, num_processes=ranks, process_index=rank, even_batches=even)
            for epoch in range(2):
                order = order_of(samples, epoch)
                wanted = [[order[i] for i in b] for b in ours[rank]]
                self.assertEqual(wanted, [b.tolist() for b in loader], case)
            rest = data_loader.skip_first_batches(loader, skipped[case])
            got = [b.tolist() for b in rest]
            order = order_of(samples, sampler.epoch)
            self.assertEqual([[order[i] for i in b] for b in ours_later[rank]], got, case)


class ShortBatches(unittest.TestCase):
    """drop_last: false. Three rows make the last batch of thirty-one."""

    def check(self, micro, **more):
        rows = Rows(31, 4, steps=16 if micro == 1 else 6, accumulation={"num_steps": micro}, data={"drop_last": False, **more},
                    optimizer={**test_accumulation.ADAMW, "clip_grad_norm": 0.5}, schedule=EXPONENTIAL[0])
        metrics = rows.run()
        wanted, model = test_accumulation.steps_of(rows, {"num_steps": micro}, EXPONENTIAL[1], len(metrics))
        for step, (row, (rate, norm, loss)) in enumerate(zip(metrics, wanted, strict=True)):
            self.assertLess(abs(row["lr"] / rate - 1), 1e-7, f"rate of step {step + 1}")
            self.assertLess(abs(row["grad_norm"] / norm - 1), 1e-5, f"norm of step {step + 1}")
            self.assertLess(abs(row["loss"] / loss - 1), 1e-5, f"loss of step {step + 1}")
        self.assertLess(rows.distance(model), 1e-5)

    def test_one_batch_a_step(self):
        self.check(1)

    def test_accumulated(self):
        self.check(3, even_batches=False, dispatch_batches=True)  # of which one rank sees nothing

    def test_refused(self):
        """A value to predict cannot be left out."""
        rows = Rows(31, 4, steps=1, model=MODELS / "weighted.c", config={"width": 9, "form": 1},
                    data={"drop_last": False, "label": "value"})
        done = subprocess.run([GENERATOR, rows.trainer.path, "-o", "-"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("a batch that samples do not fill needs a loss that can leave targets out, and this one cannot",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
