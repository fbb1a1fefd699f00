"""docs/combinations.md against the generator: random pairs of keys are refused exactly where the page says so.

SEED=N repeats a run, COUNT=N tries so many pairs."""

import json
import os
import pathlib
import random
import tempfile
import unittest

import combinations
import keys

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
COUNT = int(os.environ.get("COUNT", 120))


class Combinations(unittest.TestCase):
    def test_the_page_tells_the_truth(self):
        print(f"SEED={SEED}", flush=True)
        drawer = random.Random(SEED)
        taken, listed = combinations.listed(combinations.PAGE.read_text())
        pairs = sorted(combinations.all_pairs(combinations.choices()), key=json.dumps)
        chosen = drawer.sample(pairs, min(COUNT, len(pairs)))
        with tempfile.TemporaryDirectory(prefix="accel-pairs-") as name:
            keys.write_data(pathlib.Path(name))
            table = combinations.Table(pathlib.Path(name))
            refused = {as_listed(pair): message for pair, message in combinations.refusals(chosen, table)}
        for pair in chosen:
            key, said = as_listed(pair), combinations.by_name(pair, taken) or as_listed(pair) in listed
            with self.subTest(pair=sorted(key)):
                self.assertEqual(key in refused, said,
                                 f"{refused.get(key, 'it works')}; make the page anew: combinations.py --accept")


def as_listed(pair):
    return frozenset((key, json.dumps(value)) for key, value in pair)


if __name__ == "__main__":
    unittest.main()
