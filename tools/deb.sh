#!/bin/sh
# Builds the Debian package of this version, build/packages/accel-gen_VERSION_ARCHITECTURE.deb, from what the build made,
# and has lintian check it where that is installed. Needs debhelper and chrpath.
set -eu
for tool in dh chrpath; do
  command -v $tool >/dev/null || { echo "deb: there is no $tool; install debhelper and chrpath" >&2; exit 1; }
done
version=$(sh tools/version.sh)
if [ "$(dpkg-parsechangelog -S Version)" != "$version" ]; then
  echo "deb: debian/changelog begins with another version than $version of include/accel/version.h" >&2
  exit 1
fi
mkdir -p build/packages
debian/rules binary
dh_clean
package=build/packages/accel-gen_${version}_$(dpkg --print-architecture).deb
if command -v lintian >/dev/null; then lintian --allow-root --fail-on error,warning "$package"; fi
ls -l "$package"
