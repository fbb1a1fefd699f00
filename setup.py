"""Builds the Python package: what `ninja install` installs, below accel_gen/root."""

import os
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

TREE = Path(__file__).resolve().parent
VERSION = subprocess.check_output(["sh", "tools/version.sh"], cwd=TREE, text=True).strip()


class Build(build_py):
    def run(self):
        super().run()
        prefix = Path(self.build_lib).resolve() / "accel_gen" / "root"
        subprocess.run(["ninja", "all"], cwd=TREE, check=True)
        subprocess.run(["sh", "tools/install.sh"], cwd=TREE, check=True, env={**os.environ, "PREFIX": str(prefix), "DESTDIR": ""})
        subprocess.run(["strip", prefix / "bin" / "accel-gen"], check=True)


class OfOneMachine(Distribution):
    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


WORK = TREE / "build" / "python"
WORK.mkdir(parents=True, exist_ok=True)
setup(version=VERSION, options={"build": {"build_base": str(WORK)}, "egg_info": {"egg_base": str(WORK)}},
      distclass=OfOneMachine, cmdclass={"build_py": Build, "bdist_wheel": Wheel})
