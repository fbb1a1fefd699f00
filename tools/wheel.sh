#!/bin/sh
# Builds the Python wheel of this version into build/packages, and from it one that carries the libraries that the command
# is linked with and runs on other distributions, where auditwheel and patchelf are installed.
# usage: [PYTHON=python3] tools/wheel.sh
set -eu
python=${PYTHON:-python3}
version=$(sh tools/version.sh)
mkdir -p build/packages
rm -rf build/python build/packages/accel_gen-"$version"-*.whl
isolation= # with a setuptools at hand nothing is downloaded
if "$python" -c 'import setuptools.command.bdist_wheel' 2>/dev/null; then isolation=--no-build-isolation; fi
# shellcheck disable=SC2086
"$python" -m pip wheel --quiet --no-deps $isolation --wheel-dir build/packages .
ls -l build/packages/accel_gen-"$version"-*.whl
if command -v auditwheel >/dev/null && command -v patchelf >/dev/null; then
  auditwheel repair --strip --wheel-dir build/packages build/packages/accel_gen-"$version"-*-linux_*.whl
  ls -l build/packages/accel_gen-"$version"-*-manylinux_*.whl
else
  echo "wheel: it runs where the libraries of this machine are; with auditwheel and patchelf it would carry them"
fi
