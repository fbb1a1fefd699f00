"""Ranks that divide matrices, sequences, layers or experts in bfloat16, and PyTorch's autocast: 20 steps of each from the same weights
and batches, beside PyTorch in float32. Our losses and our weights may be twice as far from those as PyTorch's own in bfloat16. Its
losses are those of ranks that divide the same over gloo where tests/bench/peer_axes.py has such, else those of one process."""

import contextlib
import tempfile
import unittest

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.numpy import load_file
from test_axes import AXES, BATCH, SHAPE, adamw, in_bf16, losses_of, start, start_model, train, weights_of
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM

from rotation import rotating  # tests/program; isort: skip

STAGES = {"batch": 1, "accumulation": {"num_steps": 4, "sync_with_dataloader": False}}
EXPERTS = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 32, "head_dim": 8, "vocab_size": 256,
           "moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2, "router_aux_loss_coef": 0.0}
SEEDS = (5, 6, 7)


class Run:
    """The losses of 20 steps, and the weights after them by name."""

    def __init__(self, losses, weights):
        self.losses, self.weights = np.array(losses), weights

    def apart(self, other):
        """Of losses the deviation; of all weights the norm of the difference, as a fraction of theirs."""
        names = sorted(other.weights)
        ours, theirs = (np.concatenate([run.weights[name].ravel() for name in names]).astype(np.float64) for run in (self, other))
        return np.sqrt(np.mean((self.losses - other.losses) ** 2)), np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)


class Bf16(unittest.TestCase):
    def check(self, name, ours, half, exact):
        (loss, weight), (own_loss, own_weight) = ours.apart(exact), half.apart(exact)
        print(f"{name}: losses {loss:.2e} from float32's, PyTorch's {own_loss:.2e}, {loss / own_loss:.2f} times; "
              f"weights {weight:.2e}, {own_weight:.2e}, {weight / own_weight:.2f} times", flush=True)
        self.assertGreater(loss, 0)  # it is in bfloat16
        self.assertLess(loss, 2 * own_loss)
        self.assertLess(weight, 2 * own_weight)

    @staticmethod
    def ours(weights, **groups):
        trainer = start(weights, precision={"mixed_precision": "bf16"}, **groups)
        return Run([line["loss"] for line in trainer.run()], trainer.weights())


class Axes(Bf16):
    @classmethod
    def setUpClass(cls):
        cls.start = weights_of(start_model())
        cls.exact, cls.one = (cls.of_one_process(cast) for cast in (contextlib.nullcontext, in_bf16))
        cls.half = losses_of(("tp", "sp", "cp", "pp-1f1b"), in_bf16)

    @staticmethod
    def of_one_process(cast):
        model = start_model()
        return Run(train(AXES["one"](model, SHAPE, adamw), cast), weights_of(model))

    def beside(self, name, axis=None, batch=BATCH, **groups):
        """axis: of PyTorch's losses."""
        half = Run(self.half[axis], self.one.weights) if axis else self.one
        self.check(name, self.ours(self.start, batch=batch, **groups), half, self.exact)

    def test_matrices(self):
        self.beside("tp", "tp", parallelism={"tp": 2})

    def test_residual(self):
        self.beside("tp, sequence", "tp", parallelism={"tp": 2, "megatron": {"sequence_parallelism": True}})

    def test_heads_for_positions(self):
        self.beside("sp", "sp", parallelism={"sp": 2})

    def test_context(self):
        self.beside("cp", "cp", parallelism={"cp": 2})

    def test_ring(self):
        self.beside("cp, ring", "cp", parallelism={"cp": 2, "cp_comm": "ring"})

    def test_layers(self):
        for name, schedule in (("1f1b", {}), ("zero_bubble", {"pp_schedule": "zero_bubble"}),
                               ("interleaved", {"pp_schedule": "interleaved", "megatron": {"num_layers_per_virtual_pipeline_stage": 1}})):
            with self.subTest(name):
                self.beside(f"pp, {name}", "pp-1f1b", **STAGES, parallelism={"pp": 2, **schedule})


class Mixture(torch.nn.Module):
    """transformers' Qwen3MoeForCausalLM, which gives a loss."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.model = Qwen3MoeForCausalLM(Qwen3MoeConfig(
            **EXPERTS, intermediate_size=8, mlp_only_layers=[], rope_parameters={"rope_theta": 10000.0, "rope_type": "default"},
            initializer_range=0.1, norm_topk_prob=True, rms_norm_eps=1e-6, tie_word_embeddings=False, use_cache=False))
        self.model.config._experts_implementation = "eager"

    def forward(self, tokens, targets):
        return F.cross_entropy(self.model(tokens).logits.flatten(0, 1), targets.flatten())

    def weights(self):
        """As in files, which have each expert by itself."""
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_pretrained(folder)
            return load_file(f"{folder}/model.safetensors")


class Experts(Bf16):
    def test_experts(self):
        """Beside one process with the samples of both ranks; of several starts together, as a rounding may send a token to another expert."""
        sides = [], [], []
        for seed in SEEDS:
            ours = self.ours(Mixture(seed).weights(), batch=BATCH // 2, model="qwen_moe", config=EXPERTS, data={"sequence_length": SHAPE.length},
                             parallelism={"ep": 2})
            for side, run in zip(sides, (ours, *(self.of_one_process(seed, cast) for cast in (in_bf16, contextlib.nullcontext)))):
                side.append(run)
        self.check("ep", *map(self.together, sides))

    @staticmethod
    def of_one_process(seed, cast):
        mixture = Mixture(seed)
        return Run(train(AXES["one"](mixture, SHAPE, adamw), cast), mixture.weights())

    @staticmethod
    def together(runs):
        return Run(np.concatenate([run.losses for run in runs]),
                   {f"{at} {name}": value for at, run in enumerate(runs) for name, value in run.weights.items()})


load_tests = rotating(2)


if __name__ == "__main__":
    unittest.main()
