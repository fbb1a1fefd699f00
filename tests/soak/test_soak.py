"""What the generator accepts, works. Jobs over the whole schema, around models over the whole vocabulary of accel/model.h,
are drawn; what `accel-gen` takes must compile without a warning under gcc and clang, be audited without a broken claim,
train, resume to the same bits, be evaluated to the loss that the trainer reported, and write. A refusal has a position.

usage: test_soak.py            a slice of so many processor seconds as SECONDS says (20), drawn by SEED
       test_soak.py COUNT      so many draws, from number FIRST (0) on; with SMALL failures are made small; they are kept in FAILURES"""
# long

import collections
import os
import pathlib
import random
import re
import sys
import tempfile
import unittest

import jobs
import vocabulary
from smaller import smaller
from trial import Failed, Refused, Trial, repaired, write_data

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
SECONDS = float(os.environ.get("SECONDS", 20))
FAILURES = pathlib.Path(os.environ.get("FAILURES", jobs.TREE / "build" / "tests" / "soak"))
LOOKED_AT = 1500  # draws in which every key and every function must be
TRIES = 14  # of one draw, until it is accepted


def spent():
    """Processor seconds of this process and of those that it started."""
    return sum(os.times()[:4])


class Soak:
    """Draws, and what became of them."""

    def __init__(self, folder, small):
        self.folder, self.small = folder, small
        self.counts, self.failures = collections.Counter(), []
        self.causes = collections.Counter()
        write_data(folder)

    def draw(self, number):
        rng = random.Random(f"{SEED} {number}")
        model, job, fixed = jobs.draw(rng)
        optimize = rng.choice(("-O0", "-O0", "-O0", "-O1"))
        self.counts["drawn"] += 1
        for _ in range(TRIES):
            trial = Trial(model, job, self.folder, optimize)
            try:
                trial.run()
            except Refused as refused:
                self.counts["refused with a position" if refused.placed else "refused without a location"] += 1
                if not refused.placed:
                    self.failed(number, trial, fixed, Failed("refuse", "error: no position\n" + refused.said))
                less = repaired(refused, trial, rng, fixed)
                if less is None:
                    self.counts["given up"] += 1
                    break
                model, job = less
                continue
            except Failed as failed:
                self.failed(number, trial, fixed, failed)
            self.counts.update(trial.counts)
            break

    def failed(self, number, trial, fixed, failed):
        self.counts["failed"] += 1
        self.causes[failed.kind()] += 1
        model, job = trial.model, trial.job
        if self.small and self.causes[failed.kind()] == 1 and failed.stage != "refuse":
            model, job = smaller(model, job, fixed, self.folder, failed.kind(), trial.optimize)
        position = FAILURES / f"{SEED}-{number}"
        position.mkdir(parents=True, exist_ok=True)
        (position / "model.c").write_text(model.text())
        jobs.keys.write(job, position / "job.yaml")
        (position / "why.txt").write_text(str(failed))
        self.failures.append(f"SEED={SEED} FIRST={number}: {failed.kind()}\n{str(failed)[:1500]}\n{(position / 'job.yaml').read_text()}\n"
                             f"{model.text()}\nkept in {position}\nagain: SEED={SEED} FIRST={number} test_soak.py 1")
        print(f"not ok - {self.failures[-1]}\n", flush=True)

    def report(self):
        counts = ", ".join(f"{there} {name}" for name, there in self.counts.items())
        return f"SEED={SEED}: {counts}" + "".join(f"\n  {there} x {kind}" for kind, there in self.causes.most_common())


class Slice(unittest.TestCase):
    def test_every_key_and_every_function_is_drawn(self):
        """Without an edit here, or this names what nothing draws."""
        self.assertEqual(jobs.unknown(), [], "keys of the schema without values: tests/soak/jobs.py, TEXTS")
        wanted = vocabulary.functions(jobs.TREE / "include" / "accel")
        keys, texts = set(), []
        for number in range(LOOKED_AT):
            model, job, _ = jobs.draw(random.Random(f"all {number}"))
            texts.append(model.text())
            keys |= set(job) | {f"{key}[].{name}" for key, there in job.items() if isinstance(there, list)
                                for one in there if isinstance(one, dict) for name in one}
        called = set(re.findall(r"\b(\w+)\(", "".join(texts)))
        self.assertEqual(sorted(wanted - called), [], "functions of a model that nothing draws: tests/soak/vocabulary.py")
        groups = {key for key in jobs.LEAVES if any(other.startswith(key + ".") for other in keys)}
        drawn = {key for key in jobs.LEAVES if key.split("[]")[0] in jobs.NOT_DRAWN} | keys | groups
        self.assertEqual(sorted(set(jobs.LEAVES) - drawn), [], "keys that nothing draws")

    def test_what_is_accepted_works(self):
        with tempfile.TemporaryDirectory(prefix="accel-soak-") as name:
            soak, begin, number = Soak(pathlib.Path(name), small=False), spent(), 0
            while spent() - begin < SECONDS:
                soak.draw(number)
                number += 1
            print(soak.report(), flush=True)
            self.assertEqual(soak.failures, [])
            self.assertGreater(soak.counts["run"], 0)


def main():
    first = int(os.environ.get("FIRST", 0))
    with tempfile.TemporaryDirectory(prefix="accel-soak-") as name:
        soak = Soak(pathlib.Path(name), small="SMALL" in os.environ)
        for number in range(first, first + int(sys.argv[1])):
            soak.draw(number)
            if number % 50 == 49:
                print(soak.report(), f"{spent():.0f} s", flush=True)
        print(soak.report(), f"{spent():.0f} s", flush=True)
    sys.exit(1 if soak.failures else 0)


if __name__ == "__main__":
    main() if sys.argv[1:] and sys.argv[1].isdigit() else unittest.main()
