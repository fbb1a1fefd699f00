"""Each rule of gen/plan/graph/rewrites.c on a small model: what its phase removes from the graph of a program for GPUs (-) and
what it puts there instead (+). A rule without a model here fails.

usage: test_rewrites.py [--accept]   --accept writes what is found to rewrites/NAME.diff"""
# fast

import re
import sys
import unittest

from dumps import TREE, changed

MODELS = TREE / "tests" / "plan" / "rewrites"
TABLE = TREE / "gen" / "plan" / "graph" / "rewrites.c"
RULE = re.compile(r'^\s+\{"(\w+)", (REWRITE_\w+), "(\w+)"(?:, (?:\.result = )?"(\w+)")?', re.M)
PASSES = {  # of each phase: the pass before it, and its own
    "REWRITE_LOSS_BACKWARD": ("differentiate", "fused_loss_backward"),
    "REWRITE_EPILOGUES": ("prune", "epilogues"),
    "REWRITE_SUMS": ("epilogues", "sums"),
}
ACCEPT = "--accept" in sys.argv


def rewritten(name, phase):
    """The lines that the phase removes and adds."""
    mixed = "bf16" if name.startswith("copy") else "no"
    words = ["--set", "devices.kind=cuda", "--set", f"precision.mixed_precision={mixed}"]
    return [line for line in changed(MODELS / f"{name}.c", words, *PASSES[phase]) if re.match(r"[+-] ", line)]


class Rewrites(unittest.TestCase):
    def test_rules(self):
        rules = RULE.findall(TABLE.read_text())
        self.assertEqual(len(rules), TABLE.read_text().count(', REWRITE_'), "rules that this test cannot read")
        for name, phase, kind, result in rules:
            if not (MODELS / f"{name}.c").exists():
                self.fail(f"{name}: no model {MODELS.relative_to(TREE)}/{name}.c")
            with self.subTest(rule=name):
                lines, accepted = rewritten(name, phase), MODELS / f"{name}.diff"
                if ACCEPT:
                    accepted.write_text("\n".join(lines) + "\n")
                self.assertTrue(lines, f"{name} changes nothing of its model")
                made = [line for line in lines if line.startswith("+")]
                if result and not name.startswith("loss"):
                    self.assertTrue(any(re.search(rf"\b{result}\b", line) for line in made), f"{name} makes no {result}")
                self.assertEqual("\n".join(lines) + "\n", accepted.read_text(), f"{name}: review, then --accept")


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--accept"])
