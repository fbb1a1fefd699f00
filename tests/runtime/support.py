"""Builds the programs of this folder against the runtime, and runs them."""

import json
import os
import shlex
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = Path(os.environ.get("ACCEL_RUNTIME", ROOT / "build" / "libaccel-runtime.a"))
FLAGS = shlex.split(os.environ.get("ACCEL_TEST_CFLAGS", "-O1 -g"))

_built = tempfile.TemporaryDirectory()


def program(name):
    """The path of programs/NAME.c, compiled."""
    binary = Path(_built.name) / name
    if not binary.exists():
        subprocess.run(
            [
                *shlex.split(os.environ.get("CC", "cc")),
                *["-std=c17", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fopenmp"],
                *FLAGS,
                *["-I", ROOT, "-o", binary, ROOT / "tests" / "runtime" / "programs" / f"{name}.c", LIBRARY],
                *["-ljansson", "-lm"],
            ],
            check=True,
        )
    return binary


def preloaded(name):
    """The path of programs/NAME.c as a library to preload."""
    library = Path(_built.name) / f"{name}.so"
    if not library.exists():
        source = ROOT / "tests" / "runtime" / "programs" / f"{name}.c"
        flags = ["-std=gnu17", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), *flags, "-o", library, source], check=True)
    return library


class Folder(unittest.TestCase):
    """A test in a folder of its own."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def run_program(self, name, *arguments, **environment):
        """Runs programs/NAME in the folder; what a job would set is set by environment variables."""
        variables = {key: str(value) for key, value in environment.items()}
        return subprocess.run(
            [program(name), *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, **variables},
            capture_output=True,
            timeout=300,
        )

    def train(self, *arguments, **environment):
        return self.run_program("fake_trainer", *arguments, **environment)

    def write_corpus(self, name="corpus.txt", size=20000):
        text = b"the quick brown fox jumps over the lazy dog\n" * (size // 44 + 1)
        (self.folder / name).write_bytes(text[:size])
        return name

    def metrics(self, folder="runs/fake"):
        return [json.loads(line) for line in (self.folder / folder / "metrics.jsonl").read_text().splitlines()]

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())


class _Tap(unittest.TextTestResult):
    """Prints each case in TAP's form, in addition to what unittest prints."""

    def _tell(self, word, test, rest=""):
        print(f"{word} {test.id().removeprefix('__main__.')}{rest}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._tell("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._tell("ok", test, f" # SKIP {reason}")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._tell("not ok", test)

    def addError(self, test, error):
        super().addError(test, error)
        self._tell("not ok", test)

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self._tell("not ok", subtest)


def main():
    """Runs the cases of the calling script."""
    unittest.main(testRunner=unittest.TextTestRunner(resultclass=_Tap))
