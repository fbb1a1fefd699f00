"""Folders include what docs/architecture.md ("What includes what") says, and nothing else: those that are above them in its
list, so there are no cycles, and a folder within another does not include that one. TAP."""

import collections
import os
import re

from tap import TREE, finish, report

ROOTS = ("include", "runtime", "gen")


def read_list(document):
    """The folders in their order, each with what it may include."""
    text = document[document.index("## What includes what") :]
    allowed, folder = {}, None
    for line in re.search(r"```\n(.*?)```", text, re.S)[1].splitlines():
        words = line.split()
        if not words:
            continue
        if not line.startswith(" "):  # else it continues the line before
            folder, *words = words
            if folder in allowed:
                raise ValueError(f"docs/architecture.md lists {folder} twice")
            allowed[folder] = []
        tree = folder.split("/")[0]
        allowed[folder] += [word if word.split("/")[0] in ROOTS else f"{tree}/{word}" for word in words]
    return allowed


def wrong_list(allowed):
    """What is wrong with the list itself."""
    order = list(allowed)
    for at, folder in enumerate(order):
        for other in allowed[folder]:
            if other not in order:
                yield f"{folder}: {other} is not in the list"
            elif other not in order[:at]:
                yield f"{folder}: {other} is below it"
            elif folder.startswith(other + "/") and not folder.startswith("include/accel/"):
                yield f"{folder}: {other} is the folder that it is in"


def wrong_includes(allowed, includes):
    """`includes`: of each folder those that it includes, with a location for each. What differs from the list."""
    for folder, locations in includes.items():
        if folder not in allowed:
            yield f"{folder} is not in the list"
            continue
        yield from (f"{location}: {folder} does not include {other}" for other, location in locations.items() if other not in allowed[folder])
    for folder, others in allowed.items():
        if folder not in includes:
            yield f"{folder} of the list is no folder of sources"
            continue
        yield from (f"{folder} does not include {other}, which the list says" for other in others if other not in includes[folder])


def includes_of(tree):
    """Of each folder of sources what other folders it includes, and where; a file is named from the root or from its own folder."""
    found = collections.defaultdict(dict)
    for source in sorted(path for root in ROOTS for path in (tree / root).rglob("*.[ch]")):
        folder = str(source.parent.relative_to(tree))
        found[folder]
        for number, line in enumerate(source.read_text().splitlines(), 1):
            name = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not name:
                continue
            path = tree / name[1] if (tree / name[1]).exists() else source.parent / name[1]
            other = os.path.relpath(path.parent, tree)
            if other != folder:
                found[folder].setdefault(other, f"{source.relative_to(tree)}:{number}")
    return found


def self_test():
    """Each mistake in a list or in a tree is found."""
    good = read_list("## What includes what\n```\ngen/a\ngen/b/c  a\n\ngen/b    a\n         b/c\n```\n")
    yield good == {"gen/a": [], "gen/b/c": ["gen/a"], "gen/b": ["gen/a", "gen/b/c"]} and not list(wrong_list(good))
    tree = {"gen/a": {}, "gen/b/c": {"gen/a": "x.c:1"}, "gen/b": {"gen/a": "y.c:1", "gen/b/c": "y.c:2"}}
    yield not list(wrong_includes(good, tree))
    yield list(wrong_list({"gen/a": ["gen/b"], "gen/b": ["gen/a"]})) == ["gen/a: gen/b is below it"]
    yield list(wrong_list({"gen/b": [], "gen/b/c": ["gen/b"]})) == ["gen/b/c: gen/b is the folder that it is in"]
    yield list(wrong_list({"gen/a": ["gen/d"]})) == ["gen/a: gen/d is not in the list"]
    yield list(wrong_includes(good, {**tree, "gen/a": {"gen/b": "z.c:7"}})) == ["z.c:7: gen/a does not include gen/b"]
    yield list(wrong_includes(good, {**tree, "gen/b/c": {}})) == ["gen/b/c does not include gen/a, which the list says"]
    yield list(wrong_includes(good, {**tree, "gen/e": {}})) == ["gen/e is not in the list"]


if __name__ == "__main__":
    allowed = read_list((TREE / "docs" / "architecture.md").read_text())
    report("a mistake is found", [f"case {i}" for i, good in enumerate(self_test()) if not good])
    report("the list has an order", list(wrong_list(allowed)))
    report("folders include what the list says", list(wrong_includes(allowed, includes_of(TREE))))
    finish()
