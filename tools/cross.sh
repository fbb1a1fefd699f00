#!/bin/sh
# What programs for 64-bit Arm need on another machine, from the distribution's own packages: oneDNN, jansson and the libraries
# of the compiler's own for that processor, unpacked in a folder next to the machine's. Nothing of the machine changes.
#
# usage: tools/cross.sh [FOLDER]    by default ~/.cache/accel-gen/aarch64
# Prints settings for `accel-gen build` and for a bundle's build.sh, and RUN_AARCH64, which runs a program:
#   eval "$(sh tools/cross.sh)" && accel-gen build job.yaml --set devices.arch=neon -o trainer && $RUN_AARCH64 ./trainer
# Needs apt-get, gcc-aarch64-linux-gnu, and qemu-user to run what was built.
set -eu
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/accel-gen/aarch64}
triple=aarch64-linux-gnu
packages="libdnnl2 libdnnl-dev libjansson4 libjansson-dev libgomp1 libstdc++6"

fail() {
  echo "cross.sh: $1" >&2
  exit 1
}

# Lists of packages of its own, so that the machine's know no other architecture.
apt_arm() {
  apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$1/lists" -o Dir::State::status=/dev/null \
    -o Dir::Cache="$1/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$2" $3
}

make_root() { # FOLDER: which is moved there whole, so that a broken one is never used
  mkdir -p "$1/lists/partial" "$1/cache/archives/partial" "$1/packages" "$1/sysroot"
  apt_arm "$1" update "" >"$1/log" 2>&1 || fail "the lists of packages for arm64 did not come: $(tail -1 "$1/log")"
  (cd "$1/packages" && apt_arm "$1" download "$packages" >>"$1/log" 2>&1) || fail "packages for arm64 did not come: $(tail -1 "$1/log")"
  for package in "$1"/packages/*.deb; do dpkg -x "$package" "$1/sysroot"; done
  cat >"$1/sysroot/pkg-config" <<SCRIPT
#!/bin/sh
PKG_CONFIG_SYSROOT_DIR=$folder PKG_CONFIG_LIBDIR=$folder/usr/lib/$triple/pkgconfig exec pkg-config "\$@"
SCRIPT
  chmod +x "$1/sysroot/pkg-config"
}

command -v "$triple-gcc" >/dev/null || fail "no $triple-gcc (gcc-aarch64-linux-gnu)"
if [ ! -x "$folder/pkg-config" ]; then
  command -v apt-get >/dev/null || fail "no apt-get: unpack $packages for arm64 into $folder"
  mkdir -p "$(dirname "$folder")"
  made=$(mktemp -d "$folder.XXXXXX")
  trap 'rm -rf "$made"' EXIT
  make_root "$made"
  mv -T "$made/sysroot" "$folder" 2>/dev/null || [ -x "$folder/pkg-config" ] || fail "cannot make $folder"
fi
cat <<SETTINGS
export CPPFLAGS='-I$folder/usr/include -I$folder/usr/include/$triple'
export LDFLAGS='-L$folder/usr/lib/$triple'
export PKG_CONFIG='$folder/pkg-config'
export RUN_AARCH64='qemu-aarch64 -L /usr/$triple -E LD_LIBRARY_PATH=$folder/usr/lib/$triple'
SETTINGS
