"""What a model keeps and does not train, buffer(s, name, dims...), and detach(x): against PyTorch's buffers and Tensor.detach,
alone, divided among ranks, and resumed."""

import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from ranks import CORPUS, GENERATOR, Ranks, job_of, load_file, relative, save_file
from harness import windows  # tests/program

SOURCE = r"""
#include <accel/model.h>
#include <math.h>

struct config {
  int width, n_layer, side;
};

static tensor layer(scope s, tensor x, struct config c) {
  tensor h = linear(at(s, "up"), mul(x, buffer(init_constant(s, 0.5), "gain", c.width)), 4 * c.width);
  return add(x, linear(at(s, "down"), silu(h), c.width));
}

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  scope waves = init_sinusoid(s, pow(10000, 1.0 / (c.width / 2 - 1))), grid = init_sinusoid_grid(s, 10, c.side);
  tensor x = embedding(at(s, "table"), tokens, 256, c.width);
  x = add(x, buffer(waves, "positions", dim(tokens, 1), c.width));
  x = add(x, buffer(grid, "grid", 1, dim(tokens, 1), c.width));
  for (int i = 0; i < c.n_layer; i++) x = layer(nth(s, "layer", i), x, c);
  tensor judged = linear(at(s, "judge"), detach(x), 3); /* which learns to be small, and x does not */
  return add(cross_entropy(linear(at(s, "output"), x, 256), targets), mean_all(square(judged)));
}
"""
LENGTH, WIDTH, SIDE, LAYERS, BATCH, STEPS = 12, 16, 4, 2, 4, 6
OPTIMIZER = {"name": "adamw", "lr": 1e-2, "weight_decay": 0.3, "eps": 1e-5, "clip_grad_norm": 0.0}


def waves(positions, ratio, columns):
    angles = positions[:, None] * ratio ** -np.arange(columns // 2, dtype=np.float64)
    return np.concatenate((np.sin(angles), np.cos(angles)), 1)


def started():
    """What the buffers start as, of float64."""
    at = np.arange(LENGTH)
    return {"positions": waves(at, 10000 ** (1 / (WIDTH // 2 - 1)), WIDTH),
            "grid": np.concatenate((waves(at % SIDE, 10, WIDTH // 2), waves(at // SIDE, 10, WIDTH // 2)), 1)[None],
            **{f"layer.{i}.gain": np.full(WIDTH, 0.5) for i in range(LAYERS)}}


class Peer(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        fixed = started()
        self.w = {name: torch.tensor(value, requires_grad=name not in fixed) for name, value in weights.items()}

    def forward(self, tokens, targets):
        w, linear = self.w, torch.nn.functional.linear
        x = w["table.weight"][tokens] + w["positions"] + w["grid"]
        for i in range(LAYERS):
            at = f"layer.{i}"
            h = linear(x * w[f"{at}.gain"], w[f"{at}.up.weight"], w[f"{at}.up.bias"])
            x = x + linear(torch.nn.functional.silu(h), w[f"{at}.down.weight"], w[f"{at}.down.bias"])
        judged = linear(x.detach(), w["judge.weight"], w["judge.bias"])
        logits = linear(x, w["output.weight"], w["output.bias"])
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()) + judged.square().mean()


class Buffers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """The weights of a trainer that moves nothing are those that all others start with."""
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-test-"))
        (cls.folder / "kept.c").write_text(SOURCE)
        start = cls.trained(1, 1, optimizer={**OPTIMIZER, "lr": 1e-30, "weight_decay": 0.0})
        cls.start = start.weights()
        rng = np.random.default_rng(5)
        for name in started():  # that others come from the file is seen by numbers that no start gives
            if name != "layer.1.gain":
                cls.start[name] += rng.standard_normal(cls.start[name].shape).astype(np.float32) / 10
        cls.fresh = start.weights()
        save_file(cls.start, cls.folder / "start.safetensors")
        peer, batches = Peer(cls.start), windows(CORPUS, LENGTH, BATCH, 1337, True, 0.1)
        trained = [w for w in peer.w.values() if w.requires_grad]
        adamw = torch.optim.AdamW(trained, lr=1e-2, weight_decay=0.3, eps=1e-5)
        cls.losses = []
        for step in range(STEPS):
            adamw.zero_grad()
            loss = peer(*(torch.tensor(x) for x in batches(step)))
            loss.backward()
            adamw.step()
            cls.losses.append(loss.item())
        cls.after = {name: w.detach().numpy() for name, w in peer.w.items()}

    @classmethod
    def job(cls, ranks, steps, batch=BATCH, weights=None, **groups):
        job = job_of(ranks, batch, steps, config={"width": WIDTH, "n_layer": LAYERS, "side": SIDE}, **groups)
        job["model"].update({"source": str(cls.folder / "kept.c"), **({"weights": weights} if weights else {})})
        job["data"]["sequence_length"] = LENGTH
        return job

    @classmethod
    def trained(cls, ranks, steps, **groups):
        trainer = Ranks(ranks, cls.job(ranks, steps, **groups))
        trainer.build()
        trainer.metrics = trainer.run()
        return trainer

    def check(self, ranks, **groups):
        ours = self.trained(ranks, STEPS, weights=str(self.folder / "start.safetensors"), optimizer=OPTIMIZER, **groups)
        for row, loss in zip(ours.metrics, self.losses, strict=True):
            self.assertLess(abs(row["loss"] / loss - 1), 1e-5, f"loss of step {row['step']}")
        after = ours.weights()
        self.assertEqual(set(after), set(self.after))
        for name, wanted in self.after.items():
            if name in started():
                np.testing.assert_array_equal(after[name], self.start[name], name)
            else:
                self.assertLess(relative(after[name], wanted), 1e-3, name)
        return ours

    def test_starts(self):
        for name, wanted in started().items():
            self.assertLess(np.abs(self.fresh[name] - wanted).max(), 1e-7, name)

    def test_alone(self):
        """With an average, which has them too; a checkpoint in the middle continues to the same weights."""
        ours = self.check(1, training={"ema": {"decay": 0.9}}, checkpoint={"every": 3})
        average, after = load_file(ours.folder / "run" / "ema.safetensors"), ours.weights()
        self.assertEqual(set(average), set(after))
        for name in started():
            np.testing.assert_array_equal(average[name], self.start[name], name)
        ours.run("--resume", str(ours.folder / "run" / "checkpoints" / "checkpoint_0"))
        for name, again in ours.weights().items():
            np.testing.assert_array_equal(again, after[name], name)

    def test_data_parallel(self):
        self.check(2, batch=BATCH // 2)

    def test_shards(self):
        self.check(2, batch=BATCH // 2, parallelism={"dp_shard": 2, "zero_stage": 1})

    def test_tensors(self):
        self.check(2, parallelism={"tp": 2})

    def test_sequences(self):
        self.check(2, parallelism={"cp": 2})

    def test_layers(self):
        self.check(2, batch=1, parallelism={"pp": 2}, accumulation={"num_steps": 4, "sync_with_dataloader": False})

    def refused(self, *words, **groups):
        trainer = Ranks(1, self.job(groups.pop("ranks", 1), 2, **groups))
        said = subprocess.run([GENERATOR, "plan", trainer.path], capture_output=True, text=True)
        self.assertEqual(said.returncode, 2, said.stdout)
        for word in words:
            self.assertIn(word, said.stderr)

    def test_refused(self):
        self.refused("'positions' is not trained, so no update would gather its shards", ranks=2,
                     parallelism={"fsdp": {"sharding_strategy": "full_shard"}, "dp_shard": 2})
        self.refused("'schedule_free_adamw' evaluates an average of the weights, and 'positions' is not trained",
                     optimizer={"name": "schedule_free_adamw", "eps": 1e-8})
        self.refused("all parameters that '*.gain' matches are frozen", optimizer={"param_groups": [{"match": "*.gain", "lr": 0.1}]})


if __name__ == "__main__":
    unittest.main()
