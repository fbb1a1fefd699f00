"""accel-gen checkpoint, on what a small trainer has saved."""

import pathlib
import subprocess
import sys
import unittest

from safetensors.numpy import load_file

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "runtime"))

import support  # noqa: E402


class Checkpoint(support.Folder):
    def setUp(self):
        super().setUp()
        self.write_corpus()
        done = self.train("--data", "corpus.txt", FAKE_SAVE_EVERY=5, FAKE_SHARD_BYTES=1024)
        self.assertEqual(done.returncode, 0, done.stderr)

    def checkpoint(self, *words, status=0):
        done = subprocess.run([TREE / "build" / "accel-gen", "checkpoint", *words], cwd=self.folder, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr

    def test_list(self):
        lines = self.checkpoint("list", "runs/fake").splitlines()
        self.assertEqual([line.split()[:3] for line in lines],
                         [[f"runs/fake/checkpoints/checkpoint_{i}", "step", str(5 * i + 5)] for i in range(4)])
        self.assertEqual(len(self.checkpoint("list", "runs/fake/checkpoints").splitlines()), 4)
        (self.folder / "runs/fake/checkpoints/checkpoint_2/job.json").unlink()
        self.assertIn("checkpoint_2  damaged: ", self.checkpoint("list", "runs/fake"))
        self.assertIn("no whole checkpoint", self.checkpoint("list", "runs", status=1))

    def test_verify_and_show(self):
        one = "runs/fake/checkpoints/checkpoint_1"
        self.assertIn(f"{one}: step 10, 8 files of ", self.checkpoint("verify", one))
        shown = self.checkpoint("show", one)
        self.assertRegex(shown, r"  bias +F32 +\[256\]\n")
        self.assertRegex(shown, r"  state.bias.momentum_buffer +F32 +\[256\]\n")
        path = self.folder / one / "optimizer.safetensors"
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        self.assertIn("optimizer.safetensors: its bytes have changed", self.checkpoint("verify", one, status=1))

    def test_merge(self):
        one = "runs/fake/checkpoints/checkpoint_1"
        self.assertIn("whole.safetensors: 2 tensors of 2 files", self.checkpoint("merge", one, "-o", "whole.safetensors"))
        whole, parts = load_file(self.folder / "whole.safetensors"), {}
        for path in (self.folder / one).glob("model-*.safetensors"):
            parts.update(load_file(path))
        self.assertEqual({name: value.tobytes() for name, value in whole.items()},
                         {name: value.tobytes() for name, value in parts.items()})

    def test_wrong_words(self):
        for words in ((), ("list",), ("lists", "a"), ("merge", "a"), ("verify", "a", "b")):
            self.assertIn("usage: accel-gen checkpoint list", self.checkpoint(*words, status=2))
        self.assertIn("none/manifest.json: cannot be opened", self.checkpoint("verify", "none", status=1))


if __name__ == "__main__":
    support.main()
