"""A string of a job or a model's name is data: hostile ones change literals and comments of the program, and nothing
else. Each hostile program is compared token by token with that of harmless strings of the same job, and compiled."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import GENERATOR, MODELS
from matrix import library_flags
from rotation import rotating

HOSTILE = [
    '"; system("id"); "',
    "*/ int hacked; /*",
    "/* // */",
    "**/ #error",
    "??/",
    "a\\",
    "a\\\\\"",
    "%s%n%d",
    "{{ job_digest }}",
    "{% raw %}",
    "{# comment #}",
    "line\\nbreak",
    "tab\\there",
    "naïve 名 \U0001f600",
    "$(id) `id` ${HOME}",
    "'; DROP TABLE",
    "\\x41\\u0041\\101",
    "#include <x>",
    "_Pragma(\"x\")",
    "//",
    "a" * 200,
]

TOKEN = re.compile(
    rb"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
       | [A-Za-z_]\w* | \.?\d[\w.+-]* | \s+ | \#.*?$ | .""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def structure(text):
    """The program's tokens without white space and comments; a literal stands for any, adjacent ones for one."""
    tokens = []
    for token in TOKEN.findall(text):
        if token.isspace() or token.startswith((b"/*", b"//")):
            continue
        token = b'""' if token.startswith(b'"') else token
        if not (token == b'""' and tokens and tokens[-1] == b'""'):
            tokens.append(token)
    return tokens


def generate(folder, job, name="job.yaml"):
    (folder / name).write_text(json.dumps(job, ensure_ascii=False))
    return subprocess.run([GENERATOR, f"./{name}", "-o", "-"], cwd=folder, capture_output=True)


def job_with(text, model="model.c", key=None):
    job = {
        "model": {"source": model, "config": {"n_layer": 1, "width": 3, "n_classes": 2}},
        "data": {"train": {"path": "train.csv", "format": "csv"}, "features": 2, "batch_size": 1},
        "training": {"steps": 1},
        "checkpoint": {"project_dir": "run"},
    }
    if key == "data.eval.path":
        job["data"]["eval"] = {"path": text, "format": "csv"}
    elif key == "data.train.path":
        job["data"]["train"]["path"] = text
    elif key == "model.weights":
        job["model"]["weights"] = text
    elif key == "checkpoint.project_dir":
        job["checkpoint"]["project_dir"] = text
    return job


class Injection(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        shutil.copy(MODELS / "mlp_table.c", self.folder / "model.c")

    def compile(self, text, what):
        result = subprocess.run(["gcc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c", "-",
                                 *library_flags("--cflags")], input=text, capture_output=True)
        self.assertEqual(result.returncode, 0, f"{what}:\n{result.stderr.decode(errors='replace')[:2000]}")

    def same(self, hostile, benign, what):
        self.assertEqual(hostile.returncode, 0, f"{what}: {hostile.stderr.decode(errors='replace')}")
        self.assertEqual(benign.returncode, 0, benign.stderr.decode(errors="replace"))
        digest = rb'"[0-9a-f]{64}"'
        self.assertEqual(structure(re.sub(digest, b'""', hostile.stdout)),
                         structure(re.sub(digest, b'""', benign.stdout)), what)

    def test_keys(self):
        for key in ["data.train.path", "data.eval.path", "model.weights", "checkpoint.project_dir"]:
            benign = generate(self.folder, job_with("benign", key=key))
            for text in HOSTILE:
                with self.subTest(key=key, text=text):
                    made = generate(self.folder, job_with(text, key=key))
                    self.same(made, benign, f"{key}: {text}")
                    self.compile(made.stdout, f"{key}: {text}")

    def test_runtime_sees_the_same_string(self):
        """What a job says arrives in the program unchanged: its literal, read back by a C compiler."""
        for text in HOSTILE:
            with self.subTest(text=text):
                made = generate(self.folder, job_with(text, key="checkpoint.project_dir")).stdout
                literal = re.search(rb'\.project_dir =\s+((?:"(?:\\.|[^"\\])*"\s*)+),', made).group(1)
                program = b"#include <stdio.h>\nint main(void) { fputs(" + literal + b", stdout); }\n"
                binary = self.folder / "echo"
                subprocess.run(["gcc", "-std=c17", "-trigraphs", "-x", "c", "-", "-o", binary], input=program, check=True,
                               capture_output=True)
                self.assertEqual(subprocess.check_output([binary]).decode(), text)

    def hooked(self, source):
        hook = "#include <accel/hooks.h>\nvoid on_end(struct accel_run *run, const struct accel_progress *at) {}\n"
        (self.folder / source).write_text(hook)
        return generate(self.folder, {**job_with("x"), "hooks": {"source": source, "on_end": "on_end"}})

    def test_file_names(self):
        names = [text.replace("/", "_") for text in HOSTILE] + ["*", "a*", "*_", "a b.c", "-rf", "a\nb", "a\n#error"]
        benign = generate(self.folder, job_with("x"))
        for name in names:
            with self.subTest(name=name):
                # The job's file.
                made = generate(self.folder, job_with("x"), name=f"{name}.yaml")
                self.same(made, benign, f"job {name}")
                self.compile(made.stdout, f"job {name}")
                # The model's.
                if "\n" in name:  # YAML in JSON's form may hold it, a path may not
                    continue
                shutil.copy(MODELS / "mlp_table.c", self.folder / f"{name}.c")
                made = generate(self.folder, job_with("x", model=f"./{name}.c"))
                self.same(made, benign, f"model {name}")
                self.compile(made.stdout, f"model {name}")
                # The hooks', which stands in comments.
                made, plain = (self.hooked(source) for source in (f"./{name}.c", "./hooks.c"))
                self.same(made, plain, f"hooks {name}")
                self.compile(made.stdout, f"hooks {name}")

    def named(self, *names):
        """The program of a model with a bare parameter of each name."""
        sum_of = "".join(f'  x = add(x, parameter(s, "{name}", 3));\n' for name in names)
        (self.folder / "model.c").write_text(
            "#include <accel/model.h>\nstruct config { int n_layer, width, n_classes; };\n"
            "tensor model(scope s, struct config c, tensor features, tensor labels) {\n"
            f'  tensor x = linear(at(s, "in"), features, c.width);\n{sum_of}'
            '  return cross_entropy(linear(at(s, "out"), x, c.n_classes), labels);\n}\n')
        return generate(self.folder, job_with("x"))

    def test_parameter_names(self):
        """Names that C, its headers or the program have for their own are good; so are those that differ in little."""
        made = self.named("float", "class", "__INT_MAX__", "_Bool", "linux", "NULL", "I", "INFINITY", "PARAMETER", "main",
                          "alignas", "static_assert", "a-b", "a_b", "a.b", "1", "01", "x-1", "W", "w", "weights", "arena",
                          "n" * 255)
        self.assertEqual(made.returncode, 0, made.stderr.decode())
        self.compile(made.stdout, "parameters")
        self.assertIn(b'"__INT_MAX__"', made.stdout)

    def test_parameter_names_that_are_refused(self):
        """Those that no file of safetensors could hold, no tree of names, and no reader of checkpoints."""
        for names, message in ((["__metadata__"], '5:27: error: "__metadata__" is not a name for a parameter'),
                               (["w", "w.b"], "6:14: error: parameter 'w.b' is below another parameter"),
                               (["w.b.c", "w.b"], "6:14: error: parameter 'w.b' has other parameters below it"),
                               (["in.weight.b"], "5:14: error: parameter 'in.weight.b' is below another parameter")):
            made = self.named(*names)
            self.assertEqual(made.returncode, 2, names)
            self.assertIn(message, made.stderr.decode())
            self.assertEqual(made.stdout, b"")
        (self.folder / "model.c").write_text((self.folder / "model.c").read_text().replace(
            "s, \"in.weight.b\"", f'at(s, "{"n" * 250}"), "{"n" * 250}"'))
        self.assertIn(b"n\xe2\x80\xa6' has a name of more than 500 letters", generate(self.folder, job_with("x")).stderr)
        self.assertEqual(self.named("a.__metadata__x", "__metadata", "n" * 255).returncode, 0)


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
