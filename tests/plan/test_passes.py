"""Each pass of the plan on a small model: the lines that it removes from what the pass before it left (-) and those that it puts
there (+). passes/PASS.c or passes/PASS_VARIANT.c is a model, whose first comment has the words of its command line; a pass without
one fails.

usage: test_passes.py [--accept]   --accept writes what is found to passes/NAME.diff"""
# fast

import re
import sys
import unittest

from dumps import TREE, changed, passes

MODELS = TREE / "tests" / "plan" / "passes"
ELSEWHERE = {  # what shows the other passes; those of the program's parts in addition to its functions print nothing here
    "freeze": "passes/differentiate_frozen.c",
    "recompute": "passes/differentiate_recompute.c",
    "peel_loops": "test_programs.c",
    "fused_loss_backward": "test_rewrites.py",
    "epilogues": "test_rewrites.py",
    "sums": "test_rewrites.py",
    "weights": "../program/test_figures.py",
    "stage_memory": "../cuda/test_stages.py",
    "groups": "../optimizer/test_against_torch.py",
    "collectives": "../parallel/test_traffic.py",
    "state": "../runtime/test_checkpoints.py",
    "figures": "../program/test_figures.py",
}
ACCEPT = "--accept" in sys.argv


def pass_of(name, names):
    """The pass that a model is for: the longest that its name begins with."""
    return max((one for one in names if name == one or name.startswith(one + "_")), key=len)


class Passes(unittest.TestCase):
    def test_all_are_shown(self):
        names = passes()
        shown = {pass_of(path.stem, names) for path in MODELS.glob("*.c")}
        self.assertEqual([name for name in names if name not in shown and name not in ELSEWHERE], [])
        self.assertEqual([name for name in ELSEWHERE if name not in names or name in shown], [])
        self.assertEqual([position for position in ELSEWHERE.values() if not (TREE / "tests" / "plan" / position).exists()], [])
        self.assertEqual([path.name for path in MODELS.glob("*.diff") if not path.with_suffix(".c").exists()], [])

    def test_passes(self):
        names = passes()
        for model in sorted(MODELS.glob("*.c")):
            with self.subTest(model=model.stem):
                words = re.match(r"/\* (--.*?) \*/\n", model.read_text().replace("\n * ", " "))
                at = names.index(pass_of(model.stem, names))
                before = names[at - 1] if at > 0 else None
                text = "".join(f"{line}\n" for line in changed(model, words[1].split() if words else [], before, names[at]))
                accepted = model.with_suffix(".diff")
                if ACCEPT:
                    accepted.write_text(text)
                self.assertTrue(text, f"{names[at]} changes nothing of {model.name}")
                self.assertEqual(text, accepted.read_text(), f"{model.stem}: review, then --accept")


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--accept"])
