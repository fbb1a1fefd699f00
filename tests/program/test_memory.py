"""What memory saves changes no number: a program with activation checkpointing has the losses and the weights, bit for
bit, of the one without, dropout included. Half of the ways to recompute a run, as SEED says (tests/program/rotation.py)."""

import re
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from harness import FAST, GENERATOR, MODELS, Trainer, relative, save_file
from matrix import library_flags
from rotation import in_turn, rotating
from test_figures import peak

GPT = {"n_layer": 5, "n_head": 3, "n_embd": 15, "vocab_size": 256, "block_size": 7, "dropout": 0.1}
CONFIGS = {"gpt2": GPT, "nanogpt": GPT, "mlp_table": {"n_layer": 5, "width": 7, "n_classes": 3},
           "gru_bytes": {"n_embd": 5, "width": 9, "vocab_size": 256, "block_size": 6}}


SMOOTH = """#include <accel/model.h>
struct config { int n_layer, width, n_classes; };
const struct config defaults = {0};
tensor model(scope s, struct config c, tensor features, tensor labels) {
  tensor x = tanh_of(linear(at(s, "in"), features, c.width));
  return cross_entropy_with(LOGITS, labels, 4, 0.1, 0.01);
}
"""

BEHIND = """#include <accel/model.h>
struct config { int n_layer, width, n_classes; };
const struct config defaults = {0};
tensor model(scope s, struct config c, tensor features, tensor labels) {
  tensor x = tanh_of(linear(at(s, "in"), features, c.width));
  tensor loss = cross_entropy(linear_no_bias(at(s, "head"), x, c.n_classes), labels);
  return LOSS;
}
"""

GATED = """#include <accel/model.h>
struct config { int n_layer, width, n_classes; };
const struct config defaults = {0};
static tensor hidden(scope s, tensor x, int width) {
  tensor gate = mul(linear(at(s, "a"), x, width), linear(at(s, "b"), x, width));
  return add(mul(gelu_tanh(gate), x), linear(at(s, "c"), square(gate), width));
}
tensor model(scope s, struct config c, tensor features, tensor labels) {
  tensor x = linear(at(s, "in"), features, c.width);
  for (int i = 0; i < c.n_layer; i++) x = hidden(nth(s, "h", i), x, c.width);
  return cross_entropy(linear(at(s, "out"), x, c.n_classes), labels);
}
"""


def every(count):
    return {"activation_checkpointing": "every", "checkpoint_every": count}


def functions(*names):
    return {"activation_checkpointing": "functions", "checkpoint_functions": list(names)}


ALL = {"activation_checkpointing": "all"}
LAYERS = {"activation_checkpointing": "layers", "checkpoint_layers": 2}


def make(name, memory, **groups):
    """A trainer with its data."""
    table = name == "mlp_table"
    source = {"path": "rows.csv", "format": "csv"} if table else {"path": "corpus.txt", "format": "bytes"}
    trainer = Trainer({
        "model": {"source": str(MODELS / f"{name}.c"), "config": CONFIGS[name]},
        "data": {"train": source, "batch_size": 3, **({"features": 5} if table else {})},
        "training": {"steps": 20, "seed": 11}, "memory": memory, "optimizer": {"clip_grad_norm": 1.0}, **groups})
    rng = np.random.default_rng(5)
    (trainer.folder / "corpus.txt").write_bytes(rng.integers(97, 123, 1500).astype(np.uint8).tobytes())
    rows = [",".join(f"{x:.4f}" for x in rng.normal(size=5)) + f",{rng.integers(3)}" for _ in range(60)]
    (trainer.folder / "rows.csv").write_text("\n".join(rows) + "\n")
    return trainer


TRAINED = {}  # programs without measures are what several tests compare with


def train(name, memory, cflags=None, **groups):
    """The losses of 20 steps, the weights after them and the plan."""
    key = repr((name, memory, cflags, groups))
    if key not in TRAINED:
        trainer = make(name, memory, **groups)
        trainer.build(cflags=cflags)
        TRAINED[key] = [line["loss"] for line in trainer.run()], trainer.weights(), trainer.plan()
    return TRAINED[key]


OVERLAID = """  union {
    union {
      struct model_weights gradients;
      float all_gradients[%s];
    };
    struct aliased aliased;
  };
"""
BY_RENAME = """  union {
    struct model_weights gradients;
    float all_gradients[%s];
  };
  struct aliased aliased;
"""


class Lending(unittest.TestCase):
    """Activations in memory of gradients: the program whose text was changed so that they are next to the gradients has the
    same losses and weights, and takes as much more as the plan says."""

    def run_text(self, trainer, text):
        """Losses and norms, weights, and the peak in bytes."""
        (trainer.folder / "trainer.c").write_text(text)
        subprocess.run(["cc", "-std=c17", "-O2", "-march=native", "-fopenmp", "-Wall", "-Wextra", "-Werror", "trainer.c", "-o", "trainer",
                        *library_flags("--cflags"), *library_flags("--libs")], check=True, cwd=trainer.folder)
        lines = [(line["loss"], line["grad_norm"], line.get("eval_loss")) for line in trainer.run()]
        return lines, trainer.weights(), peak(trainer)

    def check(self, batch, apart, **groups):
        """apart: the layers that do not fit, and so are in a loop of their own."""
        config = {"n_layer": 6, "n_head": 4, "n_embd": 128, "vocab_size": 256, "block_size": 32}
        trainer = make("gpt2", {}, model={"source": str(MODELS / "gpt2.c"), "config": config}, data={
            "train": {"path": "corpus.txt", "format": "bytes"}, "batch_size": batch},
            training={"steps": 6, "seed": 11, "eval_interval": 2, "eval_iters": 2, "on_nonfinite": "skip"}, **groups)
        text, aliased = trainer.generate(), trainer.plan()["aliased_bytes"]
        self.assertRegex(text, rf"block_forward\(&weights->h\[{'i' if apart > 1 else 0}\], .*&saved->block\b")
        self.assertRegex(text, rf"block_forward\(&weights->h\[i \+ {apart}\], .*&aliased->block_2\[i\],")
        audited = trainer.command("audit", "trainer.c", PKG_CONFIG_PATH=str(GENERATOR.parent))
        self.assertIn("28 hold, 0 broken", audited)
        count = re.search(r"all_gradients\[(\d+)\];", text).group(1)
        self.assertIn(OVERLAID % count, text)
        separate = re.sub(r"static_assert\(sizeof\(struct (arena|aliased)\).*\n|.* char before_.*\n", "",
                        text.replace(OVERLAID % count, BY_RENAME % count))
        losses, weights, least = self.run_text(trainer, text)
        again, others, most = self.run_text(trainer, separate)
        self.assertEqual(again, losses)
        for key in weights:
            np.testing.assert_array_equal(others[key], weights[key], key)
        print(f"{aliased} bytes of activations are in gradients, {most - least} more are taken without that")
        self.assertLess(abs(most - least - aliased), 1 << 19)

    def test_float32(self):
        self.check(2, 1)

    def test_bfloat16(self):
        self.check(8, 3, precision={"mixed_precision": "bf16"})


class Checkpointing(unittest.TestCase):
    def check(self, name, ways, cflags=FAST, **groups):
        losses, weights, plain = train(name, {}, cflags, **groups)
        for memory in in_turn(ways, 2):
            with self.subTest(model=name, **memory):
                again, others, plan = train(name, memory, cflags, **groups)
                self.assertEqual(again, losses)
                self.assertEqual(set(others), set(weights))
                for key in weights:
                    np.testing.assert_array_equal(others[key], weights[key], key)
                self.assertLess(plan["arena_bytes"]["activations"], plain["arena_bytes"]["activations"])
                self.assertGreater(plan["flops_per_step"], plain["flops_per_step"])

    def test_gpt2(self):
        self.check("gpt2", [ALL, every(2), every(3), LAYERS, functions("mlp"), functions("block", "mlp")], cflags=None)

    def test_low_precision(self):
        self.check("gpt2", [every(2)], cflags=None, precision={"mixed_precision": "bf16"})

    def test_nanogpt(self):
        self.check("nanogpt", [every(4), LAYERS], accumulation={"num_steps": 2})

    def test_gru(self):
        self.check("gru_bytes", [ALL, functions("cell")])

    def test_mlp(self):
        self.check("mlp_table", [ALL])

    def test_rounding(self):
        """A matmul that the forward rounds before the backward adds to it is rounded when it is made again."""
        model = tempfile.NamedTemporaryFile("w", suffix=".c")
        model.write(GATED)
        model.flush()
        self.check("mlp_table", [ALL], model={"source": model.name, "config": CONFIGS["mlp_table"]})


class Chunks(unittest.TestCase):
    """Cross-entropy a few rows of logits at a time: 21 rows here, of which chunks of 8 and 5 leave a shorter last one."""

    SGD = {"name": "sgd", "lr": 0.1, "momentum": 0.9, "clip_grad_norm": 1.0}

    def check(self, name, chunks, **groups):
        losses, weights, plain = train(name, {}, FAST, optimizer=self.SGD, **groups)
        for memory in chunks:
            with self.subTest(model=name, **memory):
                again, others, plan = train(name, memory, FAST, optimizer=self.SGD, **groups)
                np.testing.assert_allclose(again, losses, rtol=1e-6)
                for key in weights:
                    self.assertLess(relative(others[key], weights[key]), 1e-6, key)
                self.assertLess(plan["arena_bytes"]["total"], plain["arena_bytes"]["total"])
                if len(memory) == 1:
                    self.assertEqual(plain["arena_bytes"]["total"] - plan["arena_bytes"]["total"], plan["savings"][0]["bytes"])

    def test_tied(self):
        self.check("gpt2", [{"cross_entropy_chunk": 8}, {"cross_entropy_chunk": "auto"},
                            {"cross_entropy_chunk": 5, **ALL}, {"cross_entropy_chunk": 1, **every(2)}])

    def test_accumulation(self):
        self.check("nanogpt", [{"cross_entropy_chunk": 5}], accumulation={"num_steps": 2},
                   training={"steps": 20, "seed": 11, "eval_interval": 10, "eval_iters": 2})

    def test_tokens(self):
        """The count that micro-batches are weighted by comes out of the joined operation as well."""
        self.check("gpt2", [{"cross_entropy_chunk": 8}], accumulation={"num_steps": 2, "normalize": "tokens"})

    def test_low_precision(self):
        """With bf16 the logits are float32 here and bfloat16 there."""
        precision = {"mixed_precision": "bf16"}
        losses, _, plain = train("gpt2", {}, FAST, precision=precision)
        again, _, plan = train("gpt2", {"cross_entropy_chunk": 8}, FAST, precision=precision)
        np.testing.assert_allclose(again, losses, rtol=1e-3)
        self.assertLess(plan["arena_bytes"]["total"], plain["arena_bytes"]["total"])

    def test_one_chunk(self):
        """All rows in one chunk are the same bits."""
        losses, weights, _ = train("gpt2", {})
        again, others, _ = train("gpt2", {"cross_entropy_chunk": 1000})
        self.assertEqual(again, losses)
        for key in weights:
            np.testing.assert_array_equal(others[key], weights[key], key)

    def test_behind_the_loss(self):
        """What comes of a loss moves with it into the backward, unless the gradient starts from that."""
        for loss, moves in (("add(scale(loss, 0.5), mean_all(square(x)))", True), ("square(loss)", False)):
            model = tempfile.NamedTemporaryFile("w", suffix=".c")
            model.write(BEHIND.replace("LOSS", loss))
            model.flush()
            source = {"source": model.name, "config": {"n_layer": 1, "width": 7, "n_classes": 11}}
            losses, weights, _ = train("mlp_table", {}, FAST, model=source)
            again, others, _ = train("mlp_table", {"cross_entropy_chunk": 2}, FAST, model=source)
            np.testing.assert_allclose(again, losses, rtol=1e-6)
            for key in weights:
                self.assertLess(relative(others[key], weights[key]), 1e-6, key)
            text = make("mlp_table", {"cross_entropy_chunk": 2}, model=source).generate()
            self.assertEqual("linear_cross_entropy_forward_backward" in text, moves)

    def test_loss_with(self):
        """Ignored targets, smooth labels and z, with weights of both layouts, against PyTorch's gradients."""
        for layout, shape in (("matmul(x, parameter(at(s, \"head\"), \"weight\", c.width, c.n_classes))", (7, 11)),
                              ("linear_no_bias(at(s, \"head\"), x, c.n_classes)", (11, 7))):
            model = tempfile.NamedTemporaryFile("w", suffix=".c")
            model.write(SMOOTH.replace("LOGITS", layout))
            model.flush()
            source = {"source": model.name, "config": {"n_layer": 1, "width": 7, "n_classes": 11}}
            for chunk in (0, 2, 3):
                loss, weights = self.first_step(source, chunk, shape)
                expected, after = torch_step(self.start, self.rows, shape == (11, 7))
                self.assertLess(abs(loss - expected), 2e-6 * abs(expected))
                for key, value in after.items():
                    self.assertLess(relative(weights[key], value), 1e-6, f"{key}, chunks of {chunk}")

    def first_step(self, source, chunk, head):
        groups = {"model": source, "training": {"steps": 1, "seed": 11}, "optimizer": {"name": "sgd", "lr": 1.0},
                  "data": {"train": {"path": "rows.csv", "format": "csv"}, "batch_size": 8, "features": 5, "shuffle": False,
                           "eval_fraction": 0}}
        trainer = make("mlp_table", {"cross_entropy_chunk": chunk}, **groups)
        rng = np.random.default_rng(5)
        self.rows = np.round(rng.normal(size=(8, 5)), 4), rng.permutation([0, 1, 2, 3, 10, 9, 4, 4])
        text = [",".join(f"{x:.4f}" for x in row) + f",{label}" for row, label in zip(*self.rows)]
        (trainer.folder / "rows.csv").write_text("\n".join(text) + "\n")
        shapes = {"in.weight": (7, 5), "in.bias": (7,), "head.weight": head}
        self.start = {key: rng.normal(size=shape).astype(np.float32) for key, shape in shapes.items()}
        save_file(self.start, trainer.folder / "start.safetensors")
        trainer.job["model"]["weights"] = "start.safetensors"
        trainer.write()
        trainer.build()
        return trainer.run()[0]["loss"], trainer.weights()


def torch_step(start, rows, transposed):
    """The loss, and the weights after one step of plain descent at rate 1, in float64."""
    w = {key: torch.tensor(value, dtype=torch.float64, requires_grad=True) for key, value in start.items()}
    x = torch.tanh(torch.tensor(rows[0]) @ w["in.weight"].T + w["in.bias"])
    logits = x @ (w["head.weight"].T if transposed else w["head.weight"])
    targets = torch.tensor(rows[1])
    loss = torch.nn.functional.cross_entropy(logits, targets, ignore_index=4, label_smoothing=0.1)
    loss = loss + 0.01 * (torch.logsumexp(logits, 1) ** 2)[targets != 4].mean()
    loss.backward()
    return loss.item(), {key: (value - value.grad).detach().numpy() for key, value in w.items()}


class Found(unittest.TestCase):
    """Numbers that the plan finds: the best ones that fit, and the same program as a job that names them."""

    def bytes(self, name, **groups):
        return make(name, groups.pop("memory", {}), **groups).plan()["arena_bytes"]["total"]

    def resolved(self, trainer):
        text = subprocess.check_output([GENERATOR, "check", trainer.path, "--resolved"], text=True)
        return {key: re.search(rf"^  {key}: (.*?)(?: +#.*)?$", text, re.M).group(1) for key in re.findall(r"^  (\w+): \S", text, re.M)}

    def same_program(self, trainer, **named):
        flags = [word for key, value in named.items() for word in ("--set", f"{key.replace('__', '.')}={value}")]
        self.assertEqual(trainer.generate_from(), trainer.generate_from(*flags))

    def data(self, **keys):
        return {"train": {"path": "corpus.txt", "format": "bytes"}, **keys}

    def test_batch_size(self):
        limit = self.bytes("gpt2", data=self.data(batch_size=32))
        for spare, size in [(0, 32), (-1, 16), (1, 32)]:
            trainer = make("gpt2", {}, data=self.data(batch_size="auto"), devices={"memory": limit + spare})
            self.assertEqual(self.resolved(trainer)["batch_size"], str(size))
            self.same_program(trainer, data__batch_size=size)

    def test_batch_size_divides(self):
        limit = self.bytes("gpt2", data=self.data(batch_size=12), accumulation={"num_steps": 5})
        trainer = make("gpt2", {}, data=self.data(batch_size="auto"), devices={"memory": limit},
                       accumulation={"num_steps": "auto", "train_batch_size": 60})
        self.assertEqual([self.resolved(trainer)[key] for key in ("batch_size", "num_steps")], ["12", "5"])
        self.assertEqual(trainer.plan()["samples_per_step"], 60)

    def test_of_an_evaluator(self):
        """Whose ranks are fewer than those of training."""
        for ranks in (1, 4):
            trainer = make("gpt2", {}, data=self.data(batch_size="auto"), devices={"memory": "1GiB", "per_node": ranks},
                           accumulation={"num_steps": "auto", "train_batch_size": 60})
            trainer.command("job.yaml", "-o", "evaluate.c", "--program", "evaluate")

    def test_num_steps(self):
        trainer = make("mlp_table", {}, accumulation={"num_steps": "auto", "train_batch_size": 12})
        self.assertEqual(self.resolved(trainer)["num_steps"], "4")
        trainer = make("gpt2", {}, data=self.data(batch_size="auto"), devices={"memory": "1GiB"},
                       accumulation={"num_steps": 5, "train_batch_size": 60})
        self.assertEqual(self.resolved(trainer)["batch_size"], "12")

    def test_checkpointing(self):
        """Of all ways that fit there is none with fewer operations."""
        ways = [{}, ALL, functions("mlp"), functions("attend"), functions("block"), every(2), every(3), every(4), every(5)]
        ways += [{"activation_checkpointing": "layers", "checkpoint_layers": count} for count in range(1, 5)]
        plans = [make("gpt2", way).plan() for way in ways]
        for limit in sorted(plan["arena_bytes"]["total"] for plan in plans):
            best = min(plan["flops_per_step"] for plan in plans if plan["arena_bytes"]["total"] <= limit)
            found = make("gpt2", {"activation_checkpointing": "auto"}, devices={"memory": limit}).plan()
            self.assertEqual(found["flops_per_step"], best)
            self.assertLessEqual(found["arena_bytes"]["total"], limit)

    def test_trains(self):
        limit = self.bytes("gpt2", memory=functions("mlp"))
        losses, weights, _ = train("gpt2", {})
        again, others, plan = train("gpt2", {"activation_checkpointing": "auto"}, devices={"memory": limit})
        self.assertEqual(again, losses)
        self.assertGreater(plan["savings"][0]["bytes"], 0)


class Refusals(unittest.TestCase):
    def check(self, name, memory, *lines, **groups):
        result = subprocess.run([GENERATOR, "plan", make(name, memory, **groups).path], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2, result.stderr)
        for line in lines:
            self.assertIn(line, result.stderr)

    def test_function(self):
        self.check("gpt2", functions("mlp", "heads"), ":1:", "the model calls no function 'heads' that has parameters",
                   "its functions with parameters are predict, block, attend, mlp")

    def test_too_large(self):
        self.check("gpt2", {}, "the program takes", "and devices.memory is 400.0 KiB: weights", "activations",
                   "it fits with memory.activation_checkpointing: ", devices={"memory": "400KiB"})

    def test_smaller_batch(self):
        self.check("gpt2", {}, "it fits with data.batch_size: 1, memory.cross_entropy_chunk: auto and memory.activation_checkpointing",
                   devices={"memory": "320KiB"})

    def test_never(self):
        self.check("gpt2", {"activation_checkpointing": "auto"}, "no recomputation is enough", "the least that it could take is", devices={"memory": "1KiB"})

    def test_not_divided(self):
        self.check("gpt2", {}, "8 samples of a step do not divide by 3", "they divide by 2",
                   accumulation={"num_steps": "auto", "train_batch_size": 8})

    def test_no_matmul(self):
        self.check("gru_bytes", {"cross_entropy_chunk": 2}, "no cross_entropy over the result of a matmul",
                   "linear_no_bias or matmul_transposed")

    def test_no_layer(self):
        model = tempfile.NamedTemporaryFile("w", suffix=".c")
        model.write("#include <accel/model.h>\nstruct config { int n_classes; };\nconst struct config defaults = {3};\n"
                    "tensor model(scope s, struct config c, tensor features, tensor labels) {\n"
                    "  return cross_entropy(linear(s, features, c.n_classes), labels);\n}\n")
        model.flush()
        self.check("mlp_table", ALL, "the model calls no function with parameters",
                   model={"source": model.name, "config": {}})


load_tests = rotating(2, always=("Refusals",))


if __name__ == "__main__":
    unittest.main()
