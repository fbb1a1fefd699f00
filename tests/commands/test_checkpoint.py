"""accel-gen checkpoint, on what a small trainer has saved."""

import json
import pathlib
import subprocess
import sys

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

    def report(self, *words, status=0):
        return json.loads(self.checkpoint(*words, "--json", status=status).split("accel-gen checkpoint: error")[0])

    def test_json(self):
        one = "runs/fake/checkpoints/checkpoint_1"
        listed = self.report("list", "runs/fake")
        self.assertEqual([entry["step"] for entry in listed["checkpoints"]], [5, 10, 15, 20])
        size = sum(path.stat().st_size for path in (self.folder / one).iterdir() if path.name != "manifest.json")
        self.assertEqual(listed["checkpoints"][1]["bytes"], size)
        self.assertEqual(self.report("verify", one), {"path": one, "step": 10, "files": 8, "bytes": size})
        files = {file["name"]: file for file in self.report("show", one)["files"]}
        self.assertEqual(files["model-00001-of-00002.safetensors"]["tensors"], [{"name": "bias", "dtype": "F32", "shape": [256]}])
        self.assertEqual(self.report("merge", one, "-o", "m.safetensors"), {"output": "m.safetensors", "tensors": 2, "files": 2})
        (self.folder / one / "job.json").write_text("{}")
        self.assertIn("job.json: 2 bytes, but", self.report("verify", one, status=1)["error"])
        (self.folder / one / "manifest.json").write_bytes(b"")
        self.assertIn("manifest.json: byte 0: not JSON: the file is empty", self.report("verify", one, status=1)["error"])
        self.assertEqual(self.report("list", "runs/fake")["whole"], 3)
        self.assertEqual(self.report("list", "none", status=1), {"checkpoints": [], "whole": 0})

    def test_diff(self):
        """Against NumPy on the same files; of one whole file against shards; of another job."""
        names = [f"runs/fake/checkpoints/checkpoint_{i}" for i in (1, 2)]
        self.assertTrue(self.report("diff", names[0], names[0])["equal"])
        report = self.report("diff", *names, status=1)
        self.assertEqual((report["equal"], report["steps"], report["files"]), (False, [10, 15], []))
        tensors = [{}, {}]
        for name, found in zip(names, tensors, strict=True):
            for path in (self.folder / name).glob("*.safetensors"):
                found.update(load_file(path))
        different = {tensor["name"]: tensor for tensor in report["tensors"]["different"]}
        for name, a in tensors[0].items():
            b = tensors[1][name]
            if a.tobytes() == b.tobytes():
                self.assertNotIn(name, different)
                continue
            self.assertEqual(different[name]["elements"], a.size)
            self.assertEqual(different[name]["different"], (a != b).sum())
            self.assertEqual(different[name]["largest"], abs(a.astype(float) - b.astype(float)).max())
        self.assertEqual(report["tensors"]["equal"], len(tensors[0]) - len(different))
        values = {(value["file"], value["key"]): (value["a"], value["b"]) for value in report["values"]}
        self.assertEqual(values["sampler.json", "index"], (40, 60))
        self.assertEqual(values["scheduler.json", "last_epoch"], (10, 15))
        text = self.checkpoint("diff", *names, status=1)
        self.assertIn("sampler.json  index: 40 -> 60\n", text)
        self.assertRegex(text, r"model  bias: \d+ of 256 elements, by [0-9.e-]+ at most\n")
        self.assertIn("different: step 10 and 15", text)

        done = self.train("--data", "corpus.txt", "--project-dir", "runs/whole", FAKE_SAVE_EVERY=10, FAKE_LR="0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.report("diff", names[0], "runs/whole/checkpoints/checkpoint_0", status=1)
        self.assertEqual((report["tensors"]["different"], report["files"]), ([], []))
        self.assertEqual(report["values"], [{"file": "job.json", "key": "optimizer.lr", "a": "3.0", "b": "0.5"}])
        done = self.train("--data", "corpus.txt", "--project-dir", "runs/later", FAKE_SAVE_EVERY=10, FAKE_GENERATOR="accel-gen 0.2.0")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.report("diff", names[0], "runs/later/checkpoints/checkpoint_0", status=1)
        self.assertEqual(report["values"], [{"file": "job.json", "key": "defaults", "a": "accel-gen 0.1.0", "b": "accel-gen 0.2.0"}])
        path = self.folder / names[0] / "model-00001-of-00002.safetensors"
        path.write_bytes(path.read_bytes()[:-1])
        self.assertIn("1-of-00002.safetensors: ", self.checkpoint("diff", *names, status=1))

    def test_merge(self):
        one = "runs/fake/checkpoints/checkpoint_1"
        self.assertIn("whole.safetensors: 2 tensors of 2 files", self.checkpoint("merge", one, "-o", "whole.safetensors"))
        whole, parts = load_file(self.folder / "whole.safetensors"), {}
        for path in (self.folder / one).glob("model-*.safetensors"):
            parts.update(load_file(path))
        self.assertEqual({name: value.tobytes() for name, value in whole.items()},
                         {name: value.tobytes() for name, value in parts.items()})

    def test_wrong_words(self):
        for words in ((), ("list",), ("lists", "a"), ("merge", "a"), ("verify", "a", "b"), ("diff", "a"),
                      ("diff", "a", "b", "c"), ("verify", "a", "-o", "b"), ("merge", "a", "--jsn")):
            self.assertIn("usage: accel-gen checkpoint list", self.checkpoint(*words, status=2))
        self.assertIn("none/manifest.json: cannot be opened", self.checkpoint("verify", "none", status=1))


if __name__ == "__main__":
    support.main()
