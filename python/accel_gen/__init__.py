"""The command accel-gen in a Python environment: it is started from here, and Python is gone when it runs."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent / "root"  # bin, lib, include and share, as `ninja install` lays them


def main():
    command = ROOT / "bin" / "accel-gen"
    os.execv(command, [str(command), *sys.argv[1:]])
