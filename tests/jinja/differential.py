"""Compares gen/jinja with Jinja2 itself: hand-written cases, then random templates.

usage: differential.py [DRIVER] [--random N] [--seed S] [--only WORD] [--tap]

Both engines must give the same text, or both an error. One line per failing case, a summary at the end, exit status 1
when anything failed. The seed is printed: the same seed gives the same templates. Without --seed it is the
environment's SEED, and 1 where that is not set. --tap names each hand-written case that passed as well.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import queue
import random
import subprocess
import sys
import threading
import time

import jinja2

HERE = pathlib.Path(__file__).parent
UNDEFINED = {
    "lenient": jinja2.Undefined,
    "chainable": jinja2.ChainableUndefined,
    "debug": jinja2.DebugUndefined,
    "strict": jinja2.StrictUndefined,
}
# Differences that docs/jinja.md names: a case that ends in one of these is counted apart.
DOCUMENTED = ("64-bit", "64 bits", "cannot be changed", "too long", "too deeply", "too large", "too many steps")


class Driver:
    """The C engine at the other end of a pipe. Requests are written by a thread so that neither side waits for the other."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.requests = queue.Queue()
        threading.Thread(target=self._write, daemon=True).start()

    def _write(self):
        while True:
            self.process.stdin.write(self.requests.get())
            self.process.stdin.flush()

    def send(self, case):
        request = {"templates": case["templates"], "main": "main", "values": case["values"], "options": case["options"]}
        self.requests.put((json.dumps(request) + "\n").encode())

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the driver died: exit status {self.process.wait()}")
        return json.loads(line)


def oracle(case):
    options = dict(case["options"])
    undefined = UNDEFINED[options.pop("undefined", "lenient")]
    environment = jinja2.Environment(
        loader=jinja2.DictLoader(case["templates"]),
        undefined=undefined,
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"],
        **options,
    )
    try:
        # a deep copy: templates can change what they are given
        return {"text": environment.get_template("main").render(json.loads(json.dumps(case["values"])))}
    except Exception as error:  # noqa: BLE001 - any error is an answer here
        return {"error": f"{type(error).__name__}: {error}"}


def normal(case):
    """A case is "template", or (template or {name: template}, values, options), the last two optional."""
    if isinstance(case, str):
        case = (case,)
    templates, values, options = (list(case) + [{}, {}])[:3] if len(case) < 3 else case
    if isinstance(templates, str):
        templates = {"main": templates}
    return {"templates": templates, "values": values, "options": options}


def load_cases():
    for path in sorted((HERE / "cases").glob("*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for number, case in enumerate(module.CASES, 1):
            case = normal(case)
            case["values"] = {**getattr(module, "VALUES", {}), **case["values"]}
            case["name"] = f"{path.stem}:{number}"
            yield case


def is_documented(case, got, expected):
    """Whether docs/jinja.md names this difference."""
    if " at 0x" in expected.get("text", ""):  # an address of a Python object: nothing to compare with
        return True
    error = got.get("error", "")
    # Jinja2 does not look for unknown filters and tests after an extends or a constant that decides; we do
    if error.startswith("No ") and "named '" in error and "text" in expected:
        source = case["templates"]["main"]
        return "extends" in source or any(f" {word} " in source for word in ("or", "and", "if"))
    return any(word in error for word in DOCUMENTED)


def run(driver, cases, counts, tap=False):
    window = []

    def finish():
        case, expected = window.pop(0)
        got = driver.answer()
        same = ("error" in got and "error" in expected) or ("text" in got and got.get("text") == expected.get("text"))
        counts["cases"] += 1
        counts["errors"] += same and "error" in got
        documented = not same and is_documented(case, got, expected)
        counts["documented"] += documented
        if same or documented:
            if tap:
                print(f"ok {case['name']}")
            return
        counts["failed"] += 1
        print(f"not ok {case['name']} {json.dumps(case['templates'])} {json.dumps(case['options'])}\n"
              f"     want {expected}\n     got  {({k: v for k, v in got.items() if k in ('text', 'error')})}")

    for case in cases:
        driver.send(case)
        window.append((case, oracle(case)))
        if len(window) > 32:
            finish()
    while window:
        finish()


def random_cases(count, seed):
    sys.path.insert(0, str(HERE))
    import generator

    for number in range(count):
        case = normal(generator.case(random.Random(f"{seed}:{number}")))
        case["name"] = f"random:{seed}:{number}"
        yield case


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("driver", nargs="?", default="build/tests/jinja/render_driver")
    parser.add_argument("--random", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED") or 1))
    parser.add_argument("--only", default="")
    parser.add_argument("--tap", action="store_true")
    arguments = parser.parse_args()
    seed = arguments.seed
    driver = Driver(arguments.driver)
    failed = 0
    for what, cases in (("hand-written", load_cases()), ("random", random_cases(arguments.random, seed))):
        counts = {"cases": 0, "errors": 0, "documented": 0, "failed": 0}
        started = time.monotonic()
        run(driver, (case for case in cases if arguments.only in case["name"]), counts, arguments.tap and what == "hand-written")
        failed += counts["failed"]
        if arguments.tap and what == "random" and counts["failed"] == 0:
            print(f"ok {counts['cases']} random templates, seed {seed}")
        print(f"{what}: {counts['cases']} cases, {counts['failed']} failed, {counts['errors']} an error on both sides, "
              f"{counts['documented']} documented differences, {time.monotonic() - started:.1f} s"
              + (f", seed {seed}" if what == "random" else ""))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
