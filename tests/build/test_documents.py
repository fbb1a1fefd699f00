"""What documents name is there: links and their headings, files and folders of the tree, every folder of the generator and of the
runtime on the map, every pass of the plan in its order. TAP."""

import re

from tap import TREE, finish, report, run

PARTS = "gen|runtime|templates|tests|tools|examples|schemas|share|include"
INSTALLED = ("share/accel-gen", "share/man/", "share/bash-completion/", "share/zsh/", "share/fish/")  # below a prefix, not in the tree


def anchor(heading):
    """As GitHub makes it of a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub("[`*]", "", heading.strip().lower()))
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def links(document, text, headings):
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, heading = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        if "://" in link:
            continue
        if not target.exists() or (heading and target in headings and heading not in headings[target]):
            yield link


def names(text):
    """Paths from the root of the tree; those with words in capitals are patterns."""
    for name in re.findall(rf"(?<![\w./-])((?:{PARTS})/[\w./*-]*\w)", text):
        many = re.search(r"[A-Z]{4}", name.replace("README", "").replace("CONTRIBUTING", ""))
        if not many and not name.startswith(INSTALLED) and not any(TREE.glob(name)):
            yield name


def folders():
    map_of_tree = (TREE / "docs" / "architecture.md").read_text()
    for part in ("gen", "runtime"):
        for folder in sorted({source.parent.relative_to(TREE) for source in (TREE / part).glob("*/**/*.c")}):
            if f"`{folder}`" not in map_of_tree:
                yield f"docs/architecture.md has no {folder}"


def sources():
    """Those of the template engine, of which docs/jinja.md has a table."""
    patterns = re.findall(r"`([\w*]+\.c)`", (TREE / "docs" / "jinja.md").read_text())
    return [path.name for path in sorted((TREE / "gen" / "jinja").glob("*.c")) if not any(path.match(pattern) for pattern in patterns)]


def passes():
    said = run("plan", TREE / "examples" / "jobs" / "tiny.yaml", "--dump", "?")
    wanted = re.search(r"the passes are (.*)", said.stderr)[1].split(", ")
    table = (TREE / "docs" / "architecture.md").read_text().split("| pass | what it does |\n|---|---|\n")[1].split("\n\n")[0]
    listed = re.findall(r"^\| (\w+) \|", table, re.M)
    return [] if listed == wanted else [f"listed {listed}", f"are {wanted}"]


def main():
    documents = sorted({*TREE.glob("*.md"), *TREE.glob("docs/*.md"), *TREE.glob("tests/**/*.md")})
    texts = {document: document.read_text() for document in documents}
    headings = {document: {anchor(line) for line in re.findall(r"^#+ (.*)$", text, re.M)} for document, text in texts.items()}
    for document, text in texts.items():
        report(document.relative_to(TREE), [*links(document, text, headings), *names(text)])
    report("folders", list(folders()))
    report("sources of gen/jinja", sources())
    report("passes", passes())
    finish()


if __name__ == "__main__":
    main()
