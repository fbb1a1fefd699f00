"""Writes the table that examples/jobs/vit.yaml trains on: handwritten digits, 8 x 8 scaled numbers and the digit a row."""

import numpy as np
from sklearn.datasets import load_digits

data = load_digits()
order = np.random.default_rng(1).permutation(len(data.target))
images = (data.data - data.data.mean()) / data.data.std()
for row in order:
    print(",".join(f"{value:.5f}" for value in images[row]) + f",{data.target[row]}")
