"""Functions of a job's own in programs for GPUs, over the stand-ins: called when those for the processor call them, with
the same numbers and the weights of the step at hand."""

import json
import shutil
import subprocess
import sys
import unittest

import numpy as np
from host import TREE, HostTrainer, objects

sys.path.insert(0, str(TREE / "tests" / "program"))

import test_hooks as on_processor  # noqa: E402

sys.path.insert(0, str(TREE / "tests" / "reference"))
sys.modules.pop("test_hooks")

import test_hooks as moments  # noqa: E402


class Hooks(unittest.TestCase):
    parts, device = None, HostTrainer

    def lines(self, trainer, device, stop_at=6, *flags):
        result = subprocess.run([trainer.folder / "trainer", *flags], cwd=trainer.folder, capture_output=True, text=True,
                                env={"STOP_AT": str(stop_at), "OMP_NUM_THREADS": "2", "DEVICE": device, **self.settings(trainer)})
        self.assertEqual(result.returncode, 0, result.stderr)
        words = [line.split() for line in result.stdout.splitlines()]
        return [line for line in words if line and "on_" + line[0] in on_processor.ALL and len(line) == 11]

    def settings(self, trainer):
        """More of the environment."""
        return {}

    def test_calls(self):
        expected = on_processor.prepare(self)
        found = self.device(json.loads(json.dumps(expected.job)), self.parts, watched=True)
        for name in ("hooks.c", "rows.csv"):
            (found.folder / name).write_text((expected.folder / name).read_text())
        expected.build()
        found.build()
        ours, theirs = self.lines(found, "cuda"), self.lines(expected, "cpu")
        self.assertEqual([line[:3] for line in ours], [line[:3] for line in theirs])
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(np.array(one[1:], float), np.array(other[1:], float), rtol=2e-5, err_msg=one[0])
        self.assertAlmostEqual(float(ours[-1][9]), found.weights()["output.bias"][-1], places=7)
        self.resume(found)

    def test_moments(self):
        """Epochs, a save that a hook asks for, and batches that one changes, as on the processor."""
        expected = moments.Hooks().rows(12, 5, drop_last=False)
        found = self.device(json.loads(json.dumps(expected.job)), self.parts)
        for name in ("hooks.c", "rows.csv"):
            (found.folder / name).write_text((expected.trainer.folder / name).read_text())
        shutil.copy(expected.trainer.folder / "start.safetensors", found.folder)
        expected.run()
        found.build()
        found.run()
        lines = [[line for line in trainer.output.splitlines() if line.startswith(("begin", "step ", "epoch"))] for trainer in (found, expected.trainer)]
        self.assertEqual(*lines)
        self.assertTrue((found.folder / "run" / "step_4" / "manifest.json").exists())
        weights = expected.trainer.weights()
        for name, value in found.weights().items():
            np.testing.assert_allclose(value, weights[name], rtol=2e-5, err_msg=name)

    def resume(self, trainer):
        """A run that a hook has ended after step 6 takes the seventh when it is resumed, as one that it did not end."""
        self.assertEqual([line[:2] for line in self.lines(trainer, "cuda", -1, "--resume", "auto")][:2], [["start", "6"], ["step", "7"]])
        weights = trainer.weights()
        shutil.rmtree(trainer.folder / "run")
        self.lines(trainer, "cuda", -1)
        for name, value in trainer.weights().items():
            self.assertEqual(value.tobytes(), weights[name].tobytes(), name)


if __name__ == "__main__":
    Hooks.parts = objects()
    unittest.main(argv=sys.argv[:1])
