"""A program with its manifest in a folder of its own, made from copies of the job and the model."""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TREE = pathlib.Path(__file__).resolve().parents[2]
GENERATOR = TREE / "build" / "accel-gen"
sys.path.insert(0, str(TREE / "tests" / "program"))


def run(*words, cwd, **environment):
    return subprocess.run([GENERATOR, *words], cwd=cwd, capture_output=True, text=True, errors="replace",
                          env={**os.environ, **environment})


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Recorded:
    """`job` is a dict whose model.source is a path; `words` go after the command line."""

    def __init__(self, job, *words, folder=None, **environment):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="accel-test-"))
        job = json.loads(json.dumps(job))
        source = pathlib.Path(job["model"]["source"])
        for file in [source, *source.parent.glob("*.h")]:
            if not (self.folder / file.name).exists():
                shutil.copy(file, self.folder / file.name)
        job["model"]["source"] = source.name
        (self.folder / "job.yaml").write_text(json.dumps(job, indent=1, ensure_ascii=False))
        self.made = run("job.yaml", "-o", "trainer.c", "--manifest", *words, cwd=self.folder, **environment)
        if self.made.returncode != 0:
            raise AssertionError(self.made.stderr)
        self.read()

    def read(self):
        self.text = (self.folder / "trainer.c").read_text()
        self.lines = self.text.split("\n")[:-1]
        self.manifest = json.loads((self.folder / "trainer.manifest.json").read_text())

    def run(self, *words, **environment):
        return run(*words, cwd=self.folder, **environment)

    def lines_of(self, key):
        """The numbers of the lines that have a key."""
        return {line["line"] for line in self.manifest["lines"] if key in line["keys"]}
