"""What tests of this folder that import PyTorch share (tests/together.py)."""

import accelerate  # noqa: F401
import torch._dynamo  # noqa: F401
