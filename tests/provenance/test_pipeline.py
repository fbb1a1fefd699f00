"""The pipelines of examples/ci, step by step as their files have them: they pass, they stop where nobody has approved a
change, and where a program does what it should not."""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml
from recorded import GENERATOR, TREE  # first: the others are in tests/program
from matrix import ADAMW, mlp  # isort: skip
from rotation import rotating  # isort: skip

CI = TREE / "examples" / "ci"
STEPS = ["generate", "audit", "compare", "build"]


def github_steps(cluster):
    job = yaml.safe_load((CI / "github.yml").read_text())["jobs"]["trainer"]
    assert cluster in job["strategy"]["matrix"]["cluster"]
    return [step["run"].replace("${{ matrix.cluster }}", cluster) for step in job["steps"] if "run" in step], job["env"]


def gitlab_steps(cluster):
    job = yaml.safe_load((CI / "gitlab.yml").read_text())["trainer"]
    assert cluster in job["parallel"]["matrix"][0]["CLUSTER"]
    return job["script"], {**job["variables"], "CLUSTER": cluster}


@unittest.skipUnless(platform.machine() == "x86_64", "the example's clusters are of this kind")
class Pipelines(unittest.TestCase):
    def setUp(self):
        """A repository as the files ask for it."""
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        job = mlp("table", optimizer=ADAMW).job
        shutil.copy(job["model"]["source"], self.folder)
        job["model"]["source"] = "mlp_table.c"
        (self.folder / "job.yaml").write_text(json.dumps(job))
        for file in ("pipeline.sh", "clusters.txt"):
            shutil.copy(CI / file, self.folder)

    def step(self, command, environment):
        return subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "ACCEL_GEN": str(GENERATOR), **environment})

    def run_all(self, steps, environment):
        """The first step that fails, as its word; None when all pass."""
        for command in steps:
            made = self.step(command, environment)
            if made.returncode != 0:
                self.output = made.stdout + made.stderr
                return re.match(r"sh pipeline.sh (\w+) ", command)[1]
        return None

    def check(self, steps, environment, cluster):
        words = [re.match(r"sh pipeline.sh (\w+) ", command)[1] for command in steps]
        self.assertEqual(words, STEPS)
        short = [steps[0], steps[2]]
        if cluster == "small":
            self.assertEqual(self.run_all(short, environment), "compare", "nothing is approved yet")
        else:
            self.run_all(steps[:1], environment)
        self.assertEqual(self.step(f"sh pipeline.sh accept {cluster}", environment).returncode, 0)
        self.assertIsNone(self.run_all(steps, environment), getattr(self, "output", ""))
        made = self.folder / "out" / cluster
        self.assertTrue(os.access(made / "trainer", os.X_OK))
        self.assertEqual(json.loads((made / "audit.sarif").read_text())["version"], "2.1.0")
        self.assertTrue(json.loads((made / "diff.json").read_text())["same"])
        # Another job.
        path = self.folder / "job.yaml"
        path.write_text(path.read_text().replace('"weight_decay": 0.1', '"weight_decay": 0.2'))
        self.assertEqual(self.run_all(short, environment), "compare")
        self.assertIn("optimizer.weight_decay  0.1 -> 0.2", self.output)

    def test_github(self):
        self.check(*github_steps("small"), "small")

    def test_gitlab(self):
        self.check(*gitlab_steps("large"), "large")

    def test_audit_stops(self):
        """A program that somebody has changed by hand, with a manifest that says so."""
        steps, environment = github_steps("small")
        self.assertEqual(self.step(steps[0], environment).returncode, 0)
        program = self.folder / "out" / "small" / "trainer.c"
        text = program.read_text()
        program.write_text(re.sub(r"(static void step\(.*?\{\n)", r'\1  if (getenv("SECRET")) exit(0);\n', text, flags=re.S)
                           .replace("#include <string.h>", "#include <stdlib.h>\n#include <string.h>", 1))
        made = self.step(steps[1], environment)
        self.assertEqual(made.returncode, 1)
        self.assertRegex(made.stdout, r"broken +no-environment")

    def test_clusters(self):
        made = self.step("sh pipeline.sh clusters", {})
        names = made.stdout.split()
        github = yaml.safe_load((CI / "github.yml").read_text())["jobs"]["trainer"]["strategy"]["matrix"]["cluster"]
        gitlab = yaml.safe_load((CI / "gitlab.yml").read_text())["trainer"]["parallel"]["matrix"][0]["CLUSTER"]
        self.assertEqual((names, names), (github, gitlab))
        for words, status in (("all nowhere", 2), ("sing small", 2), ("audit", 2)):
            self.assertEqual(self.step(f"sh pipeline.sh {words}", {}).returncode, status, words)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
