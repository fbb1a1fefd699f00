"""A loop over layers stays a loop, whether its body is one call or is written out. A loop of one iteration is none."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
from harness import GENERATOR, MODELS, TREE, Trainer, save_file
from rotation import rotating
from torch_gpt import random_weights

CONFIG = {"n_layer": 5, "n_head": 2, "n_embd": 32, "vocab_size": 256, "block_size": 16}
OWN = TREE / "tests" / "program" / "models"


JOBS = TREE / "examples" / "jobs"
# A loop over one element; not those over a thread's registers on a GPU, which the compiler unrolls.
ONCE = re.compile(r"(?<!#pragma unroll\n)^ *for \(\w+ (\w+) = 0; \1 < 1; .*", re.M)


def run(source, config, weights=None, **more):
    trainer = Trainer({
        "model": {"source": str(source), "config": dict(config)},
        "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3, "sequence_length": 16},
        "training": {"steps": 5},
        "accumulation": {"num_steps": 2},  # in one, a loop's first iterations may stand apart (docs/memory.md)
        **more,
    })
    (trainer.folder / "corpus.txt").write_bytes(bytes(np.random.default_rng(1).integers(32, 127, 4000).astype(np.uint8)))
    if weights is not None:
        save_file(weights, trainer.folder / "start.safetensors")
        trainer.job["model"]["weights"] = "start.safetensors"
        trainer.write()
    text = trainer.generate()
    trainer.build()
    return text, [row["loss"] for row in trainer.run()]


class Loops(unittest.TestCase):
    def test_body_written_out(self):
        weights = random_weights(CONFIG, "gpt2", seed=5)
        called, expected = run(MODELS / "gpt2.c", CONFIG, weights)
        written, losses = run(OWN / "flat_gpt2.c", CONFIG, weights)
        self.assertEqual(losses, expected, "the same model, the same numbers")
        for text in (called, written):
            self.assertIn("for (int i = 0; i < 5; i++)", text, "forward over layers")
            self.assertIn("for (int i = 4; i >= 0; i--)", text, "backward over layers")
        self.assertLess(len(written.splitlines()), 1.1 * len(called.splitlines()))

    def test_loop_in_loop(self):
        config = {"stages": 2, "depth": 2, "width": 12}
        nested, losses = run(OWN / "nested_loops.c", config)
        _, expected = run(OWN / "no_loops.c", config)
        self.assertEqual(losses, expected, "fresh weights and all steps are the same")
        self.assertEqual(nested.count("for (int i = 0; i < 2; i++)"), 2, "forward")
        self.assertEqual(nested.count("for (int i = 1; i >= 0; i--)"), 2, "backward")

    def test_input_of_all_iterations(self):
        source = OWN / "shared_input.c"
        _, expected = run(source, {"looped": False})
        kept, losses = run(source, {"looped": True})
        self.assertEqual(losses, expected, "the sum over iterations has the order of the layers written out")
        self.assertEqual(kept.count("for (int i = 3; i >= 0; i--)"), 1, "backward")
        for checkpointing in ({"activation_checkpointing": "all"}, {"activation_checkpointing": "every", "checkpoint_every": 3}):
            with self.subTest(**checkpointing):
                _, losses = run(source, {"looped": True}, memory=checkpointing)
                np.testing.assert_allclose(losses, expected, rtol=1e-6)
        _, wide = run(source, {"looped": False}, precision={"mixed_precision": "bf16"})
        _, losses = run(source, {"looped": True}, precision={"mixed_precision": "bf16"})
        np.testing.assert_allclose(losses, wide, rtol=2e-4)

    def test_groups_that_give_less_at_the_end(self):
        """Sums of a router go through all layers, and nothing takes what the last group makes of them."""
        config = {"num_hidden_layers": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "hidden_size": 16, "head_dim": 8, "vocab_size": 256,
                  "moe_intermediate_size": 8, "num_experts": 4, "num_experts_per_tok": 2}
        _, expected = run(MODELS / "qwen_moe.c", config)
        _, losses = run(MODELS / "qwen_moe.c", config, memory={"activation_checkpointing": "every", "checkpoint_every": 3})
        self.assertEqual(losses, expected)

    def test_loop_over_some_layers(self):
        looped, losses = run(OWN / "first_differs.c", {"looped": True})
        _, expected = run(OWN / "first_differs.c", {"looped": False})
        self.assertEqual(losses, expected, "fresh weights and all steps are the same")
        self.assertIn("&weights->layer_from_1[i]", looped)

    def test_first_layer_of_a_constant(self):
        layers, rng = {f"layer.{i}.fc": 8 for i in range(4)} | {"out": 256}, np.random.default_rng(4)
        weights = {f"{name}.weight": rng.standard_normal((n, 8)).astype(np.float32) for name, n in layers.items()}
        weights |= {f"{name}.bias": np.zeros(n, np.float32) for name, n in layers.items()}
        looped, losses = run(OWN / "constant_start.c", {"looped": True}, weights)
        _, expected = run(OWN / "constant_start.c", {"looped": False}, weights)
        self.assertEqual(losses, expected)
        for loop in ("for (int i = 0; i < 3; i++)", "for (int i = 2; i >= 0; i--)"):
            self.assertIn(loop, looped, "over the layers whose input has a gradient")

    def test_loop_over_layers_in_turn(self):
        job = {
            "model": {"source": str(OWN / "in_turn.c")},
            "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3, "sequence_length": 16},
            "training": {"steps": 5},
        }
        refused = subprocess.run([GENERATOR, "plan", Trainer(job).path], capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r"in_turn.c:14:38: error: 'even' is called in a loop with scopes 'layer.0' and 'layer.2'")

    def test_text_is_as_long_for_more_layers(self):
        def lines(**more):
            trainer = Trainer({
                "model": {"source": str(MODELS / "gpt2.c"), "config": {**CONFIG, "n_layer": more.pop("layers")}},
                "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3, "sequence_length": 16},
                "training": {"steps": 5},
                **more,
            })
            return len(trainer.generate().splitlines())

        for more in ({}, {"tracking": {"grad_norms": "per_layer"}}, {"precision": {"mixed_precision": "bf16"}}):
            with self.subTest(**more):
                added = lines(layers=48, **more) - lines(layers=12, **more)
                self.assertLess(abs(added), 4, "larger numbers may break lines elsewhere")

    def test_scopes_with_more_than_a_function_touches(self):
        layers = {"e": (256, 8), "h": (256, 8), "two.more": (8, 8), "two.more.deep.i": (8, 8)}
        for position in ("one.", "two.", "", "l.0.", "l.1.", "l.2."):
            layers |= {position + "b": (8, 8), position + "deep.i": (8, 8)}
        rng = np.random.default_rng(3)
        weights = {f"{name}.weight": rng.standard_normal(shape).astype(np.float32) for name, shape in layers.items()}
        weights |= {f"{name}.bias": np.zeros(shape[0], np.float32) for name, shape in layers.items() if name != "e"}
        weights["gain"] = np.ones(8, np.float32)
        text, losses = run(OWN / "shared_scopes.c", {}, weights)
        _, expected = run(OWN / "shared_scopes_inline.c", {}, weights)
        np.testing.assert_allclose(losses, expected, rtol=1e-6)
        self.assertEqual(text.count(" helper_other_forward("), 2, "defined for the scope that holds more, and called there")

    def test_no_loop_of_one_iteration(self):
        for loop in ("for (size_t c = 0; c < 1; c++) {", "  for (size_t first = 0; first < 1; first += 1)"):
            self.assertRegex(loop, ONCE)
        for loop in ("for (int i = 0; i < 12; i++)", "#pragma unroll\n  for (int n = 0; n < 1; n++)"):
            self.assertNotRegex(loop, ONCE)
        jobs = sorted(JOBS.glob("*.yaml"))
        with tempfile.TemporaryDirectory() as folder:
            for job in jobs:
                for kind in ("train", "evaluate", "generate"):
                    for device in ("cpu", "cuda"):
                        command = [GENERATOR, job.name, "--program", kind, "--set", f"devices.kind={device}", "-o", f"{folder}/{job.stem}.{kind}.{device}.c"]
                        code = subprocess.run(command, cwd=JOBS, capture_output=True, check=False).returncode
                        refused = kind != "train" or (device == "cuda" and "quantize:" in job.read_text())  # not every model is one of text
                        self.assertIn(code, (0, 2) if refused else (0,), job)
            programs = [path for path in pathlib.Path(folder).iterdir() if path.suffix in (".c", ".cu")]
            self.assertGreater(len(programs), 2 * len(jobs))
            for program in programs:
                with self.subTest(program=program.name):
                    self.assertEqual([match[0].strip() for match in ONCE.finditer(program.read_text())], [])


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
