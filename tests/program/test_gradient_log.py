"""What is reported of gradients, against PyTorch: the norm of each parameter's, and the noise scale from the gradients of the
micro-batches, computed in NumPy. Each step's weights are those that the program itself had before it."""

import math
import shutil
import unittest

import numpy as np
import torch
from harness import MODELS, Trainer, save_file

BATCH, ROWS, FEATURES, CLASSES, SEED = 4, 60, 5, 3, 9
STEPS = 4


def table():
    rng = np.random.default_rng(3)
    return rng.normal(size=(ROWS, FEATURES)).round(4), rng.integers(0, CLASSES, ROWS)


def start():
    rng = np.random.default_rng(5)
    shapes = {"hidden.0.weight": (7, 5), "hidden.0.bias": (7,), "hidden.1.weight": (7, 7), "hidden.1.bias": (7,),
              "output.weight": (3, 7), "output.bias": (3,)}
    return {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in shapes.items()}


def make(test, micro, tracking, **groups):
    job = {
        "model": {"source": str(MODELS / "mlp_table.c"), "config": {"n_layer": 2, "width": 7, "n_classes": CLASSES},
                  "weights": "start.safetensors"},
        "data": {"train": {"path": "rows.csv", "format": "csv"}, "features": FEATURES, "batch_size": BATCH,
                 "shuffle": False, "eval_fraction": 0},
        "accumulation": {"num_steps": micro},
        "optimizer": {"name": "sgd", "lr": 0.1, "weight_decay": 0.0},
        "training": {"steps": STEPS, "seed": SEED},
        "tracking": dict(tracking),
    }
    for group, keys in groups.items():
        job.setdefault(group, {}).update(keys)
    trainer = Trainer(job)
    test.addCleanup(shutil.rmtree, trainer.folder)
    features, labels = table()
    rows = (",".join(map(str, [*x, y])) for x, y in zip(features, labels))
    (trainer.folder / "rows.csv").write_text("\n".join(rows) + "\n")
    save_file(start(), trainer.folder / "start.safetensors")
    trainer.build()
    return trainer


def micro_gradients(weights, numbers):
    """The gradients of micro-batches by their numbers, in float64: a list of dicts."""
    features, labels = table()
    found = []
    for number in numbers:
        w = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in weights.items()}
        rows = [(number * BATCH + i) % ROWS for i in range(BATCH)]
        x = torch.tensor(features[rows])
        for i in range(2):
            x = torch.relu(x @ w[f"hidden.{i}.weight"].T + w[f"hidden.{i}.bias"])
        loss = torch.nn.functional.cross_entropy(x @ w["output.weight"].T + w["output.bias"], torch.tensor(labels[rows]))
        loss.backward()
        found.append({name: value.grad.numpy() for name, value in w.items()})
    return found


def length(gradient):
    return math.sqrt(sum((g**2).sum() for g in gradient.values()))


def mean(gradients):
    return {name: np.mean([g[name] for g in gradients], axis=0) for name in gradients[0]}


class Gradients(unittest.TestCase):
    def steps(self, trainer, gradients_of_steps):
        """Each step's row of metrics and the gradients of its micro-batches at the weights that it began with."""
        rows, weights = trainer.run(), start()
        for step, numbers in enumerate(gradients_of_steps):
            yield rows[step], micro_gradients(weights, numbers)
            trainer.run("--steps", str(step + 1))
            weights = trainer.weights()

    def test_norms_of_what_is_trained(self):
        """Frozen parameters have no gradient, and so no norm; those of the others are where they were."""
        trainer = make(self, 1, {"grad_norms": "per_layer"}, model={"freeze": ["hidden.0.*", "output.bias"]})
        for row, gradients in self.steps(trainer, [[i] for i in range(STEPS)]):
            logged = {key.removeprefix("grad_norm/"): value for key, value in row.items() if key.startswith("grad_norm/")}
            self.assertEqual(set(logged), {"hidden.1.weight", "hidden.1.bias", "output.weight"})
            for name, norm in logged.items():
                self.assertLess(abs(norm / math.sqrt((gradients[0][name] ** 2).sum()) - 1), 1e-5, name)

    def test_layer_norms(self):
        for groups in ({"optimizer": {"norm_type": "inf", "clip_grad_norm": 0.1}},
                       {"precision": {"grad_scaler": {"enabled": True, "init_scale": 256.0, "growth_interval": 2}}},
                       {"accumulation": {"normalize": "tokens"}}):
            trainer = make(self, 2, {"grad_norms": "per_layer"}, **groups)
            for row, gradients in self.steps(trainer, [[2 * i, 2 * i + 1] for i in range(STEPS)]):
                for name, gradient in mean(gradients).items():
                    self.assertLess(abs(row[f"grad_norm/{name}"] / np.linalg.norm(gradient) - 1), 1e-5, (groups, name))

    def check_noise(self, trainer, gradients_of_steps, decay):
        averages = np.zeros(2)
        for row, gradients in self.steps(trainer, gradients_of_steps):
            single, whole = length(gradients[0]), length(mean(gradients))
            if len(gradients) > 1:
                b, B = BATCH, BATCH * len(gradients)
                signal = (B * whole**2 - b * single**2) / (B - b)
                noise = (single**2 - whole**2) / (1 / b - 1 / B)
                averages = decay * averages + (1 - decay) * np.array([signal, noise])
            self.assertLess(abs(row["noise_scale"] / (averages[1] / averages[0]) - 1), 1e-4)

    def test_noise_scale(self):
        whole = [[3 * i + k for k in range(3)] for i in range(STEPS)]
        for groups in ({"optimizer": {"norm_type": 1, "clip_grad_norm": 0.1}},
                       {"precision": {"grad_scaler": {"enabled": True, "init_scale": 256.0}}},
                       {"accumulation": {"normalize": "tokens"}}):
            trainer = make(self, 3, {"noise_scale": True, "noise_decay": 0.8}, **groups)
            self.check_noise(trainer, whole, 0.8)

    def test_short_steps(self):
        """15 micro-batches of an epoch in steps of 4, 4, 4 and 3; and in steps of 7, 7 and 1, which says nothing."""
        for micro, gradients_of_steps in ((4, [range(0, 4), range(4, 8), range(8, 12), range(12, 15)]),
                                          (7, [range(0, 7), range(7, 14), range(14, 15)])):
            for normalize in ("batches", "tokens"):
                trainer = make(self, micro, {"noise_scale": True}, accumulation={"normalize": normalize})
                self.check_noise(trainer, [list(samples) for samples in gradients_of_steps], 0.95)


if __name__ == "__main__":
    unittest.main()
