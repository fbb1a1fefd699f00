"""What ranks have in common in addition to weights, in programs for GPUs over the stand-ins: statistics of batch normalisation and
samples that run out, against the programs for the processor; sums of one order, whose bits do not depend on who has
which micro-batches; and what a resumed run with convolutions of cuDNN's gives."""

import json
import shutil
import sys
import unittest

import numpy as np
from host import HostTrainer, Trainer, objects, without
from test_training import GPT, ROWS, TEXT, Comparison, case, write_data

from rotation import ALL  # tests/program; isort: skip

MLP = {"n_layer": 2, "width": 7, "n_classes": 10}
RESNET = {"layer_type": "BASIC", "image_size": 8, "num_channels": 1, "num_labels": 10, "embedding_size": 4, "stages": 1,
          "hidden_sizes.0": 4, "depths.0": 1}
UNEVEN = {"drop_last": False, "even_batches": False, "join_uneven_inputs": True}
CASES = {
    "statistics": case("resnet", RESNET, ROWS, optimizer={"name": "sgd", "lr": 0.05, "momentum": 0.9},
                       accumulation={"num_steps": 2}, training={"steps": 3, "seed": 3, "eval_interval": 2, "eval_iters": 2},
                       devices={"per_node": 2}, parallelism={"sync_batch_norm": True}),
    # Of 48 rows a round takes 14, and the last one has 6, all of rank 0.
    "uneven": case("mlp_table", MLP, {**ROWS, **UNEVEN, "batch_size": 7}, training={"steps": 8, "seed": 3},
                   optimizer={"name": "sgd", "lr": 0.05}, devices={"per_node": 2},
                   parallelism={"ddp": {"divide_by_initial_world_size": False}}),
}
# Four micro-batches a step: ranks, and what these divide. The suite takes a table, --all a text too (ninja soak).
TABLE = {"one": (1, {}), "two": (2, {"zero_stage": 2}), "four": (4, {}), "four of states": (4, {"zero_stage": 1}),
         "four in two groups": (4, {"dp_shard": 2, "zero_stage": 2})}
TEXTS = {"one": (1, {}), "two": (2, {"zero_stage": 3}), "four": (4, {"dp_shard": 2, "zero_stage": 3})}
MODELS = {"table": ("mlp_table", {**MLP, "width": 64}, {**ROWS, "batch_size": 3}, TABLE),
          "text": ("gpt2", {**GPT, "n_layer": 3, "dropout": 0.1}, TEXT, TEXTS)}


def ordered(model, config, data, ranks, divided):
    return case(model, config, data, accumulation={"num_steps": 4 // ranks, "normalize": "tokens"},
                optimizer={"name": "adamw", "lr": 1e-2, "clip_grad_norm": 0.5}, devices={"per_node": ranks},
                parallelism={"reproducible": "topology", **divided},
                training={"steps": 3, "seed": 3, "eval_interval": 2, "eval_iters": "all"})


class DataParallel(Comparison):
    def test_statistics(self):
        self.compare("statistics", CASES["statistics"])

    def test_uneven(self):
        self.compare("uneven", CASES["uneven"])


# Three convolutions a step: the stand-ins' engines that vary do so in every other call, so each step has another order.
CONVOLVED = """#include <accel/model.h>

struct config {
  int n_classes;
};

tensor model(scope s, struct config c, tensor features, tensor labels) {
  tensor images = reshape(linear(at(s, "in"), features, 48), dim(features, 0), 3, 4, 4);
  tensor seen = reshape(conv2d_no_bias(at(s, "convolution"), images, 3, 3, 1, 0), dim(features, 0), -1);
  return cross_entropy(linear(at(s, "out"), seen, c.n_classes), labels);
}
"""


class Resumed(unittest.TestCase):
    """From its first checkpoint a run of two ranks ends with the same bits, where the job is deterministic. Else cuDNN may
    add up in another order, which docs/training.md says."""

    def differing(self, trainer, project):
        """The weights whose bits are others after the resume."""
        trainer.run()
        straight = trainer.weights()
        (trainer.folder / "run").rename(trainer.folder / project)
        trainer.run("--resume", f"{project}/checkpoints/checkpoint_0")
        resumed = trainer.weights()
        for name, values in straight.items():
            np.testing.assert_allclose(resumed[name], values, rtol=1e-5, atol=1e-6, err_msg=name)
        shutil.rmtree(trainer.folder / "run")
        return [name for name, values in straight.items() if (values.view(np.uint32) != resumed[name].view(np.uint32)).any()]

    def test_convolutions(self):
        trainer = HostTrainer({"model": {"source": "convolved.c", "config": {"n_classes": 10}}, "data": ROWS,
                               "checkpoint": {"every": 1}, "optimizer": {"name": "adamw", "lr": 1e-3}, "devices": {"per_node": 2},
                               "training": {"steps": 4, "seed": 3, "deterministic": True}}, PARTS)
        (trainer.folder / "convolved.c").write_text(CONVOLVED)
        write_data(trainer.folder, ROWS["features"])
        trainer.build()
        self.assertEqual(self.differing(trainer, "steady"), [])
        text = (trainer.folder / "trainer.c").read_text()
        self.assertIn("    .deterministic = true,\n", text)
        trainer.rebuild(text.replace("    .deterministic = true,\n", "    .deterministic = false,\n"))
        self.assertNotEqual(self.differing(trainer, "varying"), [], "the stand-ins' engines do not vary: the case above shows nothing")


class Order(unittest.TestCase):
    parts, device = None, HostTrainer

    def ran(self, trainer):
        write_data(trainer.folder, trainer.job["data"].get("features", 1))
        trainer.build()
        names = ("loss", "lr", "grad_norm", "eval_loss")
        return [[line[name] for name in names if name in line] for line in trainer.run()], trainer.weights()

    def check(self, model, config, data, divisions):
        wanted = self.ran(Trainer(json.loads(json.dumps(ordered(model, config, data, 1, {})))))[0]
        found = {name: self.ran(self.device(json.loads(json.dumps(ordered(model, config, data, *division))), self.parts, watched=True))
                 for name, division in divisions.items()}
        lines, weights = found["one"]
        for line, other in zip(lines, wanted, strict=True):
            np.testing.assert_allclose(line, other, rtol=2e-5)
        for name, (others, values) in found.items():
            self.assertEqual(others, lines, name)
            for key, value in values.items():
                np.testing.assert_array_equal(value.view(np.uint32), weights[key].view(np.uint32), f"{name}: {key}")

    def test_table(self):
        self.check(*MODELS["table"])

    def test_a_wait_that_is_missing(self):
        """Sums of a layer continue while the backward does, until their memory is needed."""
        model, config, data, _ = MODELS["text"]
        trainer = self.device(ordered(model, config, data, 4, {"dp_shard": 2, "zero_stage": 2}), self.parts, watched=True)
        self.ran(trainer)
        trainer.rebuild(without((trainer.folder / "trainer.c").read_text(), "accel_wait_reductions"))
        with self.assertRaisesRegex(AssertionError, "without waiting for nccl"):
            trainer.run("--project-dir", "other")

    @unittest.skipUnless(ALL, "ninja soak")
    def test_text(self):
        self.check(*MODELS["text"])


if __name__ == "__main__":
    PARTS = Comparison.parts = Order.parts = objects()
    unittest.main(argv=sys.argv[:1], defaultTest=[word for word in sys.argv[1:] if not word.startswith("-")] or None)
