"""accel-gen model check: the parameters of a model and its work against PyTorch's module."""

import json
import pathlib
import subprocess
import unittest

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import GPT2Config, GPT2LMHeadModel

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
MODELS = TREE / "examples" / "models"


def run(*words):
    return subprocess.run([GENERATOR, "model", *map(str, words)], capture_output=True, text=True)


class Model(unittest.TestCase):
    def check(self, source, config, *flags):
        words = ["check", MODELS / source, "--config", ",".join(f"{key}={value}" for key, value in config.items()), *flags]
        result = run(*words, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout), run(*words).stdout

    def same_parameters(self, report, text, module):
        theirs = {name: list(p.shape) for name, p in module.named_parameters()}
        ours = {p["name"]: p["shape"] for p in report["parameters"]}
        self.assertEqual(ours, theirs)
        self.assertEqual(report["total"], sum(p.numel() for p in module.parameters()))
        for name, shape in theirs.items():
            self.assertRegex(text, rf"(?m)^{name} +{''.join(f'.{n}.' for n in shape)} +float32 ")

    def test_columns_not_known(self):
        result = run("check", MODELS / "mlp_table.c", "--config", "n_layer=2,width=7,n_classes=3")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"mlp_table\.c: error: the number of columns of 'features' is not known\n +help: --set data\.features=N")

    def test_table(self):
        layers = {"hidden": torch.nn.ModuleList([torch.nn.Linear(5, 7), torch.nn.Linear(7, 7)]), "output": torch.nn.Linear(7, 3)}
        module = torch.nn.ModuleDict(layers)
        report, text = self.check("mlp_table.c", {"n_layer": 2, "width": 7, "n_classes": 3}, "--set", "data.features=5")
        self.same_parameters(report, text, module)
        with FlopCounterMode(display=False) as counter:
            module["output"](module["hidden"][1](module["hidden"][0](torch.zeros(1, 5))))
        self.assertEqual(report["matmul_flops_per_unit"], counter.get_total_flops())
        self.assertEqual(sum(f["flops"] for f in report["functions"]), report["flops_per_unit"])
        self.assertEqual([i["shape"] for i in report["inputs"]], [[1, 5], [1]])

    def test_gpt2(self):
        config = {"n_layer": 2, "n_head": 2, "n_embd": 12, "vocab_size": 300, "block_size": 6}
        report, text = self.check("gpt2.c", config)
        theirs = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=12, vocab_size=300, n_positions=6,
                                            attn_implementation="eager"))
        self.same_parameters(report, text, theirs.transformer)
        with FlopCounterMode(display=False) as counter:
            theirs(torch.zeros(1, 6, dtype=torch.long))
        seen_later = 2 * 2 * 2 * 6 * 6 * 12 // 2  # of two matmuls in each layer the half that a causal mask hides
        self.assertEqual(round(6 * report["matmul_flops_per_unit"]), counter.get_total_flops() - seen_later)

    def test_errors(self):
        for words, expected in ((["check", MODELS / "gpt2.c", "--config", "n_layer=two"], "n_layer"),
                                (["check", MODELS / "gpt2.c", "--config", "n_layer"], "'n_layer' is not a KEY=VALUE"),
                                (["check", "nothing.c"], "nothing.c: error: cannot read it: No such"),
                                (["look", MODELS / "gpt2.c"], "the word after model is check, not look")):
            result = run(*words)
            self.assertEqual(result.returncode, 2)
            self.assertIn(expected, result.stderr)


if __name__ == "__main__":
    unittest.main()
