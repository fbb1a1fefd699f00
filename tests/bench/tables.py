"""Tables of measurements, one for each job of a benchmark: what `accel-gen tune` writes, and what the plan predicts with it."""

import json
import pathlib
import subprocess

from machine import TREE

GENERATOR = str(TREE / "build" / "accel-gen")


def path(name):
    """The table of a job. Kernels of other jobs are in other tables: what these leave in the caches differs."""
    folder = TREE / "build" / "bench" / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder / f"{name}.json")


def words(table):
    """What makes a trainer, or a plan, by the table; nothing where there is none."""
    return ["--tuning", table] if table is not None and pathlib.Path(table).exists() else []


def tune(job, table, rounds, folder=None):
    """Measures a job, which is a path and what follows it on the command line. 0 rounds: the table stays as it is."""
    if rounds > 0:
        subprocess.run([GENERATOR, "tune", *job, "-o", table, "--rounds", str(rounds)], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)


def plan(job, table=None, folder=None):
    result = subprocess.run([GENERATOR, "plan", "--json", *job, *words(table)], cwd=folder, check=True, capture_output=True,
                            text=True)
    return json.loads(result.stdout)


def prediction(job, table, ours, folder=None):
    """The plan's step against ours, measured: {predicted_ms, of that from rates of other kernels, how far off from the median, from the
    fastest}; None without a table."""
    step = plan(job, table, folder).get("predicted_step")
    if step is None:
        return None
    predicted = 1e3 * step["seconds"]
    return {"predicted_ms": predicted, "estimated_ms": 1e3 * step["estimated"], "off": predicted / ours["median_ms"] - 1,
            "off_fastest": predicted / ours["min_ms"] - 1}


def prediction_text(predicted, ours):
    guessed = f" ({predicted['estimated_ms']:.1f} of it by the rates of other kernels)" if predicted["estimated_ms"] > 0 else ""
    return (f"the plan predicts {predicted['predicted_ms']:.4g} ms{guessed}; off by {100 * predicted['off']:+.1f} % from the median of "
            f"{ours['median_ms']:.4g}, by {100 * predicted['off_fastest']:+.1f} % from the fastest, {ours['min_ms']:.4g}")
