"""Writes the table that examples/jobs/table.yaml trains on: 30 scaled features and the class, a row a tumour."""

import numpy as np
from sklearn.datasets import load_breast_cancer

data = load_breast_cancer()
order = np.random.default_rng(1).permutation(len(data.target))
features = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
print(",".join([name.replace(" ", "_") for name in data.feature_names] + ["benign"]))
for row in order:
    print(",".join(f"{value:.5f}" for value in features[row]) + f",{data.target[row]}")
