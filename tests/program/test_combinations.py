"""docs/combinations.md against the generator: random pairs of keys are refused exactly where the page says so, random rows
have the message of their first values, and the numbers of keys and pairs are those of the schema.

SEED=N repeats a run, COUNT=N tries so many pairs, and a quarter as many rows."""

import json
import os
import pathlib
import random
import tempfile
import unittest

import combinations
import keys

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
COUNT = int(os.environ.get("COUNT", 40))


class Combinations(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.page, cls.found = combinations.PAGE.read_text(), combinations.choices()

    def refused(self, pairs):
        """Pair, as the page lists it, to message."""
        with tempfile.TemporaryDirectory(prefix="accel-pairs-") as name:
            keys.write_data(pathlib.Path(name))
            table = combinations.Table(pathlib.Path(name))
            return {combinations.as_listed(pair): message for pair, message in combinations.refusals(pairs, table)}

    def test_numbers(self):
        count = sum(1 for _ in combinations.all_pairs(self.found))
        line = f"{count:,} pairs of {len(self.found)} keys were tried"
        self.assertTrue(f"\n{line}; " in self.page, f"docs/combinations.md does not say '{line}': make the page again by combinations.py --accept")

    def test_messages(self):
        rows = list(combinations.rows_of(self.page))
        rows = random.Random(SEED).sample(rows, min(max(COUNT // 4, 1), len(rows)))
        refused = self.refused([tuple((key, json.loads(values[0])) for key, *values in sides) for sides, _ in rows])
        for sides, message in rows:
            first = frozenset((key, values[0]) for key, *values in sides)
            with self.subTest(pair=sorted(first)):
                self.assertEqual(combinations.normal(refused.get(first, "it works")), combinations.normal(message),
                                 "make the page again: combinations.py --accept")

    def test_the_page_tells_the_truth(self):
        print(f"SEED={SEED}", flush=True)
        drawer = random.Random(SEED)
        taken, listed = combinations.listed(self.page)
        pairs = sorted(combinations.all_pairs(self.found), key=json.dumps)
        chosen = drawer.sample(pairs, min(COUNT, len(pairs)))
        refused = self.refused(chosen)
        for pair in chosen:
            key, said = combinations.as_listed(pair), combinations.by_name(pair, taken) or combinations.as_listed(pair) in listed
            with self.subTest(pair=sorted(key)):
                self.assertEqual(key in refused, said,
                                 f"{refused.get(key, 'it works')}; make the page again: combinations.py --accept")


if __name__ == "__main__":
    unittest.main()
