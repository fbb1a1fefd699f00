"""What a manifest says is so: its digests are those of the files, each line's template line has the line's text, model
lines move with the model, and a line has exactly the keys whose other values give another line."""

import collections
import hashlib
import itertools
import json
import pathlib
import re
import shutil
import tempfile
import unittest
from html.parser import HTMLParser

import jsonschema
from recorded import GENERATOR, TREE, Recorded, run, sha256  # first: the others are in tests/program
from matrix import ADAMW, BF16, COSINE, NO_DECAY, gpt, gru, mlp  # isort: skip
import keys  # isort: skip
from rotation import rotating  # isort: skip

SCHEMA = json.loads((TREE / "schemas" / "manifest.schema.json").read_text())
JOBS = {
    "gpt2": gpt("gpt2", optimizer={**ADAMW, "param_groups": NO_DECAY}, schedule=COSINE,
                accumulation={"num_steps": 2}, training={"steps": 10}).job,
    "gru": gru("gru", optimizer={"name": "sgd", "lr": 0.1, "momentum": 0.9}, precision=BF16).job,
    "table": mlp("table", optimizer=ADAMW, training={"eval_interval": 5, "metrics": ["accuracy"]}).job,
}


class Page(HTMLParser):
    """The tags of a page, and the words and the title of what stands next to its lines."""

    def __init__(self):
        super().__init__()
        self.tags, self.notes, self.open = set(), [], False

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.open = ("class", "p") in attributes
        if self.open:
            self.notes.append(("", dict(attributes)["title"]))

    def handle_data(self, data):
        if self.open:
            self.notes[-1] = (self.notes[-1][0] + data, self.notes[-1][1])

    def handle_endtag(self, tag):
        self.open = False


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = {name: Recorded(job) for name, job in JOBS.items()}

    @classmethod
    def tearDownClass(cls):
        for recorded in cls.made.values():
            shutil.rmtree(recorded.folder)

    def test_schema(self):
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        for name, recorded in self.made.items():
            jsonschema.validate(recorded.manifest, SCHEMA)
            self.assertEqual([line["line"] for line in recorded.manifest["lines"]],
                             list(range(1, len(recorded.lines) + 1)), name)

    def test_digests(self):
        for recorded in self.made.values():
            manifest, folder = recorded.manifest, recorded.folder
            self.assertEqual(manifest["generator"]["sha256"], sha256(GENERATOR))
            self.assertEqual(manifest["output"], {"role": "program", "name": "trainer.c",
                                                  "sha256": sha256(folder / "trainer.c")})
            roles = collections.Counter(file["role"] for file in manifest["inputs"])
            self.assertEqual((roles["job"], roles["model"]), (1, 1))
            for file in manifest["inputs"]:
                where = TREE / "templates" if file["role"] == "template" else folder
                self.assertEqual(file["sha256"], sha256(where / file["name"]), file["name"])
            resolved = re.sub("  +# .*", "", run("check", "job.yaml", "--resolved", cwd=folder).stdout)
            self.assertEqual(manifest["job"]["resolved"], resolved)
            self.assertEqual(manifest["job"]["sha256"], hashlib.sha256(resolved.encode()).hexdigest())
            self.assertIn(manifest["job"]["sha256"], recorded.lines[2])
            self.assertEqual(manifest["plan"], json.loads(run("plan", "job.yaml", "--json", cwd=folder).stdout))

    def test_second_text(self):
        """A program for GPUs is two files, each with a manifest: each is made again from its own, a kernel has the
        model's line of its call, and a key the lines that it changes in either."""
        job = {**JOBS["table"], "devices": {"kind": "cuda"}}
        recorded = Recorded(job)
        self.addCleanup(shutil.rmtree, recorded.folder)
        folder = recorded.folder
        kernels = json.loads((folder / "trainer.cu.manifest.json").read_text())
        jsonschema.validate(kernels, SCHEMA)
        text = (folder / "trainer.cu").read_text().split("\n")[:-1]
        self.assertEqual(kernels["output"], {"role": "program", "name": "trainer.cu", "sha256": sha256(folder / "trainer.cu")})
        self.assertEqual(len(kernels["lines"]), len(text))
        self.assertRegex(kernels["compile"], r"^nvcc [^|]* -c -o trainer\.cu\.o trainer\.cu && cc [^|]* -o trainer trainer\.c "
                         r"trainer\.cu\.o \$\(pkg-config --cflags --libs accel-runtime-cuda\) -lstdc\+\+$")
        self.assertEqual(recorded.manifest["compile"], kernels["compile"])
        location = next(i for i, line in enumerate(text) if "layer_norm" in line or "cross_entropy" in line)
        self.assertTrue(kernels["lines"][location]["model"][0].startswith(pathlib.Path(job["model"]["source"]).name))
        names = [key["key"] for key in kernels["keys"]]
        self.assertEqual(names, [key["key"] for key in recorded.manifest["keys"]])
        self.assertTrue(any("optimizer.lr" in line.get("keys", []) for line in kernels["lines"]))
        again = recorded.run("audit", "--regenerate", "trainer.cu.manifest.json")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertIn("gpu/", recorded.run("explain", f"trainer.cu:{location + 1}").stdout)
        changed = (folder / "trainer.cu").read_text().replace("threadIdx.x", "threadIdx.y", 1)
        (folder / "trainer.cu").write_text(changed)
        self.assertNotEqual(recorded.run("audit", "--regenerate", "trainer.cu.manifest.json").returncode, 0)

    def test_templates_that_are_named_were_read(self):
        for recorded in self.made.values():
            read = {file["name"] for file in recorded.manifest["inputs"] if file["role"] == "template"}
            for line in recorded.manifest["lines"]:
                for location in line["template"] + line.get("from", []):
                    self.assertIn(location.rsplit(":", 1)[0], read)

    def test_template_lines(self):
        """Where a template's line has text of its own, the program's line has it, too."""
        sources = {str(path.relative_to(TREE / "templates")): path.read_text().split("\n")
                   for path in (TREE / "templates").rglob("*.j2")}
        checked = 0
        for name, recorded in self.made.items():
            lines = recorded.manifest["lines"]
            for first, line in enumerate(lines):
                locations = line["template"]
                if first > 0 and locations[0] in lines[first - 1]["template"]:
                    continue
                # A value of several lines is one line of the template, and what is longer than a line is broken.
                run = itertools.takewhile(lambda at: locations[0] in lines[at]["template"], range(first, len(lines)))
                written = "\n".join(recorded.lines[at] for at in run)
                file, number = locations[0].rsplit(":", 1)
                source = sources[file][int(number) - 1]
                if len(locations) > 1 or re.search(r"\{[%#]", source) or "}}" in re.sub(r"\{\{.*?\}\}", "", source):
                    continue  # a tag, or one that resumes from another line
                for piece in re.split(r"\{\{.*?\}\}|\{\{.*", source):
                    checked += len(piece.strip()) > 3
                    self.assertIn("".join(piece.split()), "".join(written.split()), f"{name}: {locations}")
        self.assertGreater(checked, 800)

    def test_model_lines(self):
        """A comment above the model moves every line of it; a parameter's member comes from a line that names it."""
        job, before = JOBS["gru"], self.made["gru"]
        folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-test-"))
        self.addCleanup(shutil.rmtree, folder)
        source = pathlib.Path(job["model"]["source"])
        (folder / source.name).write_text("/* moved\n * by three\n * lines */\n" + source.read_text())
        after = Recorded(job, folder=folder)
        moved = lambda location: re.sub(r":(\d+)$", lambda m: f":{int(m[1]) + 3}", location)
        self.assertEqual([[moved(location) for location in line.get("model", [])] for line in before.manifest["lines"]],
                         [line.get("model", []) for line in after.manifest["lines"]])
        self.assertGreater(sum("model" in line for line in after.manifest["lines"]), len(after.lines) // 3)
        text = source.read_text().split("\n")
        members = 0
        for line, content in zip(before.manifest["lines"], before.lines):
            member = re.match(r"  alignas\(64\) float (\w+)_(weight|bias)\[", content)
            if member and line["model"]:
                members += 1
                named = [text[int(location.rsplit(":", 1)[1]) - 1] for location in line["model"]]
                self.assertTrue(any(f'"{member[1]}"' in source for source in named), (content, named))
        self.assertGreaterEqual(members, 3)

    def test_page(self):
        """The audit's page has each line's locations next to it, as strings, where the manifest describes the program."""
        job = json.loads(json.dumps(JOBS["table"]))
        job["checkpoint"]["project_dir"] = '"><script>alert(1)</script><x y="'
        recorded = Recorded(job)
        self.addCleanup(shutil.rmtree, recorded.folder)
        page = Page()
        page.feed(recorded.run("audit", "trainer.c", "--format", "html").stdout)
        self.assertNotIn("script", page.tags)
        self.assertEqual(len(page.notes), len(recorded.lines))
        values = {key["key"]: key["value"] for key in recorded.manifest["keys"]}
        for line, (words, more) in zip(recorded.manifest["lines"], page.notes):
            self.assertTrue(words.startswith(line["template"][0].rsplit("/", 1)[-1]), words)
            self.assertEqual([text for text in more.split("\n") if " = " in text],
                             [f"{key} = {values[key]}" for key in line["keys"]])
        (recorded.folder / "trainer.c").write_text(recorded.text + "\n")
        page = Page()
        page.feed(recorded.run("audit", "trainer.c", "--format", "html").stdout)
        self.assertEqual(page.notes, [], "another program than the manifest's")

    def test_same_bytes(self):
        """Written again elsewhere, under other circumstances: the same manifest."""
        again = Recorded(JOBS["table"], TZ="Pacific/Chatham", LC_ALL="C.utf8", USER="somebody", MALLOC_PERTURB_="165")
        self.addCleanup(shutil.rmtree, again.folder)
        name = "trainer.manifest.json"
        self.assertEqual((again.folder / name).read_bytes(), (self.made["table"].folder / name).read_bytes())
        self.assertNotIn(str(again.folder), (again.folder / name).read_text())

    def without(self, recorded, *words):
        """The numbers of the lines whose text the program of other words does not have at all, and that program. Any --set removes the
        name of the job's file, which is no key's."""
        made = run("job.yaml", "-o", "other.c", *words, cwd=recorded.folder)
        if made.returncode != 0:
            return None, None
        there = collections.Counter(line for file in recorded.folder.glob("other.c*") for line in file.read_text().split("\n"))
        for file in recorded.folder.glob("other.c*"):  # other.cu, too, of a program for GPUs
            file.unlink()
        return {number for number, line in enumerate(recorded.lines, 1) if line not in there and not line.startswith("    .job_file = ")}, there

    def test_keys_are_complete(self):
        """Every line that goes when a key gets a value that a user might give it has the key: values of
        tests/program/keys.py, which the generator does not know."""
        groups = {"gpt2": ("model", "accumulation", "memory", "optimizer", "schedule", "checkpoint", "tracking"), "gru": "precision", "table": ("data", "training", "optimizer.name")}
        tried = gone = missing = 0
        for name, recorded in self.made.items():
            present = {key["key"] for key in recorded.manifest["keys"]}
            for key, values in keys.all_values().items():
                if key not in present or not key.startswith(groups[name]):
                    continue
                for value in values[:2]:
                    lines, _ = self.without(recorded, "--set", f"{key}={json.dumps(value)}")
                    if lines is None:
                        continue
                    tried += 1
                    gone += len(lines)
                    lost = lines - recorded.lines_of(key)
                    missing += len(lost)
                    if lost:
                        print(name, key, value, [recorded.lines[n - 1] for n in sorted(lost)][:4])
        print(f"{tried} other values, {gone} lines gone, {missing} of them without the key")
        self.assertGreater(tried, 80)
        self.assertLessEqual(missing, gone / 1000)

    def test_keys_are_exact(self):
        """Every line that has a key is another one, or elsewhere, with one of the values that are named."""
        recorded = self.made["table"]
        moved = total = 0
        for key in recorded.manifest["keys"][::4]:
            left = recorded.lines_of(key["key"])
            for value in key["tried"]:
                if key["key"] == "model.source":
                    shutil.copy(recorded.folder / "mlp_table.c", recorded.folder / value.strip('"'))
                lines, there = self.without(recorded, "--set", f"{key['key']}={value}")
                self.assertIsNotNone(lines, f"{key['key']}={value}")
                counts = collections.Counter(recorded.lines)
                left -= lines | {n for n in left if there[recorded.lines[n - 1]] < counts[recorded.lines[n - 1]]}
            total += len(recorded.lines_of(key["key"]))
            moved += len(left)
        print(f"{total} lines of keys, {moved} of them there, too, but elsewhere")
        self.assertGreater(total, 100)
        self.assertLess(moved, total / 10)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
