"""Which of two recordings a step launches depends on the step: the audit follows both, and finds what is wrong with either. A choice
that depends on the rank is one between collectives."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))

from harness import GENERATOR, TREE  # noqa: E402

KEYS = ["devices.kind=cuda", "devices.per_node=2", "parallelism.ddp.comm_hook=power_sgd"]
# What is wrong, of the first steps' recording or of all others': a text, what comes instead, and the claim that finds it.
EDITS = [
    ("at < 1000 ? early_graph : last_graph", "accel_rank(run) < 1 ? early_graph : last_graph", "same-collectives"),
    ('early_graph = accel_gpu_capture("early_micro_step", early_micro_step);', "early_graph = NULL;", "bounded-loops"),
    ("divide(arena->all_gradients, ", "divide(arena->all_gradients, 64 + ", "in-bounds"),
    ("accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->all_gradients, ", "accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->all_gradients, 64 + ",
     "in-bounds"),
    ("static void exchange_gradients(void) {", "static void exchange_gradients(void) {\n  accel_start_all_reduce(ACCEL_DP_REPLICATE, arena->all_gradients, 16);",
     "no-race-with-transfers"),
    ("orthogonalize_left(arena->left_factors);", "orthogonalize_left(arena->left_factors + 64);", "in-bounds"),
    ("  accel_wait_collectives();\n  orthogonalize_left", "  orthogonalize_left", "no-race-with-transfers"),
]


EVALUATED = ["devices.kind=cuda", "devices.per_node=2", "parallelism.zero_stage=3", "model.config.n_layer=2", "data.eval_fraction=0.2",
             "training.eval_interval=5", "training.eval_iters=all"]
LAUNCH, BATCHES = "accel_gpu_launch(evaluation_graph);", "batches = accel_eval_begin_together(run)"
CAPTURE = 'evaluation_graph = accel_gpu_capture("evaluation", forward_evaluation);'
# What lets the rank decide how often an evaluation's recording is launched, which recording that is, or what is recorded.
OF_EVALUATIONS = [
    (LAUNCH, "for (int64_t k = 0; k < 1 + accel_rank(run); k++) " + LAUNCH),
    (LAUNCH, "if (accel_rank(run) < 1) " + LAUNCH),
    (LAUNCH, LAUNCH + "\n    if (accel_rank(run) < 1) break;"),
    (LAUNCH, "accel_gpu_launch(i < 1 ? accel_rank(run) > 0 ? last_graph : evaluation_graph : evaluation_graph);"),
    (LAUNCH, "accel_gpu_launch((accel_rank(run), accel_rank(run) > 0 ? last_graph : evaluation_graph));"),
    (LAUNCH, "const struct accel_graph *chosen = evaluation_graph;\n    if (accel_rank(run) > 0) chosen = last_graph;\n    accel_gpu_launch(chosen);"),
    (BATCHES, BATCHES + " + accel_rank(run)"),
    (CAPTURE, CAPTURE.replace("forward", "accel_rank(run) > 0 ? last_micro_step : forward")),
    (CAPTURE, "{\n    if (accel_rank(run) > 0) evaluation_graph = accel_gpu_capture(\"evaluation\", last_micro_step);\n    else " + CAPTURE + "\n  }"),
    (CAPTURE, "{\n    " + CAPTURE + "\n    if (accel_rank(run) > 0) evaluation_graph = last_graph;\n  }"),
]


class Recordings(unittest.TestCase):
    def test_edits(self):
        self.edit(KEYS, EDITS)

    def test_evaluations(self):
        self.edit(EVALUATED, [(before, after, "same-collectives") for before, after in OF_EVALUATIONS])

    def edit(self, keys, edits):
        with tempfile.TemporaryDirectory(prefix="accel-recordings-") as name:
            folder = pathlib.Path(name)
            sets = [word for key in keys for word in ("--set", key)]
            subprocess.run([GENERATOR, TREE / "examples" / "jobs" / "tiny.yaml", *sets, "-o", "program.c"], cwd=folder, check=True)
            text = (folder / "program.c").read_text()
            self.assertRegex(self.audit(folder, text), r"\n\d+ hold, 0 broken$")
            for before, after, claim in edits:
                with self.subTest(edit=after):
                    self.assertIn(before, text)
                    self.assertRegex(self.audit(folder, text.replace(before, after, 1)), rf"\n  (broken|cannot tell) +{claim} ")

    def test_generator(self):
        """A program that launches in a loop without an end, one of two recordings or the same one, is followed to its end."""
        with tempfile.TemporaryDirectory(prefix="accel-recordings-") as name:
            folder = pathlib.Path(name)
            words = ["--program", "generate", "--set", "devices.kind=cuda", "-o", "program.c"]
            subprocess.run([GENERATOR, TREE / "examples" / "jobs" / "tiny.yaml", *words], cwd=folder, check=True)
            self.assertRegex(self.audit(folder, (folder / "program.c").read_text()), r"\n\d+ hold, 0 broken$")

    def audit(self, folder, text):
        (folder / "program.c").write_text(text)
        result = subprocess.run([GENERATOR, "audit", "program.c"], cwd=folder, capture_output=True, text=True)
        return (result.stdout + result.stderr).rstrip()


if __name__ == "__main__":
    unittest.main()
