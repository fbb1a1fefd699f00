"""Ranks x what they divide x precision x accumulation, against one process and against PyTorch over gloo, from the same weights
and batches: losses, norms and weights of 50 steps. States divided: ZeroRedundancyOptimizer under DistributedDataParallel;
gradients and weights: fully_shard (FSDP2), in groups on a mesh of two axes (HSDP); 16 bits: autocast, and a GradScaler.
DIVISIONS=all takes every case, each against PyTorch with as many processes; else there are few, each pair of values once, of
which those of one precision in three have their turn.

In float32, under AdamW, losses are the same to 1e-6, norms and weights to 1e-5. In 16 bits ours are those of one process to 1e-6, too,
but for three ranks under a scaler: its gradients are those of a rank's batch before they are sent, and a third rounds elsewhere. Other
programs round elsewhere all the time, so the measure is how far PyTorch's own losses in 16 bits are from its own in float32: ours may be
twice as far from these. There the optimizer is SGD, which carries a rounding on as it is: AdamW makes a step of any gradient, so that
runs part by chance alone."""
# long

import os
import unittest

import numpy as np
import torch
from peers import CLIP, answers, arrays, group, relative, rows_of, take_steps, trained
from placements import PLACEMENTS, cases_of, covering, parallelism
from rows import CLASSES, FEATURES, Mlp, random_weights, shapes_of
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from rotation import in_turn  # tests/program; isort: skip

STEPS, LR, DECAY, MOMENTUM = 50, 0.01, 0.1, 0.9
LAYERS, BATCH = 4, 24  # the batch is that of all ranks
SCALER = {"init_scale": 1024.0, "growth_interval": 20}
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
ROUNDING = 2**-11  # of fp16
WEIGHTS = random_weights(5, shapes_of(LAYERS, FEATURES), 0.4)
PRECISIONS = ("no", "bf16", "fp16")
ALL = cases_of(PRECISIONS, (1, 4))
ALONE = [case for case in ALL if case[0] == 1]
SHARDED = [(2, "weights", "no", 1), (4, "groups", "no", 1)]
EVERY = os.environ.get("DIVISIONS") == "all"
TURN = PRECISIONS if EVERY else in_turn(PRECISIONS, 3)
CASES = [case for case in (ALL if EVERY else covering(ALL, ALONE + SHARDED)) if case[2] in TURN]
# float32 under the optimizer of 16 bits, by PyTorch alone.
EXACT = [(1, "whole", "exact", micro) for micro in (1, 4) if TURN != ["no"]]
BY_RENAME = [case for case in CASES if EVERY or case[0] <= 2 or case in SHARDED]


def rows_for(case, words=None):
    """words: of parallelism, instead of the placement's own."""
    ranks, placement, precision, micro = case
    scaler = {"grad_scaler": SCALER} if precision == "fp16" else {}
    optimizer = {"name": "adamw", "weight_decay": DECAY} if precision == "no" else {"name": "sgd", "momentum": MOMENTUM}
    return rows_of(ranks, BATCH // ranks, STEPS, micro, weights=WEIGHTS, config={"n_layer": LAYERS, "width": FEATURES, "n_classes": CLASSES},
                   parallelism=words or parallelism(ranks, placement), precision={"mixed_precision": precision, **scaler},
                   optimizer={**optimizer, "lr": LR, "clip_grad_norm": CLIP})


# ---- PyTorch ----

def divided(model, placement, precision, ranks):
    """The model as PyTorch divides it, its optimizer, and what batches before the last one are in."""
    optimizer, keys = (torch.optim.AdamW, {"weight_decay": DECAY}) if precision == "no" else (torch.optim.SGD, {"momentum": MOMENTUM})
    stage = PLACEMENTS[placement].get("zero_stage", 0)
    if stage < 2:
        several = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.0001)
        parted = ZeroRedundancyOptimizer(model.parameters(), optimizer, lr=LR, **keys) if stage else None
        return several, parted or optimizer(model.parameters(), lr=LR, **keys), {"quiet": several.no_sync}
    mesh = init_device_mesh("cpu", (2, ranks // 2) if placement == "groups" else (ranks,),
                            mesh_dim_names=("replicate", "shard") if placement == "groups" else ("shard",))
    for part in (list(model.hidden), model):
        fully_shard(part, mesh=mesh, reshard_after_forward=stage == 3)
    return model, optimizer(model.parameters(), lr=LR, **keys), {}


def train(cases, rank, ranks, port, out):
    """One of PyTorch's ranks: of each case (loss, norm) of each step, and the weights at the end."""
    with group(rank, ranks, port):
        for case, rows in cases:
            _, placement, precision, micro = case
            plain = Mlp(WEIGHTS)
            model, optimizer, how = divided(plain, placement, precision, ranks)
            if precision in TYPES:
                how["cast"] = lambda dtype=TYPES[precision]: torch.autocast("cpu", dtype)
            scaler = torch.amp.GradScaler("cpu", **SCALER) if precision == "fp16" else None
            lines = take_steps(rows, STEPS, micro, model, optimizer, scaler=scaler, **how)
            weights = arrays(plain)
            if rank == 0:
                out.put((lines, weights))


def against(cases):
    """What PyTorch has of each case: losses, norms, weights."""
    found = {}
    for ranks in sorted({case[0] for case in cases}):
        own = [case for case in cases if case[0] == ranks]
        for case, (lines, weights) in zip(own, answers(len(own), train, ranks, [(case, rows_for(case)) for case in own]), strict=True):
            found[case] = (*np.array(lines).T, weights)
    return found


# ---- Ours ----

def ours(case):
    """The same of our ranks."""
    rows = rows_for(case)
    lines = trained(rows, case[0])
    return (*(np.array([line[name] for line in lines]) for name in ("loss", "grad_norm")), rows.trainer.weights())


def distance(a, b, steps=STEPS):
    return float(np.abs(a[:steps] / b[:steps] - 1).max())


class Placements(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.peers = against(EXACT + BY_RENAME)
        cls.alone = {case[2:]: ours(case) for case in ALONE if case[2] in TURN}

    def rounding(self, precision, micro):
        """PyTorch's losses in float32, and how far its own in 16 bits are from them, in any division."""
        exact = self.peers[1, "whole", "exact", micro][0]
        return exact, max(distance(found[0], exact) for case, found in self.peers.items() if case[2:] == (precision, micro))

    def check_exact(self, found, wanted):
        self.assertLess(distance(found[0], wanted[0]), 1e-6, "losses")
        self.assertLess(distance(found[1], wanted[1]), 1e-5, "norms")
        for name, value in wanted[2].items():
            self.assertLess(relative(found[2][name], value), 1e-5, name)

    def check(self, case):
        ranks, placement, precision, micro = case
        found = self.alone[precision, micro] if ranks == 1 else ours(case)
        others = {name: known for name, known in (("one process", self.alone[precision, micro]), ("PyTorch", self.peers.get(case)))
                  if known is not None and known is not found}
        differences = "".join(f", {distance(found[0], other[0]):.1e} from {name}" for name, other in others.items())
        if precision == "no":
            print(f"{ranks} {placement} {precision} {micro}{differences}", flush=True)
            for other in others.values():
                self.check_exact(found, other)
            return
        exact, rounding = self.rounding(precision, micro)
        print(f"{ranks} {placement} {precision} {micro}{differences}, {distance(found[0], exact):.1e} from float32, PyTorch {rounding:.1e}", flush=True)
        self.assertLess(distance(found[0], exact), 2 * rounding)
        one, thirds = self.alone[precision, micro], ranks == 3 and precision == "fp16"
        self.assertLess(distance(found[0], one[0]), 4 * rounding if thirds else 1e-6, "losses against one process")
        self.assertLess(distance(found[0], one[0], 1), 1e-6, "loss of the first step")
        self.assertLess(distance(found[1], one[1], 1), ROUNDING if thirds else 1e-5, "norm of the first step")

    def test_cases(self):
        for case in CASES:
            with self.subTest(case):
                self.check(case)

    def test_words_of_fsdp(self):
        """A job in the words of fsdp is the program of one in the words of zero_stage."""
        def text(case, words=None):
            rows = rows_for(case, words)
            lines = rows.trainer.generate().replace(str(rows.trainer.folder), "").splitlines()
            return [line for line in lines if not any(word in line for word in ("parallelism.", "job", ".n_keys"))]

        for ranks, placement, strategy in ((2, "weights", "full_shard"), (3, "gradients", "shard_grad_op"), (4, "groups", "hybrid_shard")):
            case = (ranks, placement, "no", 4)
            others = {name: value for name, value in parallelism(ranks, placement).items() if name != "zero_stage"}
            for fsdp in ({"sharding_strategy": strategy}, {"reshard_after_forward": placement != "gradients"}):
                with self.subTest(fsdp):
                    self.assertEqual(text(case, {**others, "fsdp": fsdp}), text(case))


if __name__ == "__main__":
    unittest.main()
