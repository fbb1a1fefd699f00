"""The text of a job that init writes."""

import re

import yaml


def load(job):
    """A job, whose 1e-06 PyYAML, which reads YAML 1.1, would take for a text."""
    return yaml.safe_load(re.sub(r"\b(\d+)e(-?\d+)\b", r"\1.0e\2", job))
