"""What programs for XLA that write text compute, next to those for the processor from the same weights: the logits of each token within
1e-5, in bfloat16 within its rounding, and the greedy text of float32. A prompt is longer than a module's positions, and the text longer
than the window. SKIPPED without a plugin.

One of the models, or the audit, a run, as SEED says (tests/program/rotation.py).

usage: test_texts.py [NAME...], of a model; --all: every one of them (ninja soak)"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import numpy as np

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import GENERATOR  # noqa: E402
from rotation import ALL, in_turn  # noqa: E402
from test_trainers import CFLAGS, HEADS, MODELS_OF, MOST, TEXT, case, on  # noqa: E402

WINDOW, PROMPT, TOKENS = 40, 35, 12
NAMES = ("nanogpt", "llama", "gemma", "qwen3", "mistral", "gpt_neox", "lstm", "mamba", "mixtral", "qwen_moe", "bert")
SUMS = case("llama", {"width": 8, "kernel": 3, "dilation": 2, "shift": 1, "vocab_size": 256}, {**TEXT, "batch_size": 1})  # and convolutions and shifts
SUMS["model"]["source"] = str(TREE / "tests" / "models" / "sources" / "looking_back.c")
JOBS = {**{name: MODELS_OF[name] for name in NAMES}, "gpt2": MOST, "looking_back": SUMS}
PRECISIONS = {"": {}, "autocast": {"mixed_precision": "bf16"}, "throughout": {"param_dtype": "bf16"}}


def longer(job):
    """The same model over a longer window, trained plainly."""
    job = json.loads(json.dumps(job))
    config = job["model"]["config"]
    for key in ("block_size", "max_position_embeddings"):
        if key in config:
            config[key] = WINDOW
    return {**case("", config, {**job["data"], "sequence_length": WINDOW}, training={"steps": 3, "seed": 3}), "model": {**job["model"], "config": config}}


class Texts(unittest.TestCase):
    def write(self, trainer, device, *flags):
        """The text, and the logits that its tokens were chosen by."""
        trainer.command("build", "job.yaml", "--set", f"devices.kind={device}", "--program", "generate", "-o", f"generator_{device}",
                        CFLAGS=CFLAGS)
        prompt = (trainer.folder / "corpus.txt").read_text()[:PROMPT]
        said = subprocess.run([trainer.folder / f"generator_{device}", "--prompt", prompt, "--tokens", str(TOKENS), "--logits", "logits",
                               "--temperature", "0", *flags], cwd=trainer.folder, capture_output=True, check=True)
        return said.stdout, np.fromfile(trainer.folder / "logits", np.float32).reshape(TOKENS, -1)

    def compare(self, job, precision):
        trainer = on("cpu", {**longer(job), "precision": PRECISIONS[precision]} if precision else longer(job))
        trainer.build(cflags=CFLAGS)
        trainer.run()
        (text, left), (other, right) = (self.write(trainer, device) for device in ("cpu", "xla"))
        # Of bfloat16 the texts may part where two logits are near each other: the first token is after the same ones.
        rows, near = (1, 4 * 2**-8) if precision else (TOKENS, 1e-5)
        self.assertLess(np.abs(left - right)[:rows].max(), near * np.abs(left[:rows]).max())
        if not precision:
            self.assertEqual(text, other)
        return trainer

    def check(self, name):
        for precision in in_turn(PRECISIONS, len(PRECISIONS)):
            with self.subTest(name, precision=precision):
                self.compare(JOBS[name], precision)

    def check_audit(self):
        """The claims about both modules, their digests, and what a plan says of memory."""
        trainer = on("xla", longer(case("llama", {**HEADS, "num_hidden_layers": 1}, MODELS_OF["llama"]["data"])))
        said = trainer.command("plan", "job.yaml", "--program", "generate")
        self.assertRegex(said, r"memory +at least .*, cache [\d.]+")
        self.assertRegex(said, r"XLA +.* in a call of the model on cpu: arguments .*, of which [\d.]+ [KM]iB become results")
        trainer.command("job.yaml", "--program", "generate", "-o", "generator.c")
        text = (trainer.folder / "generator.c").read_text()
        said = trainer.command("audit", "generator.c")
        self.assertIn("0 broken", said)
        for claim in ("module-computes-alone", "module-static-shapes", "module-donates", "module-files", "no-runtime-between-steps"):
            self.assertRegex(said, rf"holds +{claim}")
        self.assertIn("2 of 2 modules have one", said)
        self.assertTrue((trainer.folder / "generator.step.mlir").exists())
        for old, new, why in (("kept[] = {", "kept[] = {0, ", "main takes"),
                              ("aliasing_output = 2 ", "aliasing_output = 1 ", "not that of its result")):
            self.assertIn(old, text)
            (trainer.folder / "generator.c").write_text(text.replace(old, new, 1))
            self.assertRegex(trainer.command("audit", "generator.c", status=1), rf"broken +module-donates .*{why}")


def add(name):
    setattr(Texts, f"test_{name}", lambda self: self.check_audit() if name == "audit" else self.check(name))


if __name__ == "__main__":
    os.environ.setdefault("PYTHON", sys.executable)
    small = TREE / "examples" / "jobs" / "tiny.yaml"
    found = subprocess.run([GENERATOR, "plan", small, "--set", "devices.kind=xla"], capture_output=True, text=True)
    if "no plugin" in found.stdout:
        print("SKIPPED: there is no plugin of XLA (pip install xla-cpu-pjrt)")
        sys.exit(77)
    named = [word for word in sys.argv[1:] if not word.startswith("-")]
    known = [*JOBS, "audit"]
    for name in known if ALL else named or in_turn(known, len(known)):
        add(name)
    unittest.main(argv=sys.argv[:1])
