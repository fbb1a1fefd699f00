"""What differs: accel-gen diff against what check, plan and a reading of the text by hand say, and audit --regenerate,
which notices every change of a program, of its manifest or of an input."""

import json
import pathlib
import re
import shutil
import tempfile
import unittest

import yaml
from recorded import Recorded, run  # first: the others are in tests/program
from matrix import ADAMW, COSINE, gpt, mlp  # isort: skip

GPT = gpt("gpt2", optimizer=ADAMW, schedule=COSINE).job


def step_functions(text):
    """Name to lines of the functions that step reaches, by their text: from `static` to the brace that ends them."""
    functions = {}
    for found in re.finditer(r"^static [^;{}=]*?(\w+)\([^;{}]*\) \{\n.*?^\}$", text, re.M | re.S):
        functions[found[1]] = found[0].split("\n")
    reached, waiting = set(), ["step"]
    while waiting:
        name = waiting.pop()
        if name in functions and name not in reached:
            reached.add(name)
            waiting += re.findall(r"\b\w+\b", "\n".join(functions[name][0:1] + functions[name][1:]))
    return {name: functions[name] for name in reached}


def flat(value, path=""):
    if isinstance(value, dict):
        return {key: leaf for name, inner in value.items() for key, leaf in flat(inner, f"{path}.{name}").items()}
    return {path[1:]: value}


class Diff(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def job(self, name, *changes, base=GPT):
        job = json.loads(json.dumps(base))
        for key, value in changes:
            inner = job
            for part in key.split(".")[:-1]:
                inner = inner.setdefault(part, {})
            inner[key.split(".")[-1]] = value
        (self.folder / name).write_text(json.dumps(job))
        return job

    def diff(self, a, b, *words):
        made = run("diff", a, b, "--json", *words, cwd=self.folder)
        self.assertIn(made.returncode, (0, 1), made.stderr)
        found = json.loads(made.stdout)
        self.assertEqual(found["same"], made.returncode == 0)
        return found

    def check(self, a, b):
        """The comparison of two jobs, held against the two jobs' own words."""
        found = self.diff(a, b)
        jobs = [flat(yaml.safe_load(run("check", name, "--resolved", cwd=self.folder).stdout)) for name in (a, b)]
        keys = {key for key in jobs[0].keys() | jobs[1].keys() if jobs[0].get(key) != jobs[1].get(key)}
        self.assertEqual({change["name"] for change in found["job"]}, keys)
        plans = [flat(json.loads(run("plan", name, "--json", cwd=self.folder).stdout)) for name in (a, b)]
        plans = [{key: value for key, value in plan.items() if key != "choices"} for plan in plans]  # they show in the step path's text
        figures = {key for key in plans[0].keys() | plans[1].keys() if plans[0].get(key) != plans[1].get(key)}
        self.assertEqual({change["name"] for change in found["plan"]}, figures)
        texts = [run(name, "-o", "-", cwd=self.folder).stdout for name in (a, b)]
        reached = [step_functions(text) for text in texts]
        for change in found["step_path"]:
            sides = []
            for side, gone in (("a", "removed"), ("b", "added")):
                body = list(reached["ab".index(side)].pop(change[side])) if change[side] else []
                for line in change[gone]:
                    self.assertEqual(texts["ab".index(side)].split("\n")[line["line"] - 1], line["text"])
                    body.remove(line["text"])
                sides.append(sorted(body))
            self.assertEqual(*sides)  # what is left is on both sides
        self.assertEqual(*reached)  # functions that are not named are the same
        return found

    def test_learning_rate(self):
        self.job("a.json")
        self.job("b.json", ("optimizer.lr", 0.01))
        found = self.check("a.json", "b.json")
        self.assertEqual([(c["name"], c["a"], c["b"]) for c in found["job"]], [("optimizer.lr", "0.001", "0.01")])
        self.assertEqual(found["plan"], [])
        self.assertEqual([c["a"] for c in found["step_path"]], ["learning_rate"])

    def test_batch(self):
        self.job("a.json")
        self.job("b.json", ("data.batch_size", 4))
        found = self.check("a.json", "b.json")
        self.assertTrue(found["plan"][0]["name"].startswith("arena_bytes."))
        self.assertTrue(any(c["a"] and c["b"] and c["a"] != c["b"] for c in found["step_path"]))

    def test_optimizer(self):
        self.job("a.json")
        self.job("b.json", ("optimizer", {"name": "sgd", "lr": 0.1}), ("accumulation.num_steps", 2))
        self.check("a.json", "b.json")

    def test_cadence_leaves_the_step_path(self):
        self.job("a.json")
        self.job("b.json", ("checkpoint.every", 2))
        found = self.diff("a.json", "b.json")
        self.assertEqual((found["step_path"], found["plan"][0]["name"] if found["plan"] else ""),
                         ([], "arena_bytes.checkpoint"))
        self.assertGreater(found["elsewhere"]["added"], 0)

    def test_model(self):
        """Another text of the model at the same path."""
        source = pathlib.Path(GPT["model"]["source"])
        for folder in ("one", "two"):
            (self.folder / folder).mkdir()
            self.job(f"{folder}/job.json", ("model.source", "model.c"))
            shutil.copy(source, self.folder / folder / "model.c")
        self.assertTrue(self.diff("one/job.json", "two/job.json")["same"])
        with open(self.folder / "two" / "model.c", "a") as file:
            file.write("/* more */\n")
        self.assertTrue(self.diff("one/job.json", "two/job.json")["same"], "a comment")
        with open(self.folder / "two" / "model.c", "a") as file:
            file.write("static int more(void) { return 1; }\n")
        found = self.diff("one/job.json", "two/job.json")
        self.assertEqual([c["name"] for c in found["job"]], ["the model's C"])
        self.assertEqual((found["step_path"], found["elsewhere"]), ([], {"removed": 1, "added": 1}))

    def test_forms(self):
        """A job, its program, the same without a manifest, and its manifest are all the same."""
        base = mlp("table", optimizer=ADAMW, checkpoint={"project_dir": "odd \"name\"\\ ??/ %s\u202e"}).job
        recorded = Recorded(base, folder=self.folder / "made" if (self.folder / "made").mkdir() else self.folder / "made")
        shutil.copy(recorded.folder / "trainer.c", recorded.folder / "bare.c")
        forms = ["job.yaml", "trainer.c", "bare.c", "trainer.manifest.json"]
        for form in forms[1:]:
            made = run("diff", "job.yaml", form, "--json", cwd=recorded.folder)
            self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        (recorded.folder / "bare.c").write_text(recorded.text.replace("step(", "step_of(", 1).replace("1e-08", "1e-07"))
        self.assertEqual(run("diff", "job.yaml", "bare.c", cwd=recorded.folder).returncode, 1)

    def test_errors(self):
        self.job("a.json")
        for words, pattern in (((), "a job, a program or a manifest is missing"), (("a.json",), "a second one is missing"),
                               (("a.json", "none.json"), "none.json: error: cannot read it"),
                               (("a.json", "b.c"), "error")):
            (self.folder / "b.c").write_text("int main(void) { return nothing; }\n")
            made = run("diff", *words, cwd=self.folder)
            self.assertEqual(made.returncode, 2)
            self.assertIn(pattern, made.stderr)


class Regenerate(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        job = mlp("table", optimizer=ADAMW).job
        cls.recorded = Recorded(job, "--set", "optimizer.lr=0.01", "--set", "checkpoint.project_dir=a=b")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.recorded.folder)

    def regenerate(self, status):
        made = self.recorded.run("audit", "--regenerate", "trainer.manifest.json", "--format", "json")
        self.assertEqual(made.returncode, status, made.stdout + made.stderr)
        return {finding["what"]: finding for finding in json.loads(made.stdout)["compared"]}

    def changed(self, name, text):
        """Writes a file again until the test ends."""
        path = self.recorded.folder / name
        old = path.read_text() if path.exists() else None
        self.addCleanup(lambda: path.write_text(old))
        path.unlink() if text is None else path.write_text(text)

    def test_same(self):
        found = self.regenerate(0)
        self.assertEqual({finding["verdict"] for finding in found.values()}, {"same"})
        self.assertEqual(len(found), 6)

    def test_program_changed(self):
        lines = self.recorded.text.split("\n")
        lines[100] += " "
        self.changed("trainer.c", "\n".join(lines))
        self.assertEqual(self.regenerate(1)["trainer.c:101"]["verdict"], "differs")

    def test_manifest_changed(self):
        text = json.dumps(self.recorded.manifest).replace('"template": ["devices/cpu/step.c.j2:', '"template": ["devices/cpu/train.c.j2:', 1)
        self.changed("trainer.manifest.json", text)
        self.assertIn("trainer.manifest.json:1", self.regenerate(1))

    def test_model_changed(self):
        model = (self.recorded.folder / "mlp_table.c").read_text()
        line = next(line for line in self.recorded.manifest["lines"] if "model" in line)
        words = ("explain", f"trainer.c:{line['line']}")
        text = model.split("\n")[int(line["model"][0].rsplit(":", 1)[1]) - 1].strip()
        self.assertIn(f"{line['model'][0]}: {text}\n", self.recorded.run(*words).stdout)
        self.changed("mlp_table.c", model.replace("relu(", "tanh_of("))
        self.assertIn(f"{line['model'][0]}\n", self.recorded.run(*words).stdout, "the line as it was is not known")
        found = self.regenerate(1)
        self.assertEqual(found["mlp_table.c"]["verdict"], "differs")
        self.assertTrue(any(what.startswith("trainer.c:") for what in found))

    def test_job_changed(self):
        self.changed("job.yaml", (self.recorded.folder / "job.yaml").read_text().replace("11", "12"))
        found = self.regenerate(1)
        self.assertEqual(found["job.yaml"]["verdict"], "differs")
        self.assertEqual([f["verdict"] for what, f in found.items() if what.startswith("trainer.c")], ["same"])

    def test_job_gone(self):
        self.changed("job.yaml", None)
        found = self.regenerate(0)
        self.assertEqual(found["job.yaml"]["verdict"], "absent")

    def test_no_manifest(self):
        for text in ("{}", "[1]", "{", '{"format": "accel-gen-manifest-1"}', ""):
            (self.recorded.folder / "other.json").write_text(text)
            made = self.recorded.run("audit", "--regenerate", "other.json")
            self.assertEqual(made.returncode, 2, text)


if __name__ == "__main__":
    unittest.main()
