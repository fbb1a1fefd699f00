"""tests/gpu/run.sh without a GPU: every stage of it, over programs that run on the stand-ins, with an nvidia-smi and a
compute-sanitizer that answer as they would. What is looked at is the script: that the most telling stages come first,
that one which fails or does not end leaves the others alone, that limits hold, and that the report says what was left out.
And tests/gpu/peer.py, on the processor."""
# long

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "cuda"))

from host import HostTrainer, objects  # noqa: E402
from test_training import MODELS  # noqa: E402

GPU = TREE / "tests" / "gpu"
SMI = """#!/bin/sh
case $* in
-L) echo "GPU 0: none" ;;
*compute_cap*) echo "a stand-in of H100 80GB, 9.0, 81559 MiB, 580.1" ;;
*) echo 1234 ;;
esac
"""
# The program runs, and says nothing wrong.
SANITIZER = """#!/bin/sh
while [ "$1" != --error-exitcode ]; do shift; done
shift 2
"$@" && echo "========= ERROR SUMMARY: 0 errors"
"""
# A Python whose PyTorch gives the processor's losses.
PYTHON = """#!/bin/sh
case $* in
-c*) echo 2.0 ;;
*curve*) cat "references/$3/metrics.jsonl" ;;
*matmul*) echo "700 TFLOP/s in bf16" ;;
*) echo "1000 tokens/s, first step after 1.00 s, peak 1.00 GiB" ;;
esac
"""
# Programs that are built already.
BUILD = """#!/bin/sh
cp "$(dirname "$0")/made" "$1"
"""
FORWARD = {"evaluate": ["--format", "json", "--data", "train.bin"],
           "generate": ["--temperature", "0", "--tokens", "150", "--prompt", "The"]}
JOBS = ["float32", "bf16", "steady", "resume", *FORWARD, "overflow", "gpt2-124m-b4", "gpt2-124m-b16"]


def executable(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


class Script(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = HostTrainer({
            "model": {"source": str(MODELS / "nanogpt.c"), "config": {
                "n_layer": 1, "n_head": 2, "n_embd": 8, "vocab_size": 256, "block_size": 8, "bias": True}},
            "data": {"train": {"path": "train.bin", "format": "nanogpt"}, "batch_size": 1},
            "optimizer": {"name": "adamw", "lr": 3e-4}, "training": {"steps": 12, "seed": 7},
            "checkpoint": {"every": 4}}, objects())
        (cls.made.folder / "train.bin").write_bytes(bytes([97, 0, 98, 0]) * 400)
        cls.made.build()
        cls.made.run()
        cls.forward = {}
        for kind in ("evaluate", "generate"):
            cls.forward[kind] = HostTrainer(json.loads(json.dumps(cls.made.job)), cls.made.parts, program=kind)
            cls.forward[kind].build()

    def pack(self, jobs=JOBS):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-gpu-"))
        self.addCleanup(shutil.rmtree, folder)
        shutil.copy(self.made.folder / "train.bin", folder)
        for name in ("run.sh", "report.sh", "correct.sh", "speed.sh", "peer.py"):
            shutil.copy(GPU / name, folder)
        for name in jobs:
            bundle = folder / "bundles" / name
            (bundle / "tools").mkdir(parents=True)
            shutil.copy(self.forward.get(name, self.made).folder / "trainer", bundle / "made")
            executable(bundle / "build.sh", BUILD)
            executable(bundle / "tools" / "cuda-toolkit.sh", "#!/bin/sh\necho true\n")
            (folder / "jobs").mkdir(exist_ok=True)
            (folder / "jobs" / f"{name}.yaml").write_text("")
            shutil.copytree(self.made.folder / "run", folder / "references" / name)
        for name, flags in FORWARD.items():
            words = [self.forward[name].folder / "trainer", "--weights", self.made.folder / "run" / "model.safetensors", *flags]
            said = subprocess.run(words, capture_output=True, check=True, cwd=folder).stdout
            (folder / "references" / f"{name}.said").write_bytes(said)
        executable(folder / "bin" / "nvidia-smi", SMI)
        executable(folder / "bin" / "compute-sanitizer", SANITIZER)
        executable(folder / "bin" / "python-with-torch", PYTHON)
        return folder

    def start(self, folder, **environment):
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        ended = subprocess.run(["sh", folder / "run.sh"], capture_output=True, text=True, timeout=850,
                               env={**os.environ, "PATH": path, "PYTHON": "false", **environment})
        report = json.loads((folder / "report.json").read_text())
        return ended, [(entry["part"], entry["name"], entry["result"], entry["detail"]) for entry in report["results"]]

    def test_all_stages(self):
        folder = self.pack()
        (folder / "batches.bin").touch()
        ended, results = self.start(folder, PYTHON="python-with-torch")
        self.assertEqual({name: detail for part, name, result, detail in results if result == "FAILED"},
                         {"scaler": results[[entry[1] for entry in results].index("scaler")][3]}, ended.stdout)
        positions = [(part, name) for part, name, _, _ in results]
        order = [("build", "float32"), ("correctness", "float32"), ("correctness", "bf16"), ("sanitizer", "memcheck-bf16"),
                 ("resume", "resume"), ("graphs", "float32"), ("repeat", "float32"), ("repeat", "steady"), ("build", "gpt2-124m-b16"),
                 ("benchmark", "gpt2-124m-b16"), ("benchmark", "gpt2-124m-b4"), ("tuning", "gpt2-124m-b4"), ("ranks", "zero3"),
                 ("sanitizer", "racecheck-bf16"), ("benchmark", "no-graphs")]
        found = [positions.index(position) for position in order]
        self.assertEqual(found, sorted(found), positions)
        said = {(part, name): (result, detail) for part, name, result, detail in results}
        self.assertRegex(said["tuning", "gpt2-124m-b4"][1], r"^\d+ matmuls once each: .* measured-gpt2-124m-b4.json$")
        self.assertRegex(said["benchmark", "gpt2-124m-b16"][1], r"^\d+ tokens/s, first step after .* MiB in use, arena ")
        self.assertRegex(said["evaluate", "loss"][1], "^within 0.00e[+]00 of the processor's")
        self.assertRegex(said["generate", "text"][1], r"^the likeliest is the processor's for (\d+) of \1 bytes$")
        for left_out in (("benchmark", "llmc-124m-b16"), ("ranks", "zero3")):
            self.assertEqual(said[left_out][0], "SKIPPED", left_out)
        self.assertRegex(said["pytorch", "float32"][1], r"^losses of 12 steps within 0.00e\+00 of PyTorch's on this GPU")
        for name in ("pytorch-124m-b16-default", "pytorch-124m-b16-max-autotune", "pytorch-124m-b4-default"):
            self.assertRegex(said["benchmark", name][1], r"^1000 tokens/s, .* GiB, 1234 MiB in use, MFU 0.001 of the documented 989.4 TFLOP/s, MFU 0.001 of the matmul rate, ours is .* times that")
        self.assertIn("; compiled beforehand: first step after 1.00 s", said["benchmark", "pytorch-124m-b4-default"][1])
        for line, entry in zip((line for line in ended.stdout.splitlines() if line[:1] != "/"), results, strict=False):
            self.assertTrue(line.startswith(entry[0]), line)
        with tarfile.open(folder / "report.tar.gz") as sent:
            self.assertLessEqual({"report.txt", "report.json", "measured-gpt2-124m-b4.json", "runs/bf16/metrics.jsonl", "runs/bf16.log", "bundles/bf16.log"}, set(sent.getnames()))
            text = sent.extractfile("report.txt").read().decode()
        self.assertRegex(text, r"GPU: a stand-in of H100 80GB, 9.0, 81559 MiB, 580.1\n")
        self.assertRegex(text, r"is it correct\? +\d+ ok, +1 FAILED, +\d+ SKIPPED\n")
        self.assertIn(ended.stdout.splitlines()[0], text)

    def test_what_fails_leaves_others_alone(self):
        folder = self.pack(["float32", "bf16", "steady", "gpt2-124m-b4", "resume"])
        executable(folder / "bundles" / "float32" / "made", "#!/bin/sh\necho 'error: it broke'\nexit 1\n")
        executable(folder / "bundles" / "gpt2-124m-b4" / "made", "#!/bin/sh\nexec sleep 50\n")
        executable(folder / "bundles" / "resume" / "build.sh", "#!/bin/sh\necho 'no compiler'\nexit 1\n")
        ended, results = self.start(folder, CAP="30")
        self.assertEqual(ended.returncode, 1)
        said = {(part, name): (result, detail) for part, name, result, detail in results}
        for without in (("machine", "pytorch"), ("pytorch", "bf16")):
            self.assertEqual(said[without][0], "SKIPPED", without)
        self.assertEqual(said["build", "resume"], ("FAILED", "no compiler"))
        self.assertEqual(said["correctness", "float32"], ("FAILED", "error: it broke"))
        self.assertEqual(said["benchmark", "gpt2-124m-b4"], ("FAILED", "error: it did not end in time"))
        self.assertEqual(said["correctness", "bf16"][0], "ok")
        self.assertEqual(said["repeat", "steady"][0], "ok")

    def test_time(self):
        """Nothing begins for which there is no time, 30 s for the least of these parts, and that is said."""
        ended, results = self.start(self.pack(["float32", "gpt2-124m-b4"]), LIMIT="29")
        self.assertEqual(ended.returncode, 0, ended.stdout)
        left_out = {(part, name) for part, name, result, detail in results if detail == "no time is left"}
        self.assertLessEqual({("correctness", "float32"), ("benchmark", "gpt2-124m-b4"), ("sanitizer", "memcheck-float32")}, left_out)

    def test_early_end(self):
        folder = self.pack(["float32"])
        executable(folder / "bundles" / "float32" / "made", "#!/bin/sh\nexec sleep 10\n")
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        with subprocess.Popen(["sh", folder / "run.sh"], stdout=subprocess.DEVNULL, env={**os.environ, "PATH": path, "PYTHON": "false"}) as script:
            while not (folder / "runs").is_dir():
                time.sleep(0.1)
            time.sleep(0.5)
            script.terminate()
        report = json.loads((folder / "report.json").read_text())["results"]
        self.assertEqual(report[-1], {"part": "machine", "name": "script", "result": "FAILED", "detail": "ended early with status 143"})


class Peer(unittest.TestCase):
    def peer(self, *words, **environment):
        ended = subprocess.run([sys.executable, GPU / "peer.py", *words], capture_output=True, text=True,
                               env={**os.environ, "PEER_DEVICE": "cpu", "OMP_NUM_THREADS": "1", **environment})
        self.assertEqual(ended.returncode, 0, ended.stderr)
        return ended.stdout

    def test_train(self):
        self.assertRegex(self.peer("tiny", "2", "none"), r"^\d+ tokens/s, first step after \d+\.\d\d s, peak 0\.00 GiB\n$")

    def test_matmul(self):
        self.assertRegex(self.peer("matmul"), r"^\d+ TFLOP/s in bf16\n$")


if __name__ == "__main__":
    unittest.main()
