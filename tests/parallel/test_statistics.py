"""Running statistics follow each rank's own batches; those of rank 0 are what several ranks evaluate and save, as with
PyTorch's DistributedDataParallel and broadcast_buffers."""

import json
import subprocess
import unittest

from ranks import GENERATOR, QUICK, Ranks, job_of

CONFIG = {"layer_type": "BASIC", "image_size": 4, "num_channels": 1, "num_labels": 3, "embedding_size": 4, "stages": 1,
          "hidden_sizes.0": 4, "depths.0": 1}


class Statistics(unittest.TestCase):
    def test_evaluation_is_of_what_is_saved(self):
        self.check()

    def test_states_divided(self):
        self.check(parallelism={"zero_stage": 1})

    def test_averages(self):
        self.check("ema", {"ema": {"decay": 0.5, "evaluate": True}})

    def check(self, saved="model", training=None, **groups):
        job = job_of(2, 4, 6, model="resnet", config=CONFIG, training={"eval_interval": 3, "eval_iters": "all", **(training or {})},
                     **groups)
        job["data"] = {"train": {"path": "rows.csv", "format": "csv"}, "features": 16, "batch_size": 4, "eval_batch_size": 7}
        job["optimizer"] = {"name": "sgd", "lr": 0.05}
        trainer = Ranks(2, job)
        rows = ("".join(f"{(7 * i * j + i) % 11 / 5}," for j in range(16)) + f"{i % 3}\n" for i in range(90))
        (trainer.folder / "rows.csv").write_text("".join(rows))
        trainer.build()
        loss = trainer.run()[-1]["eval_loss"]
        program = trainer.folder / "evaluate"
        trainer.job["devices"] = {}
        trainer.write()
        subprocess.run([GENERATOR, "build", "--program", "evaluate", trainer.path, "-o", program], check=True,
                       env=QUICK)
        result = subprocess.run([program, "--format", "json", "--weights", trainer.folder / "run" / f"{saved}.safetensors"],
                                cwd=trainer.folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(abs(json.loads(result.stdout)["loss"] / loss - 1), 1e-6)


if __name__ == "__main__":
    unittest.main()
