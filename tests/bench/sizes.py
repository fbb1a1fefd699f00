"""The jobs that tests/bench/models.py trains: those of examples/jobs as they are, and some of their models at sizes at which people
train: SIZES names the job and what of it is otherwise. Nothing heavy is read here, since model_peer.py and models.py both do."""

import pathlib

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = {
    "mlp": ("table", {"data": {"features": 784, "batch_size": 128}, "model": {"config": {"width": 1024, "n_classes": 10}}}),
    "resnet18": ("resnet", {"data": {"features": 3 * 32 * 32, "batch_size": 32},
                            "model": {"config": {"image_size": 32, "num_channels": 3, "embedding_size": 64, "stages": 4,
                                                 **{f"hidden_sizes.{i}": 64 << i for i in range(4)}, **{f"depths.{i}": 2 for i in range(4)}}}}),
    "gru512": ("gru", {"data": {"batch_size": 64}, "model": {"config": {"n_embd": 256, "width": 512}}}),
}


def base_of(name):
    """The example of a name."""
    return SIZES.get(name, (name, {}))[0]


def merge(into, changes):
    for key, value in changes.items():
        if isinstance(value, dict):
            merge(into[key], value)
        else:
            into[key] = value
    return into


def job_of(name):
    base, changes = SIZES.get(name, (name, {}))
    return merge(yaml.safe_load((ROOT / "examples/jobs" / f"{base}.yaml").read_text()), changes)
