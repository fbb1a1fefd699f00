"""accel-gen export --format stablehlo: modules of the example jobs, compiled by XLA where its plugin is, and what is refused."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build/accel-gen"
ENVIRONMENT = {**os.environ, "PYTHON": os.environ.get("PYTHON", sys.executable)}


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.output = pathlib.Path(self.folder.name) / "module.mlir"

    def tearDown(self):
        self.folder.cleanup()

    def export(self, job, *words, status=0, environment=ENVIRONMENT):
        """What the command prints; the module is at self.output."""
        done = subprocess.run([GENERATOR, "export", job, "--format", "stablehlo", "-o", self.output, *words], cwd=TREE, text=True,
                              capture_output=True, env=environment)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout + done.stderr


class Modules(Case):
    def test_signature(self):
        self.assertEqual(self.export("examples/jobs/tiny.yaml"), "")
        text = self.output.read_text()
        takes, gives = text[: text.index("\n    ) {\n")].split(") -> (")
        weights = [f"transformer.h.{layer}.{name}.weight" for layer in range(4)
                   for name in ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")]
        weights = ["transformer.wte.weight", "transformer.wpe.weight", *weights, "transformer.ln_f.weight"]
        self.assertEqual(re.findall(r"%([\w.]+): ", takes), [*weights, "tokens", "targets"])
        self.assertEqual(re.findall(r'jax.result_info = "([\w.]+)"', gives), ["loss", *weights])
        self.assertIn("%transformer.h.3.mlp.c_fc.weight: tensor<512x128xf32>", takes)

    def test_functions_and_lines(self):
        self.export("examples/jobs/tiny.yaml")
        text = self.output.read_text()
        functions = re.findall(r"func.func private @(\w+)", text)
        self.assertEqual(functions, [name + end for end in ("", "_backward") for name in ("attend", "mlp", "block", "predict", "model")])
        self.assertEqual(len(re.findall("call @block\\(", text)), 4)
        source = (TREE / "examples/models/nanogpt.c").read_text().splitlines()
        used = set(re.findall(r"loc\((#\w+)\)", text))
        lines = re.findall(r'^(#\w+) = loc\("examples/models/nanogpt.c":(\d+):\d+\)$', text, re.M)
        self.assertEqual(used, {name for name, _ in lines})
        self.assertIn("gelu", source[int(dict(lines)[re.search(r"%gelu = .* loc\((#\w+)\)", text)[1]]) - 1])
        self.assertNotIn("custom_call", text)

    def test_bytes(self):
        self.export("examples/jobs/small.yaml")
        first = self.output.read_bytes()
        self.export("examples/jobs/small.yaml")
        self.assertEqual(self.output.read_bytes(), first)
        self.export("examples/jobs/small.yaml", "--set", "data.batch_size=3")
        self.assertIn(b"%tokens: tensor<3x", self.output.read_bytes())


class Compiled(Case):
    def compiles(self, job, *words):
        said = self.export(job, *words, "--compile", status=(0 if self.plugin() else 1))
        if not self.plugin():
            self.skipTest("there is no plugin of XLA")
        self.assertRegex(said, r"^XLA compiles it for cpu: arguments [\d.]+ \w+, results [\d.]+ \w+, temporary memory [\d.]+ \w+\n$")

    def plugin(self):
        root = pathlib.Path(ENVIRONMENT["PYTHON"]).parent.parent
        return "PJRT_PLUGIN_LIBRARY_PATH" in os.environ or any(root.glob("lib/python3*/site-packages/xla_plugins/xla_cpu_pjrt/*.so"))

    def test_bfloat16(self):
        self.compiles("examples/jobs/tiny.yaml", "--set", "precision.mixed_precision=bf16", "--set", "memory.activation_checkpointing=all")
        self.assertIn("xbf16>", self.output.read_text())

    def test_float16(self):
        self.compiles("examples/jobs/tiny.yaml", "--set", "precision.mixed_precision=fp16")
        self.assertIn("%seed: tensor<f32>", self.output.read_text())

    def test_rotary(self):
        self.compiles("examples/jobs/llama.yaml", "--set", "data.batch_size=1")

    def test_names(self):
        self.compiles("examples/jobs/autoencoder.yaml")
        self.assertRegex(self.output.read_text(), r"%_\d+\.weight: tensor<")

    def test_file_name(self):
        folder = pathlib.Path(self.folder.name)
        model, job = folder / 'a "b\\ü.c', folder / "job.yaml"
        model.write_text((TREE / "examples/models/mlp_table.c").read_text())
        text = (TREE / "examples/jobs/table.yaml").read_text()
        job.write_text(re.sub("source: .*", lambda _: f"source: '{model.name}'", text))
        self.compiles(job)
        self.assertIn(r'loc("a \22b\5C\C3\BC.c":', self.output.read_text())

    def test_images(self):
        self.compiles("examples/jobs/vit.yaml", "--set", "data.batch_size=2")

    def test_random(self):
        """Buffers and the key of random numbers are in the module's interface."""
        said = self.compiles("examples/jobs/resnet.yaml", "--set", "data.batch_size=2")
        module = self.output.read_text()
        self.assertNotIn("%key", module, said)
        self.assertIn('tensor<i64> {jax.result_info = "resnet.embedder.embedder.normalization.num_batches_tracked"}', module)
        self.compiles("examples/jobs/vae.yaml", "--set", "data.batch_size=2")
        self.assertRegex(self.output.read_text(), r"%key: tensor<i64>\) -> \(\n")

    def test_no_plugin(self):
        said = self.export("examples/jobs/tiny.yaml", "--compile", status=1,
                           environment={**ENVIRONMENT, "PJRT_PLUGIN_LIBRARY_PATH": "/nonexistent.so"})
        self.assertIn("error: the plugin of XLA cannot be loaded: /nonexistent.so", said)
        self.assertTrue(self.output.exists())


class Refused(Case):
    def refuses(self, what, job, *words, status=2):
        said = self.export(job, *words, status=status)
        self.assertIn(what, said)
        self.assertFalse(self.output.exists())

    def test_operations(self):
        self.refuses("examples/jobs/../models/llama.c:49:14: error: 'quantized_matmul' cannot be written in StableHLO: it has no rule for that",
                     "examples/jobs/qlora.yaml")

    def test_ranks(self):
        self.refuses("a module of StableHLO is one process's, and the job has 2 ranks",
                     "examples/jobs/tiny.yaml", "--set", "devices.per_node=2")

    def test_options(self):
        self.refuses("--dtype is for --format gguf; a job's types are those of precision.mixed_precision", "examples/jobs/tiny.yaml",
                     "--dtype", "f16")
        self.refuses("--batch and --sequence are for --format onnx", "examples/jobs/tiny.yaml", "--batch", "3")
        done = subprocess.run([GENERATOR, "export", self.folder.name, "--format", "onnx", "-o", self.output, "--compile"], text=True,
                              capture_output=True)
        self.assertIn("--compile is for --format stablehlo", done.stderr)

    def test_inputs(self):
        job = pathlib.Path(self.folder.name) / "job.yaml"
        job.write_text((TREE / "examples/jobs/tiny.yaml").read_text().replace("../models", str(TREE / "examples/models")))
        done = subprocess.run([GENERATOR, "export", job, "--format", "stablehlo", "-o", job], text=True, capture_output=True, cwd=TREE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("n_embd", job.read_text())
        self.refuses("cannot", self.folder.name, status=2)


if __name__ == "__main__":
    unittest.main()
