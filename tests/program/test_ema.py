"""The moving average of the weights against PyTorch's AveragedModel, over the weights that the program itself had after
each step; and evaluation with it."""

import math
import shutil
import unittest

import torch
from harness import Trainer, load_file, relative
from matrix import ADAMW, NO_DECAY, mlp
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Weights(torch.nn.Module):
    def __init__(self, values):
        super().__init__()
        self.values = torch.nn.ParameterDict({name.replace(".", "/"): torch.tensor(v) for name, v in values.items()})

    def take(self, values):
        with torch.no_grad():
            for name, value in values.items():
                self.values[name.replace(".", "/")].copy_(torch.tensor(value))


class Average(unittest.TestCase):
    def prepare(self, ema, steps=10, **groups):
        groups.setdefault("optimizer", {**ADAMW, "lr": 0.05})
        training = {"steps": steps, "ema": ema, "eval_interval": steps, "eval_iters": "all"}
        case = mlp("ema", training=training, **groups)
        trainer = Trainer(case.job)
        self.addCleanup(shutil.rmtree, trainer.folder)
        case.write_data(trainer.folder)
        trainer.build()
        return trainer

    def history(self, trainer):
        """The weights after each step, and the average after the last one."""
        weights = []
        for steps in range(1, trainer.job["training"]["steps"] + 1):
            trainer.run("--steps", str(steps))
            weights.append(trainer.weights())
        return weights, load_file(trainer.folder / "run" / "ema.safetensors")

    def check(self, average, peer):
        found = {name.removeprefix("module.values.").replace("/", "."): value.numpy()
                 for name, value in peer.state_dict().items() if name != "n_averaged"}
        self.assertEqual(set(found), set(average))
        for name, value in found.items():
            self.assertLess(relative(average[name], value), 1e-6, name)

    def compare(self, every=1, **groups):
        trainer = self.prepare({"decay": 0.9, **({"every": every} if every > 1 else {})}, **groups)
        weights, average = self.history(trainer)
        model = Weights(weights[0])
        peer = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
        for step, values in enumerate(weights, 1):
            model.take(values)
            if step % every == 0:
                peer.update_parameters(model)
        self.check(average, peer)

    def test_each_step(self):
        self.compare(steps=50)

    def test_rules_that_step_whole_parameters(self):
        for name in ("muon", "adafactor", "lamb"):
            self.compare(optimizer={"name": name, "lr": 0.05})

    def test_every_third_step_in_groups(self):
        self.compare(every=3, optimizer={**ADAMW, "param_groups": NO_DECAY[:1]}, accumulation={"num_steps": 2})

    def test_warmup(self):
        """The decay of update n is at most 1 - (1 + n / inv_gamma)^-power, as in timm's and diffusers' averages."""
        trainer = self.prepare({"decay": 0.95, "warmup": True, "inv_gamma": 2.0, "power": 0.75}, steps=20)
        weights, average = self.history(trainer)
        for name, value in average.items():
            truth = 0.0
            for n, values in enumerate(weights):
                decay = min(0.95, 1 - (1 + n / 2.0) ** -0.75)
                truth = decay * truth + (1 - decay) * values[name].astype("float64")
            self.assertLess(relative(value, truth), 1e-6, name)

    def test_evaluation(self):
        """What is evaluated is the average, with the loss that a program started from it has; the weights stay."""
        trainer = self.prepare({"decay": 0.9, "evaluate": True})
        plain = self.prepare({"decay": 0.9})
        metrics, others = trainer.run(), plain.run()
        self.assertEqual([row["loss"] for row in metrics], [row["loss"] for row in others])
        self.assertNotEqual(metrics[-1]["eval_loss"], others[-1]["eval_loss"])
        start = trainer.folder / "run" / "ema.safetensors"
        plain.job["model"]["weights"] = str(shutil.copy(start, plain.folder / "start.safetensors"))
        plain.job["optimizer"] = {"name": "sgd", "lr": 1e-30}
        plain.job["training"].update(steps=1, eval_interval=1)
        plain.write()
        plain.build()
        self.assertTrue(math.isclose(plain.run()[-1]["eval_loss"], metrics[-1]["eval_loss"], rel_tol=1e-6))


if __name__ == "__main__":
    unittest.main()
