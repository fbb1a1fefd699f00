"""Named inputs (data.inputs) against pandas, NumPy and PyTorch: a table with texts in it and arrays next to it, on one rank
and on two, and a run that resumes."""

import csv
import json
import pathlib
import re
import subprocess
import sys
import unittest
import warnings
import zipfile

import numpy as np
import torch
import torch.nn.functional as F
from rows import Order, relative, save_file
from harness import GENERATOR, MODELS, QUICK, TRAIN, TREE, Trainer, load_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parallel"))

from ranks import start  # noqa: E402

SEED, ROWS, BATCH, BRANDS, WIDTH, STEPS = 7, 37, 4, 5, 8, 12
MODEL = """#include <accel/model.h>

struct config {
  int brands, width;
};

tensor predict(scope s, struct config c, tensor image, tensor age, tensor brands) {
  int batch = dim(image, 0);
  tensor seen = linear(at(s, "seen"), reshape(image, batch, -1), c.width);
  tensor known = mean(embedding(at(s, "brand"), brands, c.brands, c.width), 1);
  tensor aged = linear(at(s, "age"), reshape(age, batch, 1), c.width);
  return linear(at(s, "out"), gelu(add(seen, add(known, aged))), 3);
}

tensor model(scope s, struct config c, tensor labels, tensor image, tensor age, tensor brands) {
  return cross_entropy(predict(s, c, image, age, brands), labels);
}
"""
# Writes down what it gets, and doubles ages.
HOOKS = """#include <accel/hooks.h>

#include <stdio.h>

void on_batch(struct accel_run *run, struct accel_batch *batch) {
  const int32_t *labels = batch->inputs[0], *brands = batch->inputs[3];
  float *ages = batch->inputs[2];
  (void)run;
  if (batch->is_evaluation) return;
  FILE *file = fopen("seen", "a");
  for (int64_t i = 0; i < batch->count; i++) {
    fprintf(file, "%d %.9g %d\\n", labels[i] + 3, (double)ages[i], brands[2 * i + 1]);
    ages[i] *= 2;
  }
  fclose(file);
}
"""
SHAPES = {"seen.weight": (WIDTH, 12), "seen.bias": (WIDTH,), "brand.weight": (BRANDS, WIDTH), "age.weight": (WIDTH, 1),
          "age.bias": (WIDTH,), "out.weight": (3, WIDTH), "out.bias": (3,)}


def data(folder, count, rng, suffix=""):
    """The files, and what readers that are not ours find in them."""
    age, labels = rng.normal(size=count), rng.integers(3, size=count)
    labels[::7] = -100
    with open(folder / f"items{suffix}.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["class", "said", "an, unused \"one\"", "age in years"])
        rows.writerows([label, f'line one, "quoted"\nline {i}', "", f"{a:.9g}"] for i, (a, label) in enumerate(zip(age, labels)))
    np.save(folder / f"images{suffix}.npy", rng.integers(256, size=(count, 3, 4)).astype(np.uint8))
    np.save(folder / f"brands{suffix}.npy", rng.integers(BRANDS, size=(count, 2)))
    with open(folder / f"items{suffix}.csv", newline="") as file:
        read = list(csv.DictReader(file))
    return {"image": np.load(folder / f"images{suffix}.npy").astype(np.float32), "brands": np.load(folder / f"brands{suffix}.npy"),
            "age": np.array([float(row["age in years"]) for row in read], np.float32),
            "labels": np.array([int(row["class"]) for row in read])}


class Named:
    def __init__(self, ranks=1, archive=False, **groups):
        """archive: all numbers are in one .npz."""
        self.ranks = ranks
        job = {
            "model": {"source": "model.c", "weights": "start.safetensors", "config": {"brands": BRANDS, "width": WIDTH}},
            "data": {"train": {"path": "items.csv", "format": "csv"}, "batch_size": BATCH // ranks,
                     "eval": {"path": "items.eval.csv", "format": "csv"},
                     "inputs": {"labels": {"column": "class", "dtype": "int32"},
                                "image": {"path": "images.npy", "eval_path": "images.eval.npy", "shape": [3, 4]},
                                "age": {"column": "age in years"},
                                "brands": {"path": "brands.npy", "eval_path": "brands.eval.npy", "shape": [2], "dtype": "int32"}}},
            "training": {"seed": SEED, "steps": STEPS, "eval_interval": 6, "eval_iters": "all", "metrics": ["accuracy"]},
            "optimizer": {"name": "sgd", "lr": 0.05}, "tracking": {"every": 1}, "checkpoint": {"project_dir": "run"},
            **({"devices": {"per_node": ranks}} if ranks > 1 else {}),
        }
        if archive:
            job["data"] |= {
                "train": {"path": "items.npz", "format": "npz"}, "eval": {"path": "items.eval.npz", "format": "npz"},
                "inputs": {"labels": {"column": "class", "dtype": "int32"}, "image": {"shape": [3, 4]}, "age": {},
                           "brands": {"column": "of two", "shape": [2], "dtype": "int32"}}}
        for group, keys in groups.items():
            job.setdefault(group, {}).update(keys)
        self.trainer = Trainer(job)
        folder = self.folder = self.trainer.folder
        (folder / "model.c").write_text(MODEL)
        rng = np.random.default_rng(5)
        self.train, self.eval = data(folder, ROWS, rng), data(folder, 10, rng, ".eval")
        for suffix, read in (("", self.train), (".eval", self.eval)):
            np.savez(folder / f"items{suffix}.npz", **{"class": read["labels"], "image": read["image"].astype(np.uint8),
                                                       "age": read["age"], "of two": read["brands"].astype(np.int16)})
        self.weights = {name: rng.normal(0, 0.2, shape).astype(np.float32) for name, shape in SHAPES.items()}
        save_file(self.weights, folder / "start.safetensors")

    def build(self, *more):
        made = subprocess.run([GENERATOR, "build", self.trainer.path, "-o", "trainer", *more], cwd=self.folder, capture_output=True,
                              text=True, env=QUICK)
        if made.returncode != 0:
            raise AssertionError(made.stderr)

    def run(self, *flags):
        if self.ranks > 1:
            return start(self.folder / "trainer", self.ranks, *flags, cwd=self.folder)
        return subprocess.run([self.folder / "trainer", *flags], cwd=self.folder, capture_output=True, text=True)

    def lines(self):
        return [json.loads(line) for line in (self.folder / "run" / "metrics.jsonl").read_text().splitlines()]


class Peer(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights = torch.nn.ParameterDict({name.replace(".", "_"): torch.tensor(value) for name, value in weights.items()})

    def forward(self, image, age, brands):
        w = self.weights
        seen = F.linear(image.reshape(len(image), -1), w["seen_weight"], w["seen_bias"])
        aged = F.linear(age[:, None], w["age_weight"], w["age_bias"])
        return F.linear(F.gelu(seen + w["brand_weight"][brands].mean(1) + aged), w["out_weight"], w["out_bias"])


def batch_of(read, rows):
    return {name: torch.tensor(values[rows]) for name, values in read.items()}


def peer_losses(named):
    """Of PyTorch, over the samples that the order gives; with the model."""
    model = Peer(named.weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    order, losses = Order(SEED, TRAIN, True, 0, ROWS, batch=BATCH), []
    for step in range(STEPS):
        batch = batch_of(named.train, [order.start(step * BATCH + i) for i in range(BATCH)])
        loss = F.cross_entropy(model(batch["image"], batch["age"], batch["brands"]), batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


class Inputs(unittest.TestCase):
    def check_close(self, named):
        losses, model = peer_losses(named)
        lines = [line for line in named.lines() if "loss" in line]
        for line, want in zip(lines, losses, strict=True):
            self.assertLess(abs(line["loss"] / want - 1), 1e-5, line)
        after = load_file(named.folder / "run" / "model.safetensors")
        for name in SHAPES:
            self.assertLess(relative(after[name], model.weights[name.replace(".", "_")].detach().numpy()), 1e-5, name)
        return model

    def test_one_rank(self):
        named = Named()
        named.build()
        self.assertEqual(named.run().returncode, 0)
        model = self.check_close(named)
        batch = batch_of(named.eval, slice(None))
        logits = model(batch["image"], batch["age"], batch["brands"])
        last = [line for line in named.lines() if "eval_loss" in line][-1]
        counts = batch["labels"] >= 0
        right = (logits.argmax(1) == batch["labels"])[counts].float().mean().item()
        self.assertAlmostEqual(last["eval_accuracy"], right, places=6)

    def test_two_ranks(self):
        named = Named(ranks=2, accumulation={"normalize": "tokens"})
        named.build()
        self.assertEqual(named.run().returncode, 0)
        self.check_close(named)

    def test_archive(self):
        """numpy.savez on two ranks; an array that is missing, one of another length, and one that is compressed."""
        named = Named(ranks=2, archive=True, accumulation={"normalize": "tokens"})
        named.build()
        self.assertEqual(named.run().returncode, 0)
        self.check_close(named)
        path, arrays = named.folder / "items.npz", dict(np.load(named.folder / "items.npz"))
        for change, said in ((lambda: arrays.pop("of two"), "items.npz: no array is named 'of two'"),
                             (lambda: arrays.update({"of two": np.zeros((3, 2), int)}), "items.npz: 3 rows for the 37 rows of")):
            change()
            np.savez(path, **arrays)
            self.assertIn(said, named.run().stderr)
        with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings(action="ignore"):
            archive.writestr("of two.npy", archive.read("of two.npy"))
        self.assertIn("items.npz: two of its files are called 'of two.npy'", named.run().stderr)
        np.savez_compressed(path, **arrays)
        self.assertIn("compress", named.run().stderr)
        path.write_bytes(path.read_bytes()[:-30])
        self.assertNotEqual(named.run().returncode, 0)

    def test_hooks(self):
        """on_batch sees the arrays in the order of the job, and what it writes there is computed with."""
        named = Named(hooks={"source": "hooks.c", "on_batch": "on_batch"})
        (named.folder / "hooks.c").write_text(HOOKS)
        named.build()
        self.assertEqual(named.run().returncode, 0)
        named.train["age"] *= 2
        self.check_close(named)
        seen = [line.split() for line in (named.folder / "seen").read_text().splitlines()]
        order = Order(SEED, TRAIN, True, 0, ROWS, batch=BATCH)
        rows = [order.start(i) for i in range(len(seen))]
        self.assertEqual([int(label) for label, *_ in seen], [int(named.train["labels"][row]) + 3 for row in rows])
        self.assertEqual([int(brand) for *_, brand in seen], [int(named.train["brands"][row, 1]) for row in rows])

    def test_resumes(self):
        named = Named(checkpoint={"every": 5, "automatic_checkpoint_naming": False})
        named.build()
        self.assertEqual(named.run().returncode, 0)
        self.check_close(named)
        whole = (named.folder / "run" / "model.safetensors").read_bytes()
        self.assertEqual(named.run("--resume", "run/step_5").returncode, 0)
        self.assertEqual((named.folder / "run" / "model.safetensors").read_bytes(), whole)

    def test_bad_numbers(self):
        named = Named()
        named.build()
        brands = np.load(named.folder / "brands.npy")
        brands[11, 1] = BRANDS
        np.save(named.folder / "brands.npy", brands)
        result = named.run()
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("brands.npy: row 12, column 16: 5 is not a whole number below 5 from 0 on", result.stderr)
        np.save(named.folder / "brands.npy", brands[:20] % BRANDS)
        self.assertIn("brands.npy: 20 rows for the 37 rows of", named.run().stderr)
        self.assertIn("'image' is in a file of its own, which a flag cannot name", named.run("--data", "items.csv").stderr)


class Names(unittest.TestCase):
    """Names of C and of the program's functions are refused; others that the program has are inputs as well."""

    def check(self, name):
        """The program's text, and the message where there is none."""
        named = Named()
        path = named.folder / named.trainer.path
        path.write_text(re.sub(r"\bimage\b", name, path.read_text()))
        (named.folder / "model.c").write_text(re.sub(r"\bimage\b", name, MODEL))
        result = subprocess.run([GENERATOR, path, "-o", "out.c"], cwd=named.folder, capture_output=True, text=True)
        if result.returncode != 0:
            return "", result.stderr
        compiled = subprocess.run(["cc", "-std=c17", "-fopenmp", "-fsyntax-only", "-I", TREE / "include", "out.c"], cwd=named.folder)
        self.assertEqual(compiled.returncode, 0, name)
        return (named.folder / "out.c").read_text(), ""

    def test_refused(self):
        functions = re.findall(r"static void ((?:predict|embedding|matmul)_\w+)\(", self.check("image")[0])
        self.assertGreater(len(functions), 3)
        for name in ("AGE", "step", "linux", "main", "NULL", "weights_2", *functions[:1], *functions[-1:]):
            self.assertIn(f"'{name}' is not a name for an input", self.check(name)[1], name)

    def test_compiles(self):
        for name in ("inputs", "loss", "x", "update"):
            self.assertEqual(self.check(name)[1], "", name)


class WithoutLabels(unittest.TestCase):
    """examples/models/autoencoder.c over one array."""

    def test_as_torch(self):
        rng = np.random.default_rng(9)
        trainer = Trainer({
            "model": {"source": str(MODELS / "autoencoder.c"), "weights": "start.safetensors", "config": {"width": 12, "code": 3}},
            "data": {"train": {"path": "pictures.npy", "format": "npy"}, "batch_size": BATCH, "eval_fraction": 0,
                     "inputs": {"picture": {"shape": [1, 4, 4]}}},
            "training": {"seed": SEED, "steps": STEPS}, "optimizer": {"name": "sgd", "lr": 0.1}, "tracking": {"every": 1}})
        pictures = rng.random((ROWS, 1, 4, 4)).astype(np.float32)
        np.save(trainer.folder / "pictures.npy", pictures)
        parts = {part: torch.nn.Sequential(torch.nn.Linear(*sizes[0]), torch.nn.GELU(), torch.nn.Linear(*sizes[1]))
                 for part, sizes in (("encoder", [(16, 12), (12, 3)]), ("decoder", [(3, 12), (12, 16)]))}
        both = torch.nn.ModuleDict(parts)
        save_file({name: value.detach().numpy() for name, value in both.state_dict().items()}, trainer.folder / "start.safetensors")
        subprocess.run([GENERATOR, "build", trainer.path, "-o", "trainer"], cwd=trainer.folder, check=True, env=QUICK)
        subprocess.run([trainer.folder / "trainer"], cwd=trainer.folder, check=True, capture_output=True)
        optimizer, order = torch.optim.SGD(both.parameters(), lr=0.1), Order(SEED, TRAIN, True, 0, ROWS, batch=BATCH)
        lines = (trainer.folder / "run" / "metrics.jsonl").read_text().splitlines()
        for step, line in enumerate(lines):
            flat = torch.tensor(pictures[[order.start(step * BATCH + i) for i in range(BATCH)]]).flatten(1)
            loss = F.mse_loss(both["decoder"](both["encoder"](flat)), flat)
            self.assertLess(abs(json.loads(line)["loss"] / loss.item() - 1), 1e-5, line)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        self.assertEqual(len(lines), STEPS)


if __name__ == "__main__":
    unittest.main()
