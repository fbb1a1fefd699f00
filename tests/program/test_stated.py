"""The job that a program states: no key at its default, digests of all keys, and from these two the whole job again, which
a checkpoint of its run gives, too."""

import json
import os
import pathlib
import random
import re
import shutil
import tempfile
import unittest

import keys
import yaml
from harness import GENERATOR, TREE, Trainer, subprocess
from rotation import rotating

SEED = int(os.environ.get("SEED", "1"))
EXAMPLES = sorted((TREE / "examples" / "jobs").glob("*.yaml"))
ROW = re.compile(r'^    \{("(?:[^"\\]|\\.)*"), ("(?:[^"\\]|\\.)*"), (true|false)\},$', re.M)


class Core(yaml.SafeLoader):
    """YAML 1.2's words, of which PyYAML has others: no is a text, 1e-08 a number."""

    yaml_implicit_resolvers = {}


for tag, pattern in (("bool", "true|false"), ("int", r"[-+]?\d+"), ("float", r"[-+]?\d*\.?\d+(e[-+]?\d+)?")):
    Core.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), None)


def read(text):
    return yaml.load(text, Core)


def stated(text):
    """The keys of a program's table with their values, as texts; what is no key of a job is left out."""
    table = re.search(r"struct accel_key keys\[\] = \{\n(.*?)\n\};", text, re.S)[1]
    return {json.loads(name): json.loads(value) for name, value, _ in ROW.findall(table) if "." in name}


def member(text, name):
    return re.search(rf'^    \.{name} = "(.*)",$', text, re.M)[1]


def command(*words, status=0, cwd=None):
    done = subprocess.run([GENERATOR, *words], capture_output=True, text=True, cwd=cwd)
    if done.returncode != status:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stderr}")
    return done.stdout if status == 0 else done.stderr


def resolved(job, *flags):
    """A job with every default, without the comments that name the sources of its values."""
    return re.sub("  +# .*", "", command("check", "--resolved", job, *flags))


def flat(value, path=""):
    if isinstance(value, dict):
        return {key: leaf for name, inner in value.items() for key, leaf in flat(inner, f"{path}.{name}").items()}
    return {path[1:]: value}


def schemas_to(key):
    """The schemas of the groups that a key is in, and its own; empty ones for what the schema does not list."""
    schemas = [keys.SCHEMA]
    for word in key.split("."):
        schemas.append(keys.target(schemas[-1].get("properties", {}).get(word, {})))
    return schemas


def may_change(key):
    """By the schema: of the key, else of the nearest group of it that says so."""
    return [schema["mayChange"] for schema in [{"mayChange": False}, *schemas_to(key)] if "mayChange" in schema][-1]


class Stated(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def generate(self, job, *flags, name="t.c"):
        command(job, "-o", self.folder / name, *flags)
        return (self.folder / name).read_text()

    def test_no_defaults(self):
        """For all examples; a default that depends on other keys is what was decided, and stays."""
        for job in EXAMPLES:
            text = self.generate(job)
            whole = flat(read(command("check", "--resolved", job)))
            for key, value in stated(text).items():
                with self.subTest(job=job.name, key=key):
                    value = read(value)
                    default = schemas_to(key)[-1].get("default")
                    if value == default:
                        self.assertNotEqual(keys.default_of(whole, key, default), value)
            for key, value in whole.items():
                if key not in stated(text) and not (isinstance(value, list) and value and isinstance(value[0], dict)):
                    self.assertEqual(value, schemas_to(key)[-1]["default"], f"{job.name}: {key} is left out")

    def test_depends_on_other_keys(self):
        text = self.generate(TREE / "examples/jobs/tiny.yaml", "--set", "optimizer={name: lion}")
        self.assertEqual({key: value for key, value in stated(text).items() if key.startswith("optimizer.")},
                         {"optimizer.name": "lion", "optimizer.lr": "0.0001", "optimizer.betas": "[0.9, 0.99]",
                          "optimizer.weight_decay": "0.0"})
        text = self.generate(TREE / "examples/jobs/tiny.yaml", "--set", "optimizer={name: lion, betas: [0.9, 0.999]}")
        self.assertEqual(stated(text)["optimizer.betas"], "[0.9, 0.999]", "the default of other optimizers")

    def test_restored(self):
        """Every example, and jobs with groups in lists, with keys that the schema does not list, and with hooks."""
        (self.folder / "hooks.c").write_text("#include <accel/hooks.h>\nvoid on_end(struct accel_run *run, const struct "
                                             "accel_progress *at) { (void)run, (void)at; }\n")
        groups = 'optimizer.param_groups=[{match: "*wte*", weight_decay: 0}, {match: "*", lr_scale: 0.5}]'
        more = [["--set", groups], ["--set", f"hooks={{source: {self.folder / 'hooks.c'}, on_end: on_end}}"]]
        for job, flags in [(job, []) for job in EXAMPLES] + [(TREE / "examples/jobs/tiny.yaml", flags) for flags in more]:
            with self.subTest(job=job.name, flags=flags):
                self.generate(job, *flags)
                self.assertEqual(command("check", "--resolved", self.folder / "t.c"), resolved(job, *flags))

    def test_other_versions(self):
        """Defaults that this version does not have are not made up."""
        text = self.generate(TREE / "examples/jobs/tiny.yaml")
        digest = member(text, "job_digest")
        (self.folder / "old.c").write_text(text.replace(digest, "0" * 64).replace("accel-gen 0.2.0", "accel-gen 0.0.9"))
        self.assertIn("the defaults of accel-gen 0.0.9 that it leaves out are not those of accel-gen",
                      command("check", "--resolved", self.folder / "old.c", status=1))
        self.generate(TREE / "examples/jobs/tiny.yaml", "--set", "optimizer.lr=0.5", "--set", "optimizer.eps=1e-5", name="new.c")
        found = json.loads(subprocess.run([GENERATOR, "diff", self.folder / "old.c", self.folder / "new.c", "--json"],
                                          capture_output=True, text=True).stdout)["job"]
        self.assertEqual([(change["name"], change["a"], change["b"]) for change in found],
                         [("optimizer.lr", stated(text).get("optimizer.lr", "(default)"), "0.5"),
                          ("optimizer.eps", "(default)", "1e-05"), ("defaults", "accel-gen 0.0.9", "accel-gen 0.2.0")])
        (self.folder / "none.c").write_text("int main(void) { return 0; }\n")
        self.assertIn("it states no job", command("check", "--resolved", self.folder / "none.c", status=1))

    def test_digests(self):
        """Both cover the keys that are left out: one changes with every key, the other with those that may not change."""
        keys.write_data(self.folder)
        draw = random.Random(SEED)
        print(f"SEED={SEED}")
        values, base = keys.all_values(), keys.BASES["gpt2"]
        seen = {True: 0, False: 0}
        for key in draw.sample(sorted(values), 40):
            value = draw.choice(values[key])
            with_companions = {**base, **keys.companions(key, value)}
            texts = [keys.generate(job, self.folder, name) for job, name in ((with_companions, "a"), ({**with_companions, key: value}, "b"))]
            if not all(isinstance(text, str) for text in texts):
                continue
            jobs = [flat(read(command("check", "--resolved", f"{name}.yaml", cwd=self.folder))) for name in "ab"]
            changed = {name for name in jobs[0].keys() | jobs[1].keys() if jobs[0].get(name) != jobs[1].get(name)}
            with self.subTest(key=key, value=value):
                self.assertEqual(member(texts[0], "job_digest") != member(texts[1], "job_digest"), bool(changed))
                fixed = any(not may_change(name) for name in changed)
                self.assertEqual(member(texts[0], "fixed_digest") != member(texts[1], "fixed_digest"), fixed)
                seen[fixed] += 1
        self.assertTrue(seen[True] and seen[False], seen)

    def test_checkpoints(self):
        """A checkpoint gives the whole job, names a key that is at its default on one side, and of before resumes."""
        keys.write_data(self.folder)
        job = {"model": {"source": keys.BASES["gru_bytes"]["model.source"], "config": keys.BASES["gru_bytes"]["model.config"]},
               "data": {"train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": 3},
               "optimizer": {"eps": 1e-5}, "training": {"steps": 2}, "checkpoint": {"every": 1, "resume": "auto"}}
        trainer = Trainer(json.loads(json.dumps(job)), self.folder)
        trainer.build()
        trainer.run()
        last = max(self.folder.glob("run/checkpoints/checkpoint_*"), key=lambda path: path.name)
        whole = resolved(trainer.path)
        self.assertEqual(command("check", "--resolved", last), whole)
        recorded = json.loads((last / "job.json").read_text())
        text = (self.folder / "trainer.c").read_text() if (self.folder / "trainer.c").exists() else trainer.generate()
        self.assertEqual({name: entry["value"] for name, entry in recorded["keys"].items() if "." in name}, stated(text))
        self.assertEqual(recorded["digest"], member(text, "job_digest"))

        other = Trainer({**json.loads(json.dumps(job)), "optimizer": {}, "training": {"steps": 3}}, self.folder)
        other.build()
        with self.assertRaisesRegex(AssertionError, r"changes of the job: optimizer\.eps: 1e-05 -> \(default\)"):
            other.run()
        other = Trainer({**json.loads(json.dumps(job)), "training": {"steps": 3}, "accumulation": {"num_steps": 2}}, self.folder)
        other.build()
        other.run()
        self.assertIn("with changes: accumulation.num_steps: (default) -> 2, training.steps: 2 -> 3\n", other.output)
        new = max(self.folder.glob("run/checkpoints/checkpoint_*"), key=lambda path: path.name)
        self.assertEqual(self.differences(last, new), {"accumulation.num_steps": ("1", "2"), "training.steps": ("2", "3")})

        (self.folder / "before").mkdir()
        listed = {name: {"value": value, "may_change": may_change(name)} for name, value in self.written(trainer.path).items()}
        (self.folder / "before" / "job.json").write_text(json.dumps(listed))
        self.assertEqual(command("check", "--resolved", self.folder / "before"), resolved(trainer.path))

    def written(self, job):
        """All keys of a job with their values, as texts."""
        command(job, "-o", self.folder / "m.c", "--manifest")
        return {key["key"]: key["value"] for key in json.loads((self.folder / "m.manifest.json").read_text())["keys"]}

    def differences(self, a, b):
        report = json.loads(subprocess.run([GENERATOR, "checkpoint", "diff", a, b, "--json"], capture_output=True, text=True).stdout)
        return {value["key"]: (value["a"], value["b"]) for value in report["values"] if value["file"] == "job.json"}


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
