#!/bin/sh
# One program for each cluster: generated, audited, compared with the one that was approved, compiled. The CI files
# next to this one call it step by step; so can anyone.
#
# usage: sh pipeline.sh clusters             the clusters' names
#        sh pipeline.sh STEP CLUSTER         generate, audit, compare, build; or all of them in this order
#        sh pipeline.sh accept CLUSTER       after a review: what was generated is what is approved
#
# A step that ends with another status than 0 stops the pipeline. OUT/CLUSTER gets trainer.c, its manifest, its provenance
# and bill of materials, the audit as SARIF, JUnit's XML and a page, the comparison, and the program.
set -eu
here=$(dirname "$0")
job=${JOB:-$here/../jobs/tiny.yaml}
out=${OUT:-out}
approved=${APPROVED:-approved}
clusters=${CLUSTERS:-$here/clusters.txt}
gen=${ACCEL_GEN:-accel-gen}

step=${1:-}
if [ "$step" = clusters ]; then
  sed -n 's/^\([a-z][a-z0-9_-]*\) .*/\1/p' "$clusters"
  exit
fi
cluster=${2:?a cluster is missing}
# shellcheck disable=SC2046 # words are meant
set -- $(sed -n "s/^$cluster  *//p" "$clusters")
if [ $# = 0 ]; then
  echo "no cluster '$cluster' in $clusters" >&2
  exit 2
fi
march=$1
shift
for key in "$@"; do
  shift
  set -- "$@" --set "$key"
done
folder=$out/$cluster
cflags="-std=c17 -O3 -march=$march"

generate() {
  mkdir -p "$folder"
  "$gen" "$job" -o "$folder/trainer.c" --manifest --provenance "$@"
  "$gen" audit --regenerate "$folder/trainer.manifest.json"
}

# report FORMAT FILE: the audit, whatever it finds
report() {
  "$gen" audit "$folder/trainer.c" --march "$march" --format "$1" --fail-on never -o "$folder/$2"
}

# Every claim is to hold.
audit() {
  report sarif audit.sarif
  report junit audit.xml
  report html audit.html
  "$gen" audit "$folder/trainer.c" --march "$march"
}

# Another job, plan or step path than the approved one needs somebody who says yes.
compare() {
  if [ ! -f "$approved/$cluster/trainer.manifest.json" ]; then
    echo "nothing is approved for $cluster; look at $folder, then: sh $0 accept $cluster"
    return 1
  fi
  status=0
  "$gen" diff "$approved/$cluster/trainer.manifest.json" "$folder/trainer.manifest.json" --json -o "$folder/diff.json" || status=$?
  "$gen" diff "$approved/$cluster/trainer.manifest.json" "$folder/trainer.manifest.json" || true
  return $status
}

build() {
  CFLAGS=$cflags "$gen" build "$job" -o "$folder/trainer" --provenance "$@"
}

accept() {
  mkdir -p "$approved/$cluster"
  cp "$folder/trainer.c" "$folder/trainer.manifest.json" "$approved/$cluster"
}

case $step in
generate | build) "$step" "$@" ;;
audit | compare | accept) "$step" ;;
all)
  generate "$@"
  audit
  compare
  build "$@"
  ;;
*)
  echo "no step '$step': generate, audit, compare, build, all, accept or clusters" >&2
  exit 2
  ;;
esac
