"""The table of commands and options against all that is made of it: --help, the man page, the completion, docs/commands.md, and what
a command line is refused for. `--accept` writes the tables of docs/commands.md. TAP."""

import fcntl
import json
import os
import pathlib
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "build"))

from tap import GENERATOR, TREE, finish, report, run  # noqa: E402

SCHEMA = json.loads((TREE / "schemas" / "job.schema.json").read_text())
DOCUMENT = TREE / "docs" / "commands.md"
BEGIN, END = "<!-- Written from gen/commands/cli/table.c by tests/commands/test_table.py --accept. -->\n", "<!-- end -->\n"


def commands():
    return ["JOB", *re.findall(r"^  (\w+) ", run("help").stdout, re.M)]


def options_of(command):
    """Name to its value's words in the help ("" for a flag) and, of a list of choices, the first."""
    found = {}
    text = run("help", command).stdout.split("\noptions:\n")[1]
    for line in re.findall(r"^  (-.*(?:\n {26}.*)*)", text, re.M):
        names, sentence = re.match(r"((?:-[\w-]+, )?-[\w-]+(?: [A-Z]\S*)?)(?:\s+|$)((?s:.*))", line).groups()
        value = names.split(" ")[-1] if re.search(r" [A-Z]\S*$", names) else ""
        choice = re.match(r"(\S+?),[^:]* or [^:]*:", re.sub(r"\s+", " ", sentence))
        for name in re.findall(r"--?[a-zA-Z][\w-]*", names):
            found[name] = (value, choice[1] if choice else "")
    return found


def wide(text):
    return [line for line in text.splitlines() if len(line) > 80]


def screens(known):
    overview = run("--help").stdout
    lines = overview.splitlines()
    report("--help fits a screen of 32 lines of 80 columns", wide(overview) + ([f"{len(lines)} lines"] if len(lines) > 31 else []))
    helps = [run("help", topic).stdout for topic in [*known, *re.findall(r"^  (\w+) ", run("help", "job").stdout, re.M), "elsewhere"]]
    report("every help has lines of 80 columns", [line for text in helps for line in wide(text)])


def shown(columns, *words):
    """What a command prints on a terminal of so many columns."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([GENERATOR, *words], stdout=inner, stdin=subprocess.DEVNULL) as process:
        os.close(inner)
        text = b""
        try:
            while piece := os.read(outer, 4096):
                text += piece
        except OSError:
            pass  # its other end is closed
    os.close(outer)
    return text.decode().replace("\r\n", "\n") if process.returncode == 0 else ""


def plans():
    """A plan's lines end where a terminal's do, between words; elsewhere each is one line."""
    job = TREE / "examples" / "jobs" / "tiny.yaml"
    one = run("plan", job).stdout
    narrow = shown(80, "plan", job)
    wrong = wide(narrow) + ([] if wide(one) else ["the plan has no long line to break"])
    wrong += [] if narrow.split() == one.split() else ["other words on a terminal"]
    report("a plan on a terminal of 80 columns", wrong + ([] if shown(300, "plan", job) == one else ["broken on a wide terminal"]))


def arguments(command):
    """So that nothing is found that a command could work on."""
    words = {"JOB": ["/none/job.yaml"], "model": ["model", "check", "/none/model.c"], "checkpoint": ["checkpoint", "list", "/none"],
             "diff": ["diff", "/none/a.yaml", "/none/b.yaml"], "launch": ["launch"], "explain": ["explain", "/none/a.c:1"],
             "help": ["help"], "env": ["env"], "test": ["test"], "version": ["version"]}
    return words.get(command, [command, "/none/file"])


# So that nothing is done: arguments that are not there, or one too many.
AFTER = {"launch": ["/none/job.yaml", "/none/program"], "env": ["/none/file"], "test": ["/none/file"]}


def refused(command, name, value, choice):
    numbers = {"--nodes": "2", "--rounds": "1", "--ranks": "1", "--set": "a=1", "--latency": "1", "--bandwidth": "1", "--step": "1"}
    words = arguments(command)
    words = [*words, name, *([numbers.get(name, choice or "/none")] if value else [])]
    done = run(*words, *AFTER.get(command, []))
    return re.search(r"does not take|unknown option|is missing after|no value belongs", done.stderr)


def lines_of_command(tables):
    """That a command takes what its help lists, and others' options not: every seventh of them."""
    every = {name: said for options in tables.values() for name, said in options.items()}
    for i, (command, options) in enumerate(tables.items()):
        others = [(name, said) for name, said in every.items() if name not in options][i % 7 :: 7]
        wrong = [f"{name} is refused" for name, said in options.items() if refused(command, name, *said)]
        wrong += [f"{name} is taken" for name, said in others if not refused(command, name, *said)]
        report(f"{command} takes the options of its help", wrong)


def in_bash(words):
    """What bash offers for the last of the words."""
    script = f"""shopt -s extglob; . "{TREE}/build/share/accel-gen.bash"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() {{ :; }}; _accel_gen; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script, "bash", "accel-gen", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


def in_zsh(words):
    """What zsh's file hands to the functions of its completion system, of which _files offers files."""
    script = f"""compadd() {{ local end; [[ $1 == -S ]] && end=$2 && shift 2; shift; print -rl -- ${{^@}}$end; }}
_describe() {{ print -rl -- ${{${{(P)2}}%%:*}}; }}
_files() {{ :; }}
complete() {{ source "{TREE}/build/share/_accel-gen"; }}
words=(accel-gen "$@"); CURRENT=$#words; complete"""
    done = subprocess.run(["zsh", "-f", "-c", script, "zsh", *words], capture_output=True, text=True, check=True)
    return [word for word in done.stdout.split() if word.startswith(words[-1])]


def in_fish(words):
    """What fish offers, each with its description after a tab."""
    line = shlex.join(["accel-gen", *words])
    script = f"source '{TREE}/build/share/accel-gen.fish'; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def completion(tables, completed):
    wrong = []
    for command, options in tables.items():
        first = "job.yaml" if command == "JOB" else command
        offered = set(completed([first, "-"])) - {"--version"}
        if completed is in_fish:  # after one dash it offers the short ones and the long ones
            offered |= set(completed([first, "--"])) - {"--version"}
        wrong += [f"{command}: {' '.join(sorted(offered ^ set(options)))}"] if offered != set(options) else []
        wrong += [] if command == "JOB" or command in completed([command[:2]]) else [f"{command} itself"]
    for words, offered in ((["build", "j.yaml", "--program", "ev"], "evaluate"), (["data", "f", "--format", "ll"], "llmc"),
                           (["audit", "f", "--format", "sa"], "sarif"), (["checkpoint", "ve"], "verify"), (["help", "optimi"], "optimizer"),
                           (["plan", "j.yaml", "--set", "optimizer.weight_d"], "optimizer.weight_decay=")):
        wrong += [] if offered in completed(words) else [f"{' '.join(words)} without {offered}"]
    keys = {word.rstrip("=") for word in completed(["plan", "j.yaml", "--set", ""])}
    return wrong + sorted(key for key in keys ^ set(keys_of(SCHEMA)) if "." in key)


def keys_of(schema, path=""):
    """The keys of a job in groups, with the groups."""
    schema = {**SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], **schema} if "$ref" in schema else schema
    for key, inner in schema.get("properties", {}).items():
        yield path + key
        yield from keys_of(inner, f"{path}{key}.")


def manual(tables):
    text = (TREE / "build" / "share" / "accel-gen.1").read_text().replace("\\-", "-")
    wrong = [command for command in tables if not re.search(rf"^\.B accel-gen {command}\b", text, re.M)]
    for command, options in tables.items():
        for name in options:
            entries = re.findall(rf"^\.B (?:[^\n]*[ B])?{re.escape(name)}(?: |\\fR)[^\n]*\nOf ([^:]*):", text, re.M)
            if not any(command in entry.split(", ") or entry == "all" for entry in entries):
                wrong.append(f"{name} of {command}")
    report("the man page has every command and option", wrong)


def document(accept):
    said = run("help", "--as", "markdown").stdout
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    inner, after = rest.split(END)
    if accept:
        DOCUMENT.write_text(f"{before}{BEGIN}\n{said}\n{END}{after}")
    elif inner != f"\n{said}\n":
        lines = set(inner.splitlines()) ^ set(said.splitlines())
        report("docs/commands.md", ["tests/commands/test_table.py --accept writes it", *sorted(lines)])
        return
    report("docs/commands.md", [])


def main():
    tables = {command: options_of(command) for command in commands()}
    document("--accept" in sys.argv)
    screens(tables)
    plans()
    lines_of_command(tables)
    for shell, completed in (("bash", in_bash), ("zsh", in_zsh), ("fish", in_fish)):
        name = f"the completion of {shell} offers every command, option and choice"
        report(name if shutil.which(shell) else f"{name} # SKIP no {shell} (sh tools/install-deps.sh --test)", completion(tables, completed) if shutil.which(shell) else [])
    manual(tables)
    finish()


if __name__ == "__main__":
    main()
