#!/bin/sh
# Installs the packages that building and testing need, on Debian and Ubuntu, and says nothing when none is missing.
# On another system it prints what to install, and the build continues with what is there.
# usage: tools/install-deps.sh [--test]
set -eu

packages="gcc libc6-dev ninja-build pkg-config libyaml-dev libjansson-dev libyajl-dev libpcre2-dev libutf8proc-dev libdnnl-dev libcapstone-dev libelf-dev libdw-dev zlib1g-dev libopenmpi-dev openmpi-bin libhwloc-dev libsqlite3-dev"
optional="libzstd-dev libarchive-dev libpng-dev libjpeg-dev libmicrohttpd-dev liburing-dev" # where the system has them, for parts of the command and of the runtime
llvm= # the major version of a libclang that is here already
for version in 21 20 19 18 17; do
  if [ -f "/usr/lib/llvm-$version/include/clang-c/Index.h" ]; then llvm=$version && break; fi
done
[ -n "$llvm" ] || packages="$packages libclang-LLVM-dev"
if [ "${1:-}" = --test ]; then
  packages="$packages clang-LLVM clang-format-LLVM clang-tidy-LLVM libclang-rt-LLVM-dev libomp-LLVM-dev libcmocka-dev python3 python3-venv iproute2 slurm-wlm munge qemu-user debhelper chrpath lintian zsh fish"
  optional="$optional zstd hipcc libamdhip64-dev"
  # Where an x86 machine makes programs for 64-bit Arm, and the other way they are its own.
  if [ "$(uname -m)" = x86_64 ]; then packages="$packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross"; fi
fi

if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
  if [ ! -f build/accel-gen ]; then
    echo "This is not a Debian or Ubuntu system: nothing was installed. What is needed, by its Debian names:"
    echo "  $packages" | sed 's/LLVM/19/g'
  fi
  exit 0
fi

as_root() {
  if [ "$(id -u)" = 0 ]; then env DEBIAN_FRONTEND=noninteractive "$@"; else sudo env DEBIAN_FRONTEND=noninteractive "$@"; fi
}

installed() {
  dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'
}

# The packages of the list that are missing, for LLVM version $1.
missing() {
  for package in $(echo "$packages" | sed "s/LLVM/$1/g"); do
    installed "$package" || printf '%s ' "$package"
  done
}

missing_optional() {
  for package in $optional; do
    if ! installed "$package" && apt-cache show "$package" >/dev/null 2>&1; then printf '%s ' "$package"; fi
  done
}

if [ -n "$llvm" ] && [ -z "$(missing "$llvm")$(missing_optional)" ]; then exit 0; fi

# Without what is optional all goes on.
if [ -n "$llvm" ] && [ -z "$(missing "$llvm")" ]; then
  wanted=$(missing_optional)
  # shellcheck disable=SC2086
  if ! as_root apt-get update -qq || ! as_root apt-get install -y -qq --no-install-recommends $wanted >/dev/null; then
    echo "not installed, and done without: $wanted"
  fi
  exit 0
fi

as_root apt-get update -qq
if [ -z "$llvm" ]; then
  for version in 19 18 17; do
    if apt-cache show "libclang-$version-dev" >/dev/null 2>&1; then llvm=$version && break; fi
  done
fi
wanted="$(missing "${llvm:-19}")$(missing_optional)"
echo "installing: $wanted"
# shellcheck disable=SC2086
as_root apt-get install -y -qq --no-install-recommends $wanted >/dev/null
