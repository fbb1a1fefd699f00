"""The formats of a report: JSON agrees with the text, SARIF and JUnit's XML have what their specifications ask for, the
page stands alone and shows each finding at its line. TAP."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import jsonschema
from claims import CASES, GOOD

GENERATOR = pathlib.Path(__file__).resolve().parents[2] / "build" / "accel-gen"

# What SARIF 2.1.0 (OASIS, sections 3.13 to 3.27) asks of the parts that are written.
TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
REGION = {"type": "object", "required": ["startLine"], "properties": {
    "startLine": {"type": "integer", "minimum": 1}, "startColumn": {"type": "integer", "minimum": 1}}}
LOCATION = {"type": "object", "required": ["physicalLocation"], "properties": {"physicalLocation": {
    "type": "object", "required": ["artifactLocation"], "properties": {
        "artifactLocation": {"type": "object", "required": ["uri"], "properties": {
            "uri": {"type": "string", "pattern": "^[A-Za-z0-9._~%/:-]+$"}}},
        "region": REGION}}}}
RESULT = {"type": "object", "required": ["ruleId", "ruleIndex", "kind", "level", "message"], "properties": {
    "kind": {"enum": ["pass", "fail"]}, "level": {"enum": ["none", "warning", "error"]}, "message": TEXT,
    "locations": {"type": "array", "items": LOCATION, "minItems": 1}}}
SARIF = {"type": "object", "required": ["version", "runs"], "properties": {
    "version": {"const": "2.1.0"}, "runs": {"type": "array", "minItems": 1, "items": {
        "type": "object", "required": ["tool", "results"], "properties": {
            "results": {"type": "array", "items": RESULT},
            "tool": {"type": "object", "required": ["driver"], "properties": {"driver": {
                "type": "object", "required": ["name", "rules"], "properties": {"rules": {
                    "type": "array", "items": {"type": "object", "required": ["id", "shortDescription"],
                                               "properties": {"shortDescription": TEXT}}}}}}}}}}}}

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
    root = ElementTree.fromstring(report(folder, "junit"))
    suite = root.find("testsuite")
    tests = suite.findall("testcase")
    broken = [t.get("name") for t in tests if t.find("failure") is not None]
    unknown = [t.get("name") for t in tests if t.find("error") is not None]
    claims = findings(folder)[0]["claims"]
    assert [t.get("name") for t in tests] == [c["id"] for c in claims] and int(suite.get("tests")) == len(claims)
    assert broken == [c["id"] for c in claims if c["verdict"] == "broken"] and int(suite.get("failures")) == len(broken)
    assert unknown == [c["id"] for c in claims if c["verdict"] == "cannot tell"] and int(suite.get("errors")) == len(unknown)


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
                except (AssertionError, jsonschema.ValidationError, ElementTree.ParseError) as error:
                    failed += 1
                    print(f"not ok {check.__name__} {number}\n  {error!r}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
