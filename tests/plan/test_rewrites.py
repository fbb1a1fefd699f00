"""Each rule of gen/plan/graph/rewrites.c on a small model: what its phase removes from the graph of a program for GPUs (-) and
what it puts there instead (+). A rule without a model here fails.

usage: test_rewrites.py [--accept]   --accept writes what is found to rewrites/NAME.diff"""
# fast

import difflib
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(__file__).resolve().parents[2]
MODELS = TREE / "tests" / "plan" / "rewrites"
TABLE = TREE / "gen" / "plan" / "graph" / "rewrites.c"
RULE = re.compile(r'^\s+\{"(\w+)", (REWRITE_\w+), "(\w+)"(?:, (?:\.result = )?"(\w+)")?', re.M)
PASSES = {  # of each phase: the pass before it, and its own
    "REWRITE_LOSS_BACKWARD": ("differentiate", "fused_loss_backward"),
    "REWRITE_EPILOGUES": ("prune", "epilogues"),
    "REWRITE_SUMS": ("epilogues", "sums"),
}
JOB = """model: {{source: {model}}}
data: {{train: {{path: corpus.txt, format: bytes}}, batch_size: 2, sequence_length: 16}}
devices: {{kind: cuda}}
precision: {{mixed_precision: {mixed}}}
optimizer: {{lr: 1e-3}}
training: {{steps: 1}}
"""
ACCEPT = "--accept" in sys.argv


def dumped(folder, after):
    result = subprocess.run([TREE / "build" / "accel-gen", "plan", "job.yaml", "--dump", after], cwd=folder, capture_output=True,
                            text=True)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout.splitlines()


def changed(name, phase):
    """The lines that the phase removes and adds."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "corpus.txt").write_text("a corpus of bytes, longer than two sequences of sixteen tokens each\n" * 4)
        (folder / "job.yaml").write_text(JOB.format(model=MODELS / f"{name}.c", mixed="bf16" if name.startswith("copy") else "no"))
        before, after = (dumped(folder, step) for step in PASSES[phase])
    lines = difflib.unified_diff(before, after, n=0, lineterm="")
    return [line for line in lines if re.match(r"[+-] ", line)]


class Rewrites(unittest.TestCase):
    def test_rules(self):
        rules = RULE.findall(TABLE.read_text())
        self.assertEqual(len(rules), TABLE.read_text().count(', REWRITE_'), "rules that this test cannot read")
        for name, phase, kind, result in rules:
            if not (MODELS / f"{name}.c").exists():
                self.fail(f"{name}: no model {MODELS.relative_to(TREE)}/{name}.c")
            with self.subTest(rule=name):
                lines, accepted = changed(name, phase), MODELS / f"{name}.diff"
                if ACCEPT:
                    accepted.write_text("\n".join(lines) + "\n")
                self.assertTrue(lines, f"{name} changes nothing of its model")
                made = [line for line in lines if line.startswith("+")]
                if result and not name.startswith("loss"):
                    self.assertTrue(any(re.search(rf"\b{result}\b", line) for line in made), f"{name} makes no {result}")
                self.assertEqual("\n".join(lines) + "\n", accepted.read_text(), f"{name}: review, then --accept")


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--accept"])
