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

LINE = f"    y[i] = {CUT};"
# n, and what is chosen of it: 0 to 299 alone where a conversion or a sum that began at 0 again did not hide what n is.
WHOLE = [("int32_t n = 9 * x[i]", "n < 299 ? n : 299", True), ("int32_t n = 9 * x[i]", "(int64_t)n < 299 ? n : 299", True),
         ("int32_t n = 9 * x[i]", "(uint8_t)n < 200 ? n : 200", False), ("int32_t n = 9 * x[i]", "(uint8_t)n > 200 ? 200 : n", False),
         ("int32_t n = 9 * x[i]", "(bool)n < 2 ? n : 2", False), ("int32_t n = x[i] - 256", "(uint32_t)n < 10u ? 0 : n", False),
         ("uint32_t n = (uint32_t)x[i] * 0x7fffffffu", "((int32_t)n < 299 ? n : 299) & 0xffff", False),
         ("uint64_t n = (uint64_t)x[i] * 0x9000000000001000u", "((int64_t)n < 299 ? n : 299) & 0xffff", False),
         ("uint32_t n = (uint32_t)x[i] - 256u", "(n + 300u < 299 ? n : 0) & 0xffff", False)]


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
        for number, choice, proved in WHOLE:
            with self.subTest(number=number, choice=choice):
                edited = text.replace(LINE, f"    const {number};\n    y[i] = (int32_t)({choice});")
                self.assertNotEqual(edited, text)
                self.assertRegex(self.audit(edited), r"^\d+ hold, 0 broken$" if proved else "cannot be decided")


if __name__ == "__main__":
    unittest.main()
