"""Jobs and models of earlier versions are read with the same meaning, or refused with what is now instead of a key, a value or a function;
what of a document is no version's; the key `requires`. `--write` writes tests/spec/versions/MINOR.json of the current version. TAP."""

import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build"))

from tap import TREE, finish, report, run  # noqa: E402

SCHEMA = json.loads((TREE / "schemas" / "job.schema.json").read_text())
HEADERS = [TREE / "include" / "accel" / f"{name}.h" for name in ("model", "images", "losses", "hooks")]
VERSIONS = TREE / "tests" / "spec" / "versions"
LEAST, MOST = ("minimum", "exclusiveMinimum", "minLength", "minItems"), ("maximum", "exclusiveMaximum", "maxItems")


def target(schema):
    return {**SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], **schema} if "$ref" in schema else schema


def keys_of(schema, path=""):
    """Each key with what of its schema says which values it takes."""
    for key, inner in target(schema).get("properties", {}).items():
        inner = target(inner)
        yield path + key, {word: inner[word] for word in ("type", "enum", "default", *LEAST, *MOST) if word in inner}
        yield from keys_of(inner.get("items", inner), f"{path}{key}.")


def functions():
    text = re.sub(r"(?s)/\*.*?\*/|#[^\n]*", "", "".join(header.read_text() for header in HEADERS))
    return sorted(set(re.findall(r"(?m)^(?!typedef|static)[\w *]*?\b(\w+)\([^;{]*\);", text)))


def words(value):
    return set(value if isinstance(value, list) else [value])


def narrower(then, now):
    """What the key took, and takes no longer."""
    if "type" in now and not words(then.get("type")) <= words(now["type"]):
        yield f"type {now['type']}"
    if "enum" in now and not set(then.get("enum", [])) <= set(now["enum"]):
        yield f"without {set(then['enum']) - set(now['enum'])}"
    yield from (f"{word} {now[word]}" for word in LEAST if word in now and now[word] > then.get(word, float("-inf")))
    yield from (f"{word} {now[word]}" for word in MOST if word in now and now[word] < then.get(word, float("inf")))
    if then.get("default") != now.get("default"):
        yield f"default {now.get('default')}, not {then.get('default')}"


def model_with(name):
    """A model that calls a function: what check says of it."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "model.c"
        source.write_text(f'#include "accel/model.h"\nstruct config {{ int n; }};\nvoid model(struct config c, tensor x) {{ loss({name}(x)); }}\n')
        return run("model", "check", source, "--set", "data.features=4").stderr


def compare(file):
    then, now = json.loads(file.read_text()), dict(keys_of(SCHEMA))
    wrong = [f"{key} is gone" for key in then["keys"] if key not in now]
    wrong += [f"{key}: {what}" for key, schema in then["keys"].items() if key in now for what in narrower(schema, now[key])]
    for name in set(then["functions"]) - set(functions()):
        wrong += [] if f"accel-gen {file.stem}'s '{name}' is " in (said := model_with(name)) else [f"{name}: {said}"]
    report(f"version {file.stem}: {len(then['keys'])} keys, {len(then['functions'])} functions", wrong)


def requires():
    version = re.search(r"accel-gen (\S+)", run("version").stdout)[1]
    with tempfile.TemporaryDirectory() as folder:
        job = pathlib.Path(folder) / "job.yaml"
        job.write_text("no_such_key: 1\nrequires: '>=9'\n")
        said = run("check", job).stderr
        report("a job for another version is refused before anything else of it",
               [] if f"{job}:2:11: error: the job requires accel-gen >=9; {version} is installed" in said and "no_such_key" not in said else [said])
    tiny = TREE / "examples" / "jobs" / "tiny.yaml"
    resolved = run("check", "--resolved", tiny, "--set", f"requires=<={version},>0.1")
    report("a job for this version", [] if resolved.returncode == 0 and "requires: " in resolved.stdout else [resolved.stderr])


def main():
    if "--write" in sys.argv:
        minor = re.search(r"accel-gen (\d+\.\d+)", run("version").stdout)[1]
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(schema)}" for key, schema in keys_of(SCHEMA))
        (VERSIONS / f"{minor}.json").write_text(f'{{"keys": {{\n{lines}}},\n "functions": {json.dumps(functions())}}}\n')
        return
    for file in sorted(VERSIONS.glob("*.json")):
        compare(file)
    requires()
    finish()


if __name__ == "__main__":
    main()
