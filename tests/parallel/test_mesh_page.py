"""docs/meshes.md against the generator: its counts are those of the meshes that there are, meshes drawn at random are refused where
the page has their message, and drawn ones that are taken have the losses of one process.

SEED=N repeats a run, COUNT=N asks about so many meshes, RUNS=N runs so many."""

import os
import random
import unittest

import meshes

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 32)))
COUNT, RUNS = (int(os.environ.get(name, most)) for name, most in (("COUNT", "80"), ("RUNS", "2")))
AGAIN = "regenerate the page: tests/parallel/meshes.py --accept"


class Meshes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"SEED={SEED}", flush=True)
        every = meshes.meshes()
        cls.total, cls.page, cls.random = len(every), meshes.PAGE.read_text(), random.Random(SEED)
        asked = [(model, mesh) for model in meshes.MODELS for mesh in every]
        pairs = [(model, mesh) for model, mesh in asked if len(mesh) <= 2 and all(each == 2 for _, each in mesh)]
        cls.why = meshes.refusals(sorted({*cls.random.sample(pairs, COUNT // 2), *cls.random.sample(asked, COUNT // 2)}))

    def test_counts(self):
        for title, *_ in meshes.MODELS.values():
            self.assertIn(f"\n| {title} | {self.total} | ", self.page, AGAIN)

    def test_pairs(self):
        head, *rows = [[word.strip() for word in line.split("|")[1:-1]] for line in self.page.split("## Pairs")[1].split("## ")[0].splitlines()
                       if line.startswith("|") and not line.startswith("|---")]
        there = {(row[0], other): cell for row in rows for other, cell in zip(head[1:], row[1:])}
        for (model, mesh), said in self.why.items():
            if len(mesh) > 2 or any(each != 2 for _, each in mesh):
                continue
            cell = there[mesh[0][0], mesh[-1][0]]
            with self.subTest(model=model, mesh=meshes.titled(mesh)):
                self.assertEqual(said is None, cell == "all" or meshes.MODELS[model][0] in cell.split(", "), f"{said}; {AGAIN}")

    def test_messages(self):
        for (model, mesh), said in self.why.items():
            with self.subTest(model=model, mesh=meshes.titled(mesh)):
                self.assertTrue(said is None or f"| {meshes.general(said)} |" in self.page, f"{said}; {AGAIN}")

    def test_runs(self):
        taken = [(model, mesh) for (model, mesh), said in self.why.items() if said is None and len(mesh) > 1]
        beside = meshes.Beside()
        for model, mesh in self.random.sample(taken, min(RUNS, len(taken))):
            with self.subTest(model=model, mesh=meshes.titled(mesh)):
                self.assertIsNone(beside.differs(model, mesh))


if __name__ == "__main__":
    unittest.main()
