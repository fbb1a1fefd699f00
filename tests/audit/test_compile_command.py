"""What the audit says of commands that compile a program: those of --command, of the manifest next to it, and of its first comment."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from claims import GOOD
from test_matrix import CASES, GENERATOR

JOB = next(case.job for case in CASES if case.name == "gpt2")
RUNTIME = "$(pkg-config --cflags --libs accel-runtime)"

HELD = [
    f"cc -std=c17 -O3 -march=native -fopenmp trainer.c -o trainer {RUNTIME}",
    f"/usr/bin/gcc-12 -O2 -g -Wall -Wno-unused 'trainer.c' -o\ttrainer {RUNTIME}",
    f'clang-19 -march=x86-64-v3 -fopenmp "../jobs/trainer.c" -otrainer {RUNTIME} -lm',
    "gcc -c trainer.c $(pkg-config --cflags accel-runtime-mpi sqlite3) -o trainer.o",
]
BROKEN = {
    f"cc -DNDEBUG trainer.c {RUNTIME}": (4, "'-DNDEBUG' defines a macro"),
    f"cc trainer.c -U __AVX2__ {RUNTIME}": (14, "'-U' removes a macro"),
    f"cc -include evil.h trainer.c {RUNTIME}": (4, "'-include' reads another text"),
    f"cc -I /usr/share trainer.c {RUNTIME}": (4, "'-I' has headers read from a folder"),
    f"cc -I/usr/share trainer.c {RUNTIME}": (4, "'-I/usr/share' has headers read from a folder"),
    f"cc other.c {RUNTIME}": (4, "'other.c' is compiled, and not trainer.c"),
    f"cc trainer.c -ffast-math {RUNTIME}": (14, "'-ffast-math' changes what floating-point arithmetic means"),
    f"cc 'trainer.c' -std=gnu17 {RUNTIME}": (16, "'-std=gnu17' reads the program as another language"),
}
OPEN = {
    f"cc trainer.c other.c {RUNTIME}": (14, "'other.c' is compiled or linked with the program, which calls nothing of it"),
    f"mycc trainer.c {RUNTIME}": (1, "'mycc' is a compiler that the audit does not know"),
    f"cc trainer.c -fother {RUNTIME}": (14, "'-fother' is a flag that the audit does not know"),
    "cc trainer.c $(pkg-config --libs other)": (34, "'other' is no package of the runtime"),
    "cc trainer.c $(pkg-config --libs accel-runtime": (14, "has no end"),
    "cc trainer.c 'x": (14, "'a quote' has no end"),
    "cc trainer.c; ./trainer": (13, "';' is for the shell"),
    "cc trainer.c `flags`": (14, "'`' is for the shell"),
    "cc trainer.c \"$FLAGS\"": (15, "'$' is for the shell"),
    "cc -O2": (1, "compiles no program in C"),
    "cc trainer.c -o": (14, "names no file"),
}


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.made.name)
        (cls.folder / "trainer.c").write_text(GOOD.text)

    @classmethod
    def tearDownClass(cls):
        cls.made.cleanup()

    def audited(self, program, *flags):
        """The claim of the JSON report; None where there is none."""
        done = subprocess.run([GENERATOR, "audit", program, "--format", "json", *flags], cwd=self.folder, capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return next((claim for claim in json.loads(done.stdout)["claims"] if claim["id"] == "plain-command"), None)

    def test_none(self):
        self.assertIsNone(self.audited("trainer.c"))

    def test_held(self):
        for command in HELD:
            claim = self.audited("trainer.c", "--command", command)
            self.assertEqual(claim["verdict"], "holds", (command, claim))

    def test_refused(self):
        for verdict, commands in (("broken", BROKEN), ("cannot tell", OPEN)):
            for command, (column, words) in commands.items():
                claim = self.audited("trainer.c", "--command", command)
                self.assertEqual(claim["verdict"], verdict, (command, claim))
                finding = claim["findings"][0]
                self.assertIn(words, finding["message"], command)
                self.assertEqual((finding["file"], finding["line"], finding["column"]), ("--command", 1, column), command)

    def test_folder_that_was_read(self):
        (self.folder / "headers").mkdir(exist_ok=True)
        command = f"cc -I ./headers trainer.c {RUNTIME}"
        self.assertEqual(self.audited("trainer.c", "--command", command)["verdict"], "broken")
        self.assertEqual(self.audited("trainer.c", "-I", "headers", "--command", command)["verdict"], "holds")

    def test_first_comment_and_manifest(self):
        """Of what the generator writes both hold; each is read."""
        (self.folder / "job.yaml").write_text(json.dumps(JOB))
        subprocess.run([GENERATOR, "job.yaml", "--manifest", "-o", "written.c"], cwd=self.folder, check=True, capture_output=True)
        claim = self.audited("written.c")
        self.assertEqual((claim["verdict"], claim["evidence"].split(",")[0]), ("holds", "2 commands"))
        manifest = self.folder / "written.manifest.json"
        text = manifest.read_text()
        edited = text.replace("cc -std=c17", "cc -DNDEBUG -std=c17")
        self.assertNotEqual(edited, text)
        manifest.write_text(edited)
        finding = self.audited("written.c")["findings"][0]
        self.assertEqual((finding["file"], finding["message"]), ("written.manifest.json", "'-DNDEBUG' defines a macro"))
        manifest.write_text(text)
        program = (self.folder / "written.c").read_text()
        number = next(number for number, line in enumerate(program.splitlines(), 1) if " Build: cc" in line)
        (self.folder / "edited.c").write_text(re.sub("Build: cc", "Build: cc -O3 -Dfloat=double", program))
        finding = self.audited("edited.c")["findings"][0]
        self.assertEqual((finding["line"], finding["column"]), (number, len(" * Build: cc -O3 ") + 1))


if __name__ == "__main__":
    unittest.main()
