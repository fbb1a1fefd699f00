"""What tests of this folder that import PyTorch share (tests/together.py)."""

import torch  # noqa: F401
import transformers.models.gpt2.modeling_gpt2  # noqa: F401 (and with it what each model imports)
