"""An order of the user's own (hooks.on_order) against PyTorch's DataLoader with a sampler of the same draws: which samples
each rank sees, the weights that they leave, and a run that resumes in the middle of an epoch."""

import json
import pathlib
import sys
import unittest

import torch
import torch.nn.functional as F
from accelerate.data_loader import BatchSamplerShard
from rows import Mlp, Rows
from torch.utils.data import BatchSampler, DataLoader, Sampler

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

from ranks import start  # noqa: E402

RECORDS, DRAWN, BATCH, RANKS, STEPS, SEED = 40, 27, 3, 2, 11, 5

# Draws with repetition; sample i weighs i % 4.
SOURCE = """#include <accel/hooks.h>

#include <stdio.h>
#include <stdlib.h>

void on_order(struct accel_order *order) {
  uint64_t state = order->seed + 1000 * (uint64_t)order->epoch;
  int64_t stray = getenv("STRAY") != NULL ? order->records : 0;
  for (int64_t filled = 0; filled < order->count;) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    int64_t sample = (int64_t)((state >> 33) % (uint64_t)order->records);
    if ((int64_t)(state >> 61) % 4 < sample % 4) order->samples[filled++] = sample + stray;
  }
}

void on_batch(struct accel_run *run, struct accel_batch *batch) {
  char name[32];
  snprintf(name, sizeof name, "seen.%d", accel_process_index(run));
  FILE *file = fopen(name, "a");
  for (int64_t i = 0; i < batch->count; i++) fprintf(file, "%.9g\\n", batch->features[i * batch->width]);
  fclose(file);
}
"""


class Weighted(Sampler):
    """The same draws."""

    epoch = 0

    def __len__(self):
        return DRAWN

    def __iter__(self):
        state, drawn = SEED + 1000 * self.epoch, 0
        while drawn < DRAWN:
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            sample = (state >> 33) % RECORDS
            if (state >> 61) % 4 < sample % 4:
                drawn += 1
                yield sample


def batches(rank):
    """The batches of a rank, of torch's DataLoader as Accelerate shards it, over the steps of the run."""
    sampler = Weighted()
    whole = BatchSampler(sampler, BATCH, drop_last=True)
    loader = DataLoader(torch.arange(RECORDS), batch_sampler=BatchSamplerShard(whole, RANKS, rank))
    found = []
    for sampler.epoch in range(STEPS):
        found += [batch.tolist() for batch in loader]
    return found[:STEPS]


class Samplers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rows = Rows(RECORDS, BATCH, steps=STEPS, data={"shuffle": False, "epoch_samples": DRAWN, "data_seed": SEED},
                    optimizer={"name": "sgd", "lr": 0.1, "weight_decay": 0}, devices={"per_node": RANKS}, schedule={"name": "exponential", "gamma": 0.8, "step_with_optimizer": False},
                    hooks={"source": "hooks.c", "on_order": "on_order", "on_batch": "on_batch"},
                    tracking={"first_step": True}, checkpoint={"every": 6, "automatic_checkpoint_naming": False})
        (rows.trainer.folder / "hooks.c").write_text(SOURCE)
        rows.trainer.job["tracking"]["every"] = "epoch"
        rows.trainer.write()
        rows.trainer.build(cflags="-std=c17 -O0")
        cls.rows = rows

    def launch(self, *flags, **environment):
        return start("./trainer", RANKS, *flags, cwd=self.rows.trainer.folder, **environment)

    def seen(self):
        """The samples that each rank's model read, in their order."""
        rows = self.rows
        index = {f"{row[0]:.9g}": i for i, row in enumerate(rows.features)}
        files = [rows.trainer.folder / f"seen.{rank}" for rank in range(RANKS)]
        found = [[index[line] for line in pathlib.Path(file).read_text().split()] for file in files]
        for file in files:
            file.unlink()
        return found

    def test_as_torch(self):
        rows, done = self.rows, self.launch()
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = (self.rows.trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()
        self.assertEqual([json.loads(line)["step"] for line in lines], [1, 4, 6, 8, 11])  # a save at 6; 4 steps an epoch
        of_rank = [batches(rank) for rank in range(RANKS)]
        wanted = [[sample for batch in found for sample in batch] for found in of_rank]
        self.assertEqual(self.seen(), wanted)
        model = Mlp(rows.weights)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
        for together in zip(*of_rank, strict=True):
            samples = [sample for batch in together for sample in batch]
            optimizer.zero_grad()
            F.cross_entropy(model(torch.tensor(rows.features[samples])), torch.tensor(rows.labels[samples])).backward()
            optimizer.step()
            schedule.step()  # once, though there are two ranks
        self.assertLess(rows.distance(model), 1e-6)

        weights = rows.trainer.weights()  # 6 steps are in the middle of the second epoch, of 4 steps each
        done = self.launch("--resume", "run/step_6")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.seen(), [found[6 * BATCH:] for found in wanted])
        for name, value in rows.trainer.weights().items():
            self.assertEqual(value.tobytes(), weights[name].tobytes(), name)

    def test_out_of_range(self):
        """Nothing is loaded of an order with a sample that is not there."""
        done = self.launch("--project-dir", "stray", STRAY="1")
        self.assertEqual(done.returncode, 1, done.stdout)
        first = next(iter(Weighted())) + RECORDS
        self.assertIn(f"error: hooks.on_order: epoch 0, position 0: there is no sample {first}\n", done.stderr)
        self.assertIn("numbered from 0 to 39", done.stderr)
        self.assertEqual(list(self.rows.trainer.folder.glob("seen.*")), [])


if __name__ == "__main__":
    unittest.main()
