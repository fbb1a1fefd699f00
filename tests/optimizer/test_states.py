"""The table of what outlives a step names each optimizer's states as PyTorch's optimizer does."""

import re
import unittest

import torch
from parts import generate, make_job
from rules import RULES, keys_of, peer_of

# Numbers that follow from the step's number alone, and so are no state here.
COUNTED = {"step", "mu_product"}


def peer_states(name):
    weights = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3, 2))]
    peer = peer_of(name, weights)
    for weight in weights:
        weight.grad = torch.ones_like(weight)
    peer.step()
    states = [pair for weight in weights for pair in peer.state[weight].items()]
    return {key for key, value in states if value is not None and key not in COUNTED}


class States(unittest.TestCase):
    def test_names(self):
        for name in RULES:
            with self.subTest(name):
                text = generate(make_job(optimizer=keys_of(name)))
                rows = re.findall(r'^    {"(\w+)", "(\w*)", ACCEL_FLOAT32, offsetof\(struct arena, (\w+)\)', text,
                                  re.MULTILINE)
                self.assertEqual(rows[0], ("model", "", "weights"))
                self.assertEqual({row[1] for row in rows[1:] if row[0] == "optimizer"}, peer_states(name))
                self.assertEqual(len({row[2] for row in rows}), len(rows))


if __name__ == "__main__":
    unittest.main()
