"""What tests of this folder that import PyTorch share (tests/together.py)."""

import torch  # noqa: F401
