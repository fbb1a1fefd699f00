"""What PyTorch on the GPU machine needs to train the small jobs of pack.sh: weights to start from, and the
batches in the order in which the trainers take them.

usage: samples.py FOLDER    writes start.safetensors and batches.bin, tokens of 16 bits: [steps][batch][length + 1]"""

import pathlib
import sys

import numpy as np

TREE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TREE / "tests" / "program"))

from harness import save_file, windows  # noqa: E402
from torch_gpt import random_weights  # noqa: E402

CONFIG = {"n_layer": 2, "n_head": 4, "n_embd": 64, "vocab_size": 256, "block_size": 64}
SEED, STEPS, BATCH = 7, 200, 8


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    corpus = np.fromfile(folder / "train.bin", dtype=np.uint16).astype(np.uint8).tobytes()
    batch_at = windows(corpus, CONFIG["block_size"], BATCH, SEED, True, 0.1)
    rows = []
    for step in range(STEPS):
        tokens, targets = batch_at(step)
        rows.append(np.concatenate([tokens, targets[:, -1:]], axis=1))
    np.stack(rows).astype(np.uint16).tofile(folder / "batches.bin")
    save_file(random_weights(CONFIG, "nanogpt", seed=3), folder / "start.safetensors")
