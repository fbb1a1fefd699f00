"""A program is as long for many layers as for few: tables have the rows of layers that are alike once. A script prints the
lines of examples with 12 and 24 layers: python test_lines.py table [MODEL ...]."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from harness import GENERATOR, TREE
from rotation import rotating

JOBS = TREE / "examples" / "jobs"
LAYERS = {"gpt2": ("n_layer",), "t5": ("num_layers", "num_decoder_layers"), "gcn": ("num_layers",), "table": ("n_layer",)}
LAYERS |= dict.fromkeys(("llama", "llama_dpo", "bert", "bert_classifier", "bert_tagger", "bert_questions", "vit", "mamba", "mixtral", "qwen_moe", "qwen3", "gemma", "gpt_neox", "mistral"),
                        ("num_hidden_layers",))
CUDA = ("devices.kind=cuda",)
# Larger numbers break lines, and a table repeats rows by powers of two. Ranks that hold a layer at a time have tables with a number
# for each layer, several in each of t5's two loops. A norm over more elements goes by chunks.
MOST = {"t5": 18, "table": 8}


def adamw(*more):
    return ("optimizer={name: adamw, lr: 1e-3}", *more)


def ranks(*more):
    return adamw("devices.per_node=2", *more)


VARIANTS = {
    "plain": adamw(),
    "norms": adamw("tracking.grad_norms=per_layer"),
    "8bit": ("optimizer={name: adamw, lr: 1e-3, state_dtype: 8bit}",),
    **{name: (f"optimizer={{name: {name}, lr: 1e-3}}",) for name in ("muon", "adafactor", "lamb", "lomo", "adalomo")},
    "ranks": ranks(),
    "tree": ranks("parallelism.reproducible=topology"),
    **{f"zero {stage}": ranks(f"parallelism.zero_stage={stage}") for stage in (1, 2, 3)},
    "power_sgd": ranks("parallelism.ddp.comm_hook=power_sgd"),
}


def lines(model, layers, settings):
    """Of the program's files together; None where the job is refused."""
    settings = (*settings, *(f"model.config.{key}={layers}" for key in LAYERS[model]))
    with tempfile.TemporaryDirectory() as folder:
        flags = [flag for setting in settings for flag in ("--set", setting)]
        command = [GENERATOR, f"{model}.yaml", *flags, "-o", f"{folder}/trainer.c"]
        if subprocess.run(command, cwd=JOBS, capture_output=True, check=False).returncode != 0:
            return None
        return sum(len(file.read_text().splitlines()) for file in pathlib.Path(folder).glob("trainer.c*") if file.suffix in (".c", ".cu"))


class Lines(unittest.TestCase):
    def check(self, model, device):
        for name, settings in VARIANTS.items():
            with self.subTest(model=model, variant=name):
                few, many = (lines(model, layers, settings + device) for layers in (12, 24))
                self.assertIsNotNone(few)
                self.assertLess(abs(many - few), MOST.get(model, 6))

    def test_gpt2(self):
        self.check("gpt2", ())

    def test_gpt2_on_cuda(self):
        self.check("gpt2", CUDA)

    def test_llama(self):
        self.check("llama", ())

    def test_llama_on_cuda(self):
        self.check("llama", CUDA)

    def test_t5(self):
        self.check("t5", ())

    def test_t5_on_cuda(self):
        self.check("t5", CUDA)

    def test_others(self):
        for model in sorted(set(LAYERS) - {"gpt2", "llama", "t5"}):
            for device in ((), CUDA):
                with self.subTest(model=model, device=device):
                    # In one micro-batch, a loop's first iterations may stand apart (docs/memory.md).
                    few, many = (lines(model, layers, ("accumulation.num_steps=2", *device)) for layers in (12, 24))
                    self.assertLess(abs(many - few), MOST.get(model, 6))


def table(models):
    for model in models or LAYERS:
        for device, setting in (("cpu", ()), ("cuda", CUDA)):
            for name, settings in VARIANTS.items():
                few, many = (lines(model, layers, settings + setting) for layers in (12, 24))
                print(f"{model:6}{device:6}{name:12}" + (f"{few:6}{many:6}" if few else "   refused"), flush=True)


load_tests = rotating(2)


if __name__ == "__main__":
    if sys.argv[1:2] == ["table"]:
        table(sys.argv[2:])
    else:
        unittest.main()
