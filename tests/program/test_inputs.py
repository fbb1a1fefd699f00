"""Models that name some of the data's tensors alone: they learn what the same model learns that names all of them."""

import shutil
import subprocess
import unittest

from harness import FAST, Trainer
from matrix import Case

AUTOENCODER = """#include <accel/model.h>
tensor model(scope s, %s) {
  tensor x = relu(linear(at(s, "in"), features, 3));
  return mse_loss(linear(at(s, "out"), x, dim(features, 1)), features);
}
"""
TABLE = """#include <accel/model.h>
tensor model(scope s, %s) {
  return cross_entropy(linear(at(s, "out"), embedding(at(s, "in"), labels, 3, 4), 3), labels);
}
"""
BYTES = """#include <accel/model.h>
tensor model(scope s, %s) {
  tensor x = embedding(at(s, "in"), TENSOR, 256, 4);
  return mse_loss(tanh_of(linear(at(s, "out"), x, 4)), scale(x, 0.5));
}
"""
ROWS, WINDOWS = "tensor features, tensor labels", "tensor tokens, tensor targets"
MASKED = {"masking": {"mask_token": 3, "probability": 0.4}}
MODELS = {
    "features": (AUTOENCODER, ROWS, {}), "labels": (TABLE, ROWS, {}),
    "tokens": (BYTES, WINDOWS, {}), "targets": (BYTES, WINDOWS, {}),
    "tokens masked": (BYTES, WINDOWS, MASKED),
}


class Inputs(unittest.TestCase):
    def train(self, model, tensors, data):
        """The losses and weights of a training, and the text of the program for evaluation, which compiles, too."""
        is_table = "features" in tensors or "labels" in tensors
        more = {"features": 5} if is_table else {"sequence_length": 5}
        case = Case("inputs", "mlp_table" if is_table else "gpt2", {}, data={**more, **data},
                    training={"steps": 4, "eval_interval": 2, "eval_iters": "all"}, optimizer={"name": "sgd", "lr": 0.1})
        case.job["model"] = {"source": "model.c"}
        trainer = Trainer(case.job)
        self.addCleanup(shutil.rmtree, trainer.folder)
        case.write_data(trainer.folder)
        (trainer.folder / "model.c").write_text(model % tensors)
        trainer.build(cflags=FAST)
        rows = [(row["loss"], row.get("eval_loss")) for row in trainer.run()]
        trainer.command("build", trainer.path, "-o", "evaluate", "--program", "evaluate", CFLAGS=FAST)
        return rows, {name: value.tobytes() for name, value in trainer.weights().items()}

    def test_one_alone(self):
        for name, (model, both, data) in MODELS.items():
            with self.subTest(name):
                model = model.replace("TENSOR", name.split()[0])
                alone = self.train(model, f"tensor {name.split()[0]}", data)
                self.assertEqual(alone, self.train(model, both, data))
                self.assertNotEqual(alone[0][0], alone[0][-1])


NEXT = """#include <accel/model.h>
tensor model(scope s, tensor tokens, tensor targets) {
  return cross_entropy(linear(at(s, "out"), embedding(at(s, "in"), tokens, 257, 4), 257), targets);
}
"""


class Targets(unittest.TestCase):
    def test_none_that_counts(self):
        """A mean over no targets is reported as such, and a step whose numbers grew out of their range as what it is."""
        case = Case("inputs", "gpt2", {}, data={"sequence_length": 5, "masking": {"mask_token": 256, "probability": 1e-7}})
        case.job["model"] = {"source": "model.c"}
        trainer = Trainer(case.job)
        self.addCleanup(shutil.rmtree, trainer.folder)
        case.write_data(trainer.folder)
        (trainer.folder / "model.c").write_text(NEXT)
        trainer.build(cflags=FAST)
        ended = subprocess.run([trainer.folder / "trainer"], cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(ended.returncode, 1)
        self.assertIn("step 1: the loss is nan: a batch has no target that counts; nothing of this step is saved", ended.stderr)
        self.assertNotIn("optimizer.lr", ended.stderr)


if __name__ == "__main__":
    unittest.main()
