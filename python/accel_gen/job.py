"""Jobs, programs and runs. Each step is a command of accel-gen, which needs no Python; what it prints is passed on."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

from accel_gen.command import find


class AccelGenError(Exception):
    """What a command or a program wrote on standard error when it failed; `status` is its exit status."""

    def __init__(self, message, status):
        super().__init__(message.strip() or f"exit status {status}")
        self.status = status


def _read(words, folder):
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if result.returncode != 0:
        raise AccelGenError(result.stderr, result.returncode)
    return result.stdout


def _show(words, folder):
    """Runs a command to its end and prints what it writes, line by line, as it comes. An interrupt of the notebook asks
    it to end, which saves the run; the call returns when it has."""
    last, interrupted = [], False
    with subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", start_new_session=True) as process:
        while process.returncode is None:
            try:
                for line in process.stdout:
                    sys.stdout.write(line)
                    sys.stdout.flush()
                    last = [*last[-19:], line]
                process.wait()
            except KeyboardInterrupt:
                interrupted = True
                process.send_signal(signal.SIGINT)
    status = process.returncode
    if status != 0 and not (interrupted and status == 128 + signal.SIGINT):
        raise AccelGenError("".join(last), status)


class Job:
    """A job: the path of its YAML file, or a dict of the same form, which is written to `path`. `changes` are keys that
    differ, {"optimizer.lr": 3e-4}, as --set gives them. Paths in a job are relative to its file."""

    def __init__(self, source, changes=None, path="job.json"):
        if isinstance(source, dict):
            Path(path).write_text(json.dumps(source, indent=2) + "\n")
            source = path
        self.path = Path(source).resolve()
        self.folder = self.path.parent
        self.changes = dict(changes or {})

    def _words(self, command, *words):
        changes = [word for key, value in self.changes.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        return [find(), *command, self.path.name, *changes, *words]

    def check(self):
        """Nothing, or an AccelGenError that names the line and what would work."""
        _read(self._words(["check"]), self.folder)

    def resolved(self):
        """The job with every default, as YAML with the source of each value."""
        return _read(self._words(["check"], "--resolved"), self.folder)

    def plan(self):
        """The plan: parameters, memory, collectives, choices, as `accel-gen plan --json` gives them."""
        return json.loads(_read(self._words(["plan"], "--json"), self.folder))

    def source(self, program="train"):
        """The text of the program in C: "train", "evaluate" or "generate"."""
        return _read(self._words([], "--program", program, "-o", "-"), self.folder)

    def build(self, output=None, program="train"):
        """Generates and compiles the program. It is `output`, or trainer, evaluator or generator in the job's folder."""
        name = {"train": "trainer", "evaluate": "evaluator", "generate": "generator"}
        output = Path(output).resolve() if output else self.folder / name.get(program, program)
        _read(self._words(["build"], "--program", program, "-o", str(output)), self.folder)
        return Program(output, self)

    def project_dir(self):
        text = re.search(r"^  project_dir: (.*?) +#", self.resolved(), re.MULTILINE)[1]
        return json.loads(text) if text.startswith('"') else text.strip("'")


class Program:
    """A program that was built."""

    def __init__(self, path, job):
        self.path, self.job = Path(path), job

    def run(self, *flags, project_dir=None, hosts=None):
        """Trains with all the job's ranks, on this machine or on `hosts`, and prints what the program prints. `flags` are
        the program's: "--steps", 100. Gives the run."""
        project_dir = str(project_dir or self.job.project_dir())
        words = [find(), "launch", *(["--hosts", ",".join(hosts)] if hosts else []), str(self.path), "--project-dir", project_dir]
        _show([*words, *map(str, flags)], self.job.folder)
        return Run(self.job.folder / project_dir)

    def read(self, *flags):
        """What an evaluator or a text generator prints: .read("--prompt", "Once")."""
        return _read([str(self.path), *map(str, flags)], self.job.folder)


class Run:
    """The folder that a run writes: metrics.jsonl, the weights, checkpoints."""

    def __init__(self, folder):
        self.folder = Path(folder)

    @property
    def weights(self):
        """model.safetensors, or what diffusers calls it where the model is of its classes."""
        own = self.folder / "diffusion_pytorch_model.safetensors"
        return own if own.exists() else self.folder / "model.safetensors"

    def metrics(self):
        """A dict for each line of metrics.jsonl; one that a stopped run has not finished is left out."""
        text = (self.folder / "metrics.jsonl").read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def column(self, name):
        """The values of one metric, of the lines that have it."""
        return [line[name] for line in self.metrics() if name in line]
