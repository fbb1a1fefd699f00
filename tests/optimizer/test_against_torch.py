"""Every optimizer for 50 steps against PyTorch's in float32, in two ways.

The rule alone: the update function of the emitted program and PyTorch's optimizer get the same gradients. Sums of
rounded numbers differ by roundings, so a weight may differ by one part in a million of itself or of the way that it has
gone (a step can be as small relative to the weight as its last digits); a centered variance is a difference of averages and
loses digits, PyTorch rounds NAdam's product of momenta in every step, and a decay next to Lion's small steps rounds the
whole weight from scratch in each, on both sides, so these get a larger tolerance. Rules that step whole parameters (lamb, adafactor, muon)
are held to float64, and get twice the tolerance, muon with its fifteen matmuls thrice.

The whole trainer: a small GPT-2 from the same weights on the same batches. Here gradients come from two programs and
differ in their last digits, which rules that divide by the gradient's own size blow up where it is near zero, so
losses are compared, and weights by the norm of their distance. The bias of the attention's keys, which no softmax can
see, has a gradient of rounding errors alone, and is left out."""

import ctypes
import re
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from parts import WARNINGS, generate, make_job, plan
from rules import LR, RULES, first_match, keys_of, own_name, peer_of

from harness import FAST, relative  # tests/program
from matrix import library_flags
from rotation import in_turn, rotating
from test_parity import prepare, tensors
from torch_gpt import Gpt

STEPS = 50
BY_TENSOR = ("lamb", "adafactor", "muon")
BATCH = {"features", "result", "tokens", "targets"}  # members of the arena that are no states
torch.set_num_threads(1)
TOLERANCES = {"centered": 30, "nadam": 3, "lion_decay": 2, "lamb": 2, "adafactor": 2, "muon": 3}
# Rates at which a model of this size learns by the rule and does not diverge.
RATES = {"sgd": 0.1, "lion": 1e-4, "adagrad": 5e-3, "adadelta": 1.0, "adamax": 2e-3, "rmsprop": 1e-4, "adafactor": 1e-2}
# Lion takes the sign alone: in large batches no gradient is so near zero that two programs round it to either side.
BATCHES = {"lion": 60}


def without_keys(name, value):
    """A parameter's elements, of the attention's bias those of queries and values."""
    return np.delete(value, slice(len(value) // 3, len(value) * 2 // 3)) if "attn.bias" in name else value.ravel()


def rows_of(text, table):
    """The rows of a table of the program: lists of numbers by column; {} where there is none."""
    found = re.search(rf"^static const struct \w+ {{\n((?:  [^}}]*\n)+)}} {table}\[\] = {{\n(.*?)^}};", text,
                      re.MULTILINE | re.DOTALL)
    if found is None:
        return []
    columns = [name for line in found.group(1).split(";") for name in re.sub(r"^\s*\w+ ", "", line).split(", ") if name]
    rows = re.findall(r"^    {(.*)},$", found.group(2), re.MULTILINE)
    return [dict(zip((c.strip() for c in columns), map(float, row.split(", ")))) for row in rows]


def shape_of(row):
    """The shape of a row's parameter, flat where the table does not say more."""
    shape = [int(row[key]) for key in ("matrices", "rows", "columns") if row.get(key)]
    return shape[1:] if len(shape) == 3 and shape[0] == 1 else shape or [row["count"]]


def gather(peers, start):
    """The weights of PyTorch's parameters, at their positions."""
    whole = start.astype(np.float64)
    for rows, peer in peers:
        whole[rows] = peer.detach().numpy().ravel()
    return whole


def set_rate(optimizer, rate):
    if hasattr(optimizer, "set_rate"):
        return optimizer.set_rate(rate)
    for group in optimizer.param_groups:
        group["lr"] = rate


def wide_job(name, **groups):
    """A job over matrices of odd shapes, of more than one chunk, for rules that look at whole parameters."""
    job = make_job(**groups)
    if name.split("_")[0] in BY_TENSOR:
        job["model"]["config"].update(width=67, n_layer=2)
    return job


class Rule:
    """The update function of a job's program over arrays of its own."""

    def __init__(self, job, rate=str(LR)):
        """rate: of step `at`, for a rule that asks for those of other steps."""
        text = generate(job)
        self.averages = "average_iterates" in text
        self.ranges, self.tensors = rows_of(text, "ranges"), rows_of(text, "updated")
        elements = int(re.search(r"float all_weights\[(\d+)\]", text).group(1))
        states = re.findall(r"^  (?:alignas\(64\) )?(float|uint16_t|uint8_t) (\w+)\[(\d+)\];$",
                            re.search(r"^struct arena {\n.*?^};", text, re.MULTILINE | re.DOTALL).group(0), re.MULTILINE)
        scratch = re.search(r"^    struct {\n((?:      alignas.*\n)+)    } update;\n", text, re.MULTILINE)
        first = re.search(r"^/\* The (norm of the whole gradient|size of the gradient's largest)", text, re.MULTILINE)
        code = text[first.start():text.index("/* What the newest step left")]
        states = [state for state in states if state[1] not in BATCH]
        sizes = [("float", "all_weights", elements), ("float", "all_gradients", elements), *states]
        arrays = "\n".join(f"  {kind} {name}[{size}];" for kind, name, size in dict.fromkeys(sizes))
        scratch = f"  struct {{ struct {{ {scratch.group(1)} }} update; }} scratch;\n" if scratch else ""
        source = "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n#include <string.h>\n"
        source += "#include <oneapi/dnnl/dnnl.h>\n#include <stdalign.h>\n"
        source += "".join(re.findall(r"^#include <accel/cpu/.*\n", text, re.MULTILINE))
        if "learning_rate(" in code:
            code = code.replace("learning_rate()", "learning_rate(until)")  # as a schedule that varies has it
            source += f"static double learning_rate(int64_t at) {{\n  (void)at;\n  return {rate};\n}}\n"
        source += f"static struct {{\n{arrays}\n{scratch}}} arrays, *const arena = &arrays;\n{code}\n"
        source += "float *weights(void);\nfloat *weights(void) { return arena->all_weights; }\n"
        source += "float *gradients(void);\nfloat *gradients(void) { return arena->all_gradients; }\n"
        begin = "memcpy(arena->moment_1, arena->all_weights, sizeof arena->moment_1);" if self.averages else ""
        begin += "".join(re.findall(r"^  accel_fill_map\(.*$", text, re.MULTILINE))
        source += f"void begin(void);\nvoid begin(void) {{ {begin} }}\n"
        source += "void average(void);\nvoid average(void) { average_iterates(); }\n" if self.averages else ""
        alone = ", 1.0f" if "clip_factor" in code else ""
        source += "void update_alone(int64_t at, double lr);\n"
        source += f"void update_alone(int64_t at, double lr) {{ update(at, lr{alone}); }}\n"
        source += "double take_step(int64_t at, double lr);\n"
        factor = ", clip_factor(norm)" if "clip_factor" in code else ""
        source += "double take_step(int64_t at, double lr) {\n  const double norm = gradient_norm();\n"
        source += f"  update(at, lr{factor});\n  return norm;\n}}\n"
        with tempfile.TemporaryDirectory(prefix="accel-test-") as folder:
            library = f"{folder}/rule.so"
            subprocess.run(["cc", *WARNINGS, "-O1", "-march=native", "-fopenmp", "-shared", "-fPIC", "-x", "c", "-",
                            "-x", "none", "-o", library, "-lm", *library_flags("--cflags", "--libs")], input=source, text=True, check=True)
            self.code = ctypes.CDLL(library)
        self.code.take_step.restype = ctypes.c_double
        for name in ("weights", "gradients"):
            getattr(self.code, name).restype = ctypes.POINTER(ctypes.c_float)
            setattr(self, name, np.ctypeslib.as_array(getattr(self.code, name)(), (elements,)))

        # The used elements: all but the gaps between parameters, where each is a row of its own.
        self.rows = self.ranges + self.tensors or [{"first": 0, "count": elements}]
        self.used = np.zeros(elements, bool)
        for row in self.rows:
            row["first"], row["count"] = int(row["first"]), int(row.get("count") or row["rows"] * row["columns"])
            self.used[row["first"]:row["first"] + row["count"]] = True
        for rows, name in ((self.ranges, "update_range"), (self.tensors, "update_tensor")):
            shared = re.search(rf"{name}\(&[^)]*lr \* ([\d.e-]+)[,)]", code)
            for row in rows:
                row.setdefault("lr_scale", float(shared.group(1)) if shared else 1.0)

    def peers(self, dtype):
        """[(rows, a parameter of PyTorch's with the weights there)], row by row."""
        return [(slice(row["first"], row["first"] + row["count"]),
                 torch.nn.Parameter(torch.tensor(self.weights[row["first"]:row["first"] + row["count"]].reshape(
                     shape_of(row))).to(dtype))) for row in self.rows]

    def step(self, at, lr):
        return self.code.take_step(ctypes.c_int64(at), ctypes.c_double(lr))


class RuleAlone(unittest.TestCase):
    def check(self, name, clip=None, **more):
        """clip: what PyTorch does to the parameters' gradients; its result, if any, is the norm that we report."""
        rule = Rule(wide_job(name, optimizer=keys_of(name, **more)), f"{LR} * (1 + at % 5) / 5.0")
        rng = np.random.default_rng(5)
        n = len(rule.weights)
        start = (rng.normal(size=n) * rule.used).astype(np.float32)
        rule.weights[:] = start
        rule.code.begin()
        peers = rule.peers(torch.float64 if rule.tensors else torch.float32)
        optimizer = peer_of(name, [peer for _, peer in peers])
        scales = 10.0 ** rng.uniform(-4, 1, n) * rule.used
        way = np.zeros(n)
        for at in range(STEPS):
            gradient = (rng.normal(size=n) * scales).astype(np.float32)
            if at == 7:
                gradient[::3] = 0
            rate = LR * (1 + at % 5) / 5
            set_rate(optimizer, rate)
            rule.gradients[:] = gradient
            for rows, peer in peers:
                peer.grad = torch.tensor(gradient[rows].reshape(peer.shape)).to(peer.dtype)
            wanted = clip([peer for _, peer in peers]) if clip else None
            before = gather(peers, start)
            optimizer.step()
            after = gather(peers, start)
            way += np.abs(after - before)
            norm = rule.step(at, rate)
            if wanted is not None:
                self.assertLess(abs(norm / wanted.item() - 1), 1e-6, f"norm of step {at}")
            size = np.maximum(np.abs(start), way)
            for rows, _ in peers if rule.tensors else []:  # each element's step depends on all of its parameter
                size[rows] = np.maximum(size[rows], np.sqrt(np.mean(way[rows] ** 2)))
            tolerance = 1e-6 * size * next((f for key, f in TOLERANCES.items() if key in name), 1)
            excess = np.abs(rule.weights - after) / np.where(rule.used, tolerance, 1)
            self.assertLess(excess.max(), 1, f"step {at}: {rule.weights[excess.argmax()]} at {excess.argmax()}")
            np.testing.assert_array_equal(rule.gradients, gradient)
        if rule.averages:
            rule.code.average()
            averages = optimizer.averages()
            for rows, peer in peers:
                np.testing.assert_allclose(rule.gradients[rows], averages[peer].detach().numpy().ravel(), rtol=1e-5,
                                           atol=1e-6)

    def test_every_rule(self):
        for name in RULES:
            with self.subTest(name):
                self.check(name)

    def test_groups(self):
        """Groups of the weights against groups of PyTorch's; half of the rules a run."""
        groups = [{"match": "hidden.*weight", "weight_decay": 0.3}, {"match": "*bias", "lr": LR / 4}]
        for name in in_turn(RULES, 2):
            with self.subTest(name):
                self.check_groups(name, groups)

    def test_numbers_of_groups(self):
        """Betas, eps and momenta of groups."""
        own = {"adam": ["betas", "eps"], "adamw": ["betas", "eps"], "radam": ["betas"], "lion": ["betas"],
               "sgd_momentum": ["momentum"], "rmsprop_momentum": ["momentum", "eps"], "lamb": ["betas", "eps"],
               "muon": ["momentum"], "adamax": ["betas", "eps"], "nadam": ["eps"]}
        values = {"betas": [0.7, 0.95], "eps": 1e-3, "momentum": 0.5}
        for name, keys in own.items():
            with self.subTest(name):
                self.check_groups(name, [{"match": "hidden.*weight", **{key: values[key] for key in keys}}])

    def test_matrices_by_adamw(self):
        self.check_groups("muon", [{"match": "output.weight", "adamw": True}])

    def check_groups(self, name, groups):
        rule = Rule(wide_job(name, optimizer=keys_of(name, clip_grad_norm=2.0, param_groups=groups)))
        self.assertGreater(len(rule.ranges) + len(rule.tensors), 1)
        rng = np.random.default_rng(5)
        rule.weights[:] = rng.normal(size=len(rule.weights)) * rule.used
        start = rule.weights.copy()
        rule.code.begin()
        peers = rule.peers(torch.float64 if rule.tensors else torch.float32)
        numbers = []
        for row, (_, peer) in zip(rule.rows, peers):
            group = {"params": [peer], "lr": LR * row["lr_scale"]}
            for ours, theirs in (("decay", "weight_decay"), ("momentum", "momentum"), ("eps", "eps")):
                if ours in row:
                    group[theirs] = row[ours]
            if "beta1" in row or "beta2" in row:
                default = RULES[name][0].get("betas", [0.9, 0.999])
                group["betas"] = [row.get("beta1", default[0]), row.get("beta2", default[1])]
            numbers.append(group)
        if name.startswith("adafactor"):
            for group in numbers:
                group.pop("eps", None)
        optimizer = peer_of(name, numbers)
        for at in range(STEPS):
            rule.gradients[:] = rng.normal(size=len(start)) * rule.used
            for rows, peer in peers:
                peer.grad = torch.tensor(rule.gradients[rows].reshape(peer.shape)).to(peer.dtype)
            torch.nn.utils.clip_grad_norm_([peer for _, peer in peers], 2.0)
            optimizer.step()
            rule.step(at, LR)
        np.testing.assert_allclose(rule.weights, gather(peers, start), rtol=1e-4 if "centered" in name else 1e-5,
                                   atol=1e-5)

    def test_clip_by_norm(self):
        self.check("adamw_decay", lambda p: torch.nn.utils.clip_grad_norm_(p, 0.7), clip_grad_norm=0.7)

    def test_clip_by_largest(self):
        for name in ("sgd_momentum", "rmsprop"):
            with self.subTest(name):
                self.check(name, lambda p: torch.nn.utils.clip_grad_norm_(p, 0.3, norm_type=float("inf")),
                           clip_grad_norm=0.3, norm_type="inf")

    def test_clip_by_sum(self):
        for name in ("sgd_momentum", "rmsprop"):
            with self.subTest(name):
                self.check(name, lambda p: torch.nn.utils.clip_grad_norm_(p, 0.3, norm_type=1.0),
                           clip_grad_norm=0.3, norm_type=1)

    def test_clip_by_value(self):
        for name in ("sgd", "sgd_decay", "adam", "lion"):
            with self.subTest(name):
                self.check(name, lambda p: torch.nn.utils.clip_grad_value_(p, 0.2), clip_grad_value=0.2)

    def test_largest_of_a_nan(self):
        rule = Rule(make_job(optimizer=keys_of("sgd", clip_grad_norm=1.0, norm_type="inf")))
        rule.gradients[:] = 1
        self.assertEqual(rule.step(0, 0.1), 1)
        rule.gradients[3] = float("nan")
        self.assertTrue(np.isnan(rule.step(1, 0.1)))
        rule.gradients[3] = -np.inf
        self.assertEqual(rule.step(2, 0.1), np.inf)


class Memory(unittest.TestCase):
    """The plan counts the states; that the arena has them is asserted in each program when it is compiled."""

    STATES = {"sgd": 0, "sgd_momentum": 1, "sgd_nesterov": 1, "adam": 2, "adamw": 2, "adamax": 2, "nadam": 2, "radam": 2,
              "adagrad": 1, "adadelta": 2, "rmsprop": 1, "rmsprop_momentum": 2, "rmsprop_centered": 2,
              "rmsprop_centered_momentum": 3, "lion": 1, "schedule_free_adamw": 2}

    def test_states(self):
        for name, states in self.STATES.items():
            with self.subTest(name):
                job = make_job(optimizer=keys_of(name))
                text = generate(job)
                found = re.findall(r"^  float moment_\d\[(\d+)\];$", text, re.MULTILINE)
                size = int(re.search(r"float all_weights\[(\d+)\];", text).group(1))
                self.assertEqual(found, [str(size)] * states)
                self.assertEqual(plan(job)["arena_bytes"]["optimizer"], 4 * size * states)

    def test_states_by_parameter(self):
        """Of matrices [67][5], [67][67] and [2][67], and of biases of 67, 67 and 2 elements, in whole lines of 64 bytes."""
        lines = lambda count: (count + 15) // 16 * 16  # noqa: E731
        matrices, biases = [(67, 5), (67, 67), (2, 67)], [67, 67, 2]
        whole = sum(lines(r * c) for r, c in matrices) + sum(map(lines, biases))
        wanted = {
            "lamb": 2 * whole,
            "adafactor": lines(sum(r for r, _ in matrices)) + lines(sum(c for _, c in matrices)) + lines(sum(biases)),
            "muon": lines(sum(r * c for r, c in matrices)) + 2 * sum(map(lines, biases)),
        }
        for name, count in wanted.items():
            with self.subTest(name):
                self.assertEqual(plan(wide_job(name, optimizer=keys_of(name)))["arena_bytes"]["optimizer"], 4 * count)


class WholeTrainer(unittest.TestCase):
    def check(self, name, **more):
        rate = RATES.get(own_name(name), 1e-3)
        data = {"batch_size": BATCHES.get(own_name(name), 5)}
        trainer, weights, batches = prepare("gpt2", keys_of(name, **{"lr": rate, **more}), STEPS, FAST, data=data)
        metrics = trainer.run()
        peer = Gpt(weights, {"n_layer": 3, "n_head": 3, "n_embd": 48, "vocab_size": 256, "block_size": 24}, "gpt2")
        groups = [first_match(more.get("param_groups", []), key) for key in peer.w]
        default = keys_of(name)["weight_decay"]
        if name.startswith("muon"):
            optimizer = peer_of(name, list(peer.w.values()))
            for group in optimizer.parts[0][0].param_groups:  # adamw keeps its own
                group["lr"] = rate
        else:
            optimizer = peer_of(name, [{"params": [w], "lr": group.get("lr", rate * group.get("lr_scale", 1)),
                                        "weight_decay": group.get("weight_decay", default)}
                                       for group, w in zip(groups, peer.w.values())])
        for step, row in enumerate(metrics):
            optimizer.zero_grad()
            loss = peer.loss(*tensors(batches(step)))
            loss.backward()
            optimizer.step()
            self.assertLess(abs(row["loss"] / loss.item() - 1), 1e-4, f"loss of step {step + 1}")
        self.assertLess(metrics[-1]["loss"], metrics[0]["loss"])
        if hasattr(optimizer, "averages"):
            averages = optimizer.averages()
            for key, w in peer.w.items():
                peer.w[key] = averages[w]
        after = trainer.weights()
        whole = [np.concatenate([without_keys(key, w[key]) for key in weights])
                 for w in (after, {key: w.detach().numpy() for key, w in peer.w.items()}, weights)]
        self.assertLess(relative(whole[0], whole[1]), 1e-4, "the weights")
        self.assertLess(relative(whole[0] - whole[2], whole[1] - whole[2]), 2e-3, "the way that they have gone")

    def test_trainers(self):
        """Half of them a run."""
        for name in in_turn(("sgd_nesterov", "adam_decay", "adamw", "adamax", "nadam", "radam", "adagrad", "adadelta_decay",
                            "rmsprop_momentum", "lion_decay", "lamb_decay", "adafactor", "muon", "schedule_free_adamw_decay"), 2):
            with self.subTest(name):
                self.check(name)

    def test_groups(self):
        """No decay of biases and norms, frozen elements, a rate for the last norm."""
        groups = [{"match": "ln_f.*", "lr": 4e-3, "weight_decay": 0.5}, {"match": "*.ln_?.*", "weight_decay": 0},
                  {"match": "wpe.weight", "lr_scale": 0}, {"match": "*.bias", "weight_decay": 0}]
        for name in ("sgd_momentum", "adamw_decay", "nadam_decay"):
            with self.subTest(name):
                self.check(name, param_groups=groups)


class Refused(unittest.TestCase):
    def check(self, groups, *words):
        with self.assertRaises(AssertionError) as raised:
            generate(make_job(optimizer={"param_groups": groups}))
        for word in words:
            self.assertIn(word, str(raised.exception))

    def test_empty_group(self):
        self.check([{"match": "*.bias"}, {"match": "*.wieght"}], "'*.wieght' matches the name of no parameter",
                   "the nearest one is 'output.weight'", "job.yaml:1:")

    def test_taken_group(self):
        self.check([{"match": "*"}, {"match": "output.bias"}],
                   "all parameters that 'output.bias' matches belong to groups before it")


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
