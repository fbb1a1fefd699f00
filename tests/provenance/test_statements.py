"""The statement and the bill of materials next to a program: valid by in-toto's and CycloneDX's own libraries, true by
the digests of the files, and the same wherever they are written. Hostile names stay strings."""

import json
import os
import pathlib
import shutil
import tempfile
import unittest

from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from google.protobuf import json_format
from in_toto_attestation.predicates.provenance.v1.provenance_pb2 import Provenance
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from recorded import GENERATOR, TREE, run, sha256  # first: the others are in tests/program
from harness import need_part  # isort: skip
from matrix import gpt, mlp  # isort: skip
from test_injection import HOSTILE  # isort: skip

LIBRARIES = {"accel-runtime", "oneDNN", "jansson", "OpenMP runtime", "libm"}


class Statements(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, job, folder="."):
        job = json.loads(json.dumps(job))
        source = pathlib.Path(job["model"]["source"])
        (self.folder / folder).mkdir(exist_ok=True)
        for file in [source, *source.parent.glob("*.h")]:
            shutil.copy(file, self.folder / folder / file.name)
        job["model"]["source"] = source.name
        (self.folder / folder / "job.yaml").write_text(json.dumps(job))
        return self.folder / folder

    def made(self, *words, cwd, **environment):
        result = run(*words, cwd=cwd, **environment)
        self.assertEqual(result.returncode, 0, result.stderr)

    def statement(self, path):
        """A statement, after in-toto's library has read and checked it, as a dict."""
        text = pathlib.Path(f"{path}.intoto.json").read_text()
        message = json_format.Parse(text, StatementMessage())
        Statement.copy_from_pb(message).validate()
        json_format.Parse(json.dumps(json.loads(text)["predicate"]), Provenance())  # refuses a member that it does not know
        self.assertEqual(message.predicate_type, "https://slsa.dev/provenance/v1")
        return json.loads(text)

    def sbom(self, path):
        text = pathlib.Path(f"{path}.cdx.json").read_text()
        self.assertIsNone(JsonStrictValidator(SchemaVersion.V1_6).validate_str(text))
        sbom = json.loads(text)
        self.assertEqual(len(Bom.from_json(sbom).components), len(sbom["components"]))
        return sbom

    def check(self, folder, name, kind):
        statement, sbom = self.statement(folder / name), self.sbom(folder / name)
        digest = sha256(folder / name)
        self.assertEqual(statement["subject"], [{"name": name, "digest": {"sha256": digest}}])
        component = sbom["metadata"]["component"]
        self.assertEqual((component["name"], component["hashes"], component["type"]),
                         (name, [{"alg": "SHA-256", "content": digest}], kind))
        own = sha256(GENERATOR)
        predicate = statement["predicate"]
        self.assertEqual(predicate["runDetails"]["builder"]["builderDependencies"][0]["digest"]["sha256"], own)
        self.assertEqual(sbom["metadata"]["tools"]["components"][0]["hashes"][0]["content"], own)
        resolved = {part["name"]: part["digest"]["sha256"] for part in predicate["buildDefinition"]["resolvedDependencies"]}
        for file, digest in resolved.items():
            path = TREE / "templates" / file if file.endswith(".j2") else folder / file
            self.assertEqual(sha256(path), digest, file)
        listed = {part["name"]: part["hashes"][0]["content"] for part in sbom["components"] if "hashes" in part}
        self.assertEqual(listed, resolved)
        self.assertEqual({part["name"] for part in sbom["components"]} - resolved.keys(), LIBRARIES)
        return statement

    def test_program_in_c(self):
        folder = self.write(gpt("gpt2").job)
        self.made("job.yaml", "-o", "trainer.c", "--provenance", "--set", "optimizer.lr=0.01", cwd=folder)
        statement = self.check(folder, "trainer.c", "file")
        parameters = statement["predicate"]["buildDefinition"]["externalParameters"]
        self.assertEqual(parameters, {"job": "job.yaml", "program": "train", "set": ["optimizer.lr=0.01"]})
        self.assertFalse((folder / "trainer.manifest.json").exists())

    def test_ranks(self):
        """A program of several ranks is linked with MPI."""
        folder = self.write(mlp("table", devices={"per_node": 2}).job)
        self.made("job.yaml", "-o", "trainer.c", "--provenance", cwd=folder)
        names = {part["name"] for part in self.sbom(folder / "trainer.c")["components"]}
        self.assertLessEqual({"accel-runtime-mpi", "MPI"}, names)
        parameters = self.statement(folder / "trainer.c")["predicate"]["buildDefinition"]["internalParameters"]
        self.assertTrue(parameters["compile"].endswith("$(pkg-config --cflags --libs accel-runtime-mpi)"))

    def test_xla(self):
        """A program for XLA loads a plugin, and has a file next to it."""
        folder = self.write(mlp("table", devices={"kind": "xla"}).job)
        self.made("job.yaml", "-o", "trainer.c", "--provenance", cwd=folder)
        names = {part["name"] for part in self.sbom(folder / "trainer.c")["components"]}
        self.assertLessEqual({"accel-runtime-xla", "PJRT plugin", "jansson"}, names)

    def test_header(self):
        """What a model includes is an input, too."""
        folder = self.write(mlp("table").job)
        (folder / "shared.h").write_text("enum { SHARED = 1 };\n")
        model = (folder / "mlp_table.c").read_text()
        (folder / "mlp_table.c").write_text(model.replace("#include", '#include "shared.h"\n#include', 1))
        self.made("job.yaml", "-o", "trainer.c", "--provenance", cwd=folder)
        parts = self.check(folder, "trainer.c", "file")["predicate"]["buildDefinition"]["resolvedDependencies"]
        self.assertEqual([part["name"] for part in parts if part["annotations"]["role"] == "header"], ["shared.h"])

    def test_build(self):
        """A compiled program; the same binary and the same words in another folder."""
        made = []
        for name, environment in (("one", {"TZ": "UTC"}), ("another environment", {"TZ": "Pacific/Chatham", "USER": "x",
                                                                             "LC_ALL": "C.utf8"})):
            folder = self.write(mlp("table").job, name)
            self.made("build", "job.yaml", "-o", "trainer", "--provenance", cwd=folder, CFLAGS="-std=c17 -O1", **environment)
            statement = self.check(folder, "trainer", "application")
            details = statement["predicate"]["runDetails"]
            self.made("job.yaml", "-o", "trainer.c", cwd=folder)
            self.assertEqual(details["byproducts"],
                             [{"name": "trainer.c", "digest": {"sha256": sha256(folder / "trainer.c")}}])
            self.assertIn(" -std=c17 -O1 ", statement["predicate"]["buildDefinition"]["internalParameters"]["compile"])
            made.append([(folder / name).read_bytes() for name in ("trainer", "trainer.intoto.json", "trainer.cdx.json")])
            for content in made[-1]:
                self.assertNotIn(str(self.folder).encode(), content)
        self.assertEqual(*made)

    def test_hostile_names(self):
        job = mlp("table").job
        folder = self.write(job)
        for text in [*HOSTILE, "\u202e", "\u2028"]:
            name = text.replace("/", "_")
            if "\n" in name:
                continue
            with self.subTest(name=name):
                shutil.copy(folder / "mlp_table.c", folder / f"{name}.c")
                job["model"]["source"], job["checkpoint"]["project_dir"] = f"./{name}.c", text
                (folder / f"{name}.yaml").write_text(json.dumps(job, ensure_ascii=False))
                self.made(f"./{name}.yaml", "-o", f"./{name}.out.c", "--provenance", cwd=folder)
                definition = self.check(folder, f"{name}.out.c", "file")["predicate"]["buildDefinition"]
                self.assertEqual([part["name"] for part in definition["resolvedDependencies"]][:2],
                                 [f"{name}.yaml", f"{name}.c"])

    def test_hostile_manifest(self):
        """All of them at once in one job, with a manifest; and a name that is no UTF-8."""
        job = mlp("table").job
        folder = self.write(job)
        job["checkpoint"]["project_dir"] = "".join(HOSTILE)
        job["model"]["source"] = "./mlp_table.c"
        (folder / "job.yaml").write_text(json.dumps(job, ensure_ascii=False))
        odd = os.fsencode(folder) + b"/\xff\".yaml"
        os.rename(folder / "job.yaml", odd)
        self.made(b"./\xff\".yaml", "-o", "trainer.c", "--manifest", "--provenance", cwd=folder)
        manifest = json.loads((folder / "trainer.manifest.json").read_text())
        self.assertEqual(manifest["inputs"][0]["name"], '?".yaml')
        keys = {key["key"]: key["value"] for key in manifest["keys"]}
        self.assertEqual(json.loads(keys["checkpoint.project_dir"]), "".join(HOSTILE))
        self.assertEqual(len(manifest["lines"]), (folder / "trainer.c").read_text().count("\n"))
        made = run("explain", "--key", "checkpoint.project_dir", "trainer.c", "--json", cwd=folder)
        self.assertEqual(json.loads(made.stdout)[0]["value"], keys["checkpoint.project_dir"])
        self.statement(folder / "trainer.c")


if __name__ == "__main__":
    need_part("statements")
    unittest.main()
