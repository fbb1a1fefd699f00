"""What CUDA programs compute: steps of small models beside the programs for the processor, from the same weights and
batches, in float32. The kernels run as C++ on the processor (tests/cuda/host), so this is said of their arithmetic and
their barriers, and of the host program; nothing of a GPU, and nothing of cuBLASLt and cuDNN."""

import json
import unittest

import numpy as np
from host import HostTrainer, Trainer, objects

TREE = __import__("host").TREE
MODELS = TREE / "examples" / "models"
PARTS = objects()
TEXT = {"data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3}}


def job(model, config, **groups):
    found = {"model": {"source": str(MODELS / f"{model}.c"), "config": config}, "training": {"steps": 4, "seed": 3},
             **json.loads(json.dumps(TEXT))}
    for group, keys in groups.items():
        found[group] = {**found.get(group, {}), **keys}
    return found


GPT = {"n_layer": 2, "n_head": 3, "n_embd": 24, "vocab_size": 256, "block_size": 9}


class Training(unittest.TestCase):
    def both(self, job, weights=1e-5):
        """The metrics of both, which are alike, and the weights too."""
        trainers = [Trainer(json.loads(json.dumps(job))), HostTrainer(json.loads(json.dumps(job)), PARTS)]
        rows = []
        for trainer in trainers:
            (trainer.folder / "corpus.txt").write_bytes(
                bytes(np.random.default_rng(1).integers(97, 123, 3000).astype(np.uint8)))
            trainer.build()
            rows.append(trainer.run())
        expected, found = rows
        self.assertEqual(len(expected), len(found))
        for one, other in zip(expected, found):
            np.testing.assert_allclose([other[key] for key in ("loss", "lr", "grad_norm")],
                                       [one[key] for key in ("loss", "lr", "grad_norm")], rtol=3e-6)
        left, right = trainers[0].weights(), trainers[1].weights()
        self.assertEqual(left.keys(), right.keys())
        for name in left:
            np.testing.assert_allclose(right[name], left[name], rtol=0, atol=weights, err_msg=name)
        return found

    def test_gpt(self):
        """Accumulated, clipped, with groups of parameters; a short last step."""
        self.both(job("gpt2", GPT, accumulation={"num_steps": 3}, optimizer={
            "name": "adamw", "lr": 1e-3, "weight_decay": 0.1, "clip_grad_norm": 0.5,
            "param_groups": [{"match": "*.bias", "weight_decay": 0}]}))

    def test_no_bias(self):
        """One micro-batch a step, another rule, a schedule."""
        self.both(job("nanogpt", {**GPT, "bias": False}, optimizer={"name": "sgd", "lr": 0.1, "momentum": 0.9},
                      schedule={"name": "cosine", "warmup_steps": 2, "min_lr": 0.01}))


if __name__ == "__main__":
    unittest.main()
