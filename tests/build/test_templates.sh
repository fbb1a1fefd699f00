#!/bin/sh
# fast
# No template asks which device it is for: what differs from device to device is in their device.c.j2, all of which have
# the same names, or some of them where a compiler of its own makes a device's kernels; and in their primitives.c.j2 and
# channels.c.j2, which have all that kernels for all devices use; and no template names the folder of a device, instead of
# device/NAME.
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
say "what is not in a GPU's folder knows of no GPU" "$(grep -rniE 'cuda|gpu' templates/program templates/kernels templates/devices/cpu || true)"
say "templates name no device's folder" "$(grep -rn '"devices/' templates || true)"
mkdir -p build/tests/templates
names templates/devices/cpu >build/tests/templates/cpu
for folder in templates/devices/*/; do
  if [ ! -e "$folder/primitives.c.j2" ]; then # a compiler of its own makes its kernels
    names "$folder" >build/tests/templates/own
    say "${folder%/}/device.c.j2 defines no other names" "$(comm -23 build/tests/templates/own build/tests/templates/cpu)"
    continue
  fi
  say "${folder%/}/device.c.j2 defines the same names" "$(names "$folder" | diff - build/tests/templates/cpu || true)"
  # What kernels import under a name of their own.
  for file in "primitives d" "channels channel"; do
    grep -rohE "\\b${file#* }\\.[a-z_]+" templates/kernels | grep -v '\.c$' | cut -d . -f 2 | sort -u >build/tests/templates/used
    defining=$folder${file% *}.c.j2
    sed -nE 's/^\{% (macro|set) ([a-z_]+).*/\2/p' "$defining" | sort -u >build/tests/templates/defined
    say "$defining defines what kernels use" "$(comm -13 build/tests/templates/defined build/tests/templates/used)"
  done
done
exit $failed
