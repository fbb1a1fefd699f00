"""examples/models/lstm.c and gcn.c against PyTorch, and mamba.c against its class of transformers."""

import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np
import torch
from peer import MODELS, SEED, Peer, Text, drawn
from safetensors.torch import load_file, save_file
from transformers import MambaConfig, MambaForCausalLM


class Saved(torch.nn.Module):
    """A module of PyTorch's own that is saved and loaded as transformers' are; `made` are its arguments."""

    def save_pretrained(self, folder):
        save_file(self.state_dict(), pathlib.Path(folder, "model.safetensors"))
        pathlib.Path(folder, "config.json").write_text(json.dumps(self.made))

    @classmethod
    def from_pretrained(cls, folder, output_loading_info):
        model = cls(**json.loads(pathlib.Path(folder, "config.json").read_text()))
        missing, unexpected = model.load_state_dict(load_file(pathlib.Path(folder, "model.safetensors")), strict=False)
        return model, {"missing_keys": missing, "unexpected_keys": unexpected}


class Memory(Saved):
    def __init__(self, num_layers, n_embd, hidden_size, vocab_size):
        super().__init__()
        self.made = {"num_layers": num_layers, "n_embd": n_embd, "hidden_size": hidden_size, "vocab_size": vocab_size}
        self.embedding = torch.nn.Embedding(vocab_size, n_embd)
        self.lstm = torch.nn.LSTM(n_embd, hidden_size, num_layers, batch_first=True)
        self.output = torch.nn.Linear(hidden_size, vocab_size)

    def forward(self, tokens):
        return self.output(self.lstm(self.embedding(tokens))[0])


class Recurrent(Text):
    @drawn
    def test_lstm(self):
        same = {"num_layers": 2, "n_embd": self.random.randint(3, 20), "hidden_size": self.random.randint(3, 40), "vocab_size": 256}
        data, batches = self.text(self.random.randint(2, 30))
        self.check("lstm.c", Memory(**same), same, data, batches, lambda model, tokens, targets: torch.nn.functional.cross_entropy(
            model(tokens).flatten(0, 1), targets.flatten()))

    @drawn
    def test_mamba(self):
        same = {"num_hidden_layers": 2, "hidden_size": self.random.randint(5, 24), "state_size": self.random.randint(3, 17),
                "conv_kernel": self.random.randint(2, 4), "time_step_rank": self.random.randint(1, 5), "vocab_size": 256}
        self.causal("mamba.c", MambaForCausalLM(MambaConfig(**same, use_cache=False)), same, self.random.randint(2, 40))


class Layer(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = torch.nn.Linear(inputs, outputs, bias=False)
        self.bias = torch.nn.Parameter(0.1 * torch.randn(outputs))

    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, self.lin(x)) + self.bias


class Graph(Saved):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.made = {"features": features, "hidden": hidden, "classes": classes}
        self.convs = torch.nn.ModuleList([Layer(features, hidden), Layer(hidden, classes)])

    def forward(self, x, adjacency):
        return self.convs[1](torch.relu(self.convs[0](x, adjacency)), adjacency)


class Convolved(Peer):
    @drawn
    def test_gcn(self):
        """Citations as Cora has them: sparse rows of words, and papers that mostly cite their own subject."""
        rng = np.random.default_rng(SEED)
        nodes, words, classes, known = 120, 30, 5, 40
        labels = rng.integers(0, classes, nodes)
        features = ((rng.random((nodes, words)) < 0.1) | ((np.arange(words) % classes == labels[:, None]) & (rng.random((nodes, words)) < 0.3)))
        features = (features / np.maximum(1, features.sum(1, keepdims=True))).astype(np.float32)
        chance = np.where(labels[:, None] == labels, 0.12, 0.01)
        edges = np.argwhere(np.triu(rng.random((nodes, nodes)) < chance, 1))
        whole = np.eye(nodes)
        whole[edges[:, 0], edges[:, 1]] = whole[edges[:, 1], edges[:, 0]] = 1
        root = whole.sum(1) ** -0.5
        adjacency = torch.tensor(root[:, None] * whole * root, dtype=torch.float32).to_sparse_csr()
        header = f"enum {{ GRAPH_EDGES = {len(edges)} }};\nconst int graph_edges[GRAPH_EDGES][2] = {{" + ", ".join(
            f"{{{a}, {b}}}" for a, b in edges) + "};\n"
        folder = pathlib.Path(tempfile.mkdtemp(prefix="accel-graph-"))
        shutil.copy(MODELS / "gcn.c", folder)
        (folder / "graph.h").write_text(header)
        text = "".join(",".join(f"{x:.9g}" for x in row) + f",{label}\n" for row, label in zip(features, labels))
        data = {"train": {"path": "nodes.csv", "format": "csv"}, "features": words, "batch_size": nodes, "eval_fraction": 0,
                "shuffle": False, "files": {"nodes.csv": text.encode()}}
        self.check(str(folder / "gcn.c"), Graph(words, 16, classes), {"hidden_channels": 16, "out_channels": classes, "n_train": known}, data,
                   lambda n: (torch.tensor(features), torch.tensor(labels)),
                   lambda model, x, y: torch.nn.functional.cross_entropy(model(x, adjacency)[:known], y[:known]))


if __name__ == "__main__":
    unittest.main()
