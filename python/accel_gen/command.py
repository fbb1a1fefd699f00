"""The command: it is started from here, and Python is gone when it runs."""

import os
import shutil
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def find():
    """The path of the command: $ACCEL_GEN, this package's own, that of the source tree, or one on the PATH."""
    places = [os.environ.get("ACCEL_GEN"), PACKAGE / "root" / "bin" / "accel-gen", PACKAGE.parents[1] / "build" / "accel-gen",
              shutil.which("accel-gen")]
    for place in places:
        if place and os.access(place, os.X_OK):
            return str(place)
    raise FileNotFoundError("there is no accel-gen here: install it, or name it in the variable ACCEL_GEN")


def main():
    command = find()
    os.execv(command, [command, *sys.argv[1:]])
