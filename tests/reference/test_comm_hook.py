"""hooks.on_bucket: a function in C that makes gradients those of all ranks, against the same function in Python as PyTorch's
register_comm_hook calls it over gloo. Matrices are sent as signs times their mean size, whose error joins the next gradient;
biases are gathered in fp16."""

import unittest

import numpy as np
import torch
import torch.distributed as dist
from peers import arrays, compare, group, peers, rows_of, start, take_steps, trained
from rows import Mlp
from safetensors.numpy import load_file

RANKS, STEPS, MICRO, SAVED, LR = 2, 20, 2, 8, 0.1
SOURCE = r"""#include <accel/hooks.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void by_signs(const struct accel_bucket *bucket, float *g, float *error, int64_t count) {
  double size = 0;
  for (int64_t i = 0; i < count; i++) size += fabs((double)(g[i] += error[i]));
  const float scale = (float)(size / (double)count);
  for (int64_t i = 0; i < count; i++) {
    const float sent = g[i] > 0 ? scale : g[i] < 0 ? -scale : 0;
    error[i] = g[i] - sent;
    g[i] = sent;
  }
  accel_sum_over_ranks(bucket, g, count);
  for (int64_t i = 0; i < count; i++) g[i] /= (float)bucket->ranks;
}

static void as_fp16(const struct accel_bucket *bucket, float *g, int64_t count) {
  const int64_t even = (count + 1) / 2 * 2;
  _Float16 *own = calloc((size_t)even, sizeof *own), *all = calloc((size_t)(even * bucket->ranks), sizeof *all);
  for (int64_t i = 0; i < count; i++) own[i] = (_Float16)g[i];
  accel_gather_from_ranks(bucket, own, all, even * (int64_t)sizeof *own);
  memset(g, 0, (size_t)count * sizeof *g);
  for (int64_t rank = 0; rank < bucket->ranks; rank++)
    for (int64_t i = 0; i < count; i++) g[i] += (float)all[rank * even + i] / (float)bucket->ranks;
  free(own);
  free(all);
}

static int64_t buckets;

void on_bucket(struct accel_run *run, struct accel_bucket *bucket) {
  if (bucket->index != (bucket->index > 0 ? buckets : 0)) abort();
  buckets = bucket->index + 1;
  for (int i = 0; i < accel_weight_count(run); i++) {
    int64_t count;
    float *g = accel_gradient_in(run, bucket, i, &count);
    if (g == NULL) continue;
    if (strstr(accel_weight_name(run, i), ".weight") != NULL)
      by_signs(bucket, g, bucket->state + (g - bucket->gradients), count);
    else
      as_fp16(bucket, g, count);
  }
  if (bucket->is_last) accel_log(run, "buckets", (double)buckets);
}
"""


class Errors:
    """What signs have missed, by parameter."""

    def __init__(self):
        self.of = {}

    def hook(self, bucket):
        for parameter, g in zip(bucket.parameters(), bucket.gradients()):
            if parameter.dim() == 2:
                g += self.of.get(parameter, 0)
                sent = torch.sign(g) * g.double().abs().mean().float()
                self.of[parameter] = g - sent
                g.copy_(sent)
                dist.all_reduce(g)
                g /= dist.get_world_size()
            else:
                every = [torch.empty_like(g, dtype=torch.float16) for _ in range(dist.get_world_size())]
                dist.all_gather(every, g.half())
                g.copy_(sum(other.float() for other in every) / len(every))
        future = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    def average(self, step):
        """What a save does."""
        for error in self.of.values() if step and step % SAVED == 0 else ():
            dist.all_reduce(error)
            error /= dist.get_world_size()


def train(rows, rank, ranks, port, out):
    with group(rank, ranks, port):
        plain, errors = Mlp(rows.weights), Errors()
        model = torch.nn.parallel.DistributedDataParallel(plain)
        model.register_comm_hook(errors, Errors.hook)
        optimizer = torch.optim.SGD(model.parameters(), lr=LR)
        lines = take_steps(rows, STEPS, MICRO, model, optimizer, before=errors.average, quiet=model.no_sync)
        if rank == 0:
            out.put((lines, arrays(plain)))


class CommHook(unittest.TestCase):
    def test_trains_and_resumes(self):
        """Two buckets, of micro-batches that add up. A resumed run has the bits of the one that went on."""
        rows = rows_of(RANKS, 4, STEPS, MICRO, parallelism={"ddp": {"bucket_cap_mb": 0.0002}},
                       optimizer={"name": "sgd", "lr": LR, "weight_decay": 0, "clip_grad_norm": 0.5},
                       hooks={"source": "hooks.c", "on_bucket": "on_bucket"}, checkpoint={"every": SAVED})
        folder = rows.trainer.folder
        (folder / "hooks.c").write_text(SOURCE)
        lines = trained(rows, RANKS)
        self.assertGreater(lines[-1]["buckets"], 1)
        compare(self, rows, lines, *peers(train, RANKS, rows), 1e-6, 1e-5, 1e-6)
        result = start(folder / "trainer", RANKS, "--resume", folder / "run" / "checkpoints" / "checkpoint_0",
                       "--project-dir", "other", cwd=folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        again = load_file(folder / "other" / "model.safetensors")
        for name, value in rows.trainer.weights().items():
            self.assertTrue(np.array_equal(again[name], value), name)


if __name__ == "__main__":
    unittest.main()
