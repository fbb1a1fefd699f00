"""Every model of examples/models trained by its program for GPUs as nvcc compiles it, instruction by instruction (tests/cuda/standin/ptx):
losses next to those of the program for processors and to PyTorch's, from the same weights and batches, by kernels of the program's own for
attention and convolutions. A row for each program, precision and architecture.

usage: ptx_runs.py [--sm 80,90a,100] [--precisions float32,bf16] [--steps 20] [--orders N] [--keep FOLDER] [--all | NAME...]
  NAME      of a model, gpt2; without names some of the programs, which SEED chooses
  --orders  in how many drawn orders of blocks and warps the program must give the same bits
  --keep    leaves the programs, their PTX (as ptx_matrix.py --keep does) and the rows there, and takes what is there already
  --all     all programs"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import ptx
from host import Trainer
from harness import load_file  # tests/program; isort: skip
from rotation import in_turn  # tests/program; isort: skip

import ptx_examples  # isort: skip

TURNS = 14  # in which all programs have one

# The greatest difference of losses to the processor's program, and to PyTorch: relative.
PROCESSOR = {"float32": 2e-5, "bf16": 2e-2}
PYTORCH = {"float32": 5e-4, "bf16": 2e-2}
WEIGHTS = {"float32": 2.5e-3, "bf16": 1e-1}  # the mean difference, of the farthest that AdamW goes
COLUMNS = ("program", "precision", "sm", "steps", "processor", "pytorch", "weights", "orders", "seconds", "finding")


def away(found, expected):
    return max(abs(one / other - 1) for one, other in zip(found, expected, strict=True))


def saved(trainer):
    """The weights that a run has left, by the name that the model's library gives their file."""
    return load_file(next((trainer.folder / "run").glob("*model.safetensors")))


class Program:
    """A model's programs in one precision, in a folder of their own."""

    def __init__(self, name, precision, folder):
        self.name, self.precision, self.keep, steps = name, precision, folder, ptx_examples.STEPS
        self.example = ptx_examples.example(name)
        self.folder = folder / ptx_examples.program(name, precision)
        self.trainer = ptx.PtxTrainer(self.example.on_device(steps, precision), folder=self.made("cuda"))
        self.processor = Trainer(self.example.job(steps, precision), self.made("cpu"))
        self.trainer.generate()
        texts = [(self.trainer.folder / f"trainer.{ending}").read_text().replace(str(folder), "") for ending in ("c", "cu")]
        self.digest = ptx.digest(*texts)

    def made(self, device):
        folder = self.folder / device
        folder.mkdir(parents=True, exist_ok=True)
        self.example.write(folder)
        return folder

    def remembered(self, name, make):
        """What `make` gives for this program's text, a value of JSON."""
        path = self.folder / f"{name}.{self.digest}.json"
        if not path.exists():
            path.write_text(json.dumps(make()))
        return json.loads(path.read_text())

    def expected(self):
        """The lines of the processor's program, whose weights it leaves, and PyTorch's losses; None: it has none of this precision."""
        def run():
            self.processor.build()
            return self.processor.run(OMP_NUM_THREADS="1")

        def train():
            try:
                return self.example.losses(ptx_examples.STEPS, self.precision)
            except NotImplementedError as missing:
                print(f"# {self.name}, {self.precision}: {missing}", file=sys.stderr)

        return self.remembered("processor", run), self.remembered("pytorch", train)

    def build(self, architecture):
        """The host's half once, and the PTX of its kernels for the architecture."""
        def build():
            self.trainer.architecture = architecture
            self.trainer.build()
            ptx.keep(self.keep, self.folder.name, self.trainer)
            return True

        self.remembered("built", build)
        self.trainer.arrays = self.trainer.folder / "arrays.txt"
        self.trainer.architecture = architecture
        return ptx.kept(self.keep, self.folder.name, architecture, self.trainer.folder / "trainer.cu")

    def run(self, kernels, steps, order):
        shutil.rmtree(self.trainer.folder / "run", ignore_errors=True)
        lines = self.trainer.run("--steps", str(steps), STANDIN_PTX=str(kernels), STANDIN_ORDER=str(order))
        return lines, saved(self.trainer)

    def compare(self, architecture, steps, orders):
        """A row of the table."""
        row = {"program": self.name, "precision": self.precision, "sm": architecture, "steps": steps, "orders": orders}
        expected, theirs = self.expected()
        findings = []
        try:
            kernels = self.build(architecture)
            lines, weights = self.run(kernels, steps, 0)
            row["seconds"] = self.trainer.seconds
            for order in range(1, orders + 1):
                others, moved = self.run(kernels, steps, order)
                if [line["loss"] for line in lines] != [line["loss"] for line in others] or any(moved[key].tobytes() != weights[key].tobytes() for key in weights):
                    findings.append(f"other bits in order {order}")
        except AssertionError as failed:
            said = [line for line in str(failed).splitlines() if "stand-in:" in line]
            return {**row, "finding": " ".join(said) or str(failed)[-500:]}
        losses = [line["loss"] for line in lines]
        row["processor"] = away(losses, [line["loss"] for line in expected[:steps]])
        row["pytorch"] = theirs and away(losses, theirs[:steps])
        for name, limits in (("processor", PROCESSOR), ("pytorch", PYTORCH)):
            if row[name] is not None and row[name] > limits[self.precision]:
                findings.append(f"losses differ from those of the {name}")
        if away([line["grad_norm"] for line in lines], [line["grad_norm"] for line in expected[:steps]]) > 10 * PROCESSOR[self.precision]:
            findings.append("norms of gradients differ")
        if steps == ptx_examples.STEPS:
            row["weights"] = self.moved(weights)
            if row["weights"] > WEIGHTS[self.precision]:
                findings.append("weights differ")
        return {**row, "finding": "; ".join(findings)}

    def moved(self, weights):
        """How far weights are from those of the processor's program: of each tensor, the greatest mean; in bfloat16 of all together,
        as there are some, such as a bias that a softmax ignores, whose gradient is rounding alone."""
        expected = saved(self.processor)
        assert weights.keys() == expected.keys()
        each = [np.abs(weights[key].astype(np.float64) - expected[key]).ravel() for key in expected]
        groups = each if self.precision == "float32" else [np.concatenate(each)]
        return max(float(group.mean()) for group in groups) / (self.example.rate * ptx_examples.STEPS)


def text(column, value):
    if value is None or isinstance(value, str):
        return value or "-"
    return f"{value:.2f}" if column == "seconds" else f"{value:.1e}" if column in ("processor", "pytorch", "weights") else str(value)


def show(row):
    print(" | ".join(text(column, row.get(column)) for column in COLUMNS), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    for name, usual in (("--sm", "80,90a,100"), ("--precisions", "float32,bf16")):
        parser.add_argument(name, default=usual)
    for name, usual in (("--steps", ptx_examples.STEPS), ("--orders", 0)):
        parser.add_argument(name, type=int, default=usual)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    given = parser.parse_args()
    if not ptx.nvcc():
        print("SKIPPED: there is no nvcc")
        sys.exit(77)
    chosen = [(name, precision) for name in given.names or ptx_examples.NAMES for precision in given.precisions.split(",")]
    chosen = chosen if given.names else in_turn(chosen, TURNS)
    with tempfile.TemporaryDirectory() as held:
        folder = given.keep or pathlib.Path(held)
        folder.mkdir(exist_ok=True)
        rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()] if (folder / "rows.jsonl").exists() else []
        known = {(row["program"], row["precision"], row["sm"], row["digest"]): row for row in rows if (row["steps"], row["orders"]) == (given.steps, given.orders)}
        print(" | ".join(COLUMNS))
        found = [made(known, name, precision, given, folder) for name, precision in chosen]
    bad = [row for rows in found for row in rows if row["finding"]]
    print(f"{sum(map(len, found))} rows, {len(bad)} with findings")
    sys.exit(bool(bad))


def made(known, name, precision, given, folder):
    """The rows of a program, of which those that are known for its present text are not run again."""
    program, rows = Program(name, precision, folder), []
    for architecture in given.sm.split(","):
        row = known.get((name, precision, architecture, program.digest))
        if row is None:
            row = {**program.compare(architecture, given.steps, given.orders), "digest": program.digest}
            with (folder / "rows.jsonl").open("a") as to:
                to.write(json.dumps(row) + "\n")
        show(row)
        rows.append(row)
    return rows


if __name__ == "__main__":
    main()
