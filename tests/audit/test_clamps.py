"""A number that is computed and chooses a row: the audit proves that it is within the table from how it is cut off, and from no
other form of it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "program"))

from harness import GENERATOR, Trainer  # noqa: E402

MODEL = """#include <accel/model.h>

struct config {
  int width;
};

tensor model(scope s, struct config c, tensor tokens, tensor targets) {
  tensor next = cast_index(shift(cast_float(tokens), 1), 300);
  return cross_entropy(linear(at(s, "out"), embedding(at(s, "in"), next, 300, c.width), 256), targets);
}
"""
CUT = "t1 > 0.0f ? (int32_t)(t1 < 299.0f ? t1 : 299.0f) : 0"
EDITS = ["t1 > 0.0f ? (int32_t)((float)(uint8_t)t1 < 299.0f ? t1 : 299.0f) : 0", "t1 > 0.0f ? (int32_t)(t1 < 299.0f ? t1 : 399.0f) : 0",
         "t1 > 0.0f ? (int32_t)(t1 < 299.0f ? t1 + 400.0f : 299.0f) : 0", "t1 > 0.0f ? (int32_t)(t1 < 299.0f ? t0 * 9.0f : 299.0f) : 0",
         "t1 > -5.0f ? (int32_t)(t1 < 299.0f ? t1 : 299.0f) : 0", "t1 > 0.0f ? (int32_t)(t1 > 299.0f ? t1 : 299.0f) : 0",
         "t1 < 0.0f ? (int32_t)(t1 < 299.0f ? t1 : 299.0f) : 0", "t1 > 0.0f ? (int32_t)(t1 < 300.0f ? t1 : 300.0f) : 0",
         "t1 > 0.0f ? (int32_t)(t1 < 299.0f ? t1 : 299.0f) : -1", "(int32_t)(t1 < 299.0f ? t1 : 299.0f)"]


class Clamps(unittest.TestCase):
    def audit(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
            file.write(text)
            file.flush()
            return subprocess.run([GENERATOR, "audit", file.name], capture_output=True, text=True).stdout.strip().splitlines()[-1]

    def test_index(self):
        trainer = Trainer({"model": {"source": "model.c", "config": {"width": 8}}, "training": {"steps": 1},
                           "data": {"train": {"path": "x", "format": "bytes"}, "batch_size": 2, "sequence_length": 16}})
        (trainer.folder / "model.c").write_text(MODEL)
        subprocess.run([GENERATOR, "job.yaml", "-o", "out.c"], cwd=trainer.folder, check=True)
        text = (trainer.folder / "out.c").read_text()
        self.assertEqual(text.count(CUT), 1)
        self.assertRegex(self.audit(text), r"^\d+ hold, 0 broken$")
        for edit in EDITS:
            with self.subTest(edit=edit):
                self.assertIn("cannot be decided", self.audit(text.replace(CUT, edit)))


if __name__ == "__main__":
    unittest.main()
