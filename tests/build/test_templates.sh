#!/bin/sh
# fast
# No template asks which device it is for: what differs from device to device is in their device.c.j2, all of which have
# the same names, and the templates of processors know of no other device.
set -eu
failed=0
say() {
  if [ -z "$2" ]; then
    echo "ok $1"
  else
    echo "not ok $1: $(echo "$2" | tr '\n' ' ')"
    failed=1
  fi
}
names() {
  sed -nE 's/^\{% (macro|set) ([a-z_]+).*/\2/p' "$1/device.c.j2" | sort
}
say "no template asks for a device's name" "$(grep -rnE 'device\.name *(==|!=|in )|\[device\.name\]' templates || true)"
say "templates of processors know of no GPU" "$(grep -rniE 'cuda|gpu' templates/cpu || true)"
mkdir -p build/tests/templates
names templates/cpu >build/tests/templates/cpu
for folder in templates/*/; do
  say "${folder%/}/device.c.j2 defines the same names" "$(names "$folder" | diff - build/tests/templates/cpu || true)"
done
exit $failed
